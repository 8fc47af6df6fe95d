"""The blocks of a graph: groups of nodes whose edges depend on their groups alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.special import xlogy

from ..graph import SimpleGraph

__all__ = ["find_blocks"]

MOST_BLOCKS = 8
SWEEPS = 30

Labels = NDArray[np.int64]


def find_blocks(graph: SimpleGraph, most: int = MOST_BLOCKS) -> Labels:
    r"""The block of each node, numbered from 0, with shape :math:`(n,)`.

    For each number of blocks :math:`B`, Ward's clustering of the :math:`B` leading eigenvectors of the normalised
    adjacency matrix gives a start. Then every node moves to the block in which its edges are most likely, until none
    does. Of all results the one with the shortest description is kept:

    .. math:: -\log p(A \mid b, \hat p) + n \log B + \tfrac{B (B + 1)}{4} \log \tfrac{n (n - 1)}{2},

    the nats of the edges given the blocks, of the blocks, and of their densities.
    """
    n = graph.nodes
    best = np.zeros(n, dtype=np.int64)
    if n < 3:
        return best
    a = graph.adjacency().astype(np.float64)
    shortest = _description(a, best)
    # A little of every edge joins all nodes, or nodes without neighbours would be the clearest blocks of all.
    degrees = a.sum(1) + max(a.mean() * n, 1) / 2
    scale = 1 / np.sqrt(degrees)
    vectors = np.linalg.eigh(a * np.outer(scale, scale))[1][:, ::-1]
    for blocks in range(2, min(most, n - 1) + 1):
        rows = vectors[:, :blocks]
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        labels = _settled(a, fcluster(linkage(rows, "ward"), blocks, "maxclust"))
        length = _description(a, labels)
        if length < shortest:
            best, shortest = labels, length

    return best


def _settled(a: NDArray[np.float64], labels: Labels) -> Labels:
    """The blocks after nodes have moved to where their edges are most likely, the empty ones left out."""
    for _ in range(SWEEPS):
        labels = np.unique(labels, return_inverse=True)[1]
        member = np.eye(int(labels.max()) + 1)[labels]
        edges, pairs = _edges_and_pairs(a, member)
        # Half an edge more and less: a density of exactly 0 would forbid moves for ever.
        density = (edges + 0.5) / (pairs + 1)
        near = a @ member
        far = member.sum(0) - member - near
        moved = (near @ np.log(density) + far @ np.log1p(-density)).argmax(1)
        if (moved == labels).all():
            break
        labels = moved

    return np.unique(labels, return_inverse=True)[1]


def _description(a: NDArray[np.float64], labels: Labels) -> float:
    n, blocks = len(a), int(labels.max()) + 1
    edges, pairs = _edges_and_pairs(a, np.eye(blocks)[labels])
    density = edges / np.maximum(pairs, 1)
    # Both orders of a pair are counted.
    nats = -(xlogy(edges, density) + xlogy(pairs - edges, 1 - density)).sum() / 2

    return float(nats + n * np.log(blocks) + blocks * (blocks + 1) / 4 * np.log(n * (n - 1) / 2))


def _edges_and_pairs(
    a: NDArray[np.float64], member: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The edges and the pairs of nodes between each two blocks, each in both orders."""
    sizes = member.sum(0)

    return member.T @ a @ member, np.outer(sizes, sizes) - np.diag(sizes)
