"""Numeric node features become columns and come back under the same names and types; what does not fit is refused."""

from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphite_gen.data.feature_columns import FeatureColumns
from graphite_gen.data.schema import AttributeSchema, CodedGraph
from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.graph import SimpleGraph


def featured(seed: int = 0, nodes: int = 4, **changes: Any) -> SimpleGraph:
    rng, graph = np.random.default_rng(seed), nx.path_graph(nodes)
    for node, data in graph.nodes(data=True):
        data.update(
            element="CN"[node % 2],
            age=int(rng.integers(1, 90)),
            charge=int(node) - 1,
            mass=float(rng.lognormal()),
            x=float(rng.normal()),
            features=rng.normal(size=2).astype(np.float32).tolist(),
            **changes,
        )

    return SimpleGraph.from_networkx(graph)


def test_all_numeric_features_are_found_with_their_kinds_and_come_back() -> None:
    graphs = [featured(seed) for seed in range(3)]
    schema = AttributeSchema.of(graphs, node_label="element", generate_features=True)

    coded = schema.encode(graphs[1])

    assert schema.features.names == ("features", "age", "charge", "mass", "x")
    assert schema.features.kinds == ("real", "real", "count", "integer", "positive", "real")
    assert schema.features.labels[:3] == ("features[0]", "features[1]", "age")
    assert isinstance(coded, CodedGraph)
    assert coded.generated is not None
    assert (coded.features, dict(coded.node_attributes)) == (None, {})
    skeleton = SimpleGraph(coded.nodes, coded.edges)
    back = schema.decode(skeleton, coded.labels, None, None, coded.generated)
    assert dict(back.to_networkx().nodes(data=True)) == dict(graphs[1].to_networkx().nodes(data=True))
    assert isinstance(back.node_attributes["age"][0], int)
    assert AttributeSchema.from_json(schema.to_json()) == schema


def test_only_named_features_are_generated_and_others_condition() -> None:
    graphs = [featured(seed) for seed in range(3)]
    schema = AttributeSchema.of(graphs, generate_features=["x"])

    coded = schema.encode(graphs[0])

    assert schema.settings()["feature_kinds"] == ("real",)
    assert coded.features is not None
    assert "mass" in coded.node_attributes


@pytest.mark.parametrize(
    ("change", "names", "error", "words"),
    [
        ({"x": float("nan")}, ["x"], DatasetError, "A node of graph 2 has x 'nan', not a finite number"),
        ({"x": None}, True, DatasetError, "A node of graph 2 has no 'x'"),
        ({"x": 10**400}, ["x"], DatasetError, "A node of graph 2 has x '10*', not a finite number"),
        ({"x": "far"}, ["x"], DatasetError, "A node of graph 2 has x 'far', not a finite number"),
        ({}, ["xx"], ConfigError, "no attribute 'xx'.*did you mean 'x'"),
        ({}, ["element"], DatasetError, "not a finite number"),
        ({f"c{i}": 1.0 for i in range(101)}, True, DatasetError, "at most 100"),
    ],
)
def test_what_cannot_be_generated_is_refused(
    change: dict[str, Any], names: Any, error: type[Exception], words: str
) -> None:
    odd = featured(9)
    columns = {**odd.node_attributes, **{key: [value] * odd.nodes for key, value in change.items()}}
    graphs = [featured(0), featured(1), SimpleGraph(odd.nodes, odd.edges, None, odd.features, None, columns)]
    if len(change) > 1:
        graphs = graphs[2:]

    with pytest.raises(error, match=words):
        FeatureColumns.of(graphs, names)


def test_graphs_unlike_the_training_graphs_are_refused() -> None:
    columns = FeatureColumns.of([featured(seed) for seed in range(3)], ["mass", "age", "charge"])

    with pytest.raises(DatasetError, match=r"has charge -1e\+300; absolute values below 1e\+100"):
        columns.values(SimpleGraph(1, np.zeros((0, 2)), node_attributes={"mass": [1], "age": [1], "charge": [-1e300]}))
    for name, value, words in (("mass", -1.0, "positive"), ("age", 2.5, "counts"), ("charge", 0.5, "integers")):
        odd = featured(4)
        attributes = {**odd.node_attributes, name: [value] * odd.nodes}
        with pytest.raises(DatasetError, match=f"has {name} {value:g}; those of the model are {words}"):
            columns.values(SimpleGraph(odd.nodes, odd.edges, node_attributes=attributes), 4)
    with pytest.raises(DatasetError, match="The nodes of graph 1 have no node features"):
        FeatureColumns.of([featured(0), SimpleGraph(2, featured(0, 2).edges)], ["features"])
    with pytest.raises(ConfigError, match="no numeric features"):
        FeatureColumns.of([SimpleGraph.from_pairs(2, [(0, 1)])], True)
    with pytest.raises(ConfigError, match="is the node label"):
        FeatureColumns.of([featured(0)], ["age"], without="age")
