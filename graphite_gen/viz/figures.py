"""What all pictures share: how they are made, their colours, and how they are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from ..errors import ConfigError, DatasetError, OutputError
from ..evaluation.histograms import Distribution, distributions
from ..graph import SimpleGraph, as_simple_graph
from ..io.files import check_target, open_output
from ..records import TrainRecord, count_of
from .layout import check_drawable, place_nodes

__all__ = [
    "GREY",
    "INK",
    "REFERENCE",
    "SAMPLES",
    "check_picture",
    "draw_graph",
    "drawable_sides",
    "new_figure",
    "ordered_adjacency",
    "plot_adjacency",
    "plot_decoding_steps",
    "plot_distributions",
    "plot_gallery",
    "plot_training",
    "save_picture",
    "tidy",
]

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure, SubFigure

    from .decoding_steps import DecodingStepsPoint

# Okabe and Ito's blue and a light grey: apart to every eye, and in print without colours by lightness alone.
SAMPLES = "#0072B2"
REFERENCE = "#C9CCD1"
INK = "#33373D"
GREY = "#8A8F98"
SUFFIXES = (".png", ".svg", ".pdf")


def new_figure(width: float, height: float, title: str = "") -> Figure:
    """An empty figure of that many inches, in no window, with a title if there is one.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ConfigError("Pictures need matplotlib: install it with 'pip install graphite-gen[plot]'.") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, fontsize=11, color=INK)

    return figure


def drawable_sides(
    graphs: Iterable[SimpleGraph | nx.Graph], reference: Iterable[SimpleGraph | nx.Graph], most: int | None = None
) -> list[list[SimpleGraph]]:
    """Graphs, then those of a reference if there are any, at most so many of each.

    Raises:
        DatasetError: There are no graphs, or one is too large to draw.
    """
    sides = [[as_simple_graph(graph) for graph in islice(side, most)] for side in (graphs, reference)]
    if not sides[0]:
        raise DatasetError("There are no graphs to draw: pass at least one.")
    for side in sides:
        for index, graph in enumerate(side):
            check_drawable(graph, index)

    return [side for side in sides if side]


def tidy(axes: Axes, title: str, label: str = "") -> None:
    """The look of all charts: two axes, a light grid behind."""
    axes.set_title(title, fontsize=10, color=INK)
    axes.set_xlabel(label, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.set_axisbelow(True)


def check_picture(target: Path, force: bool = False) -> None:
    """Refuse a picture that cannot be written, before any work is done for it.

    Raises:
        OutputError: It exists, its folder does not, or its suffix is none of a picture.
    """
    if target.suffix.lower() not in SUFFIXES:
        raise OutputError(f"'{target}' is no picture: name it '.png', '.svg' or '.pdf'.")
    check_target(target, force)


def save_picture(figure: Figure, target: Path, *, force: bool = False) -> None:
    """Write a figure, whole or not at all, as its suffix says.

    Raises:
        OutputError: The file cannot be written, or its suffix is none of a picture.
    """
    check_picture(target, force)
    with open_output(target, force) as stream:
        figure.savefig(stream, format=target.suffix[1:].lower(), dpi=150)


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
            _show(panel, ordered_adjacency(graph), count_of(graph.nodes, "node"))
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


# Beside blue: dark enough in print without colours, and dashed.
SECOND = "#D55E00"


def plot_training(history: Sequence[TrainRecord], *, title: str = "") -> Figure:
    """Loss and validation NLL by epoch, and the learning rate.

    Arguments:
        history: The records of a run, as ``history`` of a model.
        title: What to write above.

    Raises:
        ConfigError: matplotlib is not installed.
        DatasetError: There is no history.
    """
    if not history:
        raise DatasetError("There is no training history to draw: pass the records of at least one epoch.")
    figure = new_figure(9, 3.4, title)
    loss, rate = figure.subplots(1, 2, width_ratios=(2, 1))
    epochs = [record.epoch for record in history]
    loss.plot(epochs, [record.loss for record in history], color=SAMPLES, linewidth=1.3, label="training loss")
    validated = [(record.epoch, record.validation) for record in history if record.validation is not None]
    if validated:
        loss.plot(*zip(*validated, strict=True), "s--", color=SECOND, markersize=4, linewidth=1, label="validation")
    if any(record.kl for record in history):
        loss.plot(epochs, [record.kl for record in history], ":", color=INK, linewidth=1.2, label="KL")
    tidy(loss, "nats per graph", "epoch")
    loss.legend(frameon=False, fontsize=8)
    rate.plot(epochs, [record.learning_rate for record in history], color=INK, linewidth=1.3)
    tidy(rate, "learning rate", "epoch")

    return figure


def plot_decoding_steps(
    points: Sequence[DecodingStepsPoint], *, entropy: float | None = None, title: str = ""
) -> Figure:
    """The share of valid samples and the NLL against the number of stages, each with its error.

    Arguments:
        points: What :func:`graphite_gen.viz.decoding_steps.iterate_stages` gives.
        floor: The lowest NLL there can be, in nats per graph.
        title: What to write above.

    Raises:
        ConfigError: matplotlib is not installed.
        DatasetError: There are no points.
    """
    if not points:
        raise DatasetError("There are no stages to draw: pass at least one.")
    figure = new_figure(8, 3.2, title)
    judged = [point for point in points if point.valid is not None]
    panels = list(figure.subplots(1, 2 if judged else 1, squeeze=False)[0])
    if judged:
        shares = [point.valid for point in judged if point.valid is not None]
        values = [share.value or 0.0 for share in shares]
        errors = [
            [value - share.low for value, share in zip(values, shares, strict=True)],
            [share.high - value for value, share in zip(values, shares, strict=True)],
        ]
        panels[0].errorbar(
            [_name(point) for point in judged], values, errors, fmt="o-", color=SAMPLES, markersize=5, capsize=3
        )
        panels[0].set_ylim(-0.03, 1.03)
        tidy(panels[0], "valid samples", "stages")
    panels[-1].errorbar(
        [_name(point) for point in points],
        [point.nll for point in points],
        [point.nll_error or 0.0 for point in points],
        fmt="s--",
        color=SECOND,
        markersize=5,
        capsize=3,
        label="NLL",
    )
    if entropy is not None:
        panels[-1].axhline(entropy, color=GREY, linewidth=1.2, linestyle=":", label="floor")
        panels[-1].legend(frameon=False, fontsize=8)
    tidy(panels[-1], "NLL, nats per graph", "stages")

    return figure


def _name(point: DecodingStepsPoint) -> str:
    return str(point.decoding_steps or "all")


def plot_distributions(
    samples: Iterable[SimpleGraph | nx.Graph], reference: Iterable[SimpleGraph | nx.Graph] = ()
) -> Figure:
    """Each descriptor, sizes and path lengths: samples as a line with dots, the reference as bars.

    Raises:
        ConfigError: matplotlib is not installed.
        DatasetError: There are no samples, or a graph has no nodes.
    """
    figure = new_figure(10, 5.4)
    own, known = ([as_simple_graph(graph) for graph in side] for side in (samples, reference))
    panels = figure.subplots(2, 3).ravel()
    for panel, found in zip(panels, distributions(own, known), strict=True):
        _draw(panel, found)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=9)

    return figure


def _draw(axes: Axes, found: Distribution) -> None:
    places = np.array(found.places)
    width = places[1] - places[0] if len(places) > 1 else 1.0
    if found.reference is not None:
        axes.bar(
            places, found.reference, 0.9 * width, color=REFERENCE, edgecolor=GREY, linewidth=0.6, label="reference"
        )
    axes.plot(places, found.samples, color=SAMPLES, marker="o", markersize=3, linewidth=1.3, label="samples")
    tidy(axes, found.name, found.label)
    if found.logarithmic:
        axes.set_yscale("symlog", linthresh=0.1)
        axes.set_ylabel("mean count", fontsize=8)
        axes.set_xticks(places[::2])
    else:
        axes.set_ylim(bottom=0)
        axes.set_ylabel("share", fontsize=8)


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
