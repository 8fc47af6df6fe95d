from dataclasses import replace
from pathlib import Path

import networkx as nx
import pytest
from networkx.readwrite.graphml import GraphMLReader
from tiny import path

from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs, write_graphs
from graphite_gen.records import Provenance

from .graphs import assert_kept, assert_refused, assert_same_edges

HEAD = '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'


def test_networkx_opens_every_graph_with_its_provenance(tmp_path: Path) -> None:
    graphs = [SimpleGraph.from_networkx(nx.gnp_random_graph(n, 0.4, seed=n)) for n in (0, 1, 2, 9, 15, 70)]
    write_graphs(graphs, tmp_path / "a.graphml", provenance=Provenance("ego", {"m": 2}, 3))

    opened = list(GraphMLReader(node_type=int)(path=tmp_path / "a.graphml"))

    for graph, other in zip(graphs, opened, strict=True):
        assert_same_edges(graph, SimpleGraph.from_networkx(other))
        assert other.graph["family"] == "ego"
        assert other.graph["seed"] == 3


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
    assert read.weights.tolist() == [1, 7]


def xml(body: str, head: str = "", default: str = "undirected") -> str:
    return f"{HEAD}{head}<graph edgedefault='{default}'>{body}</graph></graphml>"


TWO = "<node id='a'/><node id='b'/>"
WEIGHT = "<key id='w' attr.name='weight' attr.type='double'/>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<html/>", "expected '<graphml>'"),
        (HEAD, "line 1: not valid XML"),
        (xml(TWO)[:-20], "not valid XML"),
        (f"{HEAD}</graphml>", "no-graphs"),
        (f"{HEAD}\xff</graphml>".encode("latin-1"), "not valid XML"),
        ("<?xml version='1.0' encoding='no-such'?><graphml/>", "not valid XML"),
        (f"<!DOCTYPE g [<!ENTITY a 'b'>]>{HEAD}</graphml>", "document type"),
        ("<!DOCTYPE g SYSTEM 'file:///etc/hostname'><graphml/>", "document type"),
        (xml("<node/>"), "a node without 'id'"),
        (xml("<node id='a'/><node id='a'/>"), "two nodes have the id 'a'"),
        (xml("<node id='a'/><edge source='a'/>"), "without 'source' or 'target'"),
        (xml("<node id='a'/><edge source='a' target='b'/>"), "unknown node, 'b'"),
        (xml("<node id='a'/><edge source='a' target='a'/>"), "needs-simplify"),
        (xml(TWO + 2 * "<edge source='a' target='b'/>", default="directed"), "the edge 'a' -> 'b' is repeated"),
        (
            xml(f"{TWO}<edge source='a' target='b' directed='true'/><edge source='b' target='a'/>"),
            "graph 0 .*some edges are directed and others are not",
        ),
        (xml(f"{TWO}<edge source='a' target='b'/><edge source='b' target='a'/>"), "needs-simplify"),
        (xml("", default="sideways"), "edgedefault is 'sideways'"),
        (f"{HEAD}<x><node id='a'><data key='k'/></node></x></graphml>", "'<node>' within '<x>'"),
        (xml("<hyperedge/>"), "hyperedge"),
        (xml("<node id='a'><port name='p'/></node>"), "port"),
        (xml("<node id='a'><graph/></node>"), "child of '<graphml>'"),
        (xml("<data key='k'>1</data>"), "'k' is not declared"),
        (xml("<key id='k' attr.name='x'/>"), "'<key>' within '<graph>'"),
        (xml("", "<key id='k' attr.name='x' attr.type='colour'/>"), "attribute type 'colour'"),
        (xml("<data key='k'>one</data>", "<key id='k' attr.name='x' attr.type='int'/>"), "'x' is 'one'"),
        (xml("<data key='k'>2</data>", "<key id='k' attr.name='x' attr.type='boolean'/>"), "'x' is '2'"),
        (xml(f"{TWO}<edge source='a' target='b'><data key='w'>nan</data></edge>", WEIGHT), "weight nan"),
        (
            xml(
                "<node id='a'><data key='f'>json:[Infinity]</data></node>", "<key id='f' attr.name='features'/><graph/>"
            ),
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
    assert len(read.weights) == 2


def test_a_large_graph_goes_out_in_pieces_and_is_the_same(tmp_path: Path) -> None:
    graph = replace(path(40_000), node_attributes={"late": [None] * 39_999 + [1]})

    assert_kept([graph], tmp_path / "a.graphml")
    text = (tmp_path / "a.graphml").read_text()
    assert text.index("<key") < text.index("<graph id")
