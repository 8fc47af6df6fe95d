"""Ego networks: an Erdős–Rényi graph and one node joined to all others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from .base import Family, shuffled
from .erdos_renyi import LOG_ZERO, draw_pairs, log_binomials, log_connected, log_prob_of_pairs, pair_entropy

__all__ = ["Ego"]


@dataclass(frozen=True)
class Ego(Family):
    """A universal node joined to an Erdős–Rényi graph with edge probability ``p`` on the other nodes."""

    name: ClassVar[str] = "ego"
    summary: ClassVar[str] = "one node is joined to all, other pairs are edges with probability p"

    p: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise self._value_error("p", self.p, "between 0 and 1")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        spokes = np.stack([np.arange(n - 1), np.full(n - 1, n - 1)], axis=1)

        return shuffled(n, np.concatenate([draw_pairs(n - 1, self.p, rng).edges, spokes]), rng)

    def _contains(self, graph: SimpleGraph) -> bool:
        return self.log_prob(graph) > -math.inf

    def _log_prob(self, graph: SimpleGraph) -> float:
        r"""Any of the :math:`u` universal nodes may be the ego, and the rest has the same number of edges in each case:
        :math:`p(A \mid n) = \frac{u}{n} p^{E'} (1 - p)^{\binom{n-1}{2} - E'}` with :math:`E' = E - (n - 1)`.
        """
        n = graph.nodes
        universal = int((graph.degrees() == n - 1).sum())
        if universal == 0:
            return -math.inf

        return math.log(universal / n) + log_prob_of_pairs(len(graph.edges) - (n - 1), math.comb(n - 1, 2), self.p)

    def _entropy(self, n: int) -> float | None:
        if n > self.most_nodes:
            return None
        log_egos = float(_universal(n - 1, self.p) @ np.log(np.arange(1, n + 1)))

        return math.comb(n - 1, 2) * pair_entropy(self.p) + math.log(n) - log_egos


def _universal(n: int, p: float) -> NDArray[np.float64]:
    r"""The probabilities that an Erdős–Rényi graph has 0, 1, … n universal nodes, with shape :math:`(n + 1,)`.

    Universal nodes are isolated in the complement, an Erdős–Rényi graph with edge probability :math:`1 - p`. By the
    size :math:`a` of the component of a given node, :math:`k` nodes of the complement have no isolated one with
    probability

    .. math:: D_k = \sum_{a=2}^{k} \binom{k-1}{a-1} C_a p^{a(k-a)} D_{k-a}

    with :math:`C_a` from :func:`log_connected`. No term is negative, so there is no cancellation.
    """
    log_p = math.log(p) if p > 0 else LOG_ZERO
    log_joined = log_connected(n, 1 - p)
    log_none = np.full(n + 1, -np.inf)
    log_none[0] = 0.0
    for k in range(2, n + 1):
        a = np.arange(2, k + 1)
        log_none[k] = np.logaddexp.reduce(
            log_binomials(k - 1)[a - 1] + log_joined[a] + a * (k - a) * log_p + log_none[k - a]
        )
    counts = np.arange(n + 1)
    log_all = (counts * (counts - 1) // 2 + counts * (n - counts)) * log_p

    return np.asarray(np.exp(log_binomials(n) + log_all + log_none[::-1]))
