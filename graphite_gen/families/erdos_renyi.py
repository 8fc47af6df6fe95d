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

__all__ = ["NEVER", "ErdosRenyi", "draw_pairs", "log_connected", "log_prob_of_pairs", "log_ways", "pair_entropy"]

# The logarithm of what never happens, finite so that having it happen zero times is certain.
NEVER = -1.0e9


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
    ordering: ClassVar[str] = "uniform"

    p: float = 0.5
    largest_component: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise self._refuse_value("p", "a probability between 0 and 1")

    def _check_size(self, n: int) -> None:
        if n < 1:
            raise self._refuse_size(n, "pass at least 1")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        graph = draw_pairs(n, self.p, rng)

        return largest_component(graph) if self.largest_component else graph

    def _contains(self, graph: SimpleGraph) -> bool:
        if graph.nodes < 1 or log_prob_of_pairs(len(graph.edges), math.comb(graph.nodes, 2), self.p) == -math.inf:
            return False

        return not self.largest_component or is_connected(graph)

    def _log_prob(self, graph: SimpleGraph) -> float:
        r"""The exact :math:`\log p(A \mid n)` in nats.

        With ``largest_component`` a graph is an Erdős–Rényi graph conditioned on being connected, whatever the number
        of nodes it was cut from; at :math:`p = ½` that is uniform over the connected graphs of its size.

        Raises:
            FamilyError: The graph is too large to know how many others are connected.
        """
        if not self._contains(graph):
            return -math.inf
        n = graph.nodes
        log_prob = log_prob_of_pairs(len(graph.edges), math.comb(n, 2), self.p)
        if not self.largest_component:
            return log_prob
        if n > self.most_nodes:
            raise self._refuse_law(n, self.most_nodes)

        return log_prob - float(log_connected(n, self.p)[n])

    def _entropy(self, n: int) -> float | None:
        pairs = math.comb(n, 2)
        if not self.largest_component:
            return pairs * pair_entropy(self.p)
        if self.p != 0.5 or n > self.most_nodes:
            return None

        return pairs * math.log(2) + float(log_connected(n, self.p)[n])


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


@lru_cache(maxsize=64)
def log_connected(n: int, p: float) -> NDArray[np.float64]:
    r"""The logarithms of the probabilities :math:`C_k` that an Erdős–Rényi graph on :math:`k` nodes is connected.

    Take a node off a connected graph. The component :math:`A` that another given node is left in has :math:`a` nodes,
    the first one had a neighbour among them, and what is not in :math:`A` is connected too. With :math:`q = 1 - p`

    .. math:: C_k = \sum_{a=1}^{k-1} \binom{k-2}{a-1} C_a (1 - q^a) q^{a(k-1-a)} C_{k-a}

    where no term is negative, so a small :math:`C_k` loses no digits. At :math:`p = ½` this counts connected labelled
    graphs (OEIS A001187).

    Returns:
        The values for :math:`k = 0 … n`, with shape :math:`(n + 1,)`; there is no graph without nodes.
    """
    log_miss = math.log1p(-p) if p < 1 else NEVER
    sizes = np.arange(n + 1)
    with np.errstate(divide="ignore"):
        log_met = np.log(-np.expm1(sizes * log_miss))
    logs = np.full(n + 1, -np.inf)
    logs[1:2] = 0.0
    for k in range(2, n + 1):
        a = sizes[1:k]
        logs[k] = np.logaddexp.reduce(
            log_ways(k - 2)[a - 1] + logs[a] + log_met[a] + a * (k - 1 - a) * log_miss + logs[k - a]
        )
    logs.flags.writeable = False

    return logs


def log_ways(n: int) -> NDArray[np.float64]:
    r"""The logarithms of :math:`\binom{n}{k}` for :math:`k = 0 … n`, with shape :math:`(n + 1,)`."""
    factorials = np.concatenate([[0.0], np.log(np.arange(1, n + 1)).cumsum()])

    return np.asarray(factorials[n] - factorials - factorials[::-1])
