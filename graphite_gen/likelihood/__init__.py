"""Estimates of the marginal likelihood, each with its error."""

from .importance import estimate_nll, graph_log_weights, iterate_nll, summarise

__all__ = ["estimate_nll", "graph_log_weights", "iterate_nll", "summarise"]
