"""Graphs as matrices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from ..graph import SimpleGraph
from ..words import so_many
from .figure import GREY, INK, drawable_sides, new_figure

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ordered_adjacency", "plot_adjacency"]

SIDE = 1.6


def plot_adjacency(
    graphs: Iterable[SimpleGraph | nx.Graph],
    reference: Iterable[SimpleGraph | nx.Graph] = (),
    *,
    count: int = 6,
    titles: tuple[str, str] = ("sampled", "true"),
) -> Figure:
    """The adjacency matrices of the first graphs, below them those of a reference, and the mean of all in front.

    Nodes have no order of their own; they are put in one that keeps neighbours together.

    Arguments:
        graphs: The graphs.
        reference: What to show below them.
        count: The most of each that are drawn; the mean is over all.
        titles: What to call the two.

    Raises:
        ConfigError: matplotlib is not installed.
        DatasetError: There are no graphs, or one is too large to draw.
    """
    sides = drawable_sides(graphs, reference)
    columns = 1 + max(min(len(side), count) for side in sides)
    figure = new_figure(SIDE * columns, SIDE * len(sides) + 0.3)
    grid = figure.subplots(len(sides), columns, squeeze=False)
    for row, side, title in zip(grid, sides, titles, strict=False):
        _show(row[0], _mean(side), f"{title}, mean of {len(side)}")
        for panel, graph in zip(row[1:], side, strict=False):
            _show(panel, ordered_adjacency(graph), so_many(graph.nodes, "node"))
        for panel in row[1 + len(side) :]:
            panel.set_axis_off()

    return figure


def _show(axes: Axes, matrix: NDArray[np.float64], title: str) -> None:
    axes.imshow(matrix, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    axes.set_title(title, fontsize=8, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(GREY)


def ordered_adjacency(graph: SimpleGraph) -> NDArray[np.float64]:
    """The adjacency matrix with neighbours near each other, with shape :math:`(n, n)`."""
    matrix = graph.adjacency()
    order = reverse_cuthill_mckee(csr_array(matrix.astype(np.int32)), symmetric_mode=True)

    return np.asarray(matrix[np.ix_(order, order)], dtype=np.float64)


def _mean(graphs: Sequence[SimpleGraph]) -> NDArray[np.float64]:
    """The mean of all matrices, those of smaller graphs stretched to the size of the largest."""
    side = max(1, *(graph.nodes for graph in graphs))
    total = np.zeros((side, side))
    for graph in graphs:
        if graph.nodes:
            places = np.arange(side) * graph.nodes // side
            total += ordered_adjacency(graph)[np.ix_(places, places)]

    return total / len(graphs)
