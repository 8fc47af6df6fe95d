"""Splits of edges into training, validation and test edges, with as many non-edges."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import minimum_spanning_tree

from ..config import require
from ..errors import DatasetError
from ..records import count_of

__all__ = ["EdgeSplit", "contains_pairs", "hold_out", "is_among", "sample_non_edges", "split_edges"]

SPLITS = ("connected", "random")

Pairs = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class EdgeSplit:
    """The edges of a graph in three parts, and as many non-edges, all with ``i < j`` and shape :math:`(M, 2)`."""

    train: Pairs
    validation: Pairs
    test: Pairs
    validation_negatives: Pairs
    test_negatives: Pairs


def split_edges(
    nodes: int,
    edges: NDArray[np.integer],
    generator: np.random.Generator,
    *,
    form: str = "connected",
    validation: float = 0.05,
    test: float = 0.10,
) -> EdgeSplit:
    """A random split of edges, with as many uniformly drawn non-edges for validation and for test.

    ``connected`` is the paper's split: edges are held out in random order unless that disconnects a component. This is
    the reverse-delete algorithm, so the edges it keeps are the minimum spanning forest of random weights. ``random``
    holds out any edges. The edges have ``i < j`` and shape :math:`(E, 2)`.
    """
    require("split", form, SPLITS)
    pairs = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
    counts = max(1, int(validation * len(pairs))), max(1, int(test * len(pairs)))
    held = sum(counts)
    if len(pairs) <= held:
        raise DatasetError(f"The graph has {count_of(len(pairs), 'edge')}: held-out edges need at least 3.")

    order = generator.permutation(len(pairs))
    if form == "connected":
        order = order[~_in_forest(nodes, pairs[order])]
    if len(order) < held:
        raise DatasetError(
            f"Only {len(order)} of {len(pairs)} edges can be held out without disconnecting the graph, and {held} are "
            f"needed. split='random' ignores connectivity.",
            reason="split-disconnects",
        )
    chosen = order[:held]
    # Shuffled, since the first ones are likelier to lie on cycles: validation and test should be alike.
    generator.shuffle(chosen)
    kept = np.ones(len(pairs), dtype=np.bool_)
    kept[chosen] = False
    negatives = sample_non_edges(nodes, pairs, held, generator)

    return EdgeSplit(pairs[kept], *np.split(pairs[chosen], counts[:1]), *np.split(negatives, counts[:1]))


def hold_out(
    nodes: int, edges: Pairs, count: int, generator: np.random.Generator, *, form: str = "connected"
) -> NDArray[np.int64]:
    """Indices of up to ``count`` edges, held out as :func:`split_edges` does; of any edges in a forest."""
    order = generator.permutation(len(edges))
    if form == "connected":
        free = order[~_in_forest(nodes, edges[order])]
        order = free if len(free) else order

    return generator.permutation(order[:count])


def _in_forest(nodes: int, pairs: Pairs) -> NDArray[np.bool_]:
    """Whether each edge is in the minimum spanning forest of descending weights."""
    # A weight of zero would mean no edge. SciPy before 1.16 needs 32-bit indices.
    weights = np.arange(len(pairs), 0, -1, dtype=np.float64)
    forest = minimum_spanning_tree(sparse.csr_array((weights, tuple(pairs.T.astype(np.int32))), shape=(nodes, nodes)))
    found = np.zeros(len(pairs), dtype=np.bool_)
    found[len(pairs) - forest.data.astype(np.int64)] = True

    return found


def sample_non_edges(nodes: int, edges: Pairs, count: int, generator: np.random.Generator) -> Pairs:
    """Distinct pairs ``i < j`` that are not edges, drawn uniformly, in random order, with shape :math:`(M, 2)`."""
    total = nodes * (nodes - 1) // 2
    if total - len(edges) < count:
        raise DatasetError(
            f"The graph is too dense: {count_of(total - len(edges), 'non-edge')}, and {count} are needed."
        )
    taken = np.sort(edges[:, 0] * nodes + edges[:, 1])
    if total <= 4 * (count + len(edges)):
        i, j = np.triu_indices(nodes, 1)
        free = np.setdiff1d(i * nodes + j, taken, assume_unique=True)
        keys = generator.permutation(free)[:count]
    else:
        keys = np.empty(0, dtype=np.int64)
        while len(keys) < count:
            i, j = generator.integers(0, nodes, (2, 2 * count + 16))
            drawn = np.minimum(i, j) * nodes + np.maximum(i, j)
            drawn = drawn[(i != j) & ~is_among(drawn, taken)]
            keys = np.concatenate([keys, drawn])
            # Keep first occurrences, so that each draw is uniform over the remaining pairs.
            keys = keys[np.sort(np.unique(keys, return_index=True)[1])]
        keys = keys[:count]

    return np.stack(np.divmod(keys, nodes), axis=1)


def contains_pairs(nodes: int, edges: Pairs, pairs: Pairs) -> NDArray[np.bool_]:
    """Whether each pair ``i < j`` is among the edges, with shape :math:`(M,)`."""
    return is_among(pairs[:, 0] * nodes + pairs[:, 1], np.sort(edges[:, 0] * nodes + edges[:, 1]))


def is_among(keys: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each key is in a sorted array."""
    # Several times faster than np.isin. Keys are not negative; -1 stands for the place after the last one.
    return np.asarray(np.append(ordered, -1)[np.searchsorted(ordered, keys)] == keys)
