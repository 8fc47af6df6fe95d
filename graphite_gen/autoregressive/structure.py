"""Structure of graphs that grow by one node at a time: path lengths, common neighbours, degrees and triangles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BLOCK",
    "CODES",
    "FAR",
    "LONG_ROW",
    "MOST_ADJACENT",
    "NO_RELATION",
    "PartialGraphs",
    "Relations",
    "block_sizes",
    "block_starts",
    "is_long",
    "relation_code",
]

# Rows with more candidates than this are decoded by blocks of consecutive ones: first whether a block has a neighbour,
# then which of its nodes are neighbours. So the number of evaluations of a row follows its edges.
LONG_ROW = 96
BLOCK = 16

# Path lengths are exact below this number, and equal to it beyond.
FAR = 6
# Counts of chosen neighbours adjacent to a candidate saturate here.
MOST_ADJACENT = 4
# Numbers of common neighbours saturate here, within eight bits.
MOST_SHARED = 100
# The relation of two nodes: at distance 1 or 2 their number of common neighbours, saturated, else their distance.
MOST_COMMON = 3
RELATIONS = MOST_COMMON + 1 + MOST_COMMON + FAR - 2 + 1
_NO_LAST = RELATIONS - 1
# The time of an access to scattered entries of a matrix, in units of that to consecutive ones.
SCATTERED_COST = 40

SHAPE = (RELATIONS, FAR, MOST_ADJACENT + 1)
CODES = RELATIONS * FAR * (MOST_ADJACENT + 1)
NO_RELATION = (_NO_LAST * FAR + FAR - 1) * (MOST_ADJACENT + 1)
"""The code of a candidate while no neighbour is chosen."""

Counts = NDArray[np.int8]


def relation_code(
    distance: Counts, common: Counts, nearest: Counts, adjacent: NDArray[np.int32] | Counts
) -> NDArray[np.int16]:
    """How a candidate relates to the neighbours chosen before it, as one number below the product of ``SHAPE``.

    Arguments:
        distance: The path length to the last chosen neighbour.
        common: The number of neighbours shared with it.
        nearest: The path length to the nearest chosen neighbour.
        adjacent: The number of chosen neighbours adjacent to the candidate.
    """
    shared = np.minimum(common, MOST_COMMON)
    close = np.where(distance == 1, shared, MOST_COMMON + np.maximum(shared, 1))
    relation = np.where(distance <= 2, close, 2 * MOST_COMMON - 2 + distance).astype(np.int16)

    return (relation * FAR + nearest - 1) * (MOST_ADJACENT + 1) + np.minimum(adjacent, MOST_ADJACENT)


class Relations(NamedTuple):
    """How candidates relate to the neighbours chosen before them, with shape :math:`(L, t)`.

    Attributes:
        before: The number of these neighbours.
        distance: The path length to the last of them.
        common: The number of neighbours shared with it.
        nearest: The path length to the nearest of them.
        adjacent: The number of them that are adjacent to the candidate.
        paths: The number of paths of length two to them.
    """

    before: NDArray[np.int64]
    distance: Counts
    common: Counts
    nearest: Counts
    adjacent: NDArray[np.int32]
    paths: NDArray[np.int32]

    @classmethod
    def empty(cls, graphs: int, t: int) -> Relations:
        """The relations to no neighbours."""
        shape = graphs, t
        distance, nearest = np.full(shape, FAR, dtype=np.int8), np.full(shape, FAR, dtype=np.int8)
        common, (adjacent, paths) = np.zeros(shape, np.int8), (np.zeros(shape, np.int32) for _ in range(2))

        return cls(np.zeros(shape, dtype=np.int64), distance, common, nearest, adjacent, paths)

    @property
    def codes(self) -> NDArray[np.int16]:
        """The codes of :func:`relation_code`."""
        code = relation_code(self.distance, self.common, self.nearest, self.adjacent)

        return np.where(self.before > 0, code, np.int16(NO_RELATION))

    def of_blocks(self) -> Relations:
        """The relations of blocks of candidates: those of the closest node in each, with shape :math:`(L, K)`."""
        starts = block_starts(self.before.shape[1])
        most, least = np.maximum.reduceat, np.minimum.reduceat

        return Relations(
            least(self.before, starts, 1),
            least(self.distance, starts, 1),
            most(self.common, starts, 1),
            least(self.nearest, starts, 1),
            most(self.adjacent, starts, 1),
            most(self.paths, starts, 1),
        )


def is_long(t: int) -> bool:
    """Whether a row of t candidates is decoded by blocks."""
    return t > LONG_ROW


def block_starts(t: int) -> NDArray[np.int64]:
    """The first candidate of each block of a row of t candidates."""
    return np.arange(0, t, BLOCK)


def block_sizes(t: int) -> NDArray[np.int64]:
    """The number of candidates in each block of a row of t candidates."""
    starts = block_starts(t)

    return np.minimum(starts + BLOCK, t) - starts


class PartialGraphs:
    """Graphs on the nodes decoded so far, in decoding order.

    Arrays have shape :math:`(B, N)` or :math:`(B, N, N)`. Only the first graphs may be continued while others are
    complete: the number of rows that are passed tells how many.
    """

    def __init__(self, graphs: int, nodes: int) -> None:
        self.distance = np.full((graphs, nodes, nodes), FAR, dtype=np.int8)
        self.common = np.zeros((graphs, nodes, nodes), dtype=np.int8)
        self.degrees = np.zeros((graphs, nodes), dtype=np.int64)
        self.triangles = np.zeros((graphs, nodes), dtype=np.int64)
        self.edges = np.zeros(graphs, dtype=np.int64)
        # The number of edges and of paths of length two to earlier nodes.
        self.earlier = np.zeros((graphs, nodes), dtype=np.int64)
        self.paths = np.zeros((graphs, nodes), dtype=np.int64)

    @property
    def node_counts(self) -> dict[str, NDArray[np.int64]]:
        """What a candidate is described by besides its state and relations, each with shape :math:`(B, N)`."""
        return {
            "degrees": self.degrees,
            "triangles": self.triangles,
            "earlier": self.earlier,
            "earlier_paths": self.paths,
        }

    def block_means(self, t: int) -> dict[str, NDArray[np.int64]]:
        """The means of :attr:`node_counts` over blocks of the first t nodes, rounded, with shape :math:`(B, K)`."""
        starts, sizes = block_starts(t), block_sizes(t)

        return {
            name: (np.add.reduceat(values[:, :t], starts, axis=1) + sizes // 2) // sizes
            for name, values in self.node_counts.items()
        }

    def relations(
        self, t: int, neighbours: NDArray[np.int64], counts: NDArray[np.int64], limit: NDArray[np.int64]
    ) -> Relations:
        """How the candidates of node t relate to the neighbours before a limit, which is given for each candidate (t,).

        Neighbours are ascending and padded, with shape :math:`(L, R)`; ``counts`` is their number.
        """
        graphs, most = neighbours.shape
        if not most:
            return Relations.empty(graphs, t)
        rows = np.arange(graphs)[:, None]
        distance, common = (matrix[rows, neighbours, :t] for matrix in (self.distance, self.common))
        is_earlier = (np.arange(most) < counts[:, None])[..., None] & (neighbours[..., None] < limit)
        before = is_earlier.sum(1)
        last = rows, np.maximum(before - 1, 0), np.arange(t)

        return Relations(
            before,
            distance[last],
            common[last],
            np.where(is_earlier, distance, np.int8(FAR)).min(1),
            (is_earlier & (distance == 1)).sum(1, dtype=np.int32),
            np.where(is_earlier, common, 0).sum(1, dtype=np.int32),
        )

    def add(self, t: int, neighbours: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
        """Add node t with its neighbours, padded, with shape :math:`(L, R)`; ``counts`` is their number."""
        graphs, most = neighbours.shape
        self.distance[:graphs, t, t] = 0
        self.edges[:graphs] += counts
        self.degrees[:graphs, t] = counts
        self.earlier[:graphs, t] = counts
        if not most or not t:
            return
        rows = np.arange(graphs)[:, None]
        is_real = np.arange(most) < counts[:, None]
        owner, place = np.nonzero(is_real)
        node = neighbours[owner, place]
        self.degrees[owner, node] += 1

        distance = np.where(is_real[..., None], self.distance[rows, neighbours, :t], np.int8(FAR))
        touches = distance == 1
        corners = touches[rows[..., None], np.arange(most)[:, None], neighbours[:, None, :]] & is_real[:, None, :]
        corners = corners.sum(-1)
        self.triangles[owner, node] += corners[owner, place]
        self.triangles[:graphs, t] = corners.sum(1) // 2

        shared = touches.sum(1)
        self.paths[:graphs, t] = shared.sum(1)
        self.common[:graphs, t, :t] = self.common[:graphs, :t, t] = np.minimum(shared, MOST_SHARED)
        g, r, s = np.nonzero(is_real[:, None, :] & is_real[:, :, None])
        at = g, neighbours[g, r], neighbours[g, s]
        self.common[at] = np.minimum(self.common[at] + 1, MOST_SHARED)
        # Neighbours are ascending: the place of one is the number of those before it.
        self.paths[owner, node] += place

        nearest = np.minimum(distance.min(1) + 1, FAR).astype(np.int8)
        self.distance[:graphs, t, :t] = nearest
        self.distance[:graphs, :t, t] = nearest
        self._shorten_paths(nearest)

    def _shorten_paths(self, nearest: Counts) -> None:
        """Update the distances of earlier nodes, given theirs to the new node, with shape :math:`(L, t)`."""
        graphs, t = nearest.shape
        # A path through the new node is short only if one of its ends is within half of the maximum.
        graph, node = np.nonzero(nearest <= (FAR - 1) // 2)
        is_near = nearest < FAR - 1
        most = int(is_near.sum(1).max())
        if SCATTERED_COST * len(node) * most > graphs * t * t:
            block = self.distance[:graphs, :t, :t]
            np.minimum(block, nearest[:, :, None] + nearest[:, None, :], out=block)
            diagonal = np.arange(t)
            block[:, diagonal, diagonal] = 0
            return
        others = np.argsort(~is_near, axis=1, kind="stable")[:, :most][graph]
        graph, node = graph[:, None], node[:, None]
        length = np.minimum(nearest[graph, node] + nearest[graph, others], self.distance[graph, node, others])
        self.distance[graph, node, others] = length
        self.distance[graph, others, node] = length

    def select(self, graphs: NDArray[np.int64]) -> None:
        """Replace the graphs by some of them."""
        for name, values in vars(self).items():
            setattr(self, name, values[graphs])
