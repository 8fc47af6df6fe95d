"""The page: what is known of a model as one file of HTML that fetches nothing.

Whatever comes from files or from users is escaped. A content security policy allows this page's own style and script,
by their hashes, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from ...evaluation import Proportion
from ...graph import SimpleGraph
from ...io import graphml
from ...records import Provenance, count_of
from .contents import Contents, SampleRow
from .svg import SHADES, draw_chart, draw_graph, draw_history, draw_line_of_nats, is_drawable

__all__ = ["render_page"]

GALLERY = 12
MOST_BYTES = 3_000_000
"""Of the graphs that can be downloaded: a page should stay one that is sent around."""


def render_page(contents: Contents) -> str:
    """The page as text."""
    texts = _texts(contents.samples)
    sections = [
        ("judgement", "In short", _judgement(contents)),
        ("model", "The model", _facts(contents.facts)),
        ("likelihood", "Likelihood", _likelihood(contents)),
        ("metrics", "Metrics", _metrics(contents)),
        ("gallery", "Gallery", _galleries(contents)),
        ("distributions", "Distributions", _distributions(contents)),
        ("training", "Training", _training(contents)),
        ("samples", "Samples", _samples(contents, len(texts))),
        ("provenance", "Provenance", _facts(contents.provenance)),
    ]
    style, script = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    page = Template(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))

    return page.substitute(
        policy=_policy(style, script),
        title=escape(f"{contents.name}: graphite-gen report"),
        style=style,
        name=escape(contents.name),
        navigation="".join(f'<a href="#{key}">{title}</a>' for key, title, _ in sections),
        sections="".join(
            f'<section aria-labelledby="{key}"><h2 id="{key}">{title}</h2>{body}</section>'
            for key, title, body in sections
        ),
        graphml=_data(texts),
        script=script,
    )


def _policy(style: str, script: str) -> str:
    def allowed(text: str) -> str:
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    return (
        f"default-src 'none'; style-src {allowed(style)}; script-src {allowed(script)}; img-src data:; "
        f"base-uri 'none'; form-action 'none'"
    )


def _data(value: object) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e")


def _texts(rows: Sequence[SampleRow]) -> list[str]:
    """The graphs as GraphML, as many of the first ones as there is room for."""
    texts, size = [], 0
    for row in rows:
        stream = io.BytesIO()
        graphml.write([row.graph], stream, Provenance())
        size += stream.tell()
        if size > MOST_BYTES:
            break
        texts.append(stream.getvalue().decode())

    return texts


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>' for name, value in facts)

    return f'<table class="facts"><tbody>{rows}</tbody></table>'


def _judgement(contents: Contents) -> str:
    found, nll, entropy = contents.evaluation, contents.nll, contents.entropy
    cards = []
    if nll is not None:
        beside = [] if entropy is None else [f"floor {entropy.nats:.2f}"]
        beside += [] if nll.baseline is None else [f"ER {nll.baseline:.2f}"]
        cards.append(("NLL, nats per graph", f"{nll.nll:.2f}", ", ".join(beside)))
    if found is not None:
        if found.ratio is not None:
            cards.append(("ratio to training graphs", f"{found.ratio:.2f}", "about 1 is as good as can be"))
        shares = (("valid", found.vun.valid), ("unique", found.vun.unique), ("novel", found.vun.novel))
        cards += [(name, _percent(share), _interval(share)) for name, share in shares if share is not None]
        if found.classifier is not None:
            cards.append(("classifier AUC", f"{found.classifier.auc:.2f}", "0.5 is chance"))
    shown = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(beside)}</small></dd></div>"
        for name, value, beside in cards
    )
    words = "".join(f"<li>{escape(line)}</li>" for line in (found.findings if found else ()))
    note = f'<p class="note">Reference: {escape(contents.reference_source)}.</p>'

    return f'<dl class="cards">{shown}</dl><ul class="findings">{words}</ul>{note}'


def _percent(share: Proportion) -> str:
    return "–" if share.value is None else f"{share.value:.1%}"


def _interval(share: Proportion) -> str:
    return f"{share.low:.1%} to {share.high:.1%}, {share.count} of {share.total}"


def _likelihood(contents: Contents) -> str:
    nll, entropy = contents.nll, contents.entropy
    note = f'<p class="note">{escape(contents.nll_note)}.</p>'.replace("..</p>", ".</p>")
    if nll is None:
        return note
    marks = [("model", nll.nll)]
    marks += [] if entropy is None else [("floor", entropy.nats)]
    marks += [] if nll.baseline is None else [("ER baseline", nll.baseline)]
    rows = [("NLL", f"{_nats(nll.nll, nll.standard_error)} nats per graph")]
    if entropy is not None:
        rows.append(("floor", f"{entropy.nats:.2f}, the true law"))
        rows.append(("excess", f"{_nats(entropy.excess, entropy.excess_standard_error)} above the floor"))
    rows += [] if nll.baseline is None else [("ER baseline", f"{nll.baseline:.2f}, one edge probability per size")]
    rows.append(("median ESS", f"{nll.ess:.1f} of {nll.samples}"))

    return f"{draw_line_of_nats(marks) if len(marks) > 1 else ''}{_facts(rows)}{note}"


def _nats(value: float, error: float | None) -> str:
    return f"{value:.2f}" if error is None else f"{value:.2f} ± {error:.2f}"


def _metrics(contents: Contents) -> str:
    found = contents.evaluation
    if found is None:
        return '<p class="note">No metrics: they take at least 2 samples and 2 reference graphs.</p>'
    distances = [
        (
            row.samples.descriptor,
            row.samples.convention,
            f"{row.samples.value:.5f}",
            "–" if row.samples.low is None else f"{row.samples.low:.5f} to {row.samples.high:.5f}",
            "–" if row.attainable is None else f"{row.attainable.value:.5f}",
            "–" if row.ratio is None else f"{row.ratio:.2f}",
        )
        for row in found.mmd
    ]
    plain = [
        (row.name, _mean(row.samples, row.samples_deviation), _mean(row.reference, row.reference_deviation))
        for row in found.summaries
    ]

    return (
        "<h3>Squared MMD to the reference</h3>"
        + _table(("descriptor", "convention", "samples", "95 % interval", "training graphs", "ratio"), distances, 2)
        + "<p class='note'>'tv' and 'emd' are the conventions of published tables and depend on the number of graphs; "
        "'rbf' is unbiased. Training graphs show what is attainable.</p>"
        + "<h3>Plain figures, mean ± deviation</h3>"
        + _table(("figure", "samples", "reference"), plain, 1)
    )


def _mean(value: float | None, deviation: float | None) -> str:
    return "–" if value is None or deviation is None else f"{value:.3g} ± {deviation:.2g}"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> str:
    """A table whose columns but the first few are numbers."""

    def kind(k: int) -> str:
        return "" if k < words else ' class="number"'

    head = "".join(f'<th scope="col"{kind(k)}>{escape(name)}</th>' for k, name in enumerate(columns))
    body = "".join(
        "<tr>" + "".join(f"<td{kind(k)}>{escape(cell)}</td>" for k, cell in enumerate(row)) + "</tr>" for row in rows
    )

    return f'<div class="wide" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _galleries(contents: Contents) -> str:
    sampled, true = [row.graph for row in contents.samples][:GALLERY], list(contents.reference[:GALLERY])
    highest = max((int(graph.degrees().max(initial=0)) for graph in [*sampled, *true]), default=1)
    sides = [("Sampled", sampled), ("True", true)]
    shown = "".join(
        f'<div><h3>{title}</h3><div class="tiles">'
        + "".join(_tile(graph, index, title, highest) for index, graph in enumerate(graphs))
        + "</div></div>"
        for title, graphs in sides
        if graphs
    )

    return f'<p class="note act">Choose a graph to enlarge it.</p>{_key(highest)}<div class="sides">{shown}</div>'


def _key(highest: int) -> str:
    entries = []
    for shade in range(SHADES):
        degrees = [d for d in range(highest + 1) if min(d * SHADES // (highest + 1), SHADES - 1) == shade]
        if degrees:
            span = f"{degrees[0]}" if len(degrees) == 1 else f"{degrees[0]}–{degrees[-1]}"
            disc = f'<circle class="d{shade}" cx="6" cy="6" r="5"/>'
            entries.append(f'<span><svg class="graph" viewBox="0 0 12 12" aria-hidden="true">{disc}</svg>{span}</span>')

    return f'<p class="key">degree {"".join(entries)}</p>'


def _tile(graph: SimpleGraph, index: int, side: str, highest: int) -> str:
    caption = f"{_name(graph, index)}: {count_of(graph.nodes, 'node')}, {count_of(len(graph.edges), 'edge')}"
    if not is_drawable(graph):
        return f'<p class="note">{escape(caption)}, too large to draw</p>'

    return (
        f'<button type="button" class="tile" data-caption="{escape(f"{side} graph {caption}")}" '
        f'aria-label="{escape(f"Enlarge {side.lower()} graph {caption}")}">{draw_graph(graph, highest)}'
        f"<span>{escape(caption)}</span></button>"
    )


def _name(graph: SimpleGraph, index: int) -> str:
    name = graph.attributes.get("name")

    return str(index) if name in (None, "") else f"{index} {name}"


def _distributions(contents: Contents) -> str:
    key = (
        '<p class="key"><span><svg viewBox="0 0 12 12" aria-hidden="true"><circle class="samples" cx="6" cy="6" r="5"/>'
        '</svg>samples</span><span><svg viewBox="0 0 12 12" aria-hidden="true"><rect class="reference" x="1" y="1" '
        'width="10" height="10"/></svg>reference</span></p>'
    )
    charts = "".join(
        f"<figure><figcaption>{escape(found.name)}</figcaption>{draw_chart(found)}</figure>"
        for found in contents.distributions
    )

    return f'{key}<div class="charts">{charts}</div>'


def _training(contents: Contents) -> str:
    if not contents.history:
        return '<p class="note">The checkpoint keeps no history.</p>'
    last = contents.history[-1]
    key = (
        '<p class="key"><span><svg viewBox="0 0 12 12" aria-hidden="true"><polyline class="samples" points="0,6 12,6"/>'
        '</svg>training loss</span><span><svg viewBox="0 0 12 12" aria-hidden="true"><circle class="second" cx="6" '
        'cy="6" r="4"/></svg>validation</span></p>'
    )
    words = f"{count_of(last.epoch, 'epoch')}, {count_of(last.step, 'step')}, {last.seconds:.0f} s. Nats per graph."

    return (
        f'{key}<div class="charts"><figure>{draw_history(contents.history)}</figure></div><p class="note">{words}</p>'
    )


def _samples(contents: Contents, kept: int) -> str:
    names = list(contents.samples[0].summaries)
    columns = ["graph", *names, "valid", "novel"]
    head = "".join(
        f'<th scope="col"{"" if k == 0 else " class=number"}><button type="button" class="sort">{escape(name)}</button>'
        "</th>"
        for k, name in enumerate(columns)
    )
    body = "".join(_row(row, index, index < kept) for index, row in enumerate(contents.samples))
    note = "" if kept == len(contents.samples) else f'<p class="note">The first {kept} can be downloaded.</p>'

    return (
        '<div class="search"><label for="search">Search</label><input type="search" id="search" autocomplete="off">'
        '<span class="note">a name, a figure, "invalid" or "copy"</span>'
        f'<span id="count" role="status" class="note"></span></div>{note}<div class="table" tabindex="0" '
        f'role="region" aria-label="Sampled graphs"><table id="samples-table"><thead><tr>{head}'
        f'<th scope="col" class="act">GraphML</th></tr></thead><tbody>{body}</tbody></table></div>'
    )


def _row(row: SampleRow, index: int, kept: bool) -> str:
    name = _name(row.graph, index)
    figures = ["–" if math.isnan(value) else f"{value:.4g}" for value in row.summaries.values()]
    answers = [_answer(row.valid, "valid", "invalid"), _answer(row.novel, "new", "copy")]
    text = " ".join([name, *figures, *answers]).lower()
    cells = "".join(f'<td class="number">{escape(cell)}</td>' for cell in [*figures, *answers])
    button = (
        f'<button type="button" class="download" data-index="{index}" aria-label="Download graph {index}">Download'
        "</button>"
        if kept
        else ""
    )

    return f'<tr data-text="{escape(text)}"><td>{escape(name)}</td>{cells}<td class="act">{button}</td></tr>'


def _answer(value: bool | None, yes: str, no: str) -> str:
    return "–" if value is None else yes if value else no
