"""What all pictures share: how they are made, their colours, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, DatasetError, OutputError
from ..formats._files import check_target, open_output
from ..graph import SimpleGraph, as_simple_graph
from ..layout import check_drawable

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "GREY",
    "INK",
    "REFERENCE",
    "SAMPLES",
    "check_picture",
    "drawable_sides",
    "new_figure",
    "save_picture",
    "tidy",
]

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
