from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs

from .graphs import assert_refused, assert_same


@pytest.mark.parametrize("key", ["edges", "links"])
def test_what_networkx_writes_is_read(key: str, tmp_path: Path) -> None:
    graph = nx.grid_2d_graph(3, 3, create_using=nx.Graph)
    graph.graph["note"] = "x"
    nx.set_edge_attributes(graph, 2.5, "weight")
    (tmp_path / "a.jsonl").write_text(json.dumps(nx.node_link_data(graph, edges=key)) + "\n\n")

    (read,) = read_graphs(tmp_path / "a.jsonl")

    assert_same(SimpleGraph.from_networkx(graph), read)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
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
        (b'{"directed": true, "nodes": []}', "needs-simplify"),
        (b'{"graph": 3, "nodes": []}', "'graph' is not an object"),
        (b'{"nodes": [{"id":0},{"id":1}], "edges": [{"source":0,"target":1,"weight":Infinity}]}', "finite number"),
        (b'{"nodes": [{"id":0},{"id":1}], "edges": [{"source":0,"target":1,"weight":true}]}', "finite number"),
        (b'{"nodes": [{"id":0,"features":[1]},{"id":"b","features":[NaN]}]}', "node 'b' has feature nan"),
        (b'{"nodes": [{"id":0,"features":[1e39]}]}', "node 0 has feature 1e.39.* 32"),
        (b'{"nodes": [{"id":0,"features":[1' + b"0" * 400 + b"]}]}", "node 0 has feature 1.* finite"),
        (b'{"nodes": "\xff"}', "not UTF-8"),
    ],
)
def test_invalid_files_are_refused_in_one_line(body: bytes, expected: str, tmp_path: Path) -> None:
    assert_refused(tmp_path / "bad.jsonl", expected, body)
