"""Random lifts: several samples of one network joined into a larger graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from .splits import is_among

__all__ = ["lift"]

Indices = NDArray[np.int64]

# The least fraction of edges between copies, even if nearly all edges are in triangles.
LEAST_CROSSING = 0.1


def lift(originals: Sequence[Indices], copies: Sequence[Indices], rng: np.random.Generator) -> Indices:
    """Edges of one graph that joins all copies, i < j, with shape :math:`(2, E)`; nodes are numbered copy by copy.

    Each copy of the network has the original of each of its nodes, :math:`(n,)`, and its edges, i < j, :math:`(2, E)`.

    A larger graph with the same local structure has more neighbourhoods, not larger ones. Edges in triangles stay
    within their copy; one end of each other edge is permuted among the nodes with the same original: a random lift
    (Amit & Linial, 2002). It preserves degrees, triangles, and which originals are adjacent. If fewer than
    ``LEAST_CROSSING`` of the edges would cross, some in triangles do as well. Duplicate edges are merged and
    self-loops dropped; both are rare.
    """
    starts = np.cumsum([0, *map(len, originals)])
    edges = np.concatenate([copy + start for copy, start in zip(copies, starts, strict=False)], axis=1)
    if len(copies) == 1:
        return edges

    like = np.concatenate(originals)
    crossing = ~np.concatenate([in_triangles(len(own), copy) for own, copy in zip(originals, copies, strict=True)])
    missing = int(np.ceil(LEAST_CROSSING * len(crossing))) - int(crossing.sum())
    if missing > 0:
        crossing[rng.permutation(np.flatnonzero(~crossing))[:missing]] = True
    # The permuted end of each edge is chosen at random.
    moving = rng.permuted(edges[:, crossing], axis=0)
    kinds = like[moving[1]]
    order = np.argsort(kinds, kind="stable")
    moving[1, order] = moving[1, np.lexsort((rng.random(len(kinds)), kinds))]
    joined = np.concatenate([edges[:, ~crossing], np.sort(moving, axis=0)], axis=1)

    keys = np.unique((joined[0] * starts[-1] + joined[1])[joined[0] < joined[1]])

    return np.stack(np.divmod(keys, starts[-1]))


def in_triangles(nodes: int, edges: Indices) -> NDArray[np.bool_]:
    """Whether the ends of each edge have a common neighbour, with shape :math:`(E,)`."""
    i, j = np.concatenate([edges, edges[::-1]], axis=1)
    graph = sparse.csr_array((np.ones(len(i)), (i, j)), shape=(nodes, nodes))
    degrees = np.diff(graph.indptr)
    # Enumerate the neighbours of the end with fewer, since those of a hub could be all nodes.
    few = degrees[edges[0]] <= degrees[edges[1]]
    near, far = np.where(few, edges, edges[::-1])
    rows = graph[near]
    edge = np.repeat(np.arange(len(near)), np.diff(rows.indptr))
    closes = is_among(far[edge] * nodes + rows.indices, np.sort(i * nodes + j))

    return np.bincount(edge[closes], minlength=len(near)) > 0
