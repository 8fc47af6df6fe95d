"""Drawings for the page: plain SVG whose colours are those of its style sheet, light or dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from ...evaluation.histograms import Distribution
from ...graph import SimpleGraph
from ...records import TrainRecord
from ..layout import MOST_DRAWN, place_nodes

__all__ = ["MOST_EDGES", "SHADES", "draw_chart", "draw_graph", "draw_history", "draw_line_of_nats", "is_drawable"]

MOST_EDGES = 3000
"""The most edges of a drawing: a page holds many."""

SHADES = 6
"""The style sheet has a colour for each of so many ranges of degrees, class ``d0`` to ``d5``."""

SIDE = 200
WIDTH, HEIGHT = 320, 190
LEFT, RIGHT, TOP, BOTTOM = 44, 8, 10, 36


def is_drawable(graph: SimpleGraph) -> bool:
    """Whether a graph is small enough for a page."""
    return graph.nodes <= MOST_DRAWN and len(graph.edges) <= MOST_EDGES


def draw_graph(graph: SimpleGraph, highest: int) -> str:
    """A graph, its nodes darker the more neighbours they have, and their names as tooltips.

    Arguments:
        graph: The graph.
        highest: The degree of the darkest shade.
    """
    points = (place_nodes(graph) * (1, -1) + 1) / 2 * (SIDE - 20) + 10
    degrees = graph.degrees()
    shades = np.minimum(degrees * SHADES // (highest + 1), SHADES - 1)
    radius = float(np.clip(28 / np.sqrt(max(graph.nodes, 1)), 1.2, 7))
    path = "".join(
        f"M{points[i, 0]:.1f} {points[i, 1]:.1f}L{points[j, 0]:.1f} {points[j, 1]:.1f}" for i, j in graph.edges
    )
    names = range(graph.nodes) if graph.names is None else graph.names
    nodes = "".join(
        f'<circle class="d{shade}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{escape(str(name))}: '
        f"{degree}</title></circle>"
        for (x, y), shade, name, degree in zip(points, shades, names, degrees, strict=True)
    )

    return f'<svg class="graph" viewBox="0 0 {SIDE} {SIDE}" aria-hidden="true"><path d="{path}"/>{nodes}</svg>'


class _Frame:
    """The axes of a chart, from data to places."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x0, self.x1 = x if x[1] > x[0] else (x[0] - 0.5, x[0] + 0.5)
        self.y0, self.y1 = y if y[1] > y[0] else (y[0] - 0.5, y[0] + 0.5)

    def across(self, x: float) -> float:
        return LEFT + (x - self.x0) / (self.x1 - self.x0) * (WIDTH - LEFT - RIGHT)

    def up(self, y: float) -> float:
        return HEIGHT - BOTTOM - (y - self.y0) / (self.y1 - self.y0) * (HEIGHT - TOP - BOTTOM)

    def line(self, x: Sequence[float], y: Sequence[float], name: str) -> str:
        places = " ".join(f"{self.across(a):.1f},{self.up(b):.1f}" for a, b in zip(x, y, strict=True))

        return f'<polyline class="{name}" points="{places}"/>'

    def dots(self, x: Sequence[float], y: Sequence[float], name: str) -> str:
        return "".join(
            f'<circle class="{name}" cx="{self.across(a):.1f}" cy="{self.up(b):.1f}" r="2.2"/>'
            for a, b in zip(x, y, strict=True)
        )

    def around(self, inside: str, label: str, title: str, *, logarithmic: bool = False) -> str:
        """The whole chart: grid, numbers and label."""
        grid = []
        powers = [float(k) for k in range(round(self.y0), round(self.y1) + 1)]
        for value in powers if logarithmic else _ticks(self.y0, self.y1):
            height = self.up(value)
            shown = f"{10**value:.3g}" if logarithmic else f"{value:.3g}"
            grid.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" y2="{height:.1f}"/>')
            grid.append(f'<text x="{LEFT - 5}" y="{height + 3:.1f}" text-anchor="end">{shown}</text>')
        entropy = HEIGHT - BOTTOM
        for value in _ticks(self.x0, self.x1):
            grid.append(
                f'<text x="{self.across(value):.1f}" y="{entropy + 14}" text-anchor="middle">{value:.3g}</text>'
            )
        grid.append(f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{entropy}" y2="{entropy}"/>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        grid.append(f'<text x="{middle:.0f}" y="{HEIGHT - 6}" text-anchor="middle">{escape(label)}</text>')

        return (
            f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
            f"{''.join(grid)}{inside}</svg>"
        )


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers within a range, three to six of them."""
    rough = (high - low) / 4
    magnitude = 10 ** np.floor(np.log10(rough))
    step = next(multiple * magnitude for multiple in (1, 2, 5, 10) if multiple * magnitude >= rough * 0.999)
    first = np.ceil(low / step - 1e-9)

    return [float(k * step) for k in range(int(first), int(np.floor(high / step + 1e-9)) + 1)]


def draw_chart(found: Distribution) -> str:
    """A distribution: the reference as bars, samples as a line with dots."""
    known = found.reference or ()
    values = [*found.samples, *known]
    own, bars = list(found.samples), list(known)
    low, high = 0.0, max(values) or 1.0
    if found.logarithmic:
        smallest = min((value for value in values if value > 0), default=1.0)
        low, high = float(np.floor(np.log10(smallest))), float(np.ceil(np.log10(max(*values, smallest * 1.01))))
        own, bars = ([max(float(np.log10(max(value, 1e-12))), low) for value in side] for side in (own, bars))
    half = (found.places[1] - found.places[0]) / 2 if len(found.places) > 1 else 0.5
    frame = _Frame((found.places[0] - half, found.places[-1] + half), (low, high))
    width = 0.88 * (frame.across(half) - frame.across(-half))
    inside = "".join(
        f'<rect class="reference" x="{frame.across(place) - width / 2:.1f}" y="{frame.up(value):.1f}" '
        f'width="{width:.1f}" height="{frame.up(low) - frame.up(value):.1f}"/>'
        for place, value in zip(found.places, bars, strict=False)
    )
    inside += frame.line(found.places, own, "samples") + frame.dots(found.places, own, "samples")
    what = "mean count" if found.logarithmic else "share"

    return frame.around(inside, f"{found.label} ({what})", f"{found.name} of samples", logarithmic=found.logarithmic)


def draw_history(history: Sequence[TrainRecord]) -> str:
    """Loss as a line, validation as a dashed one with dots, by epoch."""
    epochs, loss = [float(record.epoch) for record in history], [record.loss for record in history]
    validated = [(float(record.epoch), record.validation) for record in history if record.validation is not None]
    x, y = [epoch for epoch, _ in validated], [value for _, value in validated]
    values = [*loss, *y]
    margin = 0.06 * (max(values) - min(values))
    frame = _Frame((epochs[0], epochs[-1]), (min(values) - margin, max(values) + margin))
    inside = frame.line(epochs, loss, "samples") + frame.line(x, y, "second") + frame.dots(x, y, "second")

    return frame.around(inside, "epoch", "Loss and validation, nats per graph")


def draw_line_of_nats(marks: Sequence[tuple[str, float]]) -> str:
    """Named figures on a line of nats, their names above and below it in turn."""
    values = [value for _, value in marks]
    low, high = min(values), max(values)
    room = (high - low) or 1.0
    pieces = ['<line class="axis" x1="5" x2="395" y1="40" y2="40"/>']
    for k, (name, value) in enumerate(sorted(marks, key=lambda mark: mark[1])):
        part = (value - low) / room
        x = 12 + part * 376
        # Names at the ends must not leave the picture.
        anchor = "start" if part < 0.25 else "end" if part > 0.75 else "middle"
        text, y = f"{escape(name)} {value:.2f}", (26 if k % 2 else 62)
        pieces.append(f'<circle class="samples" cx="{x:.1f}" cy="40" r="5"/>')
        pieces.append(f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{text}</text>')

    return f'<svg class="nats" viewBox="0 0 400 75" role="img" aria-label="NLL on a line">{"".join(pieces)}</svg>'
