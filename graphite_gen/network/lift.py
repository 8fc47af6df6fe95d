"""Several draws of one graph, tied together into a larger graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .splits import is_among

__all__ = ["Copy", "in_triangles", "lift"]

Indices = NDArray[np.int64]

# At least this part of the edges goes from one copy to another, also where nearly all are in triangles.
LEAST_CROSSING = 0.1


@dataclass(frozen=True)
class Copy:
    """A draw of a graph.

    Attributes:
        like: The observed node that each node takes after, with shape :math:`(n,)`.
        edges: The edges, i < j, with shape :math:`(2, E)`.
    """

    like: Indices
    edges: Indices


def lift(copies: Sequence[Copy], rng: np.random.Generator) -> Indices:
    r"""The edges of one graph of all copies, their nodes one after the other, i < j, with shape :math:`(2, E)`.

    A larger graph that looks the same from near by has more neighbourhoods, not larger ones. So edges in triangles stay
    in their copy, and each of the others goes to the same node of any copy instead: a random lift (Amit & Linial,
    2002). That leaves all degrees, all triangles and who is tied to whose like as they are. Edges in triangles join in
    where too few others would hold the copies together. The few pairs that would have two edges get one, and a node
    that would be tied to itself is not.

    Arguments:
        copies: The draws, at least one.
        rng: The randomness.
    """
    starts = np.cumsum([0, *(len(copy.like) for copy in copies)])
    edges = np.concatenate([copy.edges + start for copy, start in zip(copies, starts, strict=False)], axis=1)
    if len(copies) == 1:
        return edges

    like = np.concatenate([copy.like for copy in copies])
    crossing = ~np.concatenate([in_triangles(len(copy.like), copy.edges) for copy in copies])
    missing = int(np.ceil(LEAST_CROSSING * len(crossing))) - int(crossing.sum())
    if missing > 0:
        crossing[rng.permutation(np.flatnonzero(~crossing))[:missing]] = True
    # Either end may be the one that is left for another copy of itself.
    moving = rng.permuted(edges[:, crossing], axis=0)
    kinds = like[moving[1]]
    order = np.argsort(kinds, kind="stable")
    moving[1, order] = moving[1, np.lexsort((rng.random(len(kinds)), kinds))]
    joined = np.concatenate([edges[:, ~crossing], np.sort(moving, axis=0)], axis=1)

    keys = np.unique((joined[0] * starts[-1] + joined[1])[joined[0] < joined[1]])

    return np.stack(np.divmod(keys, starts[-1]))


def in_triangles(nodes: int, edges: Indices) -> NDArray[np.bool_]:
    """Whether the ends of each edge have a neighbour in common, with shape :math:`(E,)`."""
    i, j = np.concatenate([edges, edges[::-1]], axis=1)
    graph = sparse.csr_array((np.ones(len(i)), (i, j)), shape=(nodes, nodes))
    degrees = np.diff(graph.indptr)
    # The neighbours of the end that has fewer are asked for: those of a hub would be all nodes, for each of its edges.
    few = degrees[edges[0]] <= degrees[edges[1]]
    near, far = np.where(few, edges, edges[::-1])
    rows = graph[near]
    edge = np.repeat(np.arange(len(near)), np.diff(rows.indptr))
    closes = is_among(far[edge] * nodes + rows.indices, np.sort(i * nodes + j))

    return np.bincount(edge[closes], minlength=len(near)) > 0
