"""Completion of partially known graphs."""

from .estimator import CHAIN_STEPS, RUNS, Completion, EdgeScore, complete
from .partial import MARK, STATES, PartialGraph

__all__ = ["CHAIN_STEPS", "MARK", "RUNS", "STATES", "Completion", "EdgeScore", "PartialGraph", "complete"]
