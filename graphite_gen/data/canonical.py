"""A numbering of the nodes of a graph that follows from its structure."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..graph import SimpleGraph

__all__ = ["canonical_ranks"]

# Larger graphs are coloured without counts of closed walks, which take products of dense matrices.
MAX_WALKS = 1000


def canonical_ranks(graph: SimpleGraph) -> NDArray[np.int64]:
    """The new number of each node, by colour refinement (eq. 1) with individualisation, with shape :math:`(n,)`.

    Nodes start with colours by features and closed walks. Relabelled copies of a graph become the same graph if nodes
    of the same stable colour are equivalent by symmetry, as in trees and almost all graphs. In the others, such as
    strongly regular graphs and large regular ones, ties are broken by the numbering given.
    """
    i, j = graph.edges.T
    bits = np.ones(len(i), dtype=np.uint64) if graph.weights is None else graph.weights.view(np.uint64)
    ends = np.concatenate([i, j]), np.concatenate([j, i])
    adj = csr_array((np.concatenate([bits, bits]), ends), shape=(graph.nodes, graph.nodes))
    start = _closed_walks(graph)
    if graph.features is not None:
        start = np.concatenate([start, graph.features], axis=1)
    colours = _refined(adj, _codes(start))
    while len(counts := np.bincount(colours)) < graph.nodes:
        # One node of the first tied colour gets a colour of its own, just before the others.
        chosen = np.flatnonzero(colours == np.argmax(counts > 1))[0]
        colours = 2 * colours + 1
        colours[chosen] -= 1
        colours = _refined(adj, colours)

    return colours


def _closed_walks(graph: SimpleGraph) -> NDArray[np.float64]:
    """The number of closed walks of lengths 3 to 6 from each node, which are exact integers, with shape (n, 4)."""
    if graph.nodes > MAX_WALKS:
        return np.zeros((graph.nodes, 4))
    one = graph.adjacency().astype(np.float64)
    two = one @ one
    three = two @ one

    return np.stack([(a * b).sum(1) for a, b in ((two, one), (two, two), (three, two), (three, three))], axis=1)


def _refined(adj: csr_array, colours: NDArray[np.int64]) -> NDArray[np.int64]:
    """The stable colouring: nodes of a colour have the same number of neighbours of every colour."""
    count = 0
    while True:
        sums = adj @ _hashed(colours)
        colours = _codes(np.stack([colours.astype(np.uint64), sums], axis=1))
        if colours.max(initial=-1) + 1 == count:
            return colours
        count = int(colours.max(initial=-1)) + 1


def _codes(rows: NDArray[np.generic]) -> NDArray[np.int64]:
    """Ranks of rows in lexicographic order, equal for equal rows."""
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _hashed(colours: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Colours as 64-bit hashes (SplitMix64), so that sums modulo 2⁶⁴ tell multisets of colours apart."""
    x = (colours.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)

    return x ^ (x >> np.uint64(31))
