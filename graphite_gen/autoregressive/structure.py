"""Structure of graphs that grow by one node at a time: path lengths, common neighbours, degrees and triangles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAR", "MOST_ADJACENT", "NO_RELATION", "PartialGraphs", "relation_code"]

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

SHAPE = (RELATIONS, FAR, MOST_ADJACENT + 1)
NO_RELATION = (_NO_LAST * FAR + FAR - 1) * (MOST_ADJACENT + 1)
"""The code of a candidate while no neighbour is chosen."""

Counts = NDArray[np.int8]


def relation_code(distance: Counts, common: Counts, nearest: Counts, adjacent: Counts) -> NDArray[np.int16]:
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

    def row_codes(
        self, t: int, neighbours: NDArray[np.int64], counts: NDArray[np.int64], before: NDArray[np.int64]
    ) -> tuple[NDArray[np.int16], NDArray[np.int32], NDArray[np.int32]]:
        """Codes of all candidates of node t, and how many neighbours and paths of length two lead to chosen ones.

        Each is given the neighbours before it, with shape :math:`(L, t)`.

        Neighbours are ascending and padded, with shape :math:`(L, R)`; ``counts`` is their number, and ``before`` that
        of the neighbours before each candidate, with shape :math:`(L, t)`.
        """
        graphs, most = neighbours.shape
        if not most:
            zeros = np.zeros((graphs, t), dtype=np.int32)
            return np.full((graphs, t), NO_RELATION, dtype=np.int16), zeros, zeros
        rows = np.arange(graphs)[:, None]
        distance, common = (matrix[rows, neighbours, :t] for matrix in (self.distance, self.common))
        is_earlier = (np.arange(most) < counts[:, None])[..., None] & (neighbours[..., None] < np.arange(t))
        nearest = np.where(is_earlier, distance, np.int8(FAR)).min(1)
        adjacent = (is_earlier & (distance == 1)).sum(1, dtype=np.int32)
        paths = np.where(is_earlier, common, 0).sum(1, dtype=np.int32)
        last = np.maximum(before - 1, 0)[:, None]
        distance, common = (np.take_along_axis(values, last, 1)[:, 0] for values in (distance, common))

        codes = np.where(before > 0, relation_code(distance, common, nearest, adjacent), np.int16(NO_RELATION))

        return codes, adjacent, paths

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
        corners = np.take_along_axis(touches, neighbours[:, None, :], 2) & is_real[:, None, :]
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
        # Paths through the new node are shorter only between nodes near it.
        near = np.flatnonzero((nearest < FAR - 1).any(0))
        if len(near) == t:
            block = self.distance[:graphs, :t, :t]
            np.minimum(block, nearest[:, :, None] + nearest[:, None, :], out=block)
        else:
            close = np.ix_(np.arange(graphs), near, near)
            paths = nearest[:, near, None] + nearest[:, None, near]
            self.distance[close] = np.minimum(self.distance[close], paths)
        diagonal = np.arange(t)
        self.distance[:graphs, diagonal, diagonal] = 0

    def select(self, graphs: NDArray[np.int64]) -> None:
        """Replace the graphs by some of them."""
        for name, values in vars(self).items():
            setattr(self, name, values[graphs])
