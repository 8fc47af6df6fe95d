"""Drawings as text for terminals, with the layout and data of the figures: Braille dots, discs and block characters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from .layout import check_drawable, place_nodes

__all__ = ["bar", "draw_curve", "draw_graph", "draw_matrix", "draw_points"]

# The bits of the dots of a Braille character, which is two dots wide and four high.
DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
EIGHTHS = " ▏▎▍▌▋▊▉█"
HALVES = " ▀▄█"
SHADES = "░▒▓█"


class _Canvas:
    """A grid of Braille dots, :math:`2w` wide and :math:`4h` high."""

    def __init__(self, width: int, height: int) -> None:
        self.dots = np.zeros((4 * height, 2 * width), dtype=np.bool_)

    def line(self, start: NDArray[np.float64], end: NDArray[np.float64]) -> None:
        """Draw a line; coordinates are dots from the upper left."""
        steps = int(np.ceil(np.abs(end - start).max())) + 1
        x, y = np.rint(np.linspace(start, end, steps)).astype(np.int64).T
        self.dots[y, x] = True

    def rows(self) -> list[list[str]]:
        """The characters of each line."""
        high, wide = self.dots.shape
        cells = self.dots.reshape(high // 4, 4, wide // 2, 2).transpose(0, 2, 1, 3)
        codes = (cells * DOTS).sum((2, 3))

        return [[chr(0x2800 + code) if code else " " for code in row] for row in codes.tolist()]


def draw_graph(graph: SimpleGraph, width: int = 24, height: int = 12) -> list[str]:
    """A drawing of a graph, as lines of text."""
    check_drawable(graph, 0)
    canvas = _Canvas(width, height)
    room = np.array([2 * width - 1, 4 * height - 1])
    points = (place_nodes(graph) * (1, -1) + 1) / 2 * room
    for i, j in graph.edges.tolist():
        canvas.line(points[i], points[j])
    rows = canvas.rows()
    for x, y in np.rint(points).astype(np.int64).tolist():
        rows[y // 4][x // 2] = "●"

    return ["".join(row) for row in rows]


def draw_curve(values: Sequence[float], width: int = 60, height: int = 10) -> list[str]:
    """A curve as lines of text, with the highest and lowest value in the margin."""
    canvas = _Canvas(width, height)
    low, high = min(values), max(values)
    x = np.linspace(0, 2 * width - 1, len(values)) if len(values) > 1 else np.zeros(1)
    y = (high - np.array(values)) / ((high - low) or 1.0) * (4 * height - 1)
    points = np.stack([x, y], axis=1)
    for start, end in zip(points, points[1:] if len(points) > 1 else points, strict=False):
        canvas.line(start, end)
    labels = [f"{high:.4g}", *[""] * (height - 2), f"{low:.4g}"] if height > 1 else [f"{high:.4g}"]
    margin = max(map(len, labels))

    return [f"{label.rjust(margin)} {''.join(row)}" for label, row in zip(labels, canvas.rows(), strict=True)]


def draw_matrix(matrix: NDArray[np.float64]) -> list[str]:
    """A 0/1 matrix as lines of text, two rows per line."""
    rows = np.pad(matrix > 0, ((0, len(matrix) % 2), (0, 0))).astype(np.int64)

    return ["".join(HALVES[code] for code in row) for row in (rows[::2] + 2 * rows[1::2]).tolist()]


def draw_points(
    points: NDArray[np.float64], values: NDArray[np.float64], width: int = 60, height: int = 20
) -> list[str]:
    """Points of shape :math:`(P, 2)` as lines of text, darker where the mean value is higher; NaN is a small dot."""
    spans = np.ptp(points, axis=0)
    unit = (points - points.min(0)) / np.where(spans > 0, spans, 1.0)
    columns, rows = np.rint(unit * (width - 1, height - 1)).astype(np.int64).T
    known = ~np.isnan(values)
    levels = (values - np.nanmin(values)) / (np.ptp(values[known]) or 1.0)
    totals, counts, cells = np.zeros((height, width)), np.zeros((height, width)), np.full((height, width), " ")
    cells[rows, columns] = "·"
    np.add.at(totals, (rows[known], columns[known]), levels[known])
    np.add.at(counts, (rows[known], columns[known]), 1)
    shade = np.minimum(len(SHADES) - 1, len(SHADES) * totals / np.maximum(counts, 1)).astype(np.int64)
    cells[counts > 0] = np.array(list(SHADES))[shade[counts > 0]]

    return ["".join(row) for row in cells[::-1]]


def bar(fraction: float, width: int = 24) -> str:
    """A horizontal bar, ``width`` characters long at 1."""
    eighths = round(min(max(fraction, 0.0), 1.0) * width * 8)

    return EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8].strip()
