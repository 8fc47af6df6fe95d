from __future__ import annotations

from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pytest

from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs, write_graphs

from .graphs import assert_refused, assert_same

RICH = SimpleGraph(
    3,
    np.array([[0, 1], [1, 2]], np.int32),
    np.array([0.5, 1e-300]),
    names=('ä<&>"', "b", "c\nd"),
    node_attributes={"size": [1, None, 3], "colour": ["röd", "", " x "]},
    attributes={"title": "ünï"},
)


def test_networkx_opens_what_we_write(tmp_path: Path) -> None:
    write_graphs([RICH], tmp_path / "a.gml")

    assert_same(RICH, SimpleGraph.from_networkx(nx.read_gml(tmp_path / "a.gml")))


def test_igraph_opens_what_we_write(tmp_path: Path) -> None:
    write_graphs([RICH], tmp_path / "a.gml")

    graph = igraph.Graph.Read_GML(str(tmp_path / "a.gml"))

    assert graph.get_edgelist() == [(0, 1), (1, 2)]
    assert graph.es["weight"] == [0.5, 1e-300]


def test_what_networkx_writes_is_read(tmp_path: Path) -> None:
    graph = nx.Graph(nx.karate_club_graph(), note='a "b" & ç')
    graph.add_edge("alone", 0, weight=3, tags=[1, 2], nested={"a": {"b": 1}}, one=[5])
    nx.write_gml(graph, tmp_path / "a.gml")

    (read,) = read_graphs(tmp_path / "a.gml")

    wanted = SimpleGraph.from_networkx(nx.relabel_nodes(graph, str))
    assert_same(wanted, read)


def test_what_igraph_writes_is_read(tmp_path: Path) -> None:
    graph = igraph.Graph.Erdos_Renyi(12, 0.3)
    graph.es["weight"] = np.arange(graph.ecount(), dtype=float)
    graph.vs["kind"] = ['a "q" & b'] * 12
    graph.write_gml(str(tmp_path / "a.gml"))

    (read,) = read_graphs(tmp_path / "a.gml")

    assert read.names is None
    assert sorted(map(tuple, read.edges.tolist())) == sorted(graph.get_edgelist())
    assert read.node_attributes["kind"][0] == 'a "q" & b'
    assert read.weights is not None


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "no-graphs"),
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
        (b"graph [ node [ id 0.5 ] ]", "id 0.5"),
        (b"graph [ node [ label 3 ] ]", "id None"),
        (b"graph [ node [ id 1 id 2 ] ]", "id \\[1, 2\\]"),
        (b"graph [ node [ id 1 ] node [ id 1 ] ]", "two nodes have the id 1"),
        (b"graph [ node [ id 1 ] edge [ source 1 target 99999999999 ] ]", "unknown node"),
        (b"graph [ node [ id 1 ] edge [ source 1 ] ]", "unknown node"),
        (b"graph [ node [ id 1 ] edge [ source 1 target 1 ] ]", "needs-simplify"),
        (b"graph [ directed 1 node [ id 1 ] ]", "needs-simplify"),
        (b"graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 weight NAN ] ]", "not a finite number"),
        (b'graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 2 weight "a" ] ]', "not a finite number"),
        (b"graph [ " + b"a [ " * 100, "nested deeper"),
        (b"graph [ a \xff ]", "line 1: not UTF-8"),
        (b"graph [ a ? ]", "file-damaged"),
        (b"graph [ a " + b"9" * 6000 + b" ]", "6000 characters"),
    ],
)
def test_invalid_files_are_refused_in_one_line(body: bytes, expected: str, tmp_path: Path) -> None:
    assert_refused(tmp_path / "bad.gml", expected, body)
