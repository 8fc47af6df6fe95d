"""Erdős–Rényi graphs: every pair is an edge with the same probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.properties import is_connected, largest_component
from ..graph import SimpleGraph
from .base import Family

__all__ = [
    "LOG_ZERO",
    "ErdosRenyi",
    "draw_pairs",
    "log_binomials",
    "log_connected",
    "log_prob_of_pairs",
    "pair_entropy",
]

# Stands for log 0, finite so that 0 · log 0 is 0.
LOG_ZERO = -1.0e9


@dataclass(frozen=True)
class ErdosRenyi(Family):
    r"""Each of the :math:`\binom{n}{2}` pairs is an edge independently with probability :math:`p`.

    Attributes:
        p: The probability of an edge.
        largest_component: Keep only the largest component of each sample, which may have fewer than ``n`` nodes.
    """

    name: ClassVar[str] = "erdos-renyi"
    aliases: ClassVar[tuple[str, ...]] = ("er",)
    summary: ClassVar[str] = "every pair is an edge with probability p"
    ordering: ClassVar[str] = "uniform"

    p: float = 0.5
    largest_component: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise self._value_error("p", "between 0 and 1")

    def _check_size(self, n: int) -> None:
        if n < 1:
            raise self._size_error(n, "n should be at least 1")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        graph = draw_pairs(n, self.p, rng)

        return largest_component(graph) if self.largest_component else graph

    def _contains(self, graph: SimpleGraph) -> bool:
        if graph.nodes < 1 or log_prob_of_pairs(len(graph.edges), math.comb(graph.nodes, 2), self.p) == -math.inf:
            return False

        return not self.largest_component or is_connected(graph)

    def _log_prob(self, graph: SimpleGraph) -> float:
        r"""The exact :math:`\log p(A \mid n)` in nats.

        With ``largest_component`` it is conditioned on the graph being connected; at :math:`p = ½` that is uniform
        over the connected graphs of its size.
        """
        if not self._contains(graph):
            return -math.inf
        n = graph.nodes
        log_prob = log_prob_of_pairs(len(graph.edges), math.comb(n, 2), self.p)
        if not self.largest_component:
            return log_prob
        if n > self.most_nodes:
            raise self._intractable_error(n, self.most_nodes)

        return log_prob - float(log_connected(n, self.p)[n])

    def _entropy(self, n: int) -> float | None:
        pairs = math.comb(n, 2)
        if not self.largest_component:
            return pairs * pair_entropy(self.p)
        if self.p != 0.5 or n > self.most_nodes:
            return None

        return pairs * math.log(2) + float(log_connected(n, self.p)[n])


def draw_pairs(n: int, p: float, rng: np.random.Generator) -> SimpleGraph:
    """An Erdős–Rényi graph: each pair is an edge with probability ``p``."""
    chosen = np.flatnonzero(rng.random(math.comb(n, 2)) < p)
    # Pairs i<j are numbered in lexicographic order: row i starts at i(2n-i-1)/2.
    starts = np.arange(n) * (2 * n - np.arange(n) - 1) // 2
    i = np.searchsorted(starts, chosen, side="right") - 1
    j = chosen - starts[i] + i + 1

    return SimpleGraph(n, np.stack([i, j], axis=1).astype(np.int32))


def log_prob_of_pairs(edges: int, pairs: int, p: float) -> float:
    """The log-probability in nats of a given set of ``edges`` edges among ``pairs`` pairs."""
    log_prob = 0.0
    for count, probability in ((edges, p), (pairs - edges, 1 - p)):
        if count and probability == 0:
            return -math.inf
        if count:
            log_prob += count * math.log(probability)

    return log_prob


def pair_entropy(p: float) -> float:
    """The entropy of one pair in nats."""
    return -sum(probability * math.log(probability) for probability in (p, 1 - p) if probability > 0)


@lru_cache(maxsize=64)
def log_connected(n: int, p: float) -> NDArray[np.float64]:
    r"""The logarithms of the probabilities :math:`C_k` that an Erdős–Rényi graph on :math:`k` nodes is connected.

    Remove a node from a connected graph and let :math:`a` be the size of the component :math:`A` of another given
    node: the removed node has a neighbour in :math:`A`, and the nodes outside :math:`A` are connected. With
    :math:`q = 1 - p`

    .. math:: C_k = \sum_{a=1}^{k-1} \binom{k-2}{a-1} C_a (1 - q^a) q^{a(k-1-a)} C_{k-a}

    No term is negative, so there is no cancellation. At :math:`p = ½` this counts connected labelled graphs (OEIS
    A001187).

    Returns:
        The values for :math:`k = 0 … n`, with shape :math:`(n + 1,)`; :math:`C_0 = 0`.
    """
    log_miss = math.log1p(-p) if p < 1 else LOG_ZERO
    sizes = np.arange(n + 1)
    with np.errstate(divide="ignore"):
        log_hit = np.log(-np.expm1(sizes * log_miss))
    logs = np.full(n + 1, -np.inf)
    logs[1:2] = 0.0
    for k in range(2, n + 1):
        a = sizes[1:k]
        logs[k] = np.logaddexp.reduce(
            log_binomials(k - 2)[a - 1] + logs[a] + log_hit[a] + a * (k - 1 - a) * log_miss + logs[k - a]
        )
    logs.flags.writeable = False

    return logs


def log_binomials(n: int) -> NDArray[np.float64]:
    r"""The logarithms of :math:`\binom{n}{k}` for :math:`k = 0 … n`, with shape :math:`(n + 1,)`."""
    factorials = np.concatenate([[0.0], np.log(np.arange(1, n + 1)).cumsum()])

    return np.asarray(factorials[n] - factorials - factorials[::-1])
