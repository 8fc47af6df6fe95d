"""Barabási–Albert graphs: preferential attachment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from .base import Family, neighbour_masks, shuffled

__all__ = ["Barabasi"]

# Node sets kept at once: about a gigabyte, and far above what graphs of 20 nodes need.
MAX_SETS = 2_000_000

# The probability of a node's targets is a sum over their subsets.
MAX_TARGETS = 12


@dataclass(frozen=True)
class Barabasi(Family):
    r"""Preferential attachment, with the process of networkx.

    It starts with a star on :math:`m + 1` nodes. Each new node draws existing nodes with probability proportional to
    their degree until :math:`m` distinct ones are found, and is joined to them.
    """

    name: ClassVar[str] = "barabasi"
    aliases: ClassVar[tuple[str, ...]] = ("ba", "barabasi-albert")
    summary: ClassVar[str] = "each new node is joined to m existing ones, with probability proportional to degree"

    m: int = 4

    def __post_init__(self) -> None:
        if self.m < 1:
            raise self._value_error("m", self.m, "at least 1")

    def _check_size(self, n: int) -> None:
        if n <= self.m:
            raise self._size_error(n, f"n should be at least m + 1 = {self.m + 1}")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        m = self.m
        pairs = [(0, leaf) for leaf in range(1, m + 1)]
        ends = [0] * m + list(range(1, m + 1))  # each node repeated by its degree

        for node in range(m + 1, n):
            targets: set[int] = set()
            while len(targets) < m:
                targets.update(ends[int(u * len(ends))] for u in rng.random(m - len(targets)).tolist())
            pairs += [(target, node) for target in targets]
            ends += targets
            ends += [node] * m

        return shuffled(n, pairs, rng)

    def _contains(self, graph: SimpleGraph) -> bool:
        """Whether nodes with ``m`` remaining neighbours can be removed one by one down to the initial star."""
        if not self._has_counts(graph):
            return False
        neighbours = neighbour_masks(graph)
        everyone = (1 << len(neighbours)) - 1
        # The hub of the initial star is likely to have a high degree.
        hubs = sorted(range(len(neighbours)), key=lambda v: -neighbours[v].bit_count())

        return any(
            _is_degenerate(neighbours, everyone, 1 << hub, self.m) and _reduces_to_star(neighbours, hub, self.m)
            for hub in hubs
        )

    def _log_prob(self, graph: SimpleGraph) -> float:
        r"""The exact :math:`\log p(A \mid n)` in nats, summed over all attachment orders.

        A set :math:`S` of first nodes has weight :math:`w(S) = \sum_v w(S ∖ v) f(T_v)` over the nodes :math:`v` with
        exactly :math:`m` neighbours :math:`T_v` in :math:`S`, down to stars with weight 1; then
        :math:`p(A \mid n) = w(V)\, m! / n!`, as the leaves of the star are exchangeable. Sets are bit masks, and are
        enumerated from all nodes downwards, one node less at a time.
        """
        if not self._has_counts(graph):
            return -math.inf
        n, m = graph.nodes, self.m
        if n > 63:
            raise self._intractable_error("above n=63", n=n, most=63)
        if m > MAX_TARGETS:
            raise self._intractable_error(f"above m={MAX_TARGETS}")

        adjacency = graph.adjacency()
        sets, weights = np.array([(1 << n) - 1], dtype=np.uint64), np.ones(1)
        log_scale = math.lgamma(m + 1) - math.lgamma(n + 1)
        for _ in range(n - m - 1):
            sets, weights = _remove_last(sets, weights, adjacency, m)
            if len(sets) == 0:
                return -math.inf
            if len(sets) > MAX_SETS:
                raise self._intractable_error("for this graph, as it has too many attachment orders to sum over")
            log_scale += math.log(weights.max())
            weights = weights / weights.max()

        # With m = 1 both nodes of the star can be its hub.
        hubs = (_degrees(_members(sets, n), adjacency) == m).sum(axis=1)
        total = float(weights @ hubs)

        return math.log(total) + log_scale if total > 0 else -math.inf

    def _has_counts(self, graph: SimpleGraph) -> bool:
        n, m = graph.nodes, self.m

        return n > m and len(graph.edges) == m * (n - m) and bool(graph.degrees().min() > 0)


def _reduces_to_star(neighbours: list[int], hub: int, m: int) -> bool:
    """Whether removing nodes with ``m`` remaining neighbours can end in a star around ``hub``.

    A node outside the star with ``m`` neighbours can be removed at once: it keeps all of them until its removal, so
    the order does not matter. A node with fewer neighbours is a leaf of the star. Only neighbours of the hub with
    ``m`` neighbours need both cases, leaf or removed; a star has ``m`` leaves, so the number of branches is polynomial
    in the number of nodes for a given ``m``.
    """
    pending = [((1 << len(neighbours)) - 1, 0)]

    while pending:
        nodes, leaves = pending.pop()
        degrees = {v: (neighbours[v] & nodes).bit_count() for v in _bits(nodes)}
        leaves |= sum(1 << v for v, degree in degrees.items() if degree < m)
        next_to_leaves = 0
        for v in _bits(leaves):
            next_to_leaves |= neighbours[v]
        if leaves & ~neighbours[hub] or leaves & next_to_leaves or leaves.bit_count() > m:
            continue
        if len(degrees) == m + 1:
            return True

        removable = [v for v, degree in degrees.items() if degree == m and v != hub and not leaves >> v & 1]
        undecided = neighbours[hub] & ~next_to_leaves if leaves.bit_count() < m else 0
        sure = sum(1 << v for v in removable if not undecided >> v & 1)
        # Of two adjacent ones, the second to be removed would have too few neighbours left.
        if any(neighbours[v] & sure for v in _bits(sure)):
            continue
        if sure:
            pending.append((nodes ^ sure, leaves))
        elif removable and _is_degenerate(neighbours, nodes, leaves | 1 << hub, m):
            v = removable[0]
            pending += [(nodes, leaves | 1 << v), (nodes ^ (1 << v), leaves)]

    return False


def _is_degenerate(neighbours: list[int], nodes: int, kept: int, m: int) -> bool:
    """Whether all nodes except ``kept`` can be removed one by one, each with at most ``m`` remaining neighbours.

    A necessary condition that is quick to check: the order of removals does not matter.
    """
    pending = list(_bits(nodes & ~kept))
    while pending:
        v = pending.pop()
        if nodes >> v & 1 and (neighbours[v] & nodes).bit_count() <= m:
            nodes ^= 1 << v
            pending += _bits(neighbours[v] & nodes & ~kept)

    return nodes & ~kept == 0


def _bits(mask: int) -> Iterator[int]:
    """The nodes of a bit mask in ascending order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _remove_last(
    sets: NDArray[np.uint64], weights: NDArray[np.float64], adjacency: NDArray[np.bool_], m: int
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Remove one node from each set in all possible ways; :math:`(S,)` bit masks and weights to those of the subsets.

    Subsets that cannot end in a star are dropped.
    """
    n = len(adjacency)
    row, last = np.nonzero(_degrees(_members(sets, n), adjacency) == m)
    rests = sets[row] ^ (np.uint64(1) << last.astype(np.uint64))
    smaller, place = np.unique(rests, return_inverse=True)

    members = _members(smaller, n)
    degrees = _degrees(members, adjacency)
    # Nodes with fewer than m neighbours are leaves of the star: not adjacent, with one node joined to all of them.
    leaves = (degrees >= 0) & (degrees < m)
    leaf_neighbours = leaves.astype(np.float32) @ adjacency
    keep = ~((leaf_neighbours > 0) & leaves).any(axis=1) & (
        (leaf_neighbours == leaves.sum(axis=1, keepdims=True)) & members
    ).any(axis=1)

    kept = np.flatnonzero(keep[place])
    row, last, place = row[kept], last[kept], place[kept]
    targets = np.nonzero(adjacency[last] & members[place])[1].reshape(-1, m)
    target_degrees = np.take_along_axis(degrees[place], targets, axis=1)
    probabilities = _target_probabilities(target_degrees, degrees[place].clip(0).sum(axis=1))
    totals = np.bincount(place, weights=weights[row] * probabilities, minlength=len(smaller))

    return smaller[keep], totals[keep]


def _members(sets: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
    """The bit masks as booleans, with shape :math:`(S, n)`."""
    return (sets[:, None] >> np.arange(n, dtype=np.uint64) & np.uint64(1)).astype(np.bool_)


def _degrees(members: NDArray[np.bool_], adjacency: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The degree of each node within each set, -1 for nodes outside it, with shape :math:`(S, n)`."""
    return np.where(members, members.astype(np.float32) @ adjacency, np.float32(-1))


def _target_probabilities(degrees: NDArray[np.float32], totals: NDArray[np.float32]) -> NDArray[np.float64]:
    r"""The probability that draws proportional to degree give these targets before any other node.

    .. math:: f(∅) = 1, \quad f(T) = \sum_{i ∈ T} f(T ∖ i) \frac{d_i}{D - \sum_{j ∈ T ∖ i} d_j}

    from the degrees :math:`d` of the targets before attachment, with shape (P, m), and their sum :math:`D` over all
    nodes, with shape (P,).
    """
    d = degrees.T.astype(np.float64)
    left = {0: totals.astype(np.float64)}
    probabilities = {0: np.ones(len(totals))}

    # Subsets are bit masks; those of a subset are smaller integers.
    for subset in range(1, 1 << len(d)):
        members = [i for i in range(len(d)) if subset >> i & 1]
        left[subset] = left[subset ^ (1 << members[0])] - d[members[0]]
        smaller = [subset ^ (1 << i) for i in members]
        terms = (probabilities[rest] / left[rest] * d[i] for i, rest in zip(members, smaller, strict=True))
        probabilities[subset] = sum(terms, np.zeros(len(totals)))

    return probabilities[(1 << len(d)) - 1]
