from __future__ import annotations

from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pytest
from networkx.readwrite.graphml import GraphMLReader

from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs, write_graphs
from graphite_gen.records import Provenance

from .graphs import assert_refused, assert_same, assert_same_edges

HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'


def test_networkx_opens_every_graph_with_its_facts(tmp_path: Path) -> None:
    graphs = [SimpleGraph.from_networkx(nx.gnp_random_graph(n, 0.4, seed=n)) for n in (0, 1, 2, 9, 15, 70)]
    write_graphs(graphs, tmp_path / "a.graphml", provenance=Provenance("ego", {"m": 2}, 3))

    opened = list(GraphMLReader(node_type=int)(path=tmp_path / "a.graphml"))

    for graph, other in zip(graphs, opened, strict=True):
        assert_same_edges(graph, SimpleGraph.from_networkx(other))
        assert other.graph["family"] == "ego"
        assert other.graph["seed"] == 3


def test_both_clients_see_names_weights_and_attributes(tmp_path: Path) -> None:
    graph = SimpleGraph(
        3,
        np.array([[0, 1], [1, 2]], np.int32),
        np.array([0.5, 1e-300]),
        names=("ä<>\"'", "b", "c d"),
        node_attributes={"size": [1, None, 3], "colour": ["röd &amp;", "", " x "]},
        edge_attributes={"kind": [True, False]},
    )
    write_graphs([graph], tmp_path / "a.graphml")

    other = nx.read_graphml(tmp_path / "a.graphml")
    other.graph.clear()
    third = igraph.Graph.Read_GraphML(str(tmp_path / "a.graphml"))

    assert_same(graph, SimpleGraph.from_networkx(other))
    assert third.vs["id"] == list(graph.names or ())
    assert third.es["weight"] == [0.5, 1e-300]
    assert third.vs["colour"] == ["röd &amp;", "", " x "]
    assert third.es["kind"] == [True, False]


def test_what_networkx_writes_is_read(tmp_path: Path) -> None:
    graph = nx.Graph(nx.karate_club_graph(), note="a <b> & c")
    graph.nodes[3]["extra"] = True
    nx.write_graphml(graph, tmp_path / "a.graphml")

    (read,) = read_graphs(tmp_path / "a.graphml")

    assert_same(SimpleGraph.from_networkx(graph), read)


def test_what_igraph_writes_is_read(tmp_path: Path) -> None:
    graph = igraph.Graph.Erdos_Renyi(12, 0.3)
    graph["title"] = "tïtle"
    graph.vs["kind"] = [f"k{i}" for i in range(12)]
    graph.es["weight"] = np.arange(graph.ecount(), dtype=float)
    graph.write_graphml(str(tmp_path / "a.graphml"))

    (read,) = read_graphs(tmp_path / "a.graphml")

    assert read.names is None
    assert sorted(map(tuple, read.edges.tolist())) == sorted(graph.get_edgelist())
    assert read.weights is not None
    assert {tuple(e): w for e, w in zip(read.edges.tolist(), read.weights, strict=True)} == {
        e.tuple: e["weight"] for e in graph.es
    }
    assert read.attributes["title"] == "tïtle"
    assert read.node_attributes["kind"][11] == "k11"


def test_defaults_fill_what_is_not_there_and_late_edges_find_their_nodes(tmp_path: Path) -> None:
    (tmp_path / "a.graphml").write_text(
        f"""{HEAD}<key id="k" for="node" attr.name="colour" attr.type="string"><default>blue</default></key>
        <key id="y" for="node" yfiles.type="nodegraphics"/>
        <key id="w" for="edge" attr.name="weight" attr.type="int"><default>1</default></key>
        <graph edgedefault="directed"><desc>about <b>it</b></desc>
        <edge source="x" target="y" directed="false"/><edge source="y" target="z" directed="false">
        <data key="w"> 7 </data></edge>
        <node id="x"><data key="k">red</data><data key="y"><z:Box xmlns:z="u">t</z:Box></data></node>
        <node id="y"/><node id="z"/></graph></graphml>"""
    )

    (read,) = read_graphs(tmp_path / "a.graphml")

    assert read.names == ("x", "y", "z")
    assert dict(read.node_attributes) == {"colour": ["red", "blue", "blue"]}
    assert read.weights is not None
    assert read.weights.tolist() == [1, 7]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", "no-graphs"),
        ("<html/>", "expected '<graphml>'"),
        (HEAD, "line 1: not valid XML"),
        (f"{HEAD}<graph edgedefault='undirected'><node id='0'/>", "not valid XML"),
        (f"{HEAD}</graphml>", "no-graphs"),
        (f"{HEAD}\xff</graphml>".encode("latin-1"), "not valid XML"),
        ("<?xml version='1.0' encoding='no-such'?><graphml/>", "not valid XML"),
        (f"<!DOCTYPE g [<!ENTITY a 'b'>]>{HEAD}</graphml>", "document type"),
        ("<!DOCTYPE g SYSTEM 'file:///etc/hostname'><graphml/>", "document type"),
        (f"{HEAD}<graph><node/></graph></graphml>", "a node without 'id'"),
        (f"{HEAD}<graph><node id='a'/><node id='a'/></graph></graphml>", "two nodes have the id 'a'"),
        (f"{HEAD}<graph><node id='a'/><edge source='a'/></graph></graphml>", "without 'source' or 'target'"),
        (f"{HEAD}<graph><node id='a'/><edge source='a' target='b'/></graph></graphml>", "'b', an unknown node"),
        (
            f"{HEAD}<graph><node id='a'/><edge source='a' target='a'/></graph></graphml>",
            "needs-simplify",
        ),
        (
            f"{HEAD}<graph edgedefault='directed'><node id='a'/><node id='b'/><edge source='a' target='b'/></graph>"
            "</graphml>",
            "needs-simplify",
        ),
        (
            f"{HEAD}<graph><node id='a'/><node id='b'/><edge source='a' target='b' directed='true'/></graph></graphml>",
            "needs-simplify",
        ),
        (
            f"{HEAD}<graph><node id='a'/><node id='b'/><edge source='a' target='b'/><edge source='b' target='a'/>"
            "</graph></graphml>",
            "needs-simplify",
        ),
        (f"{HEAD}<graph edgedefault='sideways'/></graphml>", "edgedefault is 'sideways'"),
        (f"{HEAD}<x><node id='a'><data key='k'/></node></x></graphml>", "'<node>' within '<x>'"),
        (f"{HEAD}<graph><hyperedge/></graph></graphml>", "hyperedge"),
        (f"{HEAD}<graph><node id='a'><port name='p'/></node></graph></graphml>", "port"),
        (f"{HEAD}<graph><node id='a'><graph/></node></graph></graphml>", "child of '<graphml>'"),
        (f"{HEAD}<graph><data key='k'>1</data></graph></graphml>", "'k' is not declared"),
        (f"{HEAD}<graph><key id='k' attr.name='x'/></graph></graphml>", "'<key>' within '<graph>'"),
        (f"{HEAD}<key id='k' attr.name='x' attr.type='colour'/></graphml>", "attribute type 'colour'"),
        (
            f"{HEAD}<key id='k' attr.name='x' attr.type='int'/><graph><data key='k'>one</data></graph></graphml>",
            "'x' is 'one'",
        ),
        (
            f"{HEAD}<key id='w' attr.name='weight' attr.type='double'/><graph><node id='a'/><node id='b'/>"
            "<edge source='a' target='b'><data key='w'>nan</data></edge></graph></graphml>",
            "weight nan",
        ),
        (
            f"{HEAD}<key id='f' attr.name='features'/><graph/><graph><node id='a'><data key='f'>json:[Infinity]</data>"
            "</node></graph></graphml>",
            "graph 1 .*node 'a' has feature inf",
        ),
    ],
)
def test_invalid_files_are_refused_in_one_line(body: str | bytes, expected: str, tmp_path: Path) -> None:
    assert_refused(tmp_path / "bad.graphml", expected, body)


def test_simplify_drops_directions_loops_and_repeats(tmp_path: Path) -> None:
    graph = nx.MultiDiGraph([("a", "b"), ("b", "a"), ("a", "a"), ("c", "a"), ("c", "a")])
    for i, (_, _, data) in enumerate(graph.edges(data=True)):
        data["weight"] = i
    nx.write_graphml(graph, tmp_path / "a.graphml")

    (read,) = read_graphs(tmp_path / "a.graphml", simplify=True)

    assert read.names == ("a", "b", "c")
    assert read.edges.tolist() == [[0, 1], [0, 2]]
    assert read.weights is not None
    assert len(read.weights) == 2


def test_a_large_graph_goes_out_in_pieces_and_is_the_same(tmp_path: Path) -> None:
    nodes = 40_000
    graph = SimpleGraph(
        nodes,
        np.stack([np.arange(nodes - 1), np.arange(1, nodes)], axis=1).astype(np.int32),
        node_attributes={"late": [None] * (nodes - 1) + [1]},
    )
    write_graphs([graph], tmp_path / "a.graphml")

    (read,) = read_graphs(tmp_path / "a.graphml")

    assert_same(graph, read)
    assert (tmp_path / "a.graphml").read_text().index("<key") < (tmp_path / "a.graphml").read_text().index("<graph id")
