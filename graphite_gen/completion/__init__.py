"""The rest of a graph that is known in part."""

from .complete import PARTICLES, RUNS, Completion, EdgeScore, complete
from .partial import MARK, STATES, PartialGraph

__all__ = ["MARK", "PARTICLES", "RUNS", "STATES", "Completion", "EdgeScore", "PartialGraph", "complete"]
