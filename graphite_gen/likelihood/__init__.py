"""Estimates of the marginal likelihood, each with its error."""

from .annealed import annealed_log_weights
from .diagnostics import smooth_weights
from .estimate import estimate_nll, iterate_nll, summarise
from .importance import graph_log_weights
from .sandwich import sandwich_nll

__all__ = [
    "annealed_log_weights",
    "estimate_nll",
    "graph_log_weights",
    "iterate_nll",
    "sandwich_nll",
    "smooth_weights",
    "summarise",
]
