import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import random_graph

from graphite_gen.errors import DatasetError, GraphiteError
from graphite_gen.graph import SimpleGraph, as_simple_graph, columns_of, take_features, take_weights
from graphite_gen.io import read_graphs

scalars = st.one_of(st.integers(-5, 5), st.floats(allow_nan=False), st.text(max_size=3), st.booleans())
numbers = st.one_of(st.integers(-5, 5), st.floats(allow_nan=False, allow_infinity=False))
attributes = st.dictionaries(st.sampled_from(["colour", "size", "features", "label"]), scalars, max_size=3)


@st.composite
def networkx_graphs(draw: st.DrawFn) -> nx.Graph:
    """Graphs, undirected or directed, with names, attributes, and sometimes weights and features."""
    nodes = draw(st.lists(st.one_of(st.integers(-3, 9), st.text(max_size=2)), unique_by=str, max_size=6))
    graph = draw(st.sampled_from([nx.Graph, nx.DiGraph]))()
    graph.graph.update(draw(st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), scalars, max_size=2)))
    for node in nodes:
        graph.add_node(node, **draw(attributes))
    pairs = [(u, v) for u in nodes for v in nodes if u != v]
    for u, v in draw(st.lists(st.sampled_from(pairs), max_size=8)) if pairs else []:
        graph.add_edge(u, v, **draw(attributes), **draw(st.dictionaries(st.just("weight"), numbers)))
    if draw(st.booleans()):
        nx.set_edge_attributes(graph, 1.5, "weight")
    if draw(st.booleans()):
        nx.set_node_attributes(graph, {node: [float(k), 0.5] for k, node in enumerate(nodes)}, "features")

    return graph


def contents(graph: nx.Graph) -> tuple[Any, ...]:
    ends = tuple if graph.is_directed() else frozenset

    return dict(graph.nodes(data=True)), {ends(pair): data for pair, data in graph.edges.items()}, graph.graph


@settings(deadline=None)
@given(networkx_graphs())
def test_conversion_to_and_from_networkx_is_lossless(graph: nx.Graph) -> None:
    simple = SimpleGraph.from_networkx(graph)

    assert list(simple.to_networkx()) == list(graph)
    assert contents(simple.to_networkx()) == contents(graph)
    assert simple.directed == graph.is_directed()
    assert simple.directed or (simple.edges[:, 0] < simple.edges[:, 1]).all()
    assert simple.edges.tolist() == sorted(simple.edges.tolist())
    skeleton = simple.skeleton()
    assert nx.utils.graphs_equal(nx.Graph(skeleton.to_networkx().edges), nx.Graph(graph.to_undirected().edges))
    assert dict(skeleton.to_networkx().nodes(data=True)) == dict(graph.nodes(data=True))
    assert (skeleton.weights, skeleton.edge_attributes, skeleton.directed) == (None, {}, False)
    assert (skeleton is simple) == (not graph.is_directed() and simple.weights is None and not simple.edge_attributes)


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.MultiGraph([(0, 1), (0, 1)]), r"multigraph.* networkx\.Graph\(graph\)"),
        (nx.MultiDiGraph([(0, 1)]), r"multigraph.* networkx\.DiGraph\(graph\)"),
        (nx.DiGraph([(0, 1), ("a", "a")]), "Node 'a' has a self-loop"),
        (nx.Graph([(0, 1), ("a", "a")]), "Node 'a' has a self-loop"),
        (nx.Graph([(0, 1, {"weight": float("nan")})]), "not a finite"),
    ],
)
def test_graphs_that_are_not_simple_are_refused(graph: nx.Graph, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        SimpleGraph.from_networkx(graph)


@settings(deadline=None)
@given(networkx_graphs(), st.randoms())
def test_directed_graphs_are_arcs_in_order_and_their_skeleton_is_undirected(graph: nx.Graph, rng: Random) -> None:
    arcs = graph.to_directed()
    arcs.remove_edges_from([arc for arc in list(arcs.edges) if rng.random() < 0.5])
    for number, data in enumerate(arcs.edges.values()):
        data["number"] = number
    simple = SimpleGraph.from_networkx(arcs)
    back, skeleton = simple.to_networkx(), simple.skeleton()

    assert simple.directed
    assert simple.edges.tolist() == sorted(simple.edges.tolist())
    assert (list(back), dict(back.nodes), back.edges) == (list(arcs), dict(arcs.nodes), arcs.edges)
    assert {arc: back.edges[arc] for arc in back.edges} == {arc: arcs.edges[arc] for arc in arcs.edges}
    assert set(map(frozenset, skeleton.to_networkx().edges)) == set(map(frozenset, arcs.edges))
    assert skeleton.edges.tolist() == sorted(skeleton.edges.tolist())
    assert (skeleton.edges[:, 0] < skeleton.edges[:, 1]).all()
    assert (skeleton.directed, skeleton.weights, skeleton.edge_attributes) == (False, None, {})
    assert dict(skeleton.to_networkx().nodes) == dict(arcs.nodes)
    assert skeleton.skeleton() is skeleton


@given(seed=st.integers(0, 100), order=st.permutations(range(6)), directed=st.booleans())
def test_renumbering_keeps_node_and_edge_data(seed: int, order: list[int], directed: bool) -> None:
    graph = random_graph(6, seed, weighted=True, features=2)
    columns = {"age": list(range(6))}, {"number": list(range(len(graph.edges)))}
    about = (tuple("abcdef"), *columns, {"family": "er"}, directed)
    named = SimpleGraph(6, graph.edges, graph.weights, graph.features, *about)

    turned, plain = named.permuted(order), SimpleGraph(6, graph.edges).permuted(order)

    assert all(turned.names[order[i]] == named.names[i] for i in range(6))
    assert np.array_equal(turned.features[order], named.features)
    assert contents(turned.to_networkx()) == contents(named.to_networkx())
    assert turned.edges.tolist() == sorted(turned.edges.tolist())
    assert (plain.weights, plain.features, plain.names) == (None, None, None)


@pytest.mark.parametrize(("nodes", "density"), [(0, 0.0), (1, 0.0), (3, 0.0), (6, 0.3), (6, 0.5), (6, 1.0)])
def test_matrix_pairs_and_degrees_agree_with_networkx(nodes: int, density: float) -> None:
    graph = random_graph(nodes, 0, density)
    other = graph.to_networkx()

    assert np.array_equal(graph.adjacency(), nx.to_numpy_array(other) > 0)
    assert graph.degrees().tolist() == [other.degree(i) for i in range(nodes)]
    for same in (
        SimpleGraph.from_adjacency(nx.to_numpy_array(other)),
        SimpleGraph.from_pairs(nodes, [(v, u) for u, v in reversed(list(other.edges))]),
        as_simple_graph(other),
        graph.permuted(range(nodes)),
    ):
        assert same.nodes == nodes
        assert same.edges.shape == graph.edges.shape
        assert np.array_equal(same.edges, graph.edges)
    assert as_simple_graph(graph) is graph


@pytest.mark.parametrize("density", [0.0, 0.4, 1.0])
def test_arcs_matrix_and_degrees_agree_with_networkx(density: float) -> None:
    other = nx.gnp_random_graph(6, density, seed=3, directed=True)
    arcs = np.random.default_rng(0).permutation(np.array(other.edges).reshape(-1, 2))

    graph = SimpleGraph.from_pairs(6, arcs, directed=True)

    assert graph.edges.tolist() == sorted(map(list, other.edges))
    assert np.array_equal(graph.adjacency(), nx.to_numpy_array(other) > 0)
    assert graph.degrees().tolist() == [other.degree(i) for i in range(6)]
    assert np.array_equal(graph.skeleton().adjacency(), graph.adjacency() | graph.adjacency().T)
    assert "directed" in repr(graph)
    assert graph.picture().count("<circle") == 6


def test_other_objects_and_a_single_graph_instead_of_a_list_are_refused_in_one_line() -> None:
    with pytest.raises(DatasetError, match="list"):
        list(map(as_simple_graph, nx.path_graph(3)))
    with pytest.raises(DatasetError, match="ndarray") as caught:
        as_simple_graph(np.eye(9))

    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_weights_that_are_all_one_are_not_weighted() -> None:
    graph = random_graph(4, 0, 1.0, weighted=True)

    assert graph.is_weighted
    assert not graph.unweighted().is_weighted
    assert graph.unweighted().unweighted().weights is None
    assert not replace(graph, weights=np.ones(len(graph.edges))).is_weighted
    assert np.array_equal(graph.unweighted().edges, graph.edges)


PATH = np.array([[0, 1], [1, 2]], np.int32)


def test_columns_have_none_where_a_row_has_no_value() -> None:
    assert columns_of([{"a": 1}, None, {"b": 2, 3: 4}]) == {
        "a": [1, None, None],
        "b": [None, None, 2],
        "3": [None, None, 4],
    }


@pytest.mark.parametrize("column", [[1, 2.5], [np.float32(1), np.int8(2)]])
def test_a_number_on_every_edge_becomes_a_weight(column: list[Any]) -> None:
    columns, partial = {"weight": column, "kind": ["a", "b"]}, {"weight": [column[0], None]}

    assert take_weights(columns, PATH).tolist() == column
    assert list(columns) == ["kind"]
    assert take_weights(partial, PATH) is None
    assert partial == {"weight": [column[0], None]}


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), np.float32("inf"), 10**400, "2.5", True, [1], {}])
@pytest.mark.parametrize("other", [1, None])
def test_weights_must_be_finite_numbers(value: Any, other: Any) -> None:
    with pytest.raises(ValueError, match=r"^edge 'b' - 'c' has weight"):
        take_weights({"weight": [other, value]}, PATH, ("a", "b", "c"))


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_equally_long_rows_of_numbers_become_features(kind: Any) -> None:
    columns = {"features": [kind([1, 2.5]), kind([True, False])]}
    features = take_features(columns)

    assert features.dtype == np.float32
    assert features.tolist() == [[1, 2.5], [1, 0]]
    assert columns == {}


@pytest.mark.parametrize(
    "column",
    [
        *([[1.0], None], [[1.0], [1.0, 2.0]], [["a"], ["b"]], ["ab", "cd"], [1.0, 2.0], [[[1.0]], [[2.0]]], [{}, {}]),
        [np.eye(2), np.eye(2)],
        [np.array(["a"]), np.array(["b"])],
    ],
)
def test_other_features_stay_an_attribute(column: list[Any]) -> None:
    columns = {"features": list(column)}

    assert take_features(columns) is None
    assert columns["features"] == column


@pytest.mark.parametrize("value", [float("nan"), np.float16("inf"), 1e39, 10**400])
def test_features_must_be_finite(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^node 1 has feature"):
        take_features({"features": [[0, 1], [0, value]]})


def outcome(make: Callable[[], SimpleGraph]) -> Any:
    """The weights, features and attributes of a graph, or the error."""
    try:
        graph = make()
    except GraphiteError as error:
        return str(error).partition(" has ")[2]

    return (
        graph.weights is not None and graph.weights.tolist(),
        graph.features is not None and graph.features.tolist(),
        graph.node_attributes,
        graph.edge_attributes,
    )


@pytest.mark.parametrize(
    ("weight", "features"),
    [(1, [2]), (1, "text"), (1, ["a"]), (1, None), ("heavy", [2]), (float("nan"), [2]), (1, [float("inf")]), (True, 0)],
)
def test_files_and_networkx_graphs_follow_the_same_rule(weight: Any, features: Any, tmp_path: Path) -> None:
    graph = nx.path_graph(2)
    nx.set_edge_attributes(graph, weight, "weight")
    nx.set_node_attributes(graph, dict.fromkeys(graph, features), "features")
    (tmp_path / "a.jsonl").write_text(json.dumps(nx.node_link_data(graph, edges="edges")))

    assert outcome(lambda: SimpleGraph.from_networkx(graph)) == outcome(lambda: next(read_graphs(tmp_path / "a.jsonl")))
