"""Completion of partially known graphs."""

from .estimator import CHAIN_STEPS, RUNS, Completion, EdgeScore, LabelScore, complete
from .partial import MARK, STATES, PartialGraph
from .unknowns import Unknowns

__all__ = [
    "CHAIN_STEPS",
    "MARK",
    "RUNS",
    "STATES",
    "Completion",
    "EdgeScore",
    "LabelScore",
    "PartialGraph",
    "Unknowns",
    "complete",
]
