"""Graphs side by side, all in one style."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..graph import SimpleGraph
from ..layout import place_nodes
from .figure import GREY, INK, drawable_sides, new_figure

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure, SubFigure

__all__ = ["draw_graph", "plot_gallery"]

# Inches of a graph, and of the strip that says what colours mean.
SIDE, KEY = 1.5, 0.55


def plot_gallery(
    graphs: Iterable[SimpleGraph | nx.Graph],
    reference: Iterable[SimpleGraph | nx.Graph] = (),
    *,
    count: int = 12,
    titles: tuple[str, str] = ("sampled", "true"),
) -> Figure:
    """The first graphs, and beside them those of a reference; darker nodes have more neighbours.

    Arguments:
        graphs: The graphs.
        reference: What to show beside them.
        count: The most of each.
        titles: What to call the two.

    Raises:
        ConfigError: matplotlib is not installed.
        DatasetError: There are no graphs, or one is too large to draw.
    """
    sides = drawable_sides(graphs, reference, count)
    most = max(map(len, sides))
    columns = math.ceil(math.sqrt(most / (1 if len(sides) > 1 else 0.6)))
    rows = math.ceil(most / columns)
    height = SIDE * rows + 0.3
    figure = new_figure(max(SIDE * columns * len(sides) + 0.3, 3.0), height + KEY)
    scale = _scale([graph for side in sides for graph in side])
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(height, KEY))[:, 0]
    for part, side, title in zip(above.subfigures(1, len(sides), squeeze=False)[0], sides, titles, strict=False):
        if len(sides) > 1:
            part.suptitle(title, fontsize=12, color=INK)
        panels = part.subplots(rows, columns, squeeze=False).ravel()
        for panel in panels:
            panel.set_axis_off()
        for panel, graph in zip(panels, side, strict=False):
            draw_graph(panel, graph, scale)
    _add_key(below, scale)

    return figure


def _scale(graphs: Sequence[SimpleGraph]) -> Normalize:
    from matplotlib.colors import Normalize

    degrees = np.concatenate([graph.degrees() for graph in graphs])

    return Normalize(int(degrees.min(initial=0)), max(int(degrees.max(initial=1)), 1))


def draw_graph(axes: Axes, graph: SimpleGraph, scale: Normalize) -> None:
    """One graph, its nodes coloured by degree."""
    from matplotlib.collections import LineCollection

    points = place_nodes(graph)
    width = float(np.clip(40 / max(len(graph.edges), 1), 0.25, 0.9))
    axes.add_collection(LineCollection(list(points[graph.edges]), colors=GREY, linewidths=width, zorder=1))
    axes.scatter(
        points[:, 0],
        points[:, 1],
        c=graph.degrees(),
        norm=scale,
        cmap="viridis_r",
        s=float(np.clip(700 / max(graph.nodes, 1), 4, 42)),
        edgecolors=INK,
        linewidths=0.4,
        zorder=2,
    )
    axes.set_xlim(-1.12, 1.12)
    axes.set_ylim(-1.12, 1.12)
    axes.set_aspect("equal")


def _add_key(part: SubFigure, scale: Normalize) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.ticker import MaxNLocator

    axes = part.add_axes((0.3, 0.62, 0.4, 0.18))
    bar = part.colorbar(ScalarMappable(scale, "viridis_r"), cax=axes, orientation="horizontal")
    bar.locator = MaxNLocator(integer=True)
    bar.set_label("degree", fontsize=8, labelpad=1)
    axes.tick_params(labelsize=7)
