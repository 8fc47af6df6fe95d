"""Figures of graphs, descriptor distributions, latents and training runs, with matplotlib if it is installed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from ..data.encoded import EncodedGraph
from ..errors import ConfigError, DatasetError, OutputError
from ..evaluation.attributes import find_labels
from ..evaluation.histograms import Distribution, distributions
from ..graph import SimpleGraph, as_simple_graph
from ..io.files import check_target, open_output
from ..records import TrainRecord, count_of
from .layout import check_drawable, place_nodes
from .projection import project_latents

__all__ = [
    "check_picture",
    "plot_adjacency",
    "plot_distributions",
    "plot_gallery",
    "plot_latents",
    "plot_training",
    "save_picture",
]

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

    Graphs = Iterable[SimpleGraph | nx.Graph]

# The blue and orange of Okabe and Ito and a light grey differ in lightness too, for colour-blind readers and print.
SAMPLES = "#0072B2"
SECOND = "#D55E00"
REFERENCE = "#C9CCD1"
INK = "#33373D"
GREY = "#8A8F98"
MOST_NAMES = 20
SUFFIXES = (".png", ".svg", ".pdf")
# Colours of labels, by Okabe and Ito.
LABELS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
# Inches: an adjacency matrix, a graph, the degree colour bar, and an entry of a legend.
MATRIX_SIDE, GRAPH_SIDE, KEY_HEIGHT, ENTRY_WIDTH = 1.6, 1.5, 0.55, 1.2
# Points: the width of the line of the smallest and of the largest weight.
LEAST_WIDTH, MOST_WIDTH = 0.2, 3.0
# The edge of a drawing in its coordinates, and the length of a thin arrow head in diameters of a node.
LIMIT, HEAD = 1.12, 0.6
LONGEST_NAME = 16


def new_figure(width: float, height: float, title: str = "", constrained: bool = True) -> Figure:
    """An empty figure of this size in inches, independent of pyplot."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("Pictures need matplotlib: install it with 'pip install graphite-gen[plot]'.") from None
    figure = Figure(figsize=(width, height), layout="constrained" if constrained else None)
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, fontsize=11, color=INK, parse_math=False)

    return figure


def check_picture(target: Path, force: bool = False) -> None:
    """Check that a picture can be written, before computing it."""
    if target.suffix.lower() not in SUFFIXES:
        raise OutputError(f"'{target}' is not a picture: the suffix should be '.png', '.svg' or '.pdf'.")
    check_target(target, force)


def save_picture(figure: Figure, target: Path, *, force: bool = False) -> None:
    """Write a figure atomically, in the format of the suffix: ``.png``, ``.svg`` or ``.pdf``."""
    check_picture(target, force)
    with open_output(target, force) as stream:
        figure.savefig(stream, format=target.suffix[1:].lower(), dpi=150)


@dataclass(frozen=True)
class GraphStyle:
    """The colours and line widths that the graphs of a figure share.

    Attributes:
        degrees: The colour scale from degree 0 to the highest degree of all graphs, for nodes without labels.
        label: The node attribute that colours nodes; None for their degrees.
        colours: The colour of each label.
        heaviest: The largest absolute weight, to which line widths are relative; 0 for unweighted graphs.
    """

    degrees: Normalize
    label: str | None
    colours: Mapping[Any, Any]
    heaviest: float

    @classmethod
    def of(cls, graphs: Sequence[SimpleGraph], node_label: str | None = None) -> GraphStyle:
        """The style of some graphs; without a name, the first by name of the labels that all of them have, if any."""
        from matplotlib import colormaps
        from matplotlib.colors import Normalize

        labels = find_labels(graphs, "node", node_label)
        label = next(iter(labels), None)
        values = [] if label is None else labels[label]
        palette = LABELS if len(values) <= len(LABELS) else colormaps["tab20"].colors  # type: ignore[attr-defined]
        highest = max([1, *(int(graph.degrees().max(initial=0)) for graph in graphs)])
        weights = [
            np.abs(graph.weights).max(initial=0) for graph in graphs if graph.is_weighted and graph.weights is not None
        ]

        return cls(
            Normalize(0, highest),
            label,
            {value: palette[k % len(palette)] for k, value in enumerate(values)},
            float(max(weights, default=0)),
        )

    def widths(self, graph: SimpleGraph) -> NDArray[np.float64]:
        """The line width of each edge: proportional to its absolute weight, else thinner the more edges there are."""
        if self.heaviest and graph.weights is not None:
            return self.width(graph.weights)

        return np.full(len(graph.edges), np.clip(40 / max(len(graph.edges), 1), 0.25, 0.9))

    def width(self, weights: ArrayLike) -> NDArray[np.float64]:
        """The line width of edges with these weights."""
        # Lines thinner than the least width are invisible.
        return np.maximum(MOST_WIDTH * np.abs(weights) / self.heaviest, LEAST_WIDTH)


def plot_gallery(
    graphs: Graphs,
    reference: Graphs = (),
    *,
    count: int = 12,
    titles: tuple[str, str] = ("sampled", "true"),
    node_label: str | None = None,
) -> Figure:
    """Drawings of the first ``count`` graphs, beside those of a reference.

    Nodes are coloured by label, else by degree; line widths are proportional to weights, and arcs are arrows.

    Arguments:
        graphs: The graphs.
        reference: Other graphs, to draw beside them.
        count: The maximum number of graphs on each side.
        titles: The titles of both sides.
        node_label: The node attribute that colours nodes; None for the first by name that is on every node and has at
            most 50 distinct values, which are strings, integers or booleans.
    """
    sides = _drawable_sides(graphs, reference, count)
    most = max(map(len, sides))
    columns = math.ceil(math.sqrt(most / (1 if len(sides) > 1 else 0.6)))
    rows = math.ceil(most / columns)
    width, height = max(GRAPH_SIDE * columns * len(sides) + 0.3, 3.0), GRAPH_SIDE * rows + 0.3
    style = GraphStyle.of([graph for side in sides for graph in side], node_label)
    below_height = _key_height(style, width)
    figure = new_figure(width, height + below_height)
    above, below = figure.subfigures(2, 1, squeeze=False, height_ratios=(height, below_height))[:, 0]
    for part, side, title in zip(above.subfigures(1, len(sides), squeeze=False)[0], sides, titles, strict=False):
        if len(sides) > 1:
            part.suptitle(title, fontsize=12, color=INK)
        panels = part.subplots(rows, columns, squeeze=False).ravel()
        for panel in panels:
            panel.set_axis_off()
        for panel, graph in zip(panels, side, strict=False):
            _draw_graph(panel, graph, style)
    _add_key(below, style, width)

    return figure


def plot_graph(graph: SimpleGraph, style: GraphStyle) -> Figure:
    """One graph without a margin."""
    figure = new_figure(GRAPH_SIDE, GRAPH_SIDE, constrained=False)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    _draw_graph(axes, graph, style)

    return figure


def plot_key(style: GraphStyle) -> Figure:
    """The legend of a style: the colours of labels or degrees, and the line widths of weights."""
    width = 3.0 if not style.label else 5.0
    figure = new_figure(width, _key_height(style, width), constrained=False)
    _add_key(figure, style, width)

    return figure


def _draw_graph(axes: Axes, graph: SimpleGraph, style: GraphStyle) -> None:
    from matplotlib.collections import LineCollection, PolyCollection

    points = place_nodes(graph)
    widths = style.widths(graph)
    area = float(np.clip(700 / max(graph.nodes, 1), 4, 42))
    lines, heads = points[graph.edges], None
    if graph.directed:
        # The diameter of a node, whose area is in square points, in the coordinates of the axes.
        lines, heads = _arrows(graph, lines, widths, math.sqrt(area) / 72 * 2 * LIMIT / GRAPH_SIDE)
    axes.add_collection(LineCollection(list(lines), colors=GREY, linewidths=widths, zorder=1))
    colours: dict[str, Any] = {"c": graph.degrees(), "norm": style.degrees, "cmap": "viridis_r"}
    if style.label is not None:
        colours = {"c": [style.colours[value] for value in graph.node_attributes.get(style.label, [])]}
    x, y = points.T
    axes.scatter(x, y, area, **colours, edgecolors=INK, linewidths=0.4, zorder=2)
    if heads is not None:
        axes.add_collection(PolyCollection(list(heads), facecolors=INK, linewidths=0, zorder=3))
    axes.set_xlim(-LIMIT, LIMIT)
    axes.set_ylim(-LIMIT, LIMIT)
    axes.set_aspect("equal")


def _arrows(
    graph: SimpleGraph, lines: NDArray[np.float64], widths: NDArray[np.float64], diameter: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lines of arcs, those of both directions side by side, and their heads, with shape :math:`(E, 3, 2)`.

    The first corner of a head is its tip, at the edge of the target node.
    """
    spans = lines[:, 1] - lines[:, 0]
    lengths = np.maximum(np.linalg.norm(spans, axis=1, keepdims=True), 1e-9)
    along = spans / lengths
    across = along[:, ::-1] * (-1, 1)
    arcs = set(map(tuple, graph.edges.tolist()))
    mutual = np.array([(j, i) in arcs for i, j in graph.edges.tolist()], dtype=np.float64).reshape(-1, 1)
    lines = lines + (mutual * across * diameter / 4)[:, None]
    size = np.minimum(HEAD * diameter * (1 + widths[:, None] / 2), lengths / 3)
    tips = lines[:, 1] - along * diameter / 2
    base, side = tips - along * size, across * size * 0.4

    return np.stack([lines[:, 0], base], axis=1), np.stack([tips, base + side, base - side], axis=1)


def _key_height(style: GraphStyle, width: float) -> float:
    entries = len(_key_entries(style))
    legend = 0.2 * math.ceil(entries / _key_columns(width)) + 0.25 if entries else 0.0

    return legend + (0.0 if style.label else KEY_HEIGHT)


def _key_columns(width: float) -> int:
    return max(1, int(width / ENTRY_WIDTH))


def _key_entries(style: GraphStyle) -> list[Line2D]:
    """The entries of the legend: labels, at most the first 20, and two weights."""
    from matplotlib.lines import Line2D

    dots = [
        Line2D([], [], linestyle="", marker="o", color=colour, markeredgecolor=INK, label=_escaped(str(value)))
        for value, colour in list(style.colours.items())[:MOST_NAMES]
    ]
    if len(style.colours) > MOST_NAMES:
        dots.append(Line2D([], [], linestyle="", label=f"and {len(style.colours) - MOST_NAMES} more"))
    weights = [style.heaviest / 2, style.heaviest] if style.heaviest else []

    return dots + [
        Line2D([], [], color=GREY, linewidth=float(style.width(weight)), label=f"weight {weight:.3g}")
        for weight in weights
    ]


def _escaped(text: str) -> str:
    """A short text without mathematics."""
    return (text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…").replace("$", r"\$")


def _add_key(part: Figure | SubFigure, style: GraphStyle, width: float) -> None:
    entries = _key_entries(style)
    if style.label is None:
        space = KEY_HEIGHT / _key_height(style, width)
        _add_degree_key(part, style.degrees, space)
    if entries:
        part.legend(
            handles=entries,
            title=None if style.label is None else _escaped(style.label),
            loc="lower center" if style.label is None else "center",
            ncols=min(len(entries), _key_columns(width)),
            frameon=False,
            fontsize=8,
            title_fontsize=8,
        )


def _add_degree_key(part: Figure | SubFigure, scale: Normalize, space: float) -> None:
    """Add a colour bar in the upper part of a figure, a proportion ``space`` of its height."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.ticker import MaxNLocator

    axes = part.add_axes((0.3, 1 - 0.38 * space, 0.4, 0.18 * space))
    bar = part.colorbar(ScalarMappable(scale, "viridis_r"), cax=axes, orientation="horizontal")
    bar.locator = MaxNLocator(integer=True)
    bar.set_label("degree", fontsize=8, labelpad=1)
    axes.tick_params(labelsize=7)


def plot_adjacency(
    graphs: Graphs, reference: Graphs = (), *, count: int = 6, titles: tuple[str, str] = ("sampled", "true")
) -> Figure:
    """Adjacency matrices of the first ``count`` graphs, above those of a reference, after the mean over all graphs.

    Rows are the sources of arcs. Nodes are in reverse Cuthill-McKee order, which places neighbours close to each other.
    """
    sides = _drawable_sides(graphs, reference)
    columns = 1 + max(min(len(side), count) for side in sides)
    figure = new_figure(MATRIX_SIDE * columns, MATRIX_SIDE * len(sides) + 0.3)
    grid = figure.subplots(len(sides), columns, squeeze=False)
    for row, side, title in zip(grid, sides, titles, strict=False):
        _draw_matrix(row[0], _mean_adjacency(side), f"{title}, mean of {len(side)}")
        for panel, graph in zip(row[1:], side, strict=False):
            _draw_matrix(panel, ordered_adjacency(graph), count_of(graph.nodes, "node"))
        for panel in row[1 + len(side) :]:
            panel.set_axis_off()

    return figure


def ordered_adjacency(graph: SimpleGraph) -> NDArray[np.float64]:
    """The adjacency matrix in reverse Cuthill-McKee order, with shape :math:`(n, n)`."""
    matrix = np.zeros((graph.nodes, graph.nodes), dtype=np.bool_)
    matrix[tuple(graph.edges.T)] = True
    skeleton = matrix | matrix.T
    order = reverse_cuthill_mckee(csr_array(skeleton.astype(np.int32)), symmetric_mode=True)

    return np.asarray((matrix if graph.directed else skeleton)[np.ix_(order, order)], dtype=np.float64)


def _mean_adjacency(graphs: Sequence[SimpleGraph]) -> NDArray[np.float64]:
    """The mean of all matrices, those of smaller graphs stretched to the size of the largest."""
    side = max(1, *(graph.nodes for graph in graphs))
    total = np.zeros((side, side))
    for graph in graphs:
        if graph.nodes:
            places = np.arange(side) * graph.nodes // side
            total += ordered_adjacency(graph)[np.ix_(places, places)]

    return total / len(graphs)


def _draw_matrix(axes: Axes, matrix: NDArray[np.float64], title: str) -> None:
    axes.imshow(matrix, cmap="Greys", vmin=0, vmax=1, interpolation="nearest")
    axes.set_title(title, fontsize=8, color=INK)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(GREY)


def _drawable_sides(graphs: Graphs, reference: Graphs, most: int | None = None) -> list[list[SimpleGraph]]:
    """The first ``most`` graphs of both sets, checked; one list if the reference is empty."""
    sides = [[as_simple_graph(graph) for graph in islice(side, most)] for side in (graphs, reference)]
    if not sides[0]:
        raise DatasetError("There are no graphs to draw.")
    for side in sides:
        for index, graph in enumerate(side):
            check_drawable(graph, index)

    return [side for side in sides if side]


def plot_distributions(samples: Graphs, reference: Graphs = ()) -> Figure:
    """Histograms of descriptors, sizes and path lengths: samples as a line, the reference as bars."""
    figure = new_figure(10, 5.4)
    own, known = ([as_simple_graph(graph) for graph in side] for side in (samples, reference))
    panels = figure.subplots(2, 3).ravel()
    for panel, distribution in zip(panels, distributions(own, known), strict=True):
        _draw_distribution(panel, distribution)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=9)

    return figure


def plot_distribution(distribution: Distribution) -> Figure:
    """One panel of :func:`plot_distributions`, with its own legend."""
    figure = new_figure(4, 2.6)
    axes = figure.subplots()
    _draw_distribution(axes, distribution)
    axes.legend(frameon=False, fontsize=8)

    return figure


def _draw_distribution(axes: Axes, found: Distribution) -> None:
    places = np.array(found.places)
    width = 0.9 * (places[1] - places[0] if len(places) > 1 else 1.0)
    if found.reference is not None:
        axes.bar(places, found.reference, width, color=REFERENCE, edgecolor=GREY, linewidth=0.6, label="reference")
    axes.plot(places, found.samples, color=SAMPLES, marker="o", markersize=3, linewidth=1.3, label="samples")
    _style(axes, found.name, found.label)
    if found.logarithmic:
        axes.set_yscale("symlog", linthresh=0.1)
        axes.set_ylabel("mean count", fontsize=8)
        axes.set_xticks(places[::2])
    else:
        axes.set_ylim(bottom=0)
        axes.set_ylabel("proportion", fontsize=8)


def plot_latents(
    encoded: Sequence[EncodedGraph], graphs: Graphs, *, level: str = "graphs", by: str | None = None
) -> Figure:
    """Posterior means in their first two principal components, coloured by a property or attribute.

    Arguments:
        encoded: The latents of the graphs.
        graphs: The graphs.
        level: ``graphs`` for a point per graph, or ``nodes`` for one per node.
        by: ``nodes``, ``edges``, ``density`` or ``clustering`` of a graph, ``degree`` or ``clustering`` of a node, or
            the name of an attribute; None for the number of nodes or the degree.
    """
    found = project_latents(encoded, [as_simple_graph(graph) for graph in graphs], level, by)
    figure = new_figure(5.6, 4.4)
    axes, size = figure.subplots(), float(np.clip(3e4 / len(found.points), 4, 30))
    x, y = found.points.T
    unknown = np.isnan(found.values)
    axes.scatter(x[unknown], y[unknown], size, color=REFERENCE, linewidths=0)
    if found.names:
        for code, name in enumerate(found.names):
            own = found.values == code
            axes.scatter(x[own], y[own], size, color=f"C{code % 10}", linewidths=0, label=name.replace("$", r"\$"))
        if len(found.names) <= MOST_NAMES:
            axes.legend(title=found.label.replace("$", r"\$"), frameon=False, fontsize=8)
    else:
        dots = axes.scatter(x[~unknown], y[~unknown], size, found.values[~unknown], cmap="viridis_r", linewidths=0)
        figure.colorbar(dots, ax=axes).set_label(found.label, fontsize=8, parse_math=False)
    _style(axes, "", f"first principal component ({found.variance[0]:.0%} of the variance)")
    axes.set_ylabel(f"second ({found.variance[1]:.0%})", fontsize=8)

    return figure


def plot_training(history: Sequence[TrainRecord], *, title: str = "") -> Figure:
    """Training loss, validation NLL and learning rate by epoch, from the ``history`` of a model."""
    if not history:
        raise DatasetError("There is no training history to draw.")
    figure = new_figure(9, 3.4, title)
    loss, rate = figure.subplots(1, 2, width_ratios=(2, 1))
    epochs = [record.epoch for record in history]
    loss.plot(epochs, [record.loss for record in history], color=SAMPLES, linewidth=1.3, label="training loss")
    validated = [(record.epoch, record.validation) for record in history if record.validation is not None]
    if validated:
        loss.plot(*zip(*validated, strict=True), "s--", color=SECOND, markersize=4, linewidth=1, label="validation")
    if any(record.kl for record in history):
        loss.plot(epochs, [record.kl for record in history], ":", color=INK, linewidth=1.2, label="KL")
    _style(loss, "nats per graph", "epoch")
    loss.legend(frameon=False, fontsize=8)
    rate.plot(epochs, [record.learning_rate for record in history], color=INK, linewidth=1.3)
    _style(rate, "learning rate", "epoch")

    return figure


def plot_nats(marks: Sequence[tuple[str, float]]) -> Figure:
    """Named values on an axis of nats per graph, such as the entropy, the NLL of a model and of a baseline."""
    figure = new_figure(6, 0.9 + 0.3 * len(marks))
    axes = figure.subplots()
    names, values = zip(*sorted(marks, key=lambda mark: -mark[1]), strict=True)
    axes.plot(values, names, "o", color=SAMPLES, markersize=6)
    axes.margins(y=0.4)
    _style(axes, "", "nats per graph")

    return figure


def _style(axes: Axes, title: str, label: str) -> None:
    axes.set_title(title, fontsize=10, color=INK)
    axes.set_xlabel(label, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)
