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

__all__ = ["ErdosRenyi"]

# Stands for log 0, finite so that 0 · log 0 is 0.
LOG_ZERO = -1.0e9


@dataclass(frozen=True)
class ErdosRenyi(Family):
    r"""Each of the :math:`\binom{n}{2}` pairs is an edge independently with probability :math:`p`.

    With ``largest_component`` only the largest component of a sample is kept, which may have fewer than ``n`` nodes.
    """

    name: ClassVar[str] = "erdos-renyi"
    aliases: ClassVar[tuple[str, ...]] = ("er",)
    summary: ClassVar[str] = "every pair is an edge with probability p"

    p: float = 0.5
    largest_component: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise self._value_error("p", self.p, "between 0 and 1")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        graph = draw_pairs(n, self.p, rng)

        return largest_component(graph) if self.largest_component else graph

    def _contains(self, graph: SimpleGraph) -> bool:
        if graph.nodes < 1 or log_prob_of_pairs(len(graph.edges), math.comb(graph.nodes, 2), self.p) == -math.inf:
            return False

        return not self.largest_component or is_connected(graph)

    def _log_prob(self, graph: SimpleGraph) -> float:
        """With ``largest_component`` it is conditioned on the graph being connected."""
        if not self._contains(graph):
            return -math.inf
        n = graph.nodes
        log_prob = log_prob_of_pairs(len(graph.edges), math.comb(n, 2), self.p)
        if not self.largest_component:
            return log_prob
        if n > self.most_nodes:
            raise self._intractable_error(f"above n={self.most_nodes}", n=n, most=self.most_nodes)

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
    i, j = np.triu_indices(n, 1)
    chosen = rng.random(len(i)) < p

    return SimpleGraph(n, np.stack([i[chosen], j[chosen]], axis=1).astype(np.int32))


def log_prob_of_pairs(edges: int, pairs: int, p: float) -> float:
    """The log-probability in nats of a given set of ``edges`` edges among ``pairs`` pairs."""
    terms = ((edges, p), (pairs - edges, 1 - p))

    return sum((count * math.log(q) if q > 0 else -math.inf for count, q in terms if count), 0.0)


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

    for :math:`k = 0 … n`, with shape :math:`(n + 1,)` and :math:`C_0 = 0`. No term is negative, so there is no
    cancellation. At :math:`p = ½` this counts connected labelled graphs (OEIS A001187).
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
