"""The edges of a graph in both directions, sorted: neighbours, common neighbours and triangles without a loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Arcs"]

Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

# Neighbours in memory at a time.
_CHUNK = 1 << 21


@dataclass(frozen=True)
class Arcs:
    """Every edge as two arcs, sorted by source and target.

    Attributes:
        nodes: The number of nodes :math:`N`.
        keys: The pair of each arc as one number, ascending, with shape :math:`(2E,)`.
        targets: The node that each arc leads to, with shape :math:`(2E,)`.
        edge: The position of its edge, with shape :math:`(2E,)`.
        starts: The first arc of each node, then the number of arcs, with shape :math:`(N + 1,)`.
    """

    nodes: int
    keys: Indices
    targets: Indices
    edge: Indices
    starts: Indices

    @classmethod
    def of(cls, edges: Indices, nodes: int) -> Arcs:
        """The arcs of edges with shape :math:`(2, E)`, in any order."""
        i, j = edges
        keys = np.concatenate([i * nodes + j, j * nodes + i])
        order = np.argsort(keys)
        keys = keys[order]
        starts = np.searchsorted(keys, np.arange(nodes + 1) * nodes)

        return cls(nodes, keys, keys % max(nodes, 1), order % max(len(i), 1), starts)

    def degrees(self) -> Indices:
        """The degree of each node, with shape :math:`(N,)`."""
        return np.diff(self.starts)

    def contain(self, i: Indices, j: Indices) -> Flags:
        """Whether pairs of nodes are edges, with the shape of the arguments."""
        keys = i * self.nodes + j
        if not len(self.keys):
            return np.zeros(len(keys), dtype=np.bool_)
        place = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)

        return self.keys[place] == keys

    def step(self, sources: Indices, rng: np.random.Generator) -> Indices:
        """A random arc of each of the given nodes, which have neighbours, with shape :math:`(M,)`."""
        first, end = self.starts[sources], self.starts[sources + 1]

        return np.minimum(first + (rng.random(len(sources)) * (end - first)).astype(np.int64), end - 1)

    def common_neighbours(self, i: Indices, j: Indices) -> tuple[Indices, Indices]:
        """Common neighbours of pairs: the position of the pair and the node, one entry each."""
        degrees = self.degrees()
        # Enumerate the neighbours of the end with fewer, since those of a hub could be all nodes.
        few = degrees[i] <= degrees[j]
        near, far = np.where(few, i, j), np.where(few, j, i)
        counts = degrees[near]
        ends = np.cumsum(counts)
        pairs, found = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        first = 0
        while first < len(near):
            before = ends[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + _CHUNK, side="right")))
            part = np.repeat(np.arange(first, last), counts[first:last])
            arcs = np.arange(len(part)) + before - np.repeat(ends[first:last] - counts[first:last], counts[first:last])
            nodes = self.targets[arcs + self.starts[near[part]]]
            closes = self.contain(far[part], nodes)
            pairs.append(part[closes])
            found.append(nodes[closes])
            first = last

        return np.concatenate(pairs), np.concatenate(found)

    def triangles(self) -> Indices:
        """The number of triangles at each node, with shape :math:`(N,)`."""
        sources = np.repeat(np.arange(self.nodes), self.degrees())
        once = sources < self.targets
        _, corners = self.common_neighbours(sources[once], self.targets[once])

        return np.bincount(corners, minlength=self.nodes)
