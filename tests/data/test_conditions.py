"""Conditions are read from graphs, encoded, and given to samples with sizes that go with them."""

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
    rng = np.random.default_rng(0)

    free, _ = CONDITIONS.draw({}, 200, rng)
    sizes, values = CONDITIONS.draw(CONDITIONS.parse({"class": "b"}), 100, rng)
    ranged, within = CONDITIONS.draw(CONDITIONS.parse({"edges": "4:6"}), 100, rng)
    far, beyond = CONDITIONS.draw(CONDITIONS.parse({"edges": 1000}), 100, rng)

    assert {*free.tolist()} == {*range(5, 15)}
    assert {*sizes.tolist()} == {*range(10, 15)}
    assert {value[0] for value in values} == {"b"}
    assert {*ranged.tolist()} == {5, 6, 7}
    assert all(4 <= value[1] <= 6 for value in within)
    assert {*far.tolist()} == {14}
    assert {value[1] for value in beyond} == {1000.0}
    assert CONDITIONS.outside(CONDITIONS.parse({"edges": 1000, "class": "a"})) == ["edges"]


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
        ({"edges": float("nan")}, "ranges from nan"),
    ],
)
def test_what_cannot_be_given_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        CONDITIONS.parse(given)
    with pytest.raises(ConfigError, match="no condition 'class', nor any other"):
        Conditions().parse({"class": 1})


def test_a_class_that_no_training_graph_has_is_refused() -> None:
    with pytest.raises(DatasetError, match="Graph 7 has class 'c', which no training graph has"):
        CONDITIONS.values(replace(graphs()[0], attributes={"class": "c", "score": 1.0}), 7)
