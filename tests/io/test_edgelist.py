from collections.abc import Callable
from pathlib import Path

import igraph
import networkx as nx
import numpy as np
import pytest

from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs, write_graphs

from .graphs import assert_not_written, assert_refused, assert_same

GRAPH = SimpleGraph(
    4, np.array([[0, 1], [1, 3]], np.int32), np.array([0.5, 2.0]), edge_attributes={"kind": ["#1 'ä'", [1, None]]}
)


def write_with_igraph(graph: nx.Graph, path: Path) -> None:
    igraph.Graph.from_networkx(graph).write_edgelist(str(path))


def test_networkx_and_igraph_open_what_we_write(tmp_path: Path) -> None:
    ring = nx.cycle_graph(6)
    write_graphs([GRAPH], tmp_path / "a.edgelist")
    write_graphs([ring], tmp_path / "b.edgelist")

    assert dict(nx.read_edgelist(tmp_path / "a.edgelist", nodetype=int).edges) == dict(GRAPH.to_networkx().edges)
    assert igraph.Graph.Read_Edgelist(str(tmp_path / "b.edgelist"), directed=False).get_edgelist() == sorted(ring.edges)


@pytest.mark.parametrize("write", [nx.write_edgelist, nx.write_weighted_edgelist, write_with_igraph])
def test_what_networkx_and_igraph_write_is_read(write: Callable[[nx.Graph, Path], None], tmp_path: Path) -> None:
    graph = nx.karate_club_graph()
    write(graph, tmp_path / "a.edgelist")

    (read,) = read_graphs(tmp_path / "a.edgelist")

    wanted = SimpleGraph.from_networkx(graph)
    assert_same(SimpleGraph(34, wanted.edges, None if write is write_with_igraph else wanted.weights), read)


def test_directed_lists_are_those_of_networkx(tmp_path: Path) -> None:
    graph = nx.gnp_random_graph(9, 0.3, seed=1, directed=True)
    nx.set_edge_attributes(graph, {arc: float(k) for k, arc in enumerate(graph.edges)}, "weight")
    nx.write_weighted_edgelist(graph, tmp_path / "theirs.edgelist")
    write_graphs([graph], tmp_path / "ours.edgelist")

    for path, directed in ((tmp_path / "theirs.edgelist", True), (tmp_path / "ours.edgelist", None)):
        assert_same(SimpleGraph.from_networkx(graph), *read_graphs(path, directed=directed))
    opened = nx.read_edgelist(tmp_path / "ours.edgelist", nodetype=int, create_using=nx.DiGraph)
    assert dict(opened.edges) == dict(graph.edges)


@pytest.mark.parametrize(("comment", "directed"), [("Directed graph (each", True), ("Undirected graph: a.txt", False)])
def test_the_header_of_snap_says_whether_edges_are_directed(comment: str, directed: bool, tmp_path: Path) -> None:
    (tmp_path / "a.edgelist").write_text(f"# {comment}\n# Nodes: 3 Edges: 2\n2\t1\n1\t0\n# directed graph\n")

    (read,) = read_graphs(tmp_path / "a.edgelist")

    assert read.directed == directed
    assert_refused(tmp_path / "a.edgelist", "expected", directed=not directed)


def test_comments_names_and_lonely_nodes_are_understood(tmp_path: Path) -> None:
    (tmp_path / "a.edgelist").write_text("# by hand\n\nb a  # an edge\nc\n  a c {}\n")

    (read,) = read_graphs(tmp_path / "a.edgelist")

    assert read.names == ("b", "a", "c")
    assert read.edges.tolist() == [[0, 1], [1, 2]]
    assert read.weights is None


def test_more_than_one_graph_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    assert_not_written(tmp_path / "a.edgelist", "one graph", GRAPH, GRAPH)

    assert not list(tmp_path.iterdir())


def test_blank_lines_are_refused_and_literals_do_not_warn(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    assert_refused(tmp_path / "blank.edgelist", "no-graphs", b" \n\x1f\n")
    assert_refused(tmp_path / "doubtful.edgelist", "edge data", "0 1 {'a': 1or}\n")
    assert not recwarn.list
