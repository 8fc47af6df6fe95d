"""Arbitrary bytes are read as graphs or refused in one line; 'benchmarks/robustness/fuzz.py' tries many more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphite_gen.errors import FormatError
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import FORMATS, read_graphs

TEXTS = [name for name in FORMATS if name != "h5"]
PIECES = {
    "graphml": [
        *("<graphml>", "</graphml>", "<graph>", "</graph>", "<key "),
        *('<node id="a"/>', '<edge source="a" target="a"/>'),
    ],
    "gml": [
        *("graph [", "]", "node [", "edge [", "id 0", "id 1", "source 0", "target 1"),
        *('label "', "NAN", "#", "directed 1"),
    ],
    "jsonl": ["{", "}", "[", "]", '"nodes":', '"edges":', '"id":', '"source": 0', ",", "NaN", "1e999", "\\ud800", '"'],
    "edgelist": ["0 1", "1 2 {'weight': ", "}", "nan", "\n", "#", "{", "[[[[", "()"],
    "g6": ["~", "?", "~~", ">>graph6<<", "&", "\n", "D~{"],
    "s6": [":", ";", "~", "?", "\n", ">>sparse6<<", ":Fa@x^"],
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
EXTRA = ("graph", "directed", "links", "multigraph")
quickly = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def read_or_refuse(path: Path, data: bytes) -> list[SimpleGraph]:
    path.write_bytes(data)
    try:
        graphs = list(read_graphs(path))
    except FormatError as error:
        message, graphs = str(error), []
    else:
        message = str(path)
    assert str(path) in message
    assert len(message) < 5000
    for graph in graphs:
        i, j = graph.edges.T
        assert ((i >= 0) & (i < j) & (j < graph.nodes)).all()

    return graphs


@pytest.mark.parametrize("format", TEXTS)
@given(data=st.data())
@quickly
def test_any_bytes_are_graphs_or_refused_in_one_line(format: str, data: st.DataObject, tmp_path: Path) -> None:
    pieces = st.sampled_from(PIECES[format]).map(str.encode) | st.binary(max_size=4) | st.just(b"\n")

    read_or_refuse(tmp_path / f"a.{format}", b" ".join(data.draw(st.lists(pieces, max_size=12))))


@given(tree=st.fixed_dictionaries(dict.fromkeys(("nodes", "edges"), VALUES), optional=dict.fromkeys(EXTRA, VALUES)))
@quickly
def test_any_json_is_a_graph_or_refused_in_one_line(tree: dict[str, Any], tmp_path: Path) -> None:
    read_or_refuse(tmp_path / "a.jsonl", json.dumps(tree).encode())


@given(attributes=st.dictionaries(st.sampled_from(["id", "weight", "features", "label", "otherAttributes"]), VALUES))
@quickly
def test_any_attribute_value_is_kept_or_refused_in_one_line(attributes: dict[str, Any], tmp_path: Path) -> None:
    tree = {"nodes": [{"id": 0}, {"id": 1, **attributes}], "edges": [{"source": 0, "target": 1, **attributes}]}

    graphs = read_or_refuse(tmp_path / "a.jsonl", json.dumps(tree).encode())

    assert all(graph.nodes == 2 for graph in graphs)


def test_long_content_is_shortened_in_messages(tmp_path: Path) -> None:
    node = f'<node id="{"x" * 70_000}"/>'
    (tmp_path / "a.graphml").write_text(f"<graphml><graph>{node}{node}</graph></graphml>")

    with pytest.raises(FormatError, match=r"id 'xxx.* … .*xxx'") as caught:
        list(read_graphs(tmp_path / "a.graphml"))
    assert len(str(caught.value)) < 2000
