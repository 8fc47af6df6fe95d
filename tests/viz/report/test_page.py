import base64
import hashlib
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import networkx as nx
import pytest

from graphite_gen.graph import SimpleGraph
from graphite_gen.viz.layout import MAX_NODES
from graphite_gen.viz.report import ReportData, render_page
from graphite_gen.viz.report import page as pages

from .conftest import ATTRIBUTE, SCRIPT

VOID = {"meta", "link", "input", "img"}


class Outline(HTMLParser):
    """The elements of a page, which must be properly nested, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_markup_in_names_is_text(page: str) -> None:
    found = Outline(page)

    assert found.tags.count("script") == 2
    assert not [name for name, _ in found.attributes if name.startswith("on") or name == "style"]
    assert f"a {SCRIPT}" in found.text
    assert f"{ATTRIBUTE}{SCRIPT} 20" in found.text


def test_nothing_is_loaded_and_no_other_script_may_run(page: str) -> None:
    found = Outline(page)
    links = [value for name, value in found.attributes if name in ("src", "href", "srcset", "action")]
    policy = next(value for name, value in found.attributes if name == "content" and value and "default-src" in value)

    assert all(link is not None and link.startswith(("#", "data:,", "data:image/png;base64,")) for link in links)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not any(word in page for word in ("url(", "@import"))
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        text = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text[1].encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in policy


def test_every_picture_tile_and_section_exists(page: str, contents: ReportData) -> None:
    pictures = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    ids, targets = re.findall(r'\bid="([^"]+)"', page), re.findall(r'href="#([^"]+)"', page)

    assert all(base64.b64decode(picture).startswith(b"\x89PNG") for picture in pictures)
    assert page.count('class="tile"') == 24
    # Besides the tiles: degree key, NLL, distributions and training.
    assert len(pictures) == 24 + 2 + len(contents.distributions) + 1
    assert len(targets) >= 9
    assert set(targets) <= set(ids)
    for word in ("Squared MMD", "ER baseline", "SHA-256", "95 % interval", "classifier AUC", "seed of the report"):
        assert word in page


def test_downloads_contain_the_graphs(page: str, contents: ReportData) -> None:
    data = re.search(r'<script type="application/json" id="graphml">(.*?)</script>', page)
    files = json.loads(data[1])

    assert len(files) == len(contents.samples)
    for text, row in zip(files, contents.samples, strict=True):
        found, own = nx.read_graphml(io.BytesIO(text.encode())), row.graph.to_networkx()
        assert found.adj == own.adj
        assert found.graph.items() >= own.graph.items()


def test_downloads_are_limited_in_size(contents: ReportData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "MAX_GRAPHML_BYTES", 3000)
    page = render_page(contents)

    assert "can be downloaded" in page
    assert page.count('class="download"') < len(contents.samples)


def test_a_page_without_metrics_says_what_is_missing(contents: ReportData) -> None:
    bare = replace(
        contents,
        reference=[SimpleGraph.from_pairs(MAX_NODES + 1, [])],
        reference_source="none",
        evaluation=None,
        nll=None,
        nll_note="An autoencoder has no likelihood.",
        entropy=None,
        history=(),
    )

    page = render_page(bare)

    assert Outline(page)
    for words in ("An autoencoder has no likelihood.</p>", "no training history", "too large to draw", "No metrics"):
        assert words in page
