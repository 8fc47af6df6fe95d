"""Arbitrary bytes are read as graphs or refused in one line; 'benchmarks/robustness/fuzz.py' tries many more."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphite_gen.errors import FormatError
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import FORMATS, read_graphs

from .graphs import assert_refused

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
    "jsonl": [
        '"directed": true',
        "{",
        "}",
        "[",
        "]",
        '"nodes":',
        '"edges":',
        '"id":',
        '"source": 0',
        ",",
        "NaN",
        "1e999",
        "\\ud800",
        '"',
    ],
    "edgelist": ["0 1", "1 2 {'weight': ", "}", "nan", "\n", "#", "{", "[[[[", "()", "# Directed graph\n"],
    "csv": ["source,target", "graph;u;v\n", "0,1,nan", '"', "a,b", "json:[", ";;", "split", "#", ",directed", ",1"],
    "tsv": ["source\ttarget", "graph\tu\tv\n", "0\t1\tnan", '"', "json:{", "\t", "#"],
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
        assert ((i < j) | (graph.directed & (i > j))).all()
        assert ((np.minimum(i, j) >= 0) & (np.maximum(i, j) < graph.nodes)).all()

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


INVALID = {
    "edgelist": [
        (b"0 0\n", "needs-simplify"),
        (b"0 1\n1 0\n", "0 - 1 is repeated|1 - 0 is repeated"),
        (b"0 1\n0 2 nan\n", "not a finite number"),
        (b"0 1\n0 2 1e999\n", "not a finite number"),
        (b"0 1\n0 2 heavy\n", "line 2: .*'heavy'"),
        (b"0 1 {'weight': __import__('os')}\n", "line 1: edge data"),
        (b"0 1 {'weight': 'a'}\n", "not a finite number"),
        (b"0 1 {" + b"[" * 5000 + b"\n", "line 1"),
        (b"0 \xff\n", "line 1: not UTF-8"),
    ],
    "gml": [
        (b"# only a comment\n", "no-graphs"),
        (b"graph [ node [ id 0 ]", "ends within a list"),
        (b'graph [ node [ id 0 label "x ] ]', "ends within a string"),
        (b"graph 7", "without '\\['"),
        (b"]", "unmatched"),
        (b"graph [ node ]", "expected a value"),
        (b"graph [ node 3 ]", "'node' without"),
        (b"graph [ node edge ]", "key 'edge' after the key 'node'"),
        (b"graph [ 7 8 ]", "expected a key"),
        (b"graph [ node [ id -1 ] ]", "id -1"),
        (b"graph [ node [ id 0.0 ] ]", "id 0.0"),
        (b"graph [ node [ label 3 ] ]", "id None"),
        (b"graph [ node [ id 1 id 2 ] ]", "id \\[1, 2\\]"),
        (b"graph [ node [ id 1 ] node [ id 1 ] ]", "two nodes have the id 1"),
        (b"graph [ node [ id 1 ] edge [ source 1 target 99999999999 ] ]", "unknown node"),
        (b"graph [ node [ id 1 ] edge [ source 1 ] ]", "unknown node"),
        (b"graph [ node [ id 1 ] edge [ source 1 target 1 ] ]", "needs-simplify"),
        (b"graph [ directed 1 node [ id 1 ] edge [ source 1 target 1 ] ]", "needs-simplify"),
        (b"graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 weight NAN ] ]", "not a finite number"),
        (b'graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 weight "a" ] ]', "not a finite number"),
        (b"graph [ " + b"a [ " * 100, "nested deeper"),
        (b"graph [ a \xff ]", "line 1: not UTF-8"),
        (b"graph [ a ? ]", "file-damaged"),
        (b"graph [ a " + b"9" * 6000 + b" ]", "6000 characters"),
    ],
    "jsonl": [
        (b'{"nodes": [', "line 1: not JSON"),
        (b'{"nodes": []}\n{"nodes": []', "line 2: not JSON"),
        (b"[" * 100_000, "not JSON|nested"),
        (b"[]", "object with 'nodes'"),
        (b"7", "object with 'nodes'"),
        (b'{"nodes": 3}', "'nodes' is not a list"),
        (b'{"nodes": [3]}', "'nodes' is not a list"),
        (b'{"nodes": [{}]}', "has no 'id'"),
        (b'{"nodes": [{"id": {}}]}', "a node id is an object"),
        (b'{"nodes": [{"id": 1}, {"id": 1}]}', "two nodes have the id 1"),
        (b'{"nodes": [{"id": 1}], "edges": [{"source": 1}]}', "has no 'target'"),
        (b'{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": -1}]}', "unknown node"),
        (b'{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": []}]}', "unknown node"),
        (b'{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 1}]}', "needs-simplify"),
        (b'{"directed": true, "nodes": [{"id": 1}], "edges": [{"source": 1, "target": 1}]}', "needs-simplify"),
        (b'{"graph": 3, "nodes": []}', "'graph' is not an object"),
        (b'{"nodes": [{"id":0},{"id":1}], "edges": [{"source":0,"target":1,"weight":Infinity}]}', "finite number"),
        (b'{"nodes": [{"id":0},{"id":1}], "edges": [{"source":0,"target":1,"weight":true}]}', "finite number"),
        (b'{"nodes": [{"id":0,"features":[1]},{"id":"b","features":[NaN]}]}', "node 'b' has feature nan"),
        (b'{"nodes": [{"id":0,"features":[1e39]}]}', "node 0 has feature 1e.39.* 32"),
        (b'{"nodes": [{"id":0,"features":[1' + b"0" * 400 + b"]}]}", "node 0 has feature 1.* finite"),
        (b'{"nodes": "\xff"}', "not UTF-8"),
    ],
    "g6": [
        (b">>graph6<<\n", "no-graphs"),
        (b"~~@?????", "1073741824 nodes"),
        (b"~~~~~~~~", "68719476735 nodes"),
        (b"~", "ends within"),
        (b"~~??", "ends within"),
        (b"C", "0 characters after the size; 4 nodes require 1"),
        (b"C~~", "2 characters after the size"),
        (b"B~", "bits are set after"),
        (b"C \xff", "line 1: character"),
        (b":An", "format-mismatch"),
        (b"&AG", "digraph6"),
        (b">>sparse6<<:An", "header"),
    ],
    "s6": [
        (b"An", "format-mismatch"),
        (b";An", "incremental"),
        (b":", "ends within"),
        (b":~~@?????", "1073741824 nodes"),
        (nx.to_sparse6_bytes(nx.MultiGraph([(0, 1), (0, 1)])), "needs-simplify"),
        (nx.to_sparse6_bytes(nx.MultiGraph([(0, 1), (1, 1)])), "needs-simplify"),
    ],
}


@pytest.mark.parametrize(("format", "body", "expected"), [(key, *row) for key, rows in INVALID.items() for row in rows])
def test_invalid_files_are_refused_in_one_line(format: str, body: bytes, expected: str, tmp_path: Path) -> None:
    assert_refused(tmp_path / f"bad.{format}", expected, body)
