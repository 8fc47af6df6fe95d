"""Descriptors of samples over those of a reference."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from ..graph import SimpleGraph, as_simple_graph
from ..metrics.distributions import Distribution, distributions
from .figure import GREY, REFERENCE, SAMPLES, new_figure, tidy

if TYPE_CHECKING:
    import networkx as nx
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_distributions"]


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
