"""Ego networks: an Erdős–Rényi graph and one node that knows everyone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ..graph import SimpleGraph
from .base import Family, shuffled
from .erdos_renyi import draw_pairs, log_prob_of_pairs, pair_entropy

__all__ = ["Ego"]


@dataclass(frozen=True)
class Ego(Family):
    r"""A universal node joined to an Erdős–Rényi graph on the other :math:`n - 1`.

    Attributes:
        p: The probability of an edge between two of the others.
    """

    name: ClassVar[str] = "ego"
    summary: ClassVar[str] = "one node is joined to all, other pairs are edges with probability p"

    p: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise self._refuse_value("p", "a probability between 0 and 1")

    def check_size(self, n: int) -> None:
        if n < 1:
            raise self._refuse_size(n, "pass at least 1")

    def sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        self.check_size(n)
        spokes = np.stack([np.arange(n - 1), np.full(n - 1, n - 1)], axis=1)

        return shuffled(n, np.concatenate([draw_pairs(n - 1, self.p, rng).edges, spokes]), rng)

    def contains(self, graph: SimpleGraph) -> bool:
        return self.log_prob(graph) > -math.inf

    def log_prob(self, graph: SimpleGraph) -> float:
        r"""The exact :math:`\log p(A \mid n)` in nats.

        Any of the :math:`u` universal nodes may be the ego, and what is left has the same number of edges:
        :math:`p(A \mid n) = \frac{u}{n} p^{E'} (1 - p)^{\binom{n-1}{2} - E'}` with :math:`E' = E - (n - 1)`.
        """
        n = graph.nodes
        universal = int((graph.degrees() == n - 1).sum())
        if universal == 0:
            return -math.inf

        return math.log(universal / n) + log_prob_of_pairs(len(graph.edges) - (n - 1), math.comb(n - 1, 2), self.p)

    def floor(self, n: int) -> float:
        self.check_size(n)
        chances = (_universal(n - 1, k, self.p) for k in range(n))
        log_egos = sum(chance * math.log(k + 1) for k, chance in enumerate(chances))

        return math.comb(n - 1, 2) * pair_entropy(self.p) + math.log(n) - log_egos


def _universal(n: int, k: int, p: float) -> float:
    """The probability that an Erdős–Rényi graph on ``n`` nodes has exactly ``k`` universal ones."""
    return float(math.comb(n, k) * p ** (math.comb(k, 2) + k * (n - k)) * _no_universal(n - k, p))


@lru_cache(maxsize=4096)
def _no_universal(n: int, p: float) -> float:
    """The probability that an Erdős–Rényi graph on ``n`` nodes has no universal one."""
    return max(0.0, 1.0 - sum(_universal(n, k, p) for k in range(1, n + 1)))
