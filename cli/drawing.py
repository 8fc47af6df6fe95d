"""Graphs, histograms, latents and curves in the terminal."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from rich.columns import Columns
from rich.panel import Panel
from rich.text import Text

from graphite_gen.data.encoded import EncodedGraph
from graphite_gen.evaluation.histograms import distributions
from graphite_gen.graph import SimpleGraph
from graphite_gen.records import TrainRecord
from graphite_gen.viz.figures import ordered_adjacency
from graphite_gen.viz.projection import project_latents
from graphite_gen.viz.terminal import SHADES, bar, draw_curve, draw_graph, draw_matrix, draw_points

from .console import show, show_rows

Graphs = Sequence[SimpleGraph]


def show_gallery(
    graphs: Graphs, reference: Graphs, *, count: int, draw: Callable[[SimpleGraph], list[str]] = draw_graph
) -> None:
    """Print drawings of graphs side by side."""

    def panel(graph: SimpleGraph) -> Panel:
        drawing = Text("\n".join(draw(graph)), no_wrap=True)
        return Panel(drawing, title=f"n={graph.nodes} m={len(graph.edges)}", expand=False)

    for title, side in (("sampled", graphs), ("true", reference)):
        if reference:
            show(Text(title, style="bold"))
        if side:
            show(Columns([panel(graph) for graph in side[:count]]))


show_adjacency = partial(show_gallery, draw=lambda graph: draw_matrix(ordered_adjacency(graph)))


def show_distributions(graphs: Graphs, reference: Graphs) -> None:
    """Print a histogram of each descriptor, samples beside the reference."""
    for found in distributions(graphs, reference):
        show(Text(f"{found.label}" + (", mean count" if found.logarithmic else ", proportion"), style="bold"))
        sides = [found.samples, *([found.reference] if found.reference else [])]
        most = max(map(max, sides)) or 1.0
        form = ".2f" if found.name in ("clustering", "spectrum", "path length") else "g"
        rows = [
            [f"{place:{form}}", *(cell for value in values for cell in (f"{value:.3g}", bar(value / most)))]
            for place, *values in zip(found.places, *sides, strict=True)
            if any(values)
        ]
        columns = ("", "samples", " ", "reference", "  ")[: 1 + 2 * len(sides)]
        show_rows(columns, rows, numbers=("", "samples", "reference"))
        show(Text(""))


def show_latents(encoded: Sequence[EncodedGraph], graphs: Graphs, *, level: str, by: str | None) -> None:
    """Print the projection of latents, with values as shades."""
    found = project_latents(encoded, graphs, level, by)
    low, high = np.nanmin(found.values), np.nanmax(found.values)
    ends = (found.names[int(low)], found.names[int(high)]) if found.names else (f"{low:.4g}", f"{high:.4g}")
    shares = " and ".join(f"{share:.0%}" for share in found.variance)
    show(Text(f"{found.label}, {ends[0]} {SHADES} {ends[1]}; components of {shares} of the variance", style="bold"))
    show(Text("\n".join(draw_points(found.points, found.values)), no_wrap=True))


def show_training(history: Sequence[TrainRecord], *, title: str) -> None:
    """Print training loss and validation NLL by epoch."""
    validation = [record.validation for record in history if record.validation is not None]
    for name, values in (("training loss", [record.loss for record in history]), ("validation", validation)):
        if values:
            epochs = f"epochs {history[0].epoch} to {history[-1].epoch}"
            show(Text(f"{title}: {name}, nats per graph, {epochs}", style="bold"))
            show(Text("\n".join(draw_curve(values)), no_wrap=True))
