"""Random regular graphs: every node has the same number of neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from .base import Family, largest_component

__all__ = ["Regular"]

# A random pairing of stubs is a simple graph with probability about exp(-(d² - 1) / 4): up to this degree it is
# quicker to try again than to count.
REJECTION_DEGREE = 4


@dataclass(frozen=True)
class Regular(Family):
    r"""A uniformly random graph among those where every node has :math:`d` neighbours.

    Attributes:
        d: The number of neighbours of every node.
        largest_component: Keep the largest component of each draw, which may then have fewer than ``n`` nodes.
            Off by default: the published floors are for the law without it.
    """

    name: ClassVar[str] = "regular"
    summary: ClassVar[str] = "uniform among the graphs where every node has d neighbours"

    d: int = 4
    largest_component: bool = False

    def __post_init__(self) -> None:
        if self.d < 0:
            raise self._refuse_value("d", "a whole number of at least 0")

    def check_size(self, n: int) -> None:
        if n <= self.d:
            raise self._refuse_size(n, f"pass at least d + 1 = {self.d + 1}")
        if n * self.d % 2:
            raise self._refuse_size(n, f"n·d = {n * self.d} is odd, pass an even n")

    def sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        self.check_size(n)
        # The complement of a regular graph is regular: draw whichever is sparser.
        sparser = min(self.d, n - 1 - self.d)
        adjacency = _draw_regular(n, sparser, rng)
        if sparser < self.d:
            adjacency = ~adjacency
        graph = SimpleGraph.from_adjacency(adjacency)

        return largest_component(graph) if self.largest_component else graph


def _draw_regular(n: int, d: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """The adjacency matrix of a uniformly random d-regular graph, with shape :math:`(n, n)`."""
    if d <= REJECTION_DEGREE:
        return _draw_by_rejection(n, d, rng)

    import networkx as nx

    return np.asarray(nx.to_numpy_array(nx.random_regular_graph(d, n, seed=rng), dtype=np.bool_))


def _draw_by_rejection(n: int, d: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Pair up the nodes' stubs at random until no pair is a loop and none comes twice: exactly uniform."""
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
