"""Hard negatives in the manner of HeaRT (Li et al., 2023): non-edges that heuristics rank high."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import DatasetError
from ..records import count_of
from .pair_scores import CommonNeighbours, pagerank
from .splits import Pairs

__all__ = ["check_non_neighbours", "hard_negatives"]

TELEPORT = 0.15
# Scores in memory at once, in whole rows.
NUMBERS = 1 << 22


def check_non_neighbours(nodes: int, edges: Pairs, positives: Pairs, count: int) -> None:
    """Raise DatasetError if an end of a positive has fewer non-neighbours than half of ``count``."""
    ends = np.unique(positives)
    fewest = nodes - 1 - int(np.bincount(edges.ravel(), minlength=nodes)[ends].max(initial=0))
    if fewest < _half(count):
        raise DatasetError(
            f"A node of a held-out edge has {count_of(fewest, 'non-neighbour')}, and {_half(count)} are needed for "
            f"hard non-edges.",
            reason="few-non-neighbours",
        )


def _half(count: int) -> int:
    return -(-count // 2)


def hard_negatives(
    nodes: int,
    edges: Pairs,
    train: Pairs,
    positives: Pairs,
    count: int,
    generator: np.random.Generator,
    features: sparse.csr_array | None = None,
) -> NDArray[np.int64]:
    """For each positive, ``count`` non-edges that share one of its ends, half for either, of shape :math:`(M, K, 2)`.

    The other end is chosen by its best rank over resource allocation, personalised PageRank and, with features, their
    cosine, in the graph of the training edges; scores of zero have no rank. Too few of these are filled up at random.

    Arguments:
        edges: All edges, none of which is a negative, with shape :math:`(E, 2)`.
        train: The training edges.
        positives: The pairs, with shape :math:`(M, 2)`.

    Raises:
        DatasetError: A node has too few non-neighbours.
    """
    check_non_neighbours(nodes, edges, positives, count)
    half = _half(count)
    neighbours = sparse.csr_array(
        (np.ones(2 * len(edges)), tuple(np.concatenate([edges, edges[:, ::-1]]).T)), shape=(nodes, nodes)
    )
    ends = np.unique(positives)
    ranks = pagerank(nodes, train, TELEPORT)
    shared = CommonNeighbours.from_edges(nodes, train, "resource-allocation")
    cosines = None if features is None else _unit_rows(features)
    partners = np.empty((len(ends), half), dtype=np.int64)
    width = max(1, NUMBERS // max(nodes, 1))
    for start in range(0, len(ends), width):
        block = ends[start : start + width]
        scores = [score.tile(block, slice(None)).numpy() for score in (shared, ranks)]
        if cosines is not None:
            scores.append((cosines[block] @ cosines.T).toarray())
        for row, node in enumerate(block):
            free = np.ones(nodes, dtype=np.bool_)
            free[neighbours.indices[slice(*neighbours.indptr[node : node + 2])]] = False
            free[node] = False
            partners[start + row] = _best_ranked([score[row] for score in scores], free, half, generator)
    place = np.searchsorted(ends, positives)
    found = np.stack(
        [
            np.stack([np.broadcast_to(positives[:, [end]], (len(positives), half)), partners[place[:, end]]], axis=-1)
            for end in (0, 1)
        ],
        axis=1,
    ).reshape(len(positives), 2 * half, 2)

    # The first end has one more of an odd number.
    return np.sort(found[:, :count], axis=-1)


def _best_ranked(
    scores: list[NDArray[np.float64]], free: NDArray[np.bool_], count: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """The nodes with the best rank by any of the scores, best first, then others at random, with shape (count,)."""
    best = np.full(len(free), len(free))
    for score in scores:
        order = np.flatnonzero(free & (score > 0))
        order = order[np.argsort(-score[order], kind="stable")]
        best[order] = np.minimum(best[order], np.arange(len(order)))
    # Nodes without a rank come last, in random order.
    nodes = generator.permutation(np.flatnonzero(free))

    return np.asarray(nodes[np.argsort(best[nodes], kind="stable")][:count])


def _unit_rows(features: sparse.csr_array) -> sparse.csr_array:
    x = sparse.csr_array(features, dtype=np.float64)
    norms = np.sqrt(x.multiply(x).sum(axis=1))

    return sparse.csr_array(sparse.diags_array(1 / np.where(norms > 0, norms, 1)) @ x)
