import io
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphite_gen.graph import SimpleGraph
from graphite_gen.io import FORMATS, read_graphs, write_graphs
from graphite_gen.records import Provenance

from ..evaluation.graphs import small_graphs
from .graphs import (
    assert_kept,
    assert_not_written,
    assert_refused,
    assert_same,
    assert_same_edges,
    rich_graphs,
    same,
)

RICH = ["graphml", "h5", "jsonl", "gml"]
TEXTS = [name for name in FORMATS if name != "h5"]


@pytest.mark.parametrize("format", [*RICH, "g6", "s6"])
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_everything_a_graph_carries_comes_back(format: str, data: st.DataObject) -> None:
    graphs = data.draw(st.lists(rich_graphs() if format in RICH else small_graphs(0, 12), min_size=1, max_size=3))
    with TemporaryDirectory() as folder:
        assert_kept(graphs, Path(folder) / f"graphs.{format}")
        assert [path.name for path in Path(folder).iterdir()] == [f"graphs.{format}"]


@given(graph=rich_graphs())
@settings(max_examples=80, deadline=None)
def test_edge_lists_keep_names_and_what_edges_carry(graph: SimpleGraph) -> None:
    with TemporaryDirectory() as folder:
        write_graphs([graph], Path(folder) / "a.edgelist")
        (back,) = read_graphs(Path(folder) / "a.edgelist")

    # Nothing in the file tells a number from the text of it.
    names = tuple(map(str, graph.names or range(graph.nodes)))
    if sorted(names) != sorted(map(str, range(graph.nodes))):
        assert tuple(map(str, back.names or ())) == names
        kept = replace(graph, features=None, names=names, node_attributes={}, attributes={})
        assert_same(kept, replace(back, names=names))
    else:
        assert graph.directed == back.directed


@pytest.mark.parametrize("format", TEXTS)
def test_gzip_and_pipes_hold_the_same_every_time(format: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, out = SimpleGraph.from_pairs(5, [(0, 1), (3, 4)]), io.TextIOWrapper(io.BytesIO())
    files = [tmp_path / f"{name}.{format}.gz" for name in "ab"]
    for file in files:
        write_graphs([graph], file)
    monkeypatch.setattr(sys, "stdout", out)
    write_graphs([graph], "-", format=format)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(out.buffer.getvalue())))

    for source in (read_graphs(files[0]), read_graphs("-", format=format)):
        assert_same_edges(graph, *source)
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("first", RICH)
@pytest.mark.parametrize("second", RICH)
def test_provenance_and_splits_come_back_also_after_conversion(first: str, second: str, tmp_path: Path) -> None:
    provenance = Provenance("barabasi", {"m": 4, "sizes": [10, 20]}, 2**40, "generate", "größe")
    graph, splits = SimpleGraph.from_pairs(3, [(0, 1)]), ["train", "test"]
    graphs = [replace(graph, attributes={"split": split}) for split in splits]
    write_graphs(graphs, tmp_path / f"a.{first}", provenance=provenance)

    with read_graphs(tmp_path / f"a.{first}") as reader:
        assert reader.provenance == provenance
        assert reader.format == first
        write_graphs((graph for graph in reader), tmp_path / f"b.{second}")
    converted = read_graphs(tmp_path / f"b.{second}")

    assert converted.provenance == provenance
    found = [(graph.attributes["split"], graph.attributes["family"]) for graph in converted]
    assert found == [(split, "barabasi") for split in splits]


GRAPH = SimpleGraph(
    3,
    np.array([[0, 1], [1, 2]], np.int32),
    np.array([0.5, 1e-300]),
    names=("ä<&>\"'", "b", "c\nd"),
    node_attributes={"size": [1, None, 3], "colour": ["röd &amp;", "", " x "]},
    attributes={"title": "ünï"},
)
NETWORKX: dict[str, Callable[[Path], nx.Graph]] = {
    "graphml": nx.read_graphml,
    "gml": nx.read_gml,
    "jsonl": lambda path: nx.node_link_graph(json.loads(path.read_text().splitlines()[-1]), edges="edges"),
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("format", "kinds"), [("graphml", [True, 2]), ("gml", ["x", 2]), ("jsonl", [True, [2]])])
def test_networkx_opens_what_we_write(format: str, kinds: list[Any], directed: bool, tmp_path: Path) -> None:
    graph, others = replace(GRAPH, edge_attributes={"kind": kinds}), []
    if directed:
        graph = replace(graph, edges=np.array([[1, 0], [2, 1]], np.int32), directed=True)
    if format == "jsonl":
        others = [SimpleGraph.from_pairs(1, [])]
        graph = replace(graph, features=np.array([[1, 2], [3, 4], [5, 6]], np.float32), names=("ä", 7, "c"))
    write_graphs([*others, graph], tmp_path / f"a.{format}")

    other = NETWORKX[format](tmp_path / f"a.{format}")
    for default in ("node_default", "edge_default"):
        other.graph.pop(default, None)

    assert_same(graph, SimpleGraph.from_networkx(other))


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@pytest.mark.parametrize(
    ("format", "edge"), [("graphml", {"flag": True}), ("gml", {"tags": [1, {"a": 1}], "one": [5]})]
)
def test_what_networkx_writes_is_read(kind: type[nx.Graph], format: str, edge: dict[str, Any], tmp_path: Path) -> None:
    graph = kind(nx.karate_club_graph(), note='a "b" <c> & ç')
    graph.remove_edges_from([(1, 0), (33, 32)] if kind is nx.DiGraph else [])
    graph.add_edge("alone", 0, weight=3, **edge)
    getattr(nx, f"write_{format}")(graph, tmp_path / f"a.{format}")

    (read,) = read_graphs(tmp_path / f"a.{format}")

    assert_same(SimpleGraph.from_networkx(nx.relabel_nodes(graph, str)), read)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@pytest.mark.parametrize("key", ["edges", "links"])
def test_node_links_of_networkx_are_read(key: str, kind: type[nx.Graph], tmp_path: Path) -> None:
    graph = kind(nx.grid_2d_graph(3, 3))
    graph.remove_edges_from([((0, 0), (0, 1))] if kind is nx.DiGraph else [])
    graph.graph["note"] = "x"
    nx.set_edge_attributes(graph, 2.5, "weight")
    (tmp_path / "a.jsonl").write_text(json.dumps(nx.node_link_data(graph, edges=key)) + "\n\n")

    (read,) = read_graphs(tmp_path / "a.jsonl")

    assert_same(SimpleGraph.from_networkx(graph), read)


@pytest.mark.parametrize(("format", "name"), [("graphml", "GraphML"), ("gml", "GML")])
def test_igraph_opens_what_we_write_and_what_it_writes_is_read(format: str, name: str, tmp_path: Path) -> None:
    write_graphs([GRAPH], tmp_path / f"a.{format}")

    graph = getattr(igraph.Graph, f"Read_{name}")(str(tmp_path / f"a.{format}"))
    assert graph.get_edgelist() == [(0, 1), (1, 2)]
    assert graph.es["weight"] == [0.5, 1e-300]
    assert graph.vs["colour"][1:] == ["", " x "]

    graph = igraph.Graph.Erdos_Renyi(12, 0.3)
    graph["title"] = "title"
    graph.vs["kind"] = ['a "q" & b'] * 12
    graph.es["weight"] = np.arange(graph.ecount(), dtype=float)
    getattr(graph, f"write_{format}")(str(tmp_path / f"b.{format}"))
    (read,) = read_graphs(tmp_path / f"b.{format}")
    assert read.names is None
    assert {tuple(e): w for e, w in zip(read.edges.tolist(), read.weights, strict=True)} == {
        e.tuple: e["weight"] for e in graph.es
    }
    assert read.node_attributes["kind"] == ['a "q" & b'] * 12
    assert read.attributes["title"] == "title"


DIGRAPH = SimpleGraph(
    4,
    np.array([[0, 1], [1, 0], [2, 1], [2, 3]], np.int32),
    np.array([0.5, 2.0, -1.0, 1.5]),
    np.arange(8, dtype=np.float32).reshape(4, 2),
    ("ann", "bob", "cy", "dee"),
    {"role": ["boss", None, "clerk", "clerk"]},
    {"kind": ["mail", "call", "mail", None]},
    {"split": "train"},
    directed=True,
)
RING = SimpleGraph.from_pairs(3, [(0, 1), (1, 2), (0, 2)])


@pytest.mark.parametrize("format", [*RICH, "csv", "tsv"])
def test_a_file_may_mix_directed_and_undirected_graphs(format: str, tmp_path: Path) -> None:
    graphs = [RING, DIGRAPH, SimpleGraph.from_pairs(2, [], directed=True), RING]
    write_graphs(graphs, tmp_path / f"a.{format}")

    back = list(read_graphs(tmp_path / f"a.{format}"))

    bare = replace(DIGRAPH, features=None, node_attributes={})
    for graph, read in zip([RING, DIGRAPH if format in RICH else bare, *graphs[2:]], back, strict=True):
        assert_same(graph, read)
    assert_refused(
        tmp_path / f"a.{format}", "(graph 1|line 2).*: the graph is directed", reason="directed-graph", directed=False
    )
    assert_refused(tmp_path / f"a.{format}", "the graph is undirected; expected a directed graph", directed=True)
    dropped = list(read_graphs(tmp_path / f"a.{format}", simplify=True, directed=False))
    assert [graph.directed for graph in dropped] == [False] * 4
    assert [len(graph.edges) for graph in dropped] == [3, 3, 0, 3]


@pytest.mark.parametrize("format", [name for name in FORMATS if name not in ("g6", "s6")])
def test_directed_graphs_of_networkx_come_back_from_every_format_with_directions(format: str, tmp_path: Path) -> None:
    graph = DIGRAPH.to_networkx()
    write_graphs([graph], tmp_path / f"a.{format}")

    (back,) = read_graphs(tmp_path / f"a.{format}", directed=True).to_networkx()

    assert isinstance(back, nx.DiGraph)
    assert dict(back.edges) == dict(graph.edges)
    if format in RICH:
        assert nx.utils.graphs_equal(graph, back)


@pytest.mark.parametrize("format", ["g6", "s6"])
def test_formats_without_directions_refuse_directed_graphs(format: str, tmp_path: Path) -> None:
    assert_not_written(tmp_path / f"a.{format}", f"Graph 1 is directed.*'{format}' cannot store", RING, DIGRAPH)
    assert not list(tmp_path.iterdir())

    write_graphs([RING], tmp_path / f"a.{format}")
    assert_refused(tmp_path / f"a.{format}", "the graph is undirected", directed=True)


@pytest.mark.parametrize("name", ["GraphML", "GML"])
def test_igraph_and_we_agree_on_directions(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{name.lower()}"
    write_graphs([DIGRAPH], path)
    read = getattr(igraph.Graph, f"Read_{name}")(str(path))
    assert read.is_directed()
    assert read.get_edgelist() == [tuple(arc) for arc in DIGRAPH.edges.tolist()]

    getattr(igraph.Graph(3, [(2, 0), (0, 1), (1, 0)], directed=True), f"write_{name.lower()}")(str(path))
    assert_same_edges(SimpleGraph.from_pairs(3, [(2, 0), (0, 1), (1, 0)], True), *read_graphs(path))


def test_simplify_keeps_directions_if_directed_graphs_are_wanted(tmp_path: Path) -> None:
    graph = nx.MultiDiGraph([(0, 1), (0, 1), (1, 0), (2, 2), (2, 1)])
    nx.write_graphml(graph, tmp_path / "a.graphml")

    (kept,) = read_graphs(tmp_path / "a.graphml", simplify=True, directed=True)
    (dropped,) = read_graphs(tmp_path / "a.graphml", simplify=True)

    assert_same_edges(SimpleGraph.from_pairs(3, [(0, 1), (1, 0), (2, 1)], True), kept)
    assert_same_edges(SimpleGraph.from_pairs(3, [(0, 1), (1, 2)]), dropped)


NAMES: list[tuple[Any, ...]] = [
    *(("0", "1", "2"), ("7", "8", "9"), ("n0", "n1", "n2"), ("2", "0", "1")),
    *(("a", 7, "8"), (10**30, -1, "x"), (2, 0, 1)),
]


@pytest.mark.parametrize("names", NAMES)
def test_other_programs_see_names_as_they_are_and_we_read_them_back(names: tuple[Any, ...], tmp_path: Path) -> None:
    graph = SimpleGraph.from_pairs(3, [(0, 1), (1, 2)])
    graph = replace(graph, names=names, attributes={"integerNames": [1], "otherAttributes": "mine"})
    plain = list(map(str, names))
    for format in ("graphml", "gml", "edgelist"):
        write_graphs([graph], tmp_path / f"a.{format}")

    assert list(nx.read_graphml(tmp_path / "a.graphml")) == plain
    assert list(nx.read_gml(tmp_path / "a.gml")) == plain
    assert set(nx.read_edgelist(tmp_path / "a.edgelist")) == set(plain)
    assert igraph.Graph.Read_GraphML(str(tmp_path / "a.graphml")).vs["id"] == plain
    assert [str(label) for label in igraph.Graph.Read_GML(str(tmp_path / "a.gml")).vs["label"]] == plain
    for format in ("graphml", "gml"):
        (back,) = read_graphs(tmp_path / f"a.{format}")
        assert_same(graph, back)
        assert back.names == names


@pytest.mark.parametrize("names", [("a", "b", "c"), (7, 8, 9), None, ((0, 1), 2.5, "x")])
@pytest.mark.parametrize("format", ["graphml", "gml"])
def test_plain_names_add_nothing_to_the_file(format: str, names: tuple[Any, ...] | None, tmp_path: Path) -> None:
    write_graphs([replace(SimpleGraph.from_pairs(3, [(0, 1)]), names=names)], tmp_path / f"a.{format}")

    assert "integerNames" not in (tmp_path / f"a.{format}").read_text()


@pytest.mark.parametrize("format", ["graphml", "gml", "edgelist"])
def test_a_number_and_its_text_are_two_nodes(format: str, tmp_path: Path) -> None:
    write_graphs([replace(SimpleGraph.from_pairs(2, [(0, 1)]), names=(0, "0"))], tmp_path / f"a.{format}")

    (back,) = read_graphs(tmp_path / f"a.{format}")

    assert same(list(back.names or ()), [0, "0"])


@pytest.mark.parametrize("text", ["json:{} json:[1] \njson:[1,1] b\n", "json:7 json:07\njson:[7] json:[7.0]\n"])
def test_names_that_cannot_be_names_stay_texts(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.edgelist").write_text(text)

    assert next(read_graphs(tmp_path / "a.edgelist")).names == tuple(text.split())
