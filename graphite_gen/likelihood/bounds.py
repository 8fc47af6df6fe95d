"""Two bounds on the NLL of one graph that a model drew."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from ..records import Record
from .diagnostics import needs_annealing

__all__ = ["GraphSandwich", "log_mean"]


@dataclass(frozen=True)
class GraphSandwich(Record):
    """The bounds of one graph that the model drew, in nats.

    Attributes:
        nodes: Its number of nodes.
        edges: Its number of pairs that are not zero.
        lower: The lower bound on -log p(A|n), by chains from the very latents of the graph.
        upper: The upper bound, by chains from the proposal: what method ``ais`` gives.
        importance: What method ``is`` gives.
        khat: The Pareto shape of the weights of ``is``; None where there are too few to tell.
    """

    nodes: int
    edges: int
    lower: float
    upper: float
    importance: float
    khat: float | None

    @property
    def auto(self) -> float:
        """What method ``auto`` gives."""
        return self.upper if needs_annealing(self.khat) else self.importance


def log_mean(log_weights: Tensor) -> float:
    """The logarithm of the plain mean of weights: smoothed, it would be no bound."""
    return float(log_weights.logsumexp(0)) - math.log(len(log_weights))
