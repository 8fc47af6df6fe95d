import json
import math
from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
import pytest
from scipy import stats

import graphite_gen as gg
from graphite_gen.errors import DatasetError
from graphite_gen.evaluation.attributes import AttributeRow, compare_attributes, find_columns, find_labels
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph

from .attributed import attributed

Rows = dict[tuple[Any, ...], AttributeRow]


def simple(graphs: list[nx.Graph]) -> list[SimpleGraph]:
    return list(map(SimpleGraph.from_networkx, graphs))


def rows_of(samples: list[nx.Graph], reference: list[nx.Graph], **options: Any) -> Rows:
    found = compare_attributes(simple(samples), simple(reference), **options)

    return {(row.attribute, row.measure, *row.labels): row for row in found}


def sets(directed: bool, count: int = 12) -> tuple[list[nx.Graph], list[nx.Graph]]:
    reference = [attributed(seed, directed=directed) for seed in range(count)]
    samples = [attributed(100 + seed, directed=directed, carbon=0.8, weight=2.0) for seed in range(count)]

    return samples, reference


def assert_row(row: AttributeRow, samples: float, reference: float) -> None:
    assert (row.samples, row.reference) == pytest.approx((samples, reference))
    assert row.difference == pytest.approx((samples - reference) / abs(reference))


@pytest.mark.parametrize("directed", [False, True])
def test_labels_agree_with_networkx(directed: bool) -> None:
    samples, reference = sides = sets(directed)
    rows = rows_of(samples, reference)
    pooled = [
        Counter(label for graph in side for label in nx.get_node_attributes(graph, "element").values())
        for side in sides
    ]
    bonds = [
        Counter(label for graph in side for label in nx.get_edge_attributes(graph, "bond").values()) for side in sides
    ]

    for label in "CNO":
        assert_row(rows["element", "proportion", label], *(counts[label] / counts.total() for counts in pooled))
    for label in (1, 2, 3):
        assert_row(rows["bond", "proportion", label], *(counts[label] / counts.total() for counts in bonds))
    for name, counts in (("element", pooled), ("bond", bonds)):
        distance = sum(abs(counts[0][k] / counts[0].total() - counts[1][k] / counts[1].total()) for k in counts[1]) / 2
        assert rows[name, "TV of proportions"].samples == pytest.approx(distance)

    def coefficient(side: list[nx.Graph]) -> float:
        with np.errstate(invalid="ignore"):
            found = [nx.attribute_assortativity_coefficient(graph, "element") for graph in side]
        return float(np.nanmean(found))

    assert_row(rows["element", "assortativity"], *map(coefficient, sides))


@pytest.mark.parametrize("directed", [False, True])
def test_edges_between_labels_are_the_mixing_matrix(directed: bool) -> None:
    samples, reference = sides = sets(directed)
    rows = rows_of(samples, reference)

    def edges(side: list[nx.Graph], first: str, second: str) -> float:
        found = (nx.attribute_mixing_dict(graph, "element").get(first, {}).get(second, 0) for graph in side)
        # In an undirected graph networkx counts edges between equal labels twice.
        return sum(found) / len(side) / (2 if first == second and not directed else 1)

    pairs = [labels for name, measure, *labels in rows if (name, measure) == ("element", "edges per graph")]
    assert len(pairs) == (9 if directed else 6)
    for first, second in pairs:
        assert_row(rows["element", "edges per graph", first, second], *(edges(side, first, second) for side in sides))
    matrices = [np.array([edges(side, *pair) for pair in pairs]) for side in sides]
    distance = np.abs(matrices[0] / matrices[0].sum() - matrices[1] / matrices[1].sum()).sum() / 2
    assert rows["element", "TV of edges"].samples == pytest.approx(distance)
    total = sum(rows[("element", "edges per graph", *pair)].reference for pair in pairs)
    assert total == pytest.approx(np.mean([graph.size() for graph in reference]))


@pytest.mark.parametrize("directed", [False, True])
def test_weights_agree_with_scipy_and_density_with_networkx(directed: bool) -> None:
    sides = sets(directed)
    rows = rows_of(*sides)
    weights = [[w for graph in side for w in nx.get_edge_attributes(graph, "weight").values()] for side in sides]

    assert rows["weight", "KS of weights"].samples == pytest.approx(stats.ks_2samp(*weights).statistic)
    assert rows["weight", "KS of weights"].samples > 0.3
    assert_row(rows["weight", "mean"], *map(np.mean, weights))
    assert_row(rows["weight", "density"], *(np.mean(list(map(nx.density, side))) for side in sides))


def test_directions_agree_with_networkx() -> None:
    samples, reference = sets(True)
    # Some graphs without a directed cycle, and more arcs that are reciprocated.
    samples = [nx.DiGraph((u, v, data) for u, v, data in graph.edges(data=True) if u < v) for graph in samples[:5]]
    samples += [graph.to_undirected().to_directed() for graph in reference[:4]]
    sides = samples, reference
    rows = rows_of(samples, reference, node_label=None)
    unions = [nx.disjoint_union_all(side) for side in sides]

    assert_row(rows["direction", "reciprocity"], *map(nx.overall_reciprocity, unions))
    for name in ("in", "out"):
        degrees = [[degree for _, degree in getattr(union, f"{name}_degree")] for union in unions]
        expected = stats.ks_2samp(*degrees).statistic
        assert rows["direction", f"KS of {name}-degrees"].samples == pytest.approx(expected)
        assert expected > 0
    assert rows["direction", "proportion acyclic"].samples == pytest.approx(5 / 9)
    assert rows["direction", "proportion acyclic"].reference == np.mean(
        list(map(nx.is_directed_acyclic_graph, reference))
    )
    assert_row(rows["direction", "mean in-degree"], *(union.size() / len(union) for union in unions))


def test_halves_of_the_reference_are_compared_with_each_other() -> None:
    samples, reference = sets(False)
    two = rows_of(samples, reference[:2])["weight", "mean"]
    means = [np.mean(list(nx.get_edge_attributes(graph, "weight").values())) for graph in reference[:2]]
    equal = rows_of(samples, reference[:1] * 6)

    second = int(np.argmin(np.abs(np.array(means) - two.half)))
    assert two.half == pytest.approx(means[second])
    assert two.half_difference == pytest.approx(means[second] / means[1 - second] - 1)
    for row in equal.values():
        assert row.half == pytest.approx(row.reference or 0)
        assert row.half_difference in (None, pytest.approx(0))
    assert {(row.half, row.half_difference) for row in rows_of(samples, reference[:1]).values()} == {(None, None)}


def test_undefined_values_are_none() -> None:
    bare, one = nx.empty_graph(3), nx.path_graph(3)
    nx.set_node_attributes(bare, "C", "element")
    nx.set_node_attributes(one, {0: "C", 1: "C", 2: "N"}, "element")

    rows = rows_of([one, one], [bare, bare])

    assert rows["element", "assortativity"].reference is None
    assert rows["element", "assortativity"].samples == pytest.approx(
        nx.attribute_assortativity_coefficient(one, "element")
    )
    assert rows["element", "TV of edges"].samples is None
    assert rows["element", "proportion", "N"].difference is None
    assert rows["element", "edges per graph", "C", "C"].samples == 1
    # No edge on either side.
    assert ("element", "edges per graph", "N", "N") not in rows
    assert not any(math.isnan(value) for row in rows.values() for value in vars(row).values() if type(value) is float)


def test_labels_are_on_every_node_and_have_few_values_that_are_not_floats() -> None:
    graph = nx.path_graph(60)
    values = {
        "kind": lambda node: "ab"[node % 2],
        "block": lambda node: np.int64(node % 50),
        "leaf": lambda node: node == 0,
        "number": lambda node: node,
        "size": lambda node: node % 2 + 0.5,
        "tags": lambda node: [node % 2],
        "huge": lambda node: 10**400 + node,
    }
    for name, value in values.items():
        nx.set_node_attributes(graph, {node: value(node) for node in graph}, name)
    nx.set_node_attributes(graph, dict.fromkeys(range(59), "a"), "rare")
    graphs = simple([graph, nx.empty_graph(0)])

    assert find_labels(graphs, "node") == {"block": list(range(50)), "kind": ["a", "b"], "leaf": [False, True]}
    assert find_labels(graphs, "node", "kind") == {"kind": ["a", "b"]}
    assert find_labels(graphs, "edge") == {}
    # An integer beyond double precision is no number that could be compared.
    assert [*find_columns(graphs, ["block"])] == ["number", "size"]
    for name, fact in (
        ("number", "60 distinct values"),
        ("size", "value 0.5"),
        ("tags", r"value \[0\]"),
        ("rare", "not on every node"),
        ("kid", r"not on every node of the graphs \(did you mean 'kind'"),
    ):
        with pytest.raises(DatasetError, match=fact):
            find_labels(graphs, "node", name)


def test_a_named_label_is_the_only_one_and_must_be_on_both_sides() -> None:
    samples, reference = sets(False)
    for graph in (*samples, *reference):
        nx.set_node_attributes(graph, 1, "charge")
    partly = [graph.copy() for graph in samples]
    del partly[3].nodes[0]["element"]

    assert {key[0] for key in rows_of(samples, reference)} == {"element", "charge", "bond", "weight"}
    assert {key[0] for key in rows_of(samples, reference, node_label="charge")} == {"charge", "bond", "weight"}
    assert {key[0] for key in rows_of(partly, reference)} == {"charge", "bond", "weight"}
    with pytest.raises(DatasetError, match=r"'element' is not on every node of the samples"):
        rows_of(partly, reference, node_label="element")
    with pytest.raises(DatasetError, match=r"'colour' is not on every edge of the samples"):
        rows_of(samples, reference, edge_label="colour")


def test_directed_and_undirected_graphs_are_not_compared() -> None:
    (undirected, _), (directed, _) = sets(False), sets(True)

    for samples, reference, fact in (
        (undirected, directed, "samples are undirected and the reference graphs directed"),
        (directed, undirected, "samples are directed"),
        ([*directed, *undirected], directed, "Some of the samples"),
    ):
        with pytest.raises(DatasetError, match=fact):
            rows_of(samples, reference)


def test_an_evaluation_has_attributes_and_says_what_is_structural() -> None:
    samples, reference = sets(True)
    found = gg.evaluate(samples, reference, conventions=["rbf"], replicates=0, validity="acyclic", seed=0)
    skeletons = [nx.Graph(graph.to_undirected()) for graph in (*samples, *reference)]
    plain = gg.evaluate(skeletons[:12], skeletons[12:], conventions=["rbf"], replicates=0, node_label="element", seed=0)

    assert found.mmd == plain.mmd
    assert found.summaries == plain.summaries
    assert found.vun.unique == plain.vun.unique
    assert found.vun.valid.count == sum(map(nx.is_directed_acyclic_graph, samples))
    assert "skeletons" in found.notes[0]
    assert "ignore labels, weights, directions and features" in found.notes[1]
    assert not any("skeletons" in note for note in plain.notes)
    json.dumps(found.to_json())


def test_graphs_without_attributes_have_no_rows_and_labels_of_one_side_are_mentioned() -> None:
    own, known = (generate("ego", 10, seed=seed).graphs for seed in range(2))
    labelled = [SimpleGraph(g.nodes, g.edges, node_attributes={"kind": ["a"] * g.nodes}) for g in known]
    options: dict[str, Any] = {"conventions": ["rbf"], "replicates": 0, "seed": 0}

    plain, other = gg.evaluate(own, known, **options), gg.evaluate(own, labelled, **options)

    assert (plain.attributes, plain.notes, plain.accuracy) == ((), (), None)
    assert other.attributes == ()
    assert ["'kind'" in note for note in other.notes] == [True]
    assert other.mmd == plain.mmd
