"""Rendering of a report as one HTML file that loads nothing else; the template escapes all values."""

from __future__ import annotations

import base64
import hashlib
import io
import math
from collections.abc import Sequence
from importlib.resources import files
from itertools import count
from typing import TYPE_CHECKING

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ...graph import SimpleGraph
from ...io import graphml
from ...records import Provenance, count_of
from .. import figures
from ..layout import MAX_NODES
from .collect import ReportData

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["drawn_graphs", "render_page"]

GALLERY_GRAPHS = 12
# Limits the size of the page: graphs beyond it are listed but cannot be downloaded.
MAX_GRAPHML_BYTES = 3_000_000


def render_page(report: ReportData, *, node_label: str | None = None) -> str:
    """The page as HTML; ``node_label`` is the node attribute that colours drawings, as in :func:`.plot_gallery`."""
    css, script, template = (
        files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js", "page.html")
    )
    galleries = _galleries(report)
    style = figures.GraphStyle.of(drawn_graphs(report), node_label)
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined)
    environment.filters |= {"number": _number, "nats": _nats}

    def captioned(graph: SimpleGraph, index: int) -> tuple[str, str]:
        sizes = f"{count_of(graph.nodes, 'node')}, {count_of(len(graph.edges), 'edge')}"
        # Sharp enough to be enlarged.
        drawing = _embed(figures.plot_graph(graph, style), dpi=240) if graph.nodes <= MAX_NODES else ""
        return f"{_name(graph, index)}: {sizes}", drawing

    return environment.from_string(template).render(
        report=report,
        # Only the page's own style and script, by their hashes, and pictures embedded as data.
        policy=f"default-src 'none'; style-src {_hash(css)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        style=Markup(css),
        script=Markup(script),
        galleries=[(title, list(map(captioned, graphs, count()))) for title, graphs in galleries],
        key=_embed(figures.plot_key(style)),
        label=style.label,
        distributions=[(found.name, _embed(figures.plot_distribution(found))) for found in report.distributions],
        training=_embed(figures.plot_training(report.history)) if report.history else "",
        likelihood=_likelihood(report),
        names=[_name(row.graph, k) for k, row in enumerate(report.samples)],
        graphml=_graphml([row.graph for row in report.samples]),
        plural=count_of,
    )


def drawn_graphs(report: ReportData) -> list[SimpleGraph]:
    """The graphs that a report draws: the first samples and reference graphs."""
    return [graph for _, graphs in _galleries(report) for graph in graphs]


def _galleries(report: ReportData) -> list[tuple[str, Sequence[SimpleGraph]]]:
    sides = [("Sampled", [row.graph for row in report.samples]), ("True", report.reference)]

    return [(title, graphs[:GALLERY_GRAPHS]) for title, graphs in sides if graphs]


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _embed(figure: Figure, dpi: int = 150) -> str:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dpi)

    return f"data:image/png;base64,{base64.b64encode(stream.getvalue()).decode()}"


def _likelihood(report: ReportData) -> str:
    if report.nll is None:
        return ""
    marks = [("model", report.nll.nll)]
    marks += [] if report.entropy is None else [("entropy", report.entropy.nats)]
    marks += [] if report.nll.baseline is None else [("ER baseline", report.nll.baseline)]

    return _embed(figures.plot_nats(marks)) if len(marks) > 1 else ""


def _graphml(graphs: Sequence[SimpleGraph]) -> list[str]:
    """The first graphs as GraphML, up to :data:`MAX_GRAPHML_BYTES`."""
    texts, size = [], 0
    for graph in graphs:
        stream = io.BytesIO()
        graphml.write([graph], stream, Provenance())
        size += stream.tell()
        if size > MAX_GRAPHML_BYTES:
            break
        texts.append(stream.getvalue().decode())

    return texts


def _name(graph: SimpleGraph, index: int) -> str:
    name = graph.attributes.get("name")

    return str(index) if name in (None, "") else f"{index} {name}"


def _number(value: float | None, form: str) -> str:
    """A formatted number, or a dash if it is undefined."""
    return "–" if value is None or math.isnan(value) else format(value, form)


def _nats(value: float, error: float | None) -> str:
    return f"{value:.2f}" if error is None else f"{value:.2f} ± {error:.2f}"
