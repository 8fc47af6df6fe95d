"""Graphs, histograms and curves in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .console import nats, show, show_rows

if TYPE_CHECKING:
    from graphite_gen.graph import SimpleGraph
    from graphite_gen.records import TrainRecord
    from graphite_gen.viz.decoding_steps import DecodingStepsPoint

__all__ = ["show_adjacency", "show_decoding_steps", "show_distributions", "show_gallery", "show_training"]


def show_gallery(graphs: Sequence[SimpleGraph], reference: Sequence[SimpleGraph], count: int) -> None:
    """Print drawings of graphs side by side."""
    from graphite_gen.viz.terminal import draw_graph

    for title, side in (("sampled", graphs), ("true", reference)):
        _show_panels(title if reference else "", [(_facts(graph), draw_graph(graph)) for graph in side[:count]])


def show_adjacency(graphs: Sequence[SimpleGraph], reference: Sequence[SimpleGraph], count: int) -> None:
    """Print adjacency matrices side by side."""
    from graphite_gen.viz.figures import ordered_adjacency
    from graphite_gen.viz.terminal import draw_matrix

    for title, side in (("sampled", graphs), ("true", reference)):
        drawn = [(_facts(graph), draw_matrix(ordered_adjacency(graph))) for graph in side[:count]]
        _show_panels(title if reference else "", drawn)


def _facts(graph: SimpleGraph) -> str:
    return f"n={graph.nodes} m={len(graph.edges)}"


def _show_panels(title: str, drawings: Sequence[tuple[str, list[str]]]) -> None:
    from rich.columns import Columns
    from rich.panel import Panel
    from rich.text import Text

    if not drawings:
        return
    if title:
        show(Text(title, style="bold"))
    show(Columns([Panel(Text("\n".join(lines), no_wrap=True), title=name, expand=False) for name, lines in drawings]))


def show_distributions(graphs: Sequence[SimpleGraph], reference: Sequence[SimpleGraph]) -> None:
    """Print a histogram of each descriptor, samples beside the reference."""
    from rich.text import Text

    from graphite_gen.evaluation.histograms import distributions
    from graphite_gen.viz.terminal import bar

    for found in distributions(graphs, reference):
        show(Text(f"{found.label}" + (", mean count" if found.logarithmic else ", proportion"), style="bold"))
        known = found.reference or ()
        most = max((*found.samples, *known)) or 1.0
        form = ".2f" if found.name in ("clustering", "spectrum", "path length") else "g"
        columns = ("", "samples", " ", *(("reference", "  ") if known else ()))
        rows = [
            [f"{place:{form}}", f"{own:.3g}", bar(own / most)]
            + ([f"{known[k]:.3g}", bar(known[k] / most)] if known else [])
            for k, (place, own) in enumerate(zip(found.places, found.samples, strict=True))
            if own or (known and known[k])
        ]
        show_rows(columns, rows, numbers=("", "samples", "reference"))
        show(Text(""))


def show_training(history: Sequence[TrainRecord]) -> None:
    """Print training loss and validation NLL by epoch."""
    from rich.text import Text

    from graphite_gen.viz.terminal import draw_curve

    curves: list[tuple[str, list[float]]] = [
        ("training loss", [record.loss for record in history]),
        ("validation", [record.validation for record in history if record.validation is not None]),
    ]
    for name, values in curves:
        if values:
            show(Text(f"{name}, nats per graph, epochs {history[0].epoch} to {history[-1].epoch}", style="bold"))
            show(Text("\n".join(draw_curve(values)), no_wrap=True))


def show_decoding_steps(points: Sequence[DecodingStepsPoint], entropy: float | None) -> None:
    """Print validity and NLL by the number of decoding steps."""
    from graphite_gen.viz.terminal import bar

    rows: list[Any] = [
        (
            str(point.decoding_steps or "all"),
            "-" if point.valid is None or point.valid.value is None else f"{point.valid.value:.1%}",
            "" if point.valid is None else bar(point.valid.value or 0.0, 16),
            nats(point.nll, point.nll_error),
            nats(entropy),
        )
        for point in points
    ]
    columns = ("decoding steps", "valid", "", "NLL", "entropy")
    show_rows(columns, rows, numbers=columns)
