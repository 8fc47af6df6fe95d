"""Two bounds on the NLL of one graph that a model drew."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..records import Record
from .diagnostics import needs_annealing

__all__ = ["GraphSandwich", "log_mean", "lower_bound"]


@dataclass(frozen=True)
class GraphSandwich(Record):
    """The bounds of one graph that the model drew, in nats.

    Attributes:
        nodes: Its number of nodes.
        edges: Its number of pairs that are not zero.
        lower: The lower bound on -log p(A|n), by proposals with the truth among them.
        upper: The upper bound, by the proposals alone: what method ``ais`` gives; of a staged model, which has no such
            method, by orders of which a few follow no rule.
        importance: What method ``is`` gives.
        khat: The Pareto shape of the weights of ``is``; None where there are too few to tell.
        anneals: Whether the model has a method ``ais``, which a staged one has not.
    """

    nodes: int
    edges: int
    lower: float
    upper: float
    importance: float
    khat: float | None
    anneals: bool = True

    @property
    def auto(self) -> float:
        """What method ``auto`` gives: that of a staged model is ``is``, however poor its weights are."""
        return self.upper if self.anneals and needs_annealing(self.khat) else self.importance


def log_mean(log_weights: Tensor) -> float:
    """The logarithm of the plain mean of weights: smoothed, it would be no bound."""
    return float(log_weights.logsumexp(0)) - math.log(len(log_weights))


def lower_bound(true: Tensor, others: Tensor) -> float:
    r"""A lower bound, in expectation, on the NLL of a graph, from a weight of the truth among those of proposals.

    .. math:: E\left[\frac{K}{w_{true} + \sum_{k=2}^{K} w_k}\right] = \frac{1}{p(A)}

    (Sobolev & Vetrov, 2019; of annealed chains, Brekelmans et al., 2022), so that the logarithm of a mean over several
    weights of the truth stays below :math:`-\log p(A)` in expectation.

    Arguments:
        true: Log-weights of exact posterior samples, with shape :math:`(J,)`.
        others: Log-weights of the proposals beside each, with shape :math:`(K - 1,)` or :math:`(J, K - 1)`.
    """
    among = torch.cat([true.unsqueeze(-1), others.expand(len(true), -1)], dim=-1)

    return log_mean(math.log(among.shape[-1]) - among.logsumexp(-1))
