from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs

from .graphs import assert_same


@pytest.mark.parametrize("key", ["edges", "links"])
def test_what_networkx_writes_is_read(key: str, tmp_path: Path) -> None:
    graph = nx.grid_2d_graph(3, 3, create_using=nx.Graph)
    graph.graph["note"] = "x"
    nx.set_edge_attributes(graph, 2.5, "weight")
    (tmp_path / "a.jsonl").write_text(json.dumps(nx.node_link_data(graph, edges=key)) + "\n\n")

    (read,) = read_graphs(tmp_path / "a.jsonl")

    assert_same(SimpleGraph.from_networkx(graph), read)
