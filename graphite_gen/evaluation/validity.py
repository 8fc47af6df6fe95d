"""What a graph of the published sets must be: a tree, planar, or drawn from a stochastic block model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.special import xlogy
from scipy.stats import chi2

from ..data.properties import has_planar_embedding, is_connected, is_tree
from ..graph import SimpleGraph

__all__ = ["VALIDITY", "find_blocks", "is_planar", "is_sbm", "is_tree", "sbm_agreement"]

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


INSIDE, ACROSS = 0.3, 0.005
BLOCKS = range(2, 6)
BLOCK_SIZES = range(20, 41)
AGREEMENT = 0.9
# As in the published test; it also decides what becomes of two blocks without an edge between them.
TINY = 1e-6


def is_planar(graph: SimpleGraph) -> bool:
    """Whether the graph is connected and can be drawn in the plane without crossings, as the published test asks."""
    return is_connected(graph) and has_planar_embedding(graph)


def is_sbm(graph: SimpleGraph) -> bool:
    """Whether the graph looks like one of the published block models, by the test of Martinkus et al. (SPECTRE, 2022).

    Its blocks are recovered; there must be 2 to 5 of them, of 20 to 40 nodes each, and :func:`sbm_agreement` must be
    above 0.9.

    The published test recovers blocks by the description length of graph-tool, refined by Markov chains. Here a
    spectral start is refined by likelihood and the number of blocks chosen by description length, see
    :func:`find_blocks`. Blocks as clear as these come out the same up to a few nodes; graphs in which blocks can hardly
    be seen may be judged otherwise, and so published figures are comparable but not identical.
    """
    if not BLOCKS[0] * BLOCK_SIZES[0] <= graph.nodes <= BLOCKS[-1] * BLOCK_SIZES[-1]:
        return False
    labels = find_blocks(graph)
    sizes = np.bincount(labels)
    if len(sizes) not in BLOCKS or any(size not in BLOCK_SIZES for size in sizes.tolist()):
        return False

    return sbm_agreement(graph, labels) > AGREEMENT


def sbm_agreement(
    graph: SimpleGraph, labels: NDArray[np.int64], inside: float = INSIDE, across: float = ACROSS
) -> float:
    r"""How well the densities of blocks agree with those of the model, from 0 to 1.

    For each ordered pair of blocks, with the density :math:`\hat p` of the edges between them and :math:`p` that of the
    model,

    .. math:: W = \frac{(\hat p - p)^2}{\hat p (1 - \hat p) + 10^{-6}},

    and the result is the mean of the upper tails of :math:`W` under :math:`\chi^2_1`. This is the published formula. A
    Wald test would multiply :math:`W` by the number of pairs; without it the figure is a measure of effect, not a
    p-value, and two blocks without any edge between them count as disagreement.
    """
    member = np.eye(int(labels.max(initial=-1)) + 1)[labels]
    sizes = member.sum(0)
    edges = member.T @ graph.adjacency() @ member
    pairs = np.outer(sizes, sizes) - np.diag(sizes)
    density = edges / (pairs + TINY)
    wanted = np.where(np.eye(len(sizes)) > 0, inside, across)
    wald = (density - wanted) ** 2 / (density * (1 - density) + TINY)

    return float(chi2.sf(wald, 1).mean())


VALIDITY: Mapping[str, Callable[[SimpleGraph], bool]] = MappingProxyType(
    {"planar": is_planar, "sbm": is_sbm, "tree": is_tree}
)
"""The published sets whose graphs can be told from others, and how."""
