"""Graphs with attributes become numbers for networks and come back unchanged; what does not fit is refused."""

import json
import math
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from graphite_gen.data.batch import collate
from graphite_gen.data.edge_states import arc_codes, count_states, edge_state, transposed
from graphite_gen.data.schema import AttributeSchema, CodedGraph
from graphite_gen.errors import CheckpointError, ConfigError, DatasetError
from graphite_gen.graph import SimpleGraph


def attributed(seed: int, *, directed: bool, nodes: int = 7) -> SimpleGraph:
    rng = np.random.default_rng(seed)
    graph: nx.Graph = nx.gnp_random_graph(nodes, 0.5, seed=seed, directed=directed)
    for node in graph:
        graph.nodes[node]["element"] = "CNO"[rng.integers(3)]
    for *_, data in graph.edges(data=True):
        data["bond"], data["weight"] = int(rng.integers(2)), float(rng.lognormal())

    return SimpleGraph.from_networkx(graph)


def schema_of(graphs: list[SimpleGraph], **changes: Any) -> AttributeSchema:
    names: dict[str, Any] = {"node_label": "element", "edge_label": "bond", "weighted": True}

    return AttributeSchema.of(graphs, **{**names, **changes})


@pytest.mark.parametrize("directed", [False, True])
def test_graphs_come_back_from_their_numbers_in_any_node_order(directed: bool) -> None:
    graphs = [attributed(seed, directed=directed, nodes=nodes) for seed, nodes in enumerate((7, 4, 6))]
    schema = schema_of(graphs)
    orders = np.array([np.random.default_rng(9).permutation(7), [2, 0, 3, 1, 4, 5, 6], [5, 4, 3, 2, 1, 0, 6]])

    batch = collate([schema.encode(graph) for graph in graphs])
    batch = batch.reordered(torch.from_numpy(orders))

    for row, graph in enumerate(graphs):
        skeleton = SimpleGraph.from_adjacency(batch.adj[row, : graph.nodes, : graph.nodes].numpy() > 0)
        parts = (batch.labels, batch.states, batch.weights)
        found = schema.decode(skeleton, *(None if part is None else part[row].numpy() for part in parts))
        back = found.permuted(orders[row, : graph.nodes]).to_networkx()
        assert back.is_directed() == directed
        assert dict(back.nodes(data=True)) == dict(graph.to_networkx().nodes(data=True))
        assert nx.utils.edges_equal(list(back.edges(data=True)), list(graph.to_networkx().edges(data=True)))


@pytest.mark.parametrize(("labels", "directed"), [(0, False), (3, False), (0, True), (2, True)])
def test_states_are_those_of_the_other_end_when_transposed(labels: int, directed: bool) -> None:
    back = transposed(labels, directed)

    assert len(back) == count_states(labels, directed)
    assert (back[back] == np.arange(len(back))).all()
    if directed:
        forward, backward = arc_codes(np.arange(len(back)), labels)
        assert (edge_state(forward, backward, labels) == np.arange(len(back))).all()
        assert (arc_codes(back, labels)[0] == backward).all()
        assert ((forward > 0) | (backward > 0)).all()


def test_the_kind_of_weights_follows_from_the_graphs() -> None:
    def kind(*weights: float) -> str:
        graph = replace(SimpleGraph.from_pairs(3, [(0, 1), (1, 2)]), weights=np.array(weights))
        return AttributeSchema.of([graph], weighted=True).weights

    assert [kind(1, 3), kind(0, 2), kind(0.5, 2), kind(-0.5, 2), kind(-1, 2)] == [
        "count",
        "count",
        "positive",
        "real",
        "real",
    ]


def test_a_schema_survives_json() -> None:
    graphs = [replace(attributed(seed, directed=True), attributes={"class": "ab"[seed % 2]}) for seed in range(4)]
    schema = schema_of(graphs, condition=["class", "clustering"])

    assert AttributeSchema.from_json(schema.to_json()) == schema
    assert schema.settings() == {
        "node_labels": 3,
        "edge_labels": 2,
        "directed": True,
        "weights": "positive",
        "conditions": 3,
        "feature_kinds": (),
    }
    with pytest.raises(CheckpointError, match="not readable"):
        AttributeSchema.from_json({"node_label": 3})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("node_label",), []),
        (("node_label",), None),
        (("node_values", 0), [1]),
        (("directed",), 1),
        (("frequencies", "labels", 0), math.inf),
        (("frequencies", "labels", 0), -5),
        (("frequencies", "labels"), [1]),
        (("frequencies", "types"), None),
        (("frequencies",), {}),
        (("features", "names"), [["age"]]),
        (("features", "widths"), ["1"]),
        (("features", "are_whole"), [0]),
        (("conditions", "each", 0, "name"), {}),
        (("conditions", "each", 0, "classes"), 3),
        (("conditions", "each", 1, "mean"), "high"),
        (("conditions", "each", 1, "deviation"), 0.0),
        (("conditions", "each", 1, "low"), None),
        (("conditions", "examples"), []),
        (("conditions", "examples", 0), [7]),
        (("conditions", "examples", 0, 0), "7"),
        (("conditions", "examples", 0, 1), "c"),
        (("conditions", "examples", 0, 2), math.nan),
    ],
)
def test_a_schema_that_was_edited_wrongly_is_refused(path: tuple[Any, ...], value: Any) -> None:
    graphs = [replace(attributed(seed, directed=True), attributes={"class": "ab"[seed % 2]}) for seed in range(4)]
    graphs = [replace(one, node_attributes={**one.node_attributes, "age": [1.5] * one.nodes}) for one in graphs]
    schema = schema_of(graphs, condition=["class", "clustering"], generate_features=["age"])
    stored = json.loads(json.dumps(schema.to_json()))
    assert AttributeSchema.from_json(stored) == schema
    place = stored
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value

    with pytest.raises(CheckpointError, match="not readable"):
        AttributeSchema.from_json(stored)


@pytest.mark.parametrize("value", [[1], {"a": 1}, "Xe", 1.5])
def test_labels_that_are_none_of_the_training_graphs_are_refused_whatever_they_are(value: Any) -> None:
    graph = attributed(0, directed=False)
    odd = replace(graph, node_attributes={"element": [value] * graph.nodes})

    with pytest.raises(DatasetError, match="which no training graph has"):
        schema_of([graph]).encode(odd)


def test_real_weights_that_are_huge_are_refused() -> None:
    graph = attributed(0, directed=False)
    weights = np.linspace(-1, 1, len(graph.edges))
    schema = schema_of([replace(graph, weights=weights)])
    weights[-1] = -1e300

    assert schema.weights == "real"
    with pytest.raises(DatasetError, match=r"Graph 3 has the weight -1e\+300; absolute values below 1e\+100"):
        schema.encode(replace(graph, weights=weights), 3)


def test_plain_graphs_stay_as_they_are() -> None:
    graph = SimpleGraph.from_pairs(3, [(0, 1)])

    assert AttributeSchema.of([graph]).is_plain
    assert AttributeSchema().encode(graph) is graph


def test_conditions_are_features_of_every_node() -> None:
    graphs = [replace(attributed(seed, directed=False), attributes={"class": "ab"[seed % 2]}) for seed in range(4)]
    schema = schema_of(graphs, condition=["class", "edges"])

    coded = schema.encode(graphs[1])

    assert isinstance(coded, CodedGraph)
    assert coded.features is not None
    assert coded.features.shape == (7, 3)
    assert coded.features[:, :2].tolist() == [[0, 1]] * 7
    mean, deviation = (statistic([len(graph.edges) for graph in graphs]) for statistic in (np.mean, np.std))
    assert coded.features[:, 2] == pytest.approx((len(graphs[1].edges) - mean) / deviation)


GRAPH = attributed(0, directed=False)


@pytest.mark.parametrize(
    ("graphs", "names", "error", "words"),
    [
        ([GRAPH], {"node_label": "elment"}, ConfigError, "'elment'.*'element'"),
        ([GRAPH], {"edge_label": "kind"}, ConfigError, "no attribute 'kind'.*bond"),
        ([GRAPH], {"edge_label": "x", "node_label": None}, ConfigError, "no attribute 'x'"),
        ([GRAPH, attributed(1, directed=True)], {}, DatasetError, "Some graphs are directed"),
        ([replace(GRAPH, node_attributes={"element": [True, 1] * 3 + [0]})], {}, DatasetError, "equal in Python"),
        ([GRAPH], {"condition": ["clusterin"]}, ConfigError, "'clusterin'.*'clustering'"),
        ([replace(GRAPH, node_attributes={"element": [0.5] * 7})], {}, DatasetError, "text or an integer"),
        (
            [replace(GRAPH, node_attributes={"element": list(range(101))}, nodes=101)],
            {},
            DatasetError,
            "more than 100 values",
        ),
        (
            [replace(GRAPH, attributes={"class": 1}), GRAPH],
            {"condition": ["class"]},
            DatasetError,
            "Graph 1 has no attribute 'class'",
        ),
        ([replace(GRAPH, attributes={"x": float("nan")})], {"condition": ["x"]}, DatasetError, "not a finite number"),
    ],
)
def test_training_graphs_that_do_not_fit_are_refused(
    graphs: list[SimpleGraph], names: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        schema_of(graphs, **names)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (replace(GRAPH, node_attributes={"element": ["C"] * 6 + ["X"]}), "Graph|graph 3 has element 'X', which no"),
        (replace(GRAPH, node_attributes={"element": ["C"] * 6 + [None]}), "node of graph 3 has no 'element'"),
        (replace(GRAPH, node_attributes={}), "nodes of graph 3 have no attribute 'element'"),
        (
            replace(GRAPH, edge_attributes={"other": [1] * len(GRAPH.edges)}),
            "edges of graph 3 have no attribute 'bond'",
        ),
        (replace(GRAPH, weights=None), "Graph 3 is unweighted"),
        (replace(GRAPH, weights=-np.ones(len(GRAPH.edges))), "weight -1; those of the model are positive"),
        (attributed(1, directed=True), "Graph 3 is directed"),
    ],
)
def test_other_graphs_that_do_not_fit_are_refused(graph: SimpleGraph, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        schema_of([GRAPH]).encode(graph, 3)


def test_labels_of_numpy_are_those_of_python() -> None:
    graph = replace(GRAPH, node_attributes={"element": [np.int64(1)] * 6 + [np.int64(2)]})
    schema = schema_of([graph])

    assert [type(value) for value in schema.node_values] == [int, int]
    assert schema.frequencies["labels"] == (6, 1)
    assert schema.encode(graph).labels.tolist() == [0] * 6 + [1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("given", [{}, {"edge_label": "bond"}, {"node_label": "element"}, {"weighted": True}])
def test_graphs_with_some_attributes_come_back_with_these(directed: bool, given: dict[str, Any]) -> None:
    graph = attributed(2, directed=directed)
    schema = schema_of([graph], **{"node_label": None, "edge_label": None, "weighted": False, **given})
    batch = collate([schema.encode(graph)])

    parts = (None if part is None else part[0].numpy() for part in (batch.labels, batch.states, batch.weights))
    found = schema.decode(SimpleGraph.from_adjacency(batch.adj[0].numpy() > 0), *parts)

    assert found.edges.tolist() == graph.edges.tolist()
    assert found.edge_attributes == ({"bond": graph.edge_attributes["bond"]} if "edge_label" in given else {})
    assert found.node_attributes == ({"element": graph.node_attributes["element"]} if "node_label" in given else {})
    assert (found.weights is None) == ("weighted" not in given)
    if found.weights is not None:
        assert found.weights == pytest.approx(graph.weights)


def test_as_many_labels_as_are_allowed_are_read() -> None:
    graph = replace(SimpleGraph.from_pairs(100, [(0, 1)]), node_attributes={"element": list(range(100))})

    assert len(AttributeSchema.of([graph], node_label="element").node_values) == 100


def test_graphs_without_any_attribute_are_told_apart_from_those_with_others() -> None:
    with pytest.raises(ConfigError, match="nor any other"):
        AttributeSchema.of([SimpleGraph.from_pairs(2, [(0, 1)])], node_label="element")


@pytest.mark.parametrize(
    ("values", "words"), [([0.5, 2.0], "0.5; those of the model are counts"), ([-1.0], "-1; those")]
)
def test_weights_that_are_no_counts_are_refused(values: list[float], words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        AttributeSchema(weights="count").check_weights(np.array(values), "Graph 0")
