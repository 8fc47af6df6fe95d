"""Conditions are read from graphs, encoded, and given to samples with sizes that go with them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphite_gen.data.conditions import PROPERTIES, Conditions
from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.graph import SimpleGraph


def graphs() -> list[SimpleGraph]:
    """Paths of class 'a' with 5 to 9 nodes, and complete graphs of class 'b' with 10 to 14."""
    paths = [SimpleGraph.from_networkx(nx.path_graph(n)) for n in range(5, 10)]
    complete = [SimpleGraph.from_networkx(nx.complete_graph(n)) for n in range(10, 15)]

    return [
        replace(graph, attributes={"class": name, "score": float(graph.nodes)})
        for name, side in (("a", paths), ("b", complete))
        for graph in side
    ]


CONDITIONS = Conditions.of(["class", "edges", "score"], graphs())


@pytest.mark.parametrize(("name", "of"), [("clustering", nx.transitivity), ("density", nx.density)])
def test_properties_agree_with_networkx(name: str, of: Any) -> None:
    for seed in range(3):
        graph = nx.gnp_random_graph(12, 0.3, seed=seed)
        assert PROPERTIES[name](SimpleGraph.from_networkx(graph)) == pytest.approx(of(graph))
    assert PROPERTIES["components"](SimpleGraph.from_networkx(nx.empty_graph(4))) == 4


def test_sizes_and_values_go_with_what_is_given() -> None:
    rng, every = np.random.default_rng(0), range(5, 15)

    def drawn(possible: Sequence[int] = every, **given: Any) -> tuple[set[int], list[tuple[Any, ...]]]:
        parsed = CONDITIONS.parse(given)
        sizes = CONDITIONS.sizes(parsed, possible, 200, rng)
        return {*sizes.tolist()}, CONDITIONS.draw(parsed, sizes, rng)

    assert drawn()[0] == {*every}
    # Paths and complete graphs have as many edges as their nodes tell.
    assert {(own[0], own[1]) for own in drawn([5, 12])[1]} == {("a", 4.0), ("b", 66.0)}
    sizes, values = drawn(**{"class": "b"})
    assert sizes == {*range(10, 15)}
    assert {own[0] for own in values} == {"b"}
    sizes, values = drawn(edges="4:6")
    assert sizes == {5, 6, 7}
    assert all(4 <= own[1] <= 6 for own in values)
    sizes, values = drawn(edges=1000)
    assert sizes == {14}
    assert {own[1] for own in values} == {1000.0}
    # Sizes that no graph of the class has: those nearest tell the other conditions.
    sizes, values = drawn([5], **{"class": "b"})
    assert sizes == {5}
    assert {own[:2] for own in values} == {("b", 45.0)}
    assert CONDITIONS.outside(CONDITIONS.parse({"edges": 1000, "class": "a"})) == ["edges"]


def test_integers_are_classes_if_there_are_few() -> None:
    def condition(*values: Any) -> bool:
        side = [replace(graphs()[0], attributes={"x": value}) for value in values]
        return bool(Conditions.of(["x"], side).each[0].classes)

    assert [condition(1, 2), condition(1, 2.5), condition(*range(60)), condition(True, False)] == [
        True,
        False,
        False,
        True,
    ]
    named = Conditions.of(["x"], [replace(graphs()[0], attributes={"x": value}) for value in (1, "1")])
    assert [named.parse({"x": value})["x"] for value in (1, "1")] == [1, "1"]


def test_numbers_are_standardised_and_classes_one_hot() -> None:
    encoded = np.stack([CONDITIONS.encode(CONDITIONS.values(graph, 0)) for graph in graphs()])

    assert encoded.shape == (10, CONDITIONS.width) == (10, 4)
    assert encoded[:, :2].tolist() == [[1, 0]] * 5 + [[0, 1]] * 5
    assert np.allclose(encoded[:, 2:].mean(0), 0, atol=1e-6)
    assert np.allclose(encoded[:, 2:].std(0), 1, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"klass": "a"}, "no condition 'klass'; it has class, edges, score"),
        ({"class": "c"}, "'class' is 'c'; it should be one of 'a', 'b'"),
        ({"edges": "many"}, "'edges' is 'many'; it should be a number"),
        ({"edges": "1:2:3"}, "it should be a number"),
        ({"edges": (3, 1)}, "ranges from 3 to 1"),
        ({"edges": float("nan")}, "it should be a number"),
        ({"edges": "100:inf"}, "it should be a number"),
    ],
)
def test_what_cannot_be_given_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        CONDITIONS.parse(given)
    with pytest.raises(ConfigError, match="no condition 'class', nor any other"):
        Conditions().parse({"class": 1})


@pytest.mark.parametrize("value", [10**400, float("nan"), -float("inf")])
def test_numbers_that_are_not_finite_are_refused(value: Any) -> None:
    with pytest.raises(DatasetError, match=r"Graph 7 has score \S{1,40}, not a finite number"):
        CONDITIONS.values(replace(graphs()[0], attributes={"class": "a", "score": value}), 7)


def test_a_class_that_no_training_graph_has_is_refused() -> None:
    with pytest.raises(DatasetError, match="Graph 7 has class 'c', which no training graph has"):
        CONDITIONS.values(replace(graphs()[0], attributes={"class": "c", "score": 1.0}), 7)
