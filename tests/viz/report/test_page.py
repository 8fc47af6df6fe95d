"""The page says everything, stands alone, and takes nothing from a file for markup."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import networkx as nx
import pytest

from graphite_gen.graph import SimpleGraph
from graphite_gen.viz.report import Contents, render_page
from graphite_gen.viz.report import page as pages
from graphite_gen.viz.report.svg import MOST_EDGES

from .conftest import ATTRIBUTE, SCRIPT

VOID = {"meta", "link", "input", "circle", "path", "line", "rect", "polyline"}


class Outline(HTMLParser):
    """The elements of a page, its text and its data."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def outline(page: str) -> Outline:
    found = Outline()
    found.feed(page)
    assert found._open == []

    return found


def test_markup_in_names_is_text(page: str) -> None:
    found = outline(page)

    assert found.tags.count("script") == 2
    assert "img" not in found.tags
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "style"]
    text = " ".join(found.texts)
    assert f"a {SCRIPT}" in text
    assert f"{SCRIPT} 20" in text
    assert f"{ATTRIBUTE}0: " in text


def test_nothing_is_fetched_and_nothing_else_may_run(page: str) -> None:
    found = outline(page)
    links = [value for name, value in found.attributes if name in ("src", "href", "srcset", "action")]
    policy = next(value for name, value in found.attributes if name == "content" and value and "default-src" in value)

    assert all(link is not None and link.startswith(("#", "data:,")) for link in links)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "url(" not in page
    assert "@import" not in page


def test_every_section_is_there_and_linked(page: str) -> None:
    ids = set(re.findall(r'\bid="([^"]+)"', page))
    targets = re.findall(r'href="#([^"]+)"', page)

    assert len(targets) >= 9
    assert set(targets) <= ids
    for word in ("Squared MMD", "ER baseline", "SHA-256", "95 % interval", "classifier AUC", "seed of the report"):
        assert word in page


def test_downloads_are_the_graphs(page: str, contents: Contents) -> None:
    data = re.search(r'<script type="application/json" id="graphml">(.*?)</script>', page)
    assert data is not None
    files = json.loads(data[1])

    assert len(files) == len(contents.samples)
    for text, row in zip(files, contents.samples, strict=True):
        found, own = nx.read_graphml(io.BytesIO(text.encode())), row.graph.to_networkx()
        assert found.adj == own.adj
        assert found.graph.items() >= own.graph.items()


def test_a_page_keeps_its_size(contents: Contents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MOST_BYTES", 3000)
    page = render_page(contents)

    assert "can be downloaded" in page
    assert page.count('class="download"') < len(contents.samples)


def test_what_is_missing_is_said(contents: Contents) -> None:
    blot = SimpleGraph.from_pairs(90, [(i, j) for i in range(90) for j in range(i)])
    assert len(blot.edges) > MOST_EDGES
    bare = replace(
        contents,
        reference=[blot],
        reference_source="none",
        evaluation=None,
        nll=None,
        nll_note="An autoencoder has no likelihood.",
        entropy=None,
        history=(),
    )

    page = render_page(bare)

    assert outline(page)
    assert "An autoencoder has no likelihood.</p>" in page
    assert "keeps no history" in page
    assert "too large to draw" in page
    assert "No metrics" in page
