from typing import Any

import numpy as np
import pytest

import graphite_gen as gg
from graphite_gen.errors import DatasetError
from graphite_gen.evaluation import ConditionalAccuracy
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph

from .attributed import attributed


def classes(seed: int, count: int = 40, **named: str) -> list[SimpleGraph]:
    """Graphs of the family of each class."""
    return [
        SimpleGraph(graph.nodes, graph.edges, attributes={"class": name})
        for name, family in named.items()
        for graph in generate(family, count, seed=seed).graphs
    ]


def accuracy(samples: list[Any], reference: list[Any], name: str = "class") -> ConditionalAccuracy:
    found = gg.evaluate(samples, reference, conventions=["rbf"], replicates=0, given_attribute=name, seed=0)
    assert found.accuracy is not None

    return found.accuracy


def test_samples_of_their_class_are_recognised_and_others_are_not() -> None:
    reference = classes(0, a="barabasi", b="geometric")
    right = accuracy(classes(1, a="barabasi", b="geometric"), reference)
    swapped = accuracy(classes(1, b="barabasi", a="geometric"), reference)
    one = accuracy(classes(1, a="barabasi", b="barabasi"), reference)

    assert right.samples.value >= 0.97
    assert right.reference.value >= 0.97
    assert right.samples.count + swapped.samples.count == 80
    assert [row.label for row in one.classes] == ["a", "b"]
    assert one.classes[0].samples.value >= 0.95
    assert one.classes[1].samples.value <= 0.05
    assert one.samples.count == sum(row.samples.count for row in one.classes)


def test_three_classes_and_classes_that_do_not_differ() -> None:
    three = {"a": "barabasi", "b": "powerlaw-tree", "c": "erdos-renyi"}
    found = accuracy(classes(1, **three), classes(0, **three))
    same = accuracy(classes(1, a="ego", b="ego"), classes(0, a="ego", b="ego"))

    assert found.samples.value > 0.9
    assert [row.samples.total for row in found.classes] == [40, 40, 40]
    assert same.samples.value == pytest.approx(0.5, abs=0.2)
    assert same.reference.value == pytest.approx(0.5, abs=0.2)


def test_classes_may_differ_in_labels_or_weights_only() -> None:
    def graphs(start: int, **differ: tuple[float, float]) -> list[Any]:
        return [
            attributed(start + k, kind=k % 2, **{name: values[k % 2] for name, values in differ.items()})
            for k in range(60)
        ]

    by_label = accuracy(graphs(0, carbon=(0.95, 0.05)), graphs(100, carbon=(0.95, 0.05)), "kind")
    by_weight = accuracy(graphs(0, weight=(0.0, 3.0)), graphs(100, weight=(0.0, 3.0)), "kind")

    assert (by_label.descriptor, by_weight.descriptor) == ("node label 'element'", "weights")
    assert min(by_label.samples.value, by_weight.samples.value) > 0.9


def test_wrong_classes_are_refused() -> None:
    known = classes(0, 6, a="ego", b="regular")
    unnamed = [SimpleGraph(graph.nodes, graph.edges) for graph in known]
    rng = np.random.default_rng(0)
    numbers = [SimpleGraph(graph.nodes, graph.edges, attributes={"class": rng.random()}) for graph in known]

    for samples, reference, name, fact in (
        (known, known, "clas", "12 of the 12 samples have no graph attribute 'clas' .did you mean 'class'"),
        (known, unnamed, "class", "12 of the 12 reference graphs have no"),
        (known, known[:6], "class", "1 distinct value"),
        (known, known[:9], "class", "3 reference graphs of class 'b'"),
        (classes(0, 2, c="ego"), known, "class", "'class' 'c'"),
        (numbers, known, "class", "classes are strings"),
    ):
        with pytest.raises(DatasetError, match=fact):
            accuracy(samples, reference, name)
