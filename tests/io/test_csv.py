from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs, write_graphs

from .graphs import assert_refused, assert_same, rich_graphs

TABLE = "graph,source,target,weight,kind,split\na,x,y,0.5,road,train\na,y,z,2,,train\na,w,,,,train\nb,0,1,1,7,test\n"


def only(path: Path, text: str) -> SimpleGraph:
    path.write_text(text)
    (graph,) = read_graphs(path)

    return graph


def test_graphs_attributes_splits_and_isolated_nodes_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TABLE)

    first, second = read_graphs(tmp_path / "a.csv")

    assert first.names == ("x", "y", "z", "w")
    assert first.edges.tolist() == [[0, 1], [1, 2]]
    assert first.weights is not None
    assert first.weights.tolist() == [0.5, 2.0]
    assert first.edge_attributes == {"kind": ["road", None]}
    assert first.attributes == {"name": "a", "split": "train"}
    assert (second.names, second.edges.tolist(), second.edge_attributes) == (None, [[0, 1]], {"kind": [7]})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "From;To\na;b\nb;c\n"),
        ("a.tsv", "u\tv\na\tb\nb\tc\n"),
        ("a.csv", "\ufeff,source,target\n0,a,b\n1,b,c\n"),
        ("a.edgelist", "a,b\nb,c\n"),
        ("a.edgelist", "# by hand\n\na, b\nb, c\n"),
        ("a.edgelist", "source;target\na;b\nb;c\n"),
    ],
)
def test_separators_and_headers_are_recognised(name: str, text: str, tmp_path: Path) -> None:
    graph = only(tmp_path / name, text)

    assert (graph.names, graph.edges.tolist()) == (("a", "b", "c"), [[0, 1], [1, 2]])


def test_integers_need_no_header_and_the_third_column_is_the_weight(tmp_path: Path) -> None:
    graph = only(tmp_path / "a.csv", "0,1,2.5\n2,1,1\n")

    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.weights is not None
    assert graph.weights.tolist() == [2.5, 1.0]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.csv", "alice,bob\nbob,carol\n", "line 1: the columns are 'alice', 'bob'; expected a header with 'source'"),
        ("a.csv", "graph,source,target\na,0,1\nb,0,1\na,1,2\n", "graph a: its rows are not consecutive"),
        ("a.csv", "source,target\n0,1,2\n", "line 2: 3 values; the header has 2"),
        ("a.csv", "source,target\n,1\n", "line 2: an edge to '1' without a source"),
        ("a.csv", "source,target,x,x\n0,1,2,3\n", "two columns have the same name"),
        ("a.csv", "source,target\n0,0\n", "needs-simplify"),
        ("a.csv", "source,target,split\n0,1,json:{}\n0,1,json:{}\n", "repeated"),
        ("a.csv", "source,target,directed\n0,1,1\n1,2,0\n", "some edges are directed and others are not"),
        ("a.csv", "source,target,directed\n0,1,1\n0,1,1\n", "0 -> 1 is repeated"),
        ("a.csv", 'source,target\n0,"1\n', "not a row of a table"),
        ("a.edgelist", "a,b\nb c\n", "line 2: 'b c'; expected values separated as in the first line"),
        ("a.edgelist", "1,2 1,3\n", "line 1: '1,2 1,3'; expected values separated as in the first line"),
        ("a.edgelist", "a b\nb,c\n", "line 2: 'b,c'; expected nodes separated by white space"),
    ],
)
def test_what_is_no_edge_list_is_refused(name: str, text: str, problem: str, tmp_path: Path) -> None:
    assert_refused(tmp_path / name, problem, text)


@pytest.mark.parametrize("format", ["csv", "tsv"])
@given(graphs=st.lists(rich_graphs(), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_what_edges_carry_comes_back(format: str, graphs: list[SimpleGraph]) -> None:
    with TemporaryDirectory() as folder:
        write_graphs(graphs, Path(folder) / f"a.{format}")
        back = list(read_graphs(Path(folder) / f"a.{format}"))

    for graph, read in zip(graphs, back, strict=True):
        if graph.names is None:
            assert_same(replace(graph, features=None, node_attributes={}, attributes={}), read)
        else:
            # Named nodes are in order of appearance.
            assert sorted(map(repr, read.names or range(read.nodes))) == sorted(map(repr, graph.names))
            assert sorted(read.degrees()) == sorted(graph.degrees())
            assert read.directed == graph.directed


def test_names_keep_their_types_and_may_start_with_a_hash(tmp_path: Path) -> None:
    edges = [("#tag", "5"), ("5", 7), (7, 1.5)]
    write_graphs([nx.Graph(edges)], tmp_path / "a.csv")

    assert [set(graph.to_networkx().edges) for graph in read_graphs(tmp_path / "a.csv")] == [set(edges)]
    assert only(tmp_path / "b.csv", "source,target\n#cats,dogs\n# a comment\ndogs,#birds\n").names == (
        "#cats",
        "dogs",
        "#birds",
    )


@pytest.mark.parametrize(
    ("header", "value", "directed"),
    [
        *(("directed", "1", True), ("Directed", "TRUE", True), ("directed", "1.0", True), ("directed", "0", False)),
        *(("Type", "Directed", True), ("type", "undirected", False)),
    ],
)
def test_a_column_says_whether_edges_are_directed(header: str, value: str, directed: bool, tmp_path: Path) -> None:
    graph = only(tmp_path / "a.csv", f"Source,Target,{header}\n1,0,{value}\n2,1,{value}\n")

    assert (graph.directed, graph.edge_attributes) == (directed, {})
    assert graph.edges.tolist() == ([[1, 0], [2, 1]] if directed else [[0, 1], [1, 2]])
    assert not only(tmp_path / "b.csv", f"source,target,{header}\n1,0,one way\n").directed


@pytest.mark.parametrize("directed", [False, True])
def test_edge_attributes_called_like_that_column_come_back(directed: bool, tmp_path: Path) -> None:
    columns = {"type": ["Directed", "Directed"], "directed": [0, 1], "split": ["train", "x"], "Type": ["a", "b"]}
    graph = SimpleGraph.from_pairs(3, [(0, 1), (1, 2)], directed)
    graph = replace(graph, edge_attributes=columns, attributes={"split": "test"})
    write_graphs([graph], tmp_path / "a.csv")

    (back,) = read_graphs(tmp_path / "a.csv")

    assert_same(graph, back)


def test_tables_beside_graphs_are_not_read_from_a_folder(tmp_path: Path) -> None:
    write_graphs([nx.path_graph(3)], tmp_path / "a.graphml")
    (tmp_path / "labels.csv").write_text("node,label\n0,a\n")

    assert [graph.nodes for graph in read_graphs(tmp_path)] == [3]

    write_graphs([nx.path_graph(2), nx.path_graph(4)], tmp_path / "tables" / "{index}.csv")
    assert [graph.nodes for graph in read_graphs(tmp_path / "tables")] == [2, 4]


def test_a_graph_without_nodes_and_one_without_edges_are_kept(tmp_path: Path) -> None:
    write_graphs([SimpleGraph(0, np.empty((0, 2), np.int32)), nx.empty_graph(2)], tmp_path / "a.csv")

    assert [graph.nodes for graph in read_graphs(tmp_path / "a.csv")] == [0, 2]
