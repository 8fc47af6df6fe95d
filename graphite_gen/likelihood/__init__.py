"""Estimates of the marginal likelihood, each with its standard error and diagnostics."""

from .annealed import annealed_log_weights
from .bdmc import bdmc_nll
from .estimate import NLLOptions, estimate_nll, iterate_nll, summarise
from .importance import graph_log_weights
from .psis import smooth_weights

__all__ = [
    "NLLOptions",
    "annealed_log_weights",
    "bdmc_nll",
    "estimate_nll",
    "graph_log_weights",
    "iterate_nll",
    "smooth_weights",
    "summarise",
]
