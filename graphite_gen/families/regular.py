"""Random regular graphs: every node has the same degree."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.properties import is_connected, largest_component
from ..errors import FamilyError
from ..graph import SimpleGraph
from .base import Family

__all__ = ["Regular", "count_connected_regular", "count_regular"]

# A random pairing of stubs is a simple graph with probability about exp(-(d² - 1) / 4): up to this degree rejection
# is faster than counting.
REJECTION_DEGREE = 4

# Counting visits at most C(n + d, d) states, in practice a small part of them.
MAX_STATES = 10_000_000

# Counting connected graphs takes all smaller sizes and a quadratic number of products of long integers.
MAX_CONNECTED = 500


@dataclass(frozen=True)
class Regular(Family):
    r"""Uniform over the graphs where every node has degree :math:`d`.

    Samples are exactly uniform, except for large degrees on large graphs, which come from networkx. Its generator
    (Steger and Wormald, 1999) is uniform only asymptotically.

    With ``largest_component`` only the largest component of a sample is kept, which may have fewer than ``n`` nodes.
    """

    name: ClassVar[str] = "regular"
    summary: ClassVar[str] = "uniform over the graphs where every node has degree d"

    d: int = 4
    largest_component: bool = False

    def __post_init__(self) -> None:
        if self.d < 0:
            raise self._value_error("d", self.d, "at least 0")

    def _check_size(self, n: int) -> None:
        if n <= self.d:
            raise self._size_error(n, f"n should be at least d + 1 = {self.d + 1}")
        if n * self.d % 2:
            raise self._size_error(n, f"n·d = {n * self.d} is odd")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        # The complement of a regular graph is regular: sample the sparser one.
        d = min(self.d, n - 1 - self.d)
        if d <= REJECTION_DEGREE:
            adjacency = _draw_by_rejection(n, d, rng)
        elif math.comb(n + d, d) <= MAX_STATES:
            adjacency = _draw_by_counting(n, d, rng)
        else:
            import networkx as nx

            adjacency = nx.to_numpy_array(nx.random_regular_graph(d, n, seed=rng), dtype=np.bool_)
        graph = SimpleGraph.from_adjacency(~adjacency if d < self.d else adjacency)

        return largest_component(graph) if self.largest_component else graph

    def _contains(self, graph: SimpleGraph) -> bool:
        if graph.nodes <= self.d or (graph.degrees() != self.d).any():
            return False

        return not self.largest_component or is_connected(graph)

    def _log_prob(self, graph: SimpleGraph) -> float:
        return -self._log_count(graph.nodes) if self._contains(graph) else -math.inf

    def _entropy(self, n: int) -> float | None:
        try:
            return self._log_count(n)
        except FamilyError:
            return None

    def _log_count(self, n: int) -> float:
        most = MAX_CONNECTED if self.largest_component else self.most_nodes
        if n > most:
            raise self._intractable_error(f"above n={most}", n=n, most=most)
        count = count_connected_regular(n, self.d) if self.largest_component else count_regular(n, self.d)
        if count == 0:
            raise self._size_error(n, "none of them is connected")

        return math.log(count)


def _draw_by_rejection(n: int, d: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """The configuration model, repeated until the graph is simple: exactly uniform."""
    adjacency = np.zeros((n, n), dtype=np.bool_)
    if d == 0:
        return adjacency
    stubs = np.repeat(np.arange(n), d)

    while True:
        pairings = rng.permuted(np.broadcast_to(stubs, (32, n * d)), axis=1)
        a, b = pairings[:, 0::2], pairings[:, 1::2]
        loopless = np.flatnonzero((a != b).all(axis=1))
        keys = np.sort(np.minimum(a[loopless], b[loopless]) * n + np.maximum(a[loopless], b[loopless]), axis=1)
        simple = np.flatnonzero((np.diff(keys, axis=1) > 0).all(axis=1))
        if len(simple):
            i, j = np.divmod(keys[simple[0]], n)
            adjacency[i, j] = adjacency[j, i] = True
            return adjacency


def _draw_by_counting(n: int, d: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose the neighbours of one node at a time, weighted by the number of completions: exactly uniform."""
    adjacency = np.zeros((n, n), dtype=np.bool_)
    classes: list[list[int]] = [[] for _ in range(d)]  # classes[k]: nodes with k + 1 missing neighbours
    classes[d - 1] = list(range(n))

    while any(classes):
        while not classes[-1]:
            classes.pop()
        node = classes[-1].pop()
        state = tuple(map(len, classes))
        moves = list(_moves(state, len(classes)))
        # Integers, as the numbers of graphs can exceed the range of floats.
        ends = list(accumulate(ways * _count(after) for _, ways, after in moves))
        taken = moves[bisect_right(ends, int(rng.random() * 2**53) * ends[-1] >> 53)][0]

        partners = [rng.permutation(members)[:count].tolist() for members, count in zip(classes, taken, strict=True)]
        for k, chosen in enumerate(partners):
            adjacency[node, chosen] = adjacency[chosen, node] = True
            classes[k] = [other for other in classes[k] if other not in chosen]
            if k:
                classes[k - 1] = classes[k - 1] + chosen

    return adjacency


def count_regular(n: int, d: int) -> int:
    """The number of labelled d-regular graphs on ``n`` nodes (OEIS A002829 for d = 3, A005815 for d = 4)."""
    if n == 0:
        return 1
    if n <= d or n * d % 2:
        return 0
    d = min(d, n - 1 - d)
    if math.comb(n + d, d) > MAX_STATES:
        raise FamilyError(f"There are too many {d}-regular graphs on {n} nodes to count.", reason="intractable")

    return _count((0,) * (d - 1) + (n,)) if d else 1


@lru_cache(maxsize=4096)
def count_connected_regular(n: int, d: int) -> int:
    """The number of connected labelled d-regular graphs on ``n`` nodes, by the size of the component of node 0."""
    return count_regular(n, d) - sum(
        math.comb(n - 1, k - 1) * count_connected_regular(k, d) * count_regular(n - k, d) for k in range(d + 1, n)
    )


# The cache of _count.
_counts: dict[tuple[int, ...], int] = {(): 1}


def _count(state: tuple[int, ...]) -> int:
    """The number of graphs in which ``state[k]`` given nodes have degree ``k + 1``.

    A recursion over the neighbours of one node of the lowest degree, which has the fewest choices. It uses an explicit
    stack, as it can be deeper than the recursion limit of Python.
    """
    pending = [state]
    while pending:
        current = pending[-1]
        if current in _counts:
            pending.pop()
            continue
        low = next(k for k, nodes in enumerate(current) if nodes)
        remaining = (*current[:low], current[low] - 1, *current[low + 1 :])
        moves = list(_moves(remaining, low + 1))
        unknown = [after for _, _, after in moves if after not in _counts]
        if unknown:
            pending += unknown
        else:
            _counts[current] = sum(ways * _counts[after] for _, ways, after in moves)

    return _counts[state]


def _moves(state: tuple[int, ...], picks: int) -> Iterator[tuple[tuple[int, ...], int, tuple[int, ...]]]:
    """The choices of ``picks`` neighbours: the number from each class, the number of ways, the state after."""
    for taken in _compositions(state, picks):
        ways = math.prod(map(math.comb, state, taken))
        moved = (*taken[1:], 0)
        after = [count - gone + come for count, gone, come in zip(state, taken, moved, strict=True)]
        while after and after[-1] == 0:
            after.pop()
        yield taken, ways, tuple(after)


def _compositions(limits: tuple[int, ...], total: int) -> Iterator[tuple[int, ...]]:
    """All ways to write a total as a sum of one term per class, each up to its limit."""
    if not limits:
        if total == 0:
            yield ()
        return
    for last in range(min(limits[-1], total) + 1):
        for rest in _compositions(limits[:-1], total - last):
            yield (*rest, last)
