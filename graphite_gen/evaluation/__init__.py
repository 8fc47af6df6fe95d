"""Whether samples are any good: every figure in one record, and in words."""

from .judgement import Evaluation, Summary, evaluate
from .stage_point import StagePoint

__all__ = ["Evaluation", "StagePoint", "Summary", "evaluate"]
