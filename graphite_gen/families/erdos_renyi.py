"""Erdős–Rényi graphs: every pair is an edge with the same probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ..graph import SimpleGraph
from .base import Family, is_connected, largest_component

__all__ = ["ErdosRenyi", "draw_pairs", "log_prob_of_pairs", "pair_entropy"]


@dataclass(frozen=True)
class ErdosRenyi(Family):
    r"""Each of the :math:`\binom{n}{2}` pairs is an edge independently with probability :math:`p`.

    Attributes:
        p: The probability of an edge.
        largest_component: Keep the largest component of each draw, which may then have fewer than ``n`` nodes.
            Off by default: the published floors are for the law without it.
    """

    name: ClassVar[str] = "erdos-renyi"
    aliases: ClassVar[tuple[str, ...]] = ("er",)
    summary: ClassVar[str] = "every pair is an edge with probability p"

    p: float = 0.5
    largest_component: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise self._refuse_value("p", "a probability between 0 and 1")

    def check_size(self, n: int) -> None:
        if n < 1:
            raise self._refuse_size(n, "pass at least 1")

    def sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        self.check_size(n)
        graph = draw_pairs(n, self.p, rng)

        return largest_component(graph) if self.largest_component else graph

    def contains(self, graph: SimpleGraph) -> bool:
        return self.log_prob(graph) > -math.inf

    def log_prob(self, graph: SimpleGraph) -> float:
        r"""The exact :math:`\log p(A \mid n)` in nats.

        With ``largest_component`` a graph is an Erdős–Rényi graph conditioned on being connected, whatever the number
        of nodes it was cut from; at :math:`p = ½` that is uniform over the connected graphs of its size.
        """
        if graph.nodes < 1:
            return -math.inf
        log_prob = log_prob_of_pairs(len(graph.edges), math.comb(graph.nodes, 2), self.p)
        if not self.largest_component or log_prob == -math.inf:
            return log_prob

        return log_prob - _log_connected(graph.nodes, self.p) if is_connected(graph) else -math.inf

    def floor(self, n: int) -> float | None:
        self.check_size(n)
        pairs = math.comb(n, 2)
        if not self.largest_component:
            return pairs * pair_entropy(self.p)

        return pairs * math.log(2) + _log_connected(n, self.p) if self.p == 0.5 else None


def draw_pairs(n: int, p: float, rng: np.random.Generator) -> SimpleGraph:
    """A graph whose pairs are edges independently with probability ``p``."""
    chosen = np.flatnonzero(rng.random(math.comb(n, 2)) < p)
    # Pairs i<j are numbered in lexicographic order: row i starts at i(2n-i-1)/2.
    starts = np.arange(n) * (2 * n - np.arange(n) - 1) // 2
    i = np.searchsorted(starts, chosen, side="right") - 1
    j = chosen - starts[i] + i + 1

    return SimpleGraph(n, np.stack([i, j], axis=1).astype(np.int32))


def log_prob_of_pairs(edges: int, pairs: int, p: float) -> float:
    """The log-probability in nats of ``edges`` given edges among ``pairs`` independent pairs."""
    log_prob = 0.0
    for count, chance in ((edges, p), (pairs - edges, 1 - p)):
        if count and chance == 0:
            return -math.inf
        if count:
            log_prob += count * math.log(chance)

    return log_prob


def pair_entropy(p: float) -> float:
    """The entropy in nats of one pair that is an edge with probability ``p``."""
    return -sum(chance * math.log(chance) for chance in (p, 1 - p) if chance > 0)


def _log_connected(n: int, p: float) -> float:
    r"""The log-probability that an Erdős–Rényi graph is connected."""
    # As written: 0.3 is 3/10, not the nearest double.
    chance = Fraction(str(p))

    return math.log(_connected(n, chance)) - math.comb(n, 2) * math.log(chance.denominator)


@lru_cache(maxsize=4096)
def _connected(n: int, p: Fraction) -> int:
    r"""The probability :math:`C_n` that an Erdős–Rényi graph is connected, in units of :math:`b^{-\binom{n}{2}}`.

    The component of node 0 has :math:`k` nodes in :math:`\binom{n-1}{k-1}` ways:

    .. math:: C_n = 1 - \sum_{k<n} \binom{n-1}{k-1} C_k (1 - p)^{k(n-k)}

    With :math:`p = a/b` all terms are whole numbers, so a small :math:`C_n` loses no digits. At :math:`p = ½` this
    counts connected labelled graphs (OEIS A001187).
    """
    b = p.denominator
    misses = b - p.numerator
    others = (
        math.comb(n - 1, k - 1) * _connected(k, p) * misses ** (k * (n - k)) * b ** math.comb(n - k, 2)
        for k in range(1, n)
    )

    return int(b ** math.comb(n, 2)) - sum(others)
