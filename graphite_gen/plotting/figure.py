"""What all pictures share: how they are made, their colours, and how they are written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import ConfigError, OutputError
from ..formats._files import check_target, open_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["GREY", "INK", "REFERENCE", "SAMPLES", "check_picture", "new_figure", "save_picture", "tidy"]

# Okabe and Ito's blue and a light grey: apart to every eye, and in print without colours by lightness alone.
SAMPLES = "#0072B2"
REFERENCE = "#C9CCD1"
INK = "#33373D"
GREY = "#8A8F98"
SUFFIXES = (".png", ".svg", ".pdf")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that many inches, in no window.

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

    return figure


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
