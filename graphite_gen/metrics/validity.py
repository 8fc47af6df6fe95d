"""What a graph of the published sets must be: a tree, planar, or drawn from a stochastic block model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from ..components import is_connected, is_tree
from ..graph import SimpleGraph
from ..planarity import has_plane_drawing
from .blocks import find_blocks

__all__ = ["VALIDITY", "is_planar", "is_sbm", "is_tree", "sbm_agreement"]

INSIDE, ACROSS = 0.3, 0.005
BLOCKS = range(2, 6)
BLOCK_SIZES = range(20, 41)
AGREEMENT = 0.9
# As in the published test; it also decides what becomes of two blocks without an edge between them.
TINY = 1e-6


def is_planar(graph: SimpleGraph) -> bool:
    """Whether the graph is connected and can be drawn in the plane without crossings, as the published test asks."""
    return is_connected(graph) and has_plane_drawing(graph)


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
