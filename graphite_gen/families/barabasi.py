"""Barabási–Albert graphs: new nodes prefer nodes that already have many neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import FamilyError
from ..graph import SimpleGraph
from .base import Family, shuffled

__all__ = ["Barabasi"]

# Sets of nodes kept at one level of the peeling: about a gigabyte, and far above what graphs of 20 nodes need.
MOST_SETS = 2_000_000

# The chance of a new node's neighbours sums over their subsets.
MOST_TARGETS = 12


@dataclass(frozen=True)
class Barabasi(Family):
    r"""Preferential attachment as networkx does it.

    It starts with a star on :math:`m + 1` nodes. Each new node then draws old nodes in proportion to their degree
    until it has :math:`m` different ones, and is joined to them.

    Attributes:
        m: The number of old nodes a new one is joined to.
    """

    name: ClassVar[str] = "barabasi"
    aliases: ClassVar[tuple[str, ...]] = ("ba", "barabasi-albert")
    summary: ClassVar[str] = "each new node is joined to m old ones in proportion to their degree"
    ordering: ClassVar[str] = "attachment"

    m: int = 4

    def __post_init__(self) -> None:
        if self.m < 1:
            raise self._refuse_value("m", "a whole number of at least 1")

    def _check_size(self, n: int) -> None:
        if n <= self.m:
            raise self._refuse_size(n, f"pass at least m + 1 = {self.m + 1}")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        m = self.m
        pairs = [(0, leaf) for leaf in range(1, m + 1)]
        ends = [0] * m + list(range(1, m + 1))  # every node as often as it has neighbours

        for node in range(m + 1, n):
            targets: set[int] = set()
            while len(targets) < m:
                targets.update(ends[int(u * len(ends))] for u in rng.random(m - len(targets)).tolist())
            pairs += [(target, node) for target in targets]
            ends += targets
            ends += [node] * m

        return shuffled(n, pairs, rng)

    def _contains(self, graph: SimpleGraph) -> bool:
        """Whether the nodes can be taken off one by one, each with ``m`` neighbours left, down to the first star."""
        return self._plausible(graph) and _can_be_peeled(_neighbour_masks(graph), self.m)

    def _log_prob(self, graph: SimpleGraph) -> float:
        r"""The exact :math:`\log p(A \mid n)` in nats, summed over all orders in which the nodes may have come.

        A set :math:`S` of nodes that came first has weight :math:`w(S) = \sum_v w(S ∖ v) f(T_v)` over the nodes
        :math:`v` with :math:`m` neighbours :math:`T_v` in :math:`S`, down to stars with weight 1; then
        :math:`p(A \mid n) = w(V)\, m! / n!`, for the star's leaves may have come in any order. The sets are gone
        through level by level, from all nodes down, as bits of an integer.

        Raises:
            FamilyError: The graph has too many such sets, more than 63 nodes or new ones with too many neighbours.
        """
        if not self._plausible(graph):
            return -math.inf
        n, m = graph.nodes, self.m
        if n > 63:
            raise FamilyError(f"'{self.name}' has the exact law up to 63 nodes, and the graph has {n}.")
        if m > MOST_TARGETS:
            raise FamilyError(f"'{self.name}' has the exact law up to m={MOST_TARGETS}, and here m={m}.")

        adjacency = graph.adjacency()
        sets, weights = np.array([(1 << n) - 1], dtype=np.uint64), np.ones(1)
        log_scale = math.lgamma(m + 1) - math.lgamma(n + 1)
        for _ in range(n - m - 1):
            sets, weights = _peel(sets, weights, adjacency, m)
            if len(sets) == 0:
                return -math.inf
            if len(sets) > MOST_SETS:
                raise FamilyError(
                    f"The graph's nodes may have come in too many orders to sum over: '{self.name}' has the exact law "
                    f"for smaller graphs, or a larger m than {m}."
                )
            log_scale += math.log(weights.max())
            weights = weights / weights.max()

        # A pair of nodes is a star around either of them.
        hubs = (_degrees(_members(sets, n), adjacency) == m).sum(axis=1)
        total = float(weights @ hubs)

        return math.log(total) + log_scale if total > 0 else -math.inf

    def _plausible(self, graph: SimpleGraph) -> bool:
        """Whether the graph has the right number of edges and no node without neighbours."""
        n, m = graph.nodes, self.m

        return n > m and len(graph.edges) == m * (n - m) and bool(graph.degrees().min() > 0)


def _neighbour_masks(graph: SimpleGraph) -> list[int]:
    """The neighbours of each node as bits of an integer."""
    masks = [0] * graph.nodes
    for i, j in graph.edges.tolist():
        masks[i] |= 1 << j
        masks[j] |= 1 << i

    return masks


def _can_be_peeled(neighbours: list[int], m: int) -> bool:
    """Whether some order of taking off nodes with ``m`` neighbours left ends in a star on ``m + 1`` nodes."""
    everyone = (1 << len(neighbours)) - 1
    # A node that came early is likely to have many neighbours.
    hubs = sorted(range(len(neighbours)), key=lambda v: -neighbours[v].bit_count())

    return any(
        _is_degenerate(neighbours, everyone, 1 << hub, m) and _can_be_peeled_to(neighbours, hub, m) for hub in hubs
    )


def _can_be_peeled_to(neighbours: list[int], hub: int, m: int) -> bool:
    """Whether some order of taking off nodes with ``m`` neighbours left ends in a star around this one.

    A node that is not of the star and has ``m`` neighbours can be taken off at once: it keeps all of them until it
    goes, so it may as well go first. A node with fewer can only be a leaf. What is left to try is whether a neighbour
    of the hub with ``m`` neighbours is a leaf, and a star has but ``m``: for a given ``m`` the number of attempts is
    bounded by a power of the number of nodes.
    """
    pending = [((1 << len(neighbours)) - 1, 0)]

    while pending:
        nodes, leaves = pending.pop()
        degrees = {v: (neighbours[v] & nodes).bit_count() for v in _bits(nodes)}
        leaves |= sum(1 << v for v, degree in degrees.items() if degree < m)
        beside = 0
        for v in _bits(leaves):
            beside |= neighbours[v]
        if leaves & ~neighbours[hub] or leaves & beside or leaves.bit_count() > m:
            continue
        if len(degrees) == m + 1:
            return True

        ripe = [v for v, degree in degrees.items() if degree == m and v != hub and not leaves >> v & 1]
        open_ones = neighbours[hub] & ~beside if leaves.bit_count() < m else 0
        sure = sum(1 << v for v in ripe if not open_ones >> v & 1)
        # Of two side by side, the one that stays longer would be left with too few.
        if any(neighbours[v] & sure for v in _bits(sure)):
            continue
        if sure:
            pending.append((nodes ^ sure, leaves))
        elif ripe and _is_degenerate(neighbours, nodes, leaves | 1 << hub, m):
            v = ripe[0]
            pending += [(nodes, leaves | 1 << v), (nodes ^ (1 << v), leaves)]

    return False


def _is_degenerate(neighbours: list[int], nodes: int, kept: int, m: int) -> bool:
    """Whether all nodes but those kept can be taken off one by one, each with at most ``m`` neighbours left.

    The order does not matter here, for a node that has few enough has no more later: what this refuses is quickly
    refused.
    """
    pending = list(_bits(nodes & ~kept))
    while pending:
        v = pending.pop()
        if nodes >> v & 1 and (neighbours[v] & nodes).bit_count() <= m:
            nodes ^= 1 << v
            pending += _bits(neighbours[v] & nodes & ~kept)

    return nodes & ~kept == 0


def _bits(mask: int) -> Iterator[int]:
    """The nodes of a set, smallest first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _peel(
    sets: NDArray[np.uint64], weights: NDArray[np.float64], adjacency: NDArray[np.bool_], m: int
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Take one node off each set in every way the process allows.

    Arguments:
        sets: Sets of nodes as bits, with shape :math:`(S,)`.
        weights: Their weights, with shape :math:`(S,)`.
        adjacency: The adjacency matrix, with shape :math:`(n, n)`.
        m: The number of neighbours a node came with.

    Returns:
        The sets one node smaller that may still end in a star, and their weights.
    """
    n = len(adjacency)
    row, last = np.nonzero(_degrees(_members(sets, n), adjacency) == m)
    rests = sets[row] ^ (np.uint64(1) << last.astype(np.uint64))
    smaller, place = np.unique(rests, return_inverse=True)

    members = _members(smaller, n)
    degrees = _degrees(members, adjacency)
    # Nodes with fewer than m neighbours are leaves of the star: they share no edge, and one node is joined to all.
    leaves = (degrees >= 0) & (degrees < m)
    known = leaves.astype(np.float32) @ adjacency
    keep = ~((known > 0) & leaves).any(axis=1) & ((known == leaves.sum(axis=1, keepdims=True)) & members).any(axis=1)

    kept = np.flatnonzero(keep[place])
    row, last, place = row[kept], last[kept], place[kept]
    targets = np.nonzero(adjacency[last] & members[place])[1].reshape(-1, m)
    chances = _target_chances(np.take_along_axis(degrees[place], targets, axis=1), degrees[place].clip(0).sum(axis=1))
    totals = np.bincount(place, weights=weights[row] * chances, minlength=len(smaller))

    return smaller[keep], totals[keep]


def _members(sets: NDArray[np.uint64], n: int) -> NDArray[np.bool_]:
    """Which of ``n`` nodes each set has, with shape :math:`(S, n)`."""
    return (sets[:, None] >> np.arange(n, dtype=np.uint64) & np.uint64(1)).astype(np.bool_)


def _degrees(members: NDArray[np.bool_], adjacency: NDArray[np.bool_]) -> NDArray[np.float32]:
    """How many neighbours each node has within each set, -1 for nodes outside it, with shape :math:`(S, n)`."""
    return np.where(members, members.astype(np.float32) @ adjacency, np.float32(-1))


def _target_chances(degrees: NDArray[np.float32], totals: NDArray[np.float32]) -> NDArray[np.float64]:
    r"""The probability that draws in proportion to degree find these targets before any other node.

    .. math:: f(∅) = 1, \quad f(T) = \sum_{i ∈ T} f(T ∖ i) \frac{d_i}{D - \sum_{j ∈ T ∖ i} d_j}

    Arguments:
        degrees: The targets' degrees before the new node came, with shape :math:`(P, m)`.
        totals: The sum :math:`D` of all degrees, with shape :math:`(P,)`.
    """
    d = degrees.T.astype(np.float64)
    left = {0: totals.astype(np.float64)}
    chances = {0: np.ones(len(totals))}

    # A subset is the bits of an integer, larger than those of the subsets it is made from.
    for subset in range(1, 1 << len(d)):
        members = [i for i in range(len(d)) if subset >> i & 1]
        left[subset] = left[subset ^ (1 << members[0])] - d[members[0]]
        smaller = [subset ^ (1 << i) for i in members]
        chances[subset] = sum(
            (chances[rest] / left[rest] * d[i] for i, rest in zip(members, smaller, strict=True)),
            np.zeros(len(totals)),
        )

    return chances[(1 << len(d)) - 1]
