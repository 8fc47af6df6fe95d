"""Whether samples are any good: every figure in one record, and in words."""

from .judgement import Evaluation, Summary, evaluate

__all__ = ["Evaluation", "Summary", "evaluate"]
