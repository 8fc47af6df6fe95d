from pathlib import Path

import igraph
import networkx as nx
import pandas as pd
import pytest

import graphite_gen as gg
from graphite_gen.errors import ConfigError, FormatError
from graphite_gen.graph import SimpleGraph


def test_a_table_has_a_graph_for_each_value_of_a_column() -> None:
    frame = pd.DataFrame(
        {"id": [1, 2, 1], "x": ["a", "b", "b"], "y": ["b", "c", "c"], "weight": [0.5, 1.5, 2.5], "source": ["s"] * 3}
    )

    graphs = gg.from_pandas(frame, "x", "y", graph="id")

    assert [sorted(graph.edges(data="weight")) for graph in graphs] == [
        [("a", "b", 0.5), ("b", "c", 2.5)],
        [("b", "c", 1.5)],
    ]
    assert [graph.graph["name"] for graph in graphs] == [1, 2]
    assert graphs[0].edges["a", "b"]["source"] == "s"


def test_graphs_come_back_from_a_table_and_from_its_file(tmp_path: Path) -> None:
    graphs = [nx.path_graph(3), nx.empty_graph(2), nx.Graph([("a", "b", {"kind": "road"})])]

    frame = gg.to_pandas(graphs)
    frame.to_csv(tmp_path / "a.csv")
    gg.write_graphs(graphs[:2], tmp_path / "b.csv")

    assert list(frame.columns) == ["graph", "source", "target", "kind"]
    for back in (
        gg.from_pandas(frame),
        [graph.to_networkx() for graph in gg.read_graphs(tmp_path / "a.csv")],
        gg.from_pandas(pd.read_csv(tmp_path / "b.csv")),
    ):
        for graph, other in zip(graphs, back, strict=False):
            assert nx.utils.graphs_equal(graph, other)


def test_rows_are_arcs_if_asked_for_as_in_networkx() -> None:
    frame = pd.DataFrame({"a": ["x", "y", "y"], "b": ["y", "x", "z"], "weight": [1.0, 2.0, 3.0]})

    (graph,) = gg.from_pandas(frame, "a", "b", directed=True)
    table = gg.to_pandas([graph, nx.path_graph(2)])

    assert nx.utils.graphs_equal(graph, nx.from_pandas_edgelist(frame, "a", "b", "weight", create_using=nx.DiGraph))
    assert table["directed"].fillna(0).tolist() == [1, 1, 1, 0]
    assert [type(each) for each in gg.from_pandas(table)] == [nx.DiGraph, nx.Graph]
    with pytest.raises(FormatError, match="repeated"):
        gg.from_pandas(frame, "a", "b")
    with pytest.raises(FormatError, match="is undirected; expected a directed graph"):
        gg.from_pandas(frame.assign(directed=0), "a", "b", directed=True)


def test_wrong_tables_are_refused() -> None:
    frame = pd.DataFrame({"a": [0, 0], "b": [1, 1]})
    with pytest.raises(ConfigError, match="no column 'source'; it has a, b"):
        gg.from_pandas(frame)
    with pytest.raises(FormatError, match="the edge 0 - 1 is repeated"):
        gg.from_pandas(frame, "a", "b")
    assert gg.from_pandas(frame, "a", "b", simplify=True)[0].size() == 1
    with pytest.raises(ConfigError, match="the same name"):
        gg.from_pandas(pd.DataFrame([[0, 1, 2]], columns=["source", "target", "source"]))


def test_graphs_of_a_table_may_have_names_of_any_type_and_are_in_order_of_appearance() -> None:
    frame = pd.DataFrame({"graph": ["b", 7, "b", None], "source": [0, 0, 1, 0], "target": [1, 1, 2, 1]})

    graphs = gg.from_pandas(frame)

    assert [(graph.graph.get("name"), graph.size()) for graph in graphs] == [("b", 2), (7, 1), (None, 1)]


def test_igraph_graphs_are_taken_and_given() -> None:
    club = igraph.Graph.Famous("Zachary")
    club.vs["name"] = [f"n{node}" for node in range(34)]
    club.es["weight"] = 2.0

    own = SimpleGraph.from_igraph(club)
    back = own.to_igraph()

    assert own.names == tuple(club.vs["name"])
    assert back.isomorphic(club)
    assert (back.vs["name"], back.es["weight"]) == (club.vs["name"], club.es["weight"])
    assert gg.family("ego").contains(igraph.Graph.Star(5, center=0))
    assert SimpleGraph.from_igraph(igraph.Graph(3, [(0, 2)])).edges.tolist() == [[0, 2]]
    arcs = igraph.Graph(3, [(2, 0), (0, 2), (1, 0)], directed=True)
    assert SimpleGraph.from_igraph(arcs).edges.tolist() == [[0, 2], [1, 0], [2, 0]]
    assert SimpleGraph.from_igraph(arcs).to_igraph().is_directed()
    club.vs["name"] = ["same"] * 34
    assert SimpleGraph.from_igraph(club).nodes == 34


def test_igraph_opens_each_file_of_a_folder(tmp_path: Path) -> None:
    graphs = gg.generate("ego", 3, (5, 8), 0)
    for format in ("graphml", "gml"):
        gg.write_graphs(graphs, tmp_path / format / f"{{index}}.{format}")

        for index, graph in enumerate(graphs):
            read = igraph.Graph.Load(str(tmp_path / format / f"{index}.{format}"))
            assert read.get_edgelist() == [tuple(edge) for edge in graph.edges.tolist()]
