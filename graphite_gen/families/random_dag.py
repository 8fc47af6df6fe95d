"""Random directed acyclic graphs: arcs along a hidden order of the nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from .base import Family
from .erdos_renyi import draw_pairs, log_prob_of_pairs, pair_entropy

__all__ = ["RandomDAG"]

# Down-sets of one size that are kept at once: up to a gigabyte; 20 nodes have at most 184,756.
MAX_SETS = 500_000


@dataclass(frozen=True)
class RandomDAG(Family):
    r"""Each pair is an arc along a uniformly random order of the nodes, with probability :math:`p`.

    A graph can come from each of its :math:`e(D)` linear extensions (topological orders):

    .. math:: p(D \mid n) = \frac{e(D)}{n!} p^E (1 - p)^{\binom{n}{2} - E}
    """

    name: ClassVar[str] = "random-dag"
    aliases: ClassVar[tuple[str, ...]] = ("dag",)
    summary: ClassVar[str] = "directed: pairs are arcs along a random order of the nodes with probability p"
    directed: ClassVar[bool] = True

    p: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise self._value_error("p", self.p, "between 0 and 1")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        arcs = rng.permutation(n).astype(np.int32)[draw_pairs(n, self.p, rng).edges]

        return SimpleGraph(n, arcs[np.lexsort((arcs[:, 1], arcs[:, 0]))], directed=True)

    def _contains(self, graph: SimpleGraph) -> bool:
        return graph.nodes > 0 and self._log_prob_of_arcs(graph) > -math.inf and _is_acyclic(graph)

    def _log_prob(self, graph: SimpleGraph) -> float:
        if not self._contains(graph):
            return -math.inf

        return self._log_extensions(graph) - math.lgamma(graph.nodes + 1) + self._log_prob_of_arcs(graph)

    def _draw_nats(self, n: int, rng: np.random.Generator) -> tuple[float, float]:
        """With the entropy of the arcs given the order, in closed form: its mean has a smaller error."""
        given_order = math.comb(n, 2) * pair_entropy(self.p)
        nats = math.lgamma(n + 1) + given_order - self._log_extensions(self._sample(n, rng))

        return nats, nats

    def _log_prob_of_arcs(self, graph: SimpleGraph) -> float:
        """The log-probability of the arcs given one of the orders."""
        pairs = math.comb(graph.nodes, 2)

        return log_prob_of_pairs(len(graph.edges), pairs, self.p) if len(graph.edges) <= pairs else -math.inf

    def _log_extensions(self, graph: SimpleGraph) -> float:
        r"""The logarithm of the number of linear extensions of an acyclic graph.

        A down-set :math:`S` contains all predecessors of its nodes. The orders of its nodes number
        :math:`e(S) = \sum_v e(S ∖ v)` over the nodes :math:`v` that may come last. Down-sets are bit masks, and are
        enumerated by size from the empty one.
        """
        n = graph.nodes
        if n > 63:
            raise self._intractable_error("above n=63", n=n, most=63)

        bits = np.uint64(1) << np.arange(n, dtype=np.uint64)
        predecessors = np.zeros(n, dtype=np.uint64)
        np.bitwise_or.at(predecessors, graph.edges[:, 1], bits[graph.edges[:, 0]])
        sets, log_scale = np.zeros(1, dtype=np.uint64), 0.0
        counts: NDArray[np.float64] = np.ones(1)
        for _ in range(n):
            outside = sets[:, None] & bits == 0
            row, node = np.nonzero(outside & (predecessors & ~sets[:, None] == 0))
            sets, place = np.unique(sets[row] | bits[node], return_inverse=True)
            if len(sets) > MAX_SETS:
                raise self._intractable_error("for this graph, as it has too many down-sets to sum over")
            counts = np.bincount(place, counts[row]).astype(np.float64)
            log_scale += math.log(counts.max())
            counts = counts / counts.max()

        return log_scale


def _is_acyclic(graph: SimpleGraph) -> bool:
    """Whether nodes without remaining predecessors can be removed one by one until none is left."""
    sources, targets = graph.edges.T
    first = np.searchsorted(sources, np.arange(graph.nodes + 1))
    remaining = np.bincount(targets, minlength=graph.nodes)
    pending, removed = np.flatnonzero(remaining == 0).tolist(), 0
    while pending:
        node = pending.pop()
        removed += 1
        successors = targets[first[node] : first[node + 1]]
        remaining[successors] -= 1
        pending += successors[remaining[successors] == 0].tolist()

    return removed == graph.nodes
