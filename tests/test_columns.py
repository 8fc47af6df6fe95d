from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphite_gen.errors import GraphiteError
from graphite_gen.graph import SimpleGraph, columns_of, take_features, take_weights
from graphite_gen.io import read_graphs

PATH = np.array([[0, 1], [1, 2]], np.int32)


def test_columns_have_a_hole_where_a_row_has_no_value() -> None:
    assert columns_of([{"a": 1}, None, {"b": 2, 3: 4}]) == {
        "a": [1, None, None],
        "b": [None, None, 2],
        "3": [None, None, 4],
    }


@pytest.mark.parametrize("column", [[1, 2.5], [np.float32(1), np.int8(2)]])
def test_a_number_on_every_edge_is_a_weight(column: list[Any]) -> None:
    columns = {"weight": column, "kind": ["a", "b"]}
    weights = take_weights(columns, PATH)

    assert weights is not None
    assert weights.tolist() == column
    assert list(columns) == ["kind"]


def test_weights_on_some_edges_stay_an_attribute() -> None:
    columns = {"weight": [1, None]}

    assert take_weights(columns, PATH) is None
    assert columns == {"weight": [1, None]}


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), np.float32("inf"), 10**400, "2.5", True, [1], {}])
@pytest.mark.parametrize("other", [1, None])
def test_what_is_called_a_weight_must_be_a_finite_number(value: Any, other: Any) -> None:
    with pytest.raises(ValueError, match=r"^edge 'b' - 'c' has weight .*, not a finite number\.$"):
        take_weights({"weight": [other, value]}, PATH, ("a", "b", "c"))


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_a_row_of_numbers_of_one_length_on_every_node_is_features(kind: Any) -> None:
    columns = {"features": [kind([1, 2.5]), kind([True, False])]}
    features = take_features(columns)

    assert features is not None
    assert features.dtype == np.float32
    assert features.tolist() == [[1, 2.5], [1, 0]]
    assert columns == {}


@pytest.mark.parametrize(
    "column",
    [
        [[1.0], None],
        [[1.0], [1.0, 2.0]],
        [["a"], ["b"]],
        ["ab", "cd"],
        [1.0, 2.0],
        [[[1.0]], [[2.0]]],
        [{}, {}],
        [np.eye(2), np.eye(2)],
        [np.array(["a"]), np.array(["b"])],
    ],
)
def test_any_other_features_are_an_ordinary_attribute(column: list[Any]) -> None:
    columns = {"features": list(column)}

    assert take_features(columns) is None
    assert columns["features"] == column


@pytest.mark.parametrize("value", [float("nan"), np.float16("inf"), 1e39, 10**400])
def test_features_must_be_finite(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^node 1 has feature .*, not a finite number of 32 bits\.$"):
        take_features({"features": [[0, 1], [0, value]]})


def outcome(make: Callable[[], SimpleGraph]) -> Any:
    """What a graph carries, or why there is none."""
    try:
        graph = make()
    except GraphiteError as error:
        # Of a file one is told besides what to do about it.
        return str(error).partition(" has ")[2].partition(". ")[0].removesuffix(".")

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
def test_a_file_and_networkx_follow_one_rule(weight: Any, features: Any, tmp_path: Path) -> None:
    graph = nx.path_graph(2)
    nx.set_edge_attributes(graph, weight, "weight")
    nx.set_node_attributes(graph, dict.fromkeys(graph, features), "features")
    (tmp_path / "a.jsonl").write_text(json.dumps(nx.node_link_data(graph, edges="edges")))

    assert outcome(lambda: SimpleGraph.from_networkx(graph)) == outcome(lambda: next(read_graphs(tmp_path / "a.jsonl")))
