"""Estimates of the marginal likelihood, each with its error."""

from .annealed import annealed_log_weights
from .bdmc import bdmc_nll
from .estimate import estimate_nll, iterate_nll, summarise
from .importance import graph_log_weights
from .psis import smooth_weights

__all__ = [
    "annealed_log_weights",
    "bdmc_nll",
    "estimate_nll",
    "graph_log_weights",
    "iterate_nll",
    "smooth_weights",
    "summarise",
]
