"""Completion of graphs with attributes, compared with a sum over all completions, orderings and a grid of weights."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from graphite_gen.autoregressive import ordering
from graphite_gen.completion import PartialGraph, complete, estimator
from graphite_gen.data.batch import collate
from graphite_gen.graph import SimpleGraph
from graphite_gen.training.checkpoint import TrainedModel

from ..likelihood.test_bdmc import attributed_model, exact_log_prob_of

NAMES: dict[str, Any] = {"node_label": "kind", "edge_label": "bond"}


@pytest.fixture(autouse=True)
def nearly_uniform_orderings(monkeypatch: pytest.MonkeyPatch) -> None:
    """An untrained model ignores the rule of its orderings."""
    monkeypatch.setattr(ordering, "SOFTNESS", (0.99,))


def graph_of(edges: list[tuple[int, int]], directed: bool, **columns: Any) -> SimpleGraph:
    return replace(SimpleGraph.from_pairs(3, edges, directed), **columns)


def every_completion(
    model: TrainedModel, partial: PartialGraph, labels: list[Any], bonds: list[Any]
) -> Iterator[SimpleGraph]:
    """Every graph that agrees with what is known, listed without the code that is tested."""
    known, schema = partial.graph, model.schema
    kinds = schema.edge_values or (None,)
    unknown = [tuple(pair) for pair in partial.unknown.tolist()]
    places = [*map(tuple, known.edges.tolist()), *unknown]
    choices: list[tuple[Any, ...]] = [kinds if bond is None else (bond,) for bond in bonds]
    choices += [("none", *kinds)] * len(unknown)
    nodes = [schema.node_values if label is None else (label,) for label in labels] if schema.node_label else [()]
    for own, given in itertools.product(itertools.product(*nodes), itertools.product(*choices)):
        rows = sorted((place, kind) for place, kind in zip(places, given, strict=True) if kind != "none")
        edges = np.array([place for place, _ in rows], dtype=np.int32).reshape(-1, 2)
        yield SimpleGraph(
            3,
            edges,
            node_attributes={"kind": list(own)} if schema.node_label else {},
            edge_attributes={"bond": [kind for _, kind in rows]} if schema.edge_label else {},
            attributes=known.attributes,
            directed=known.directed,
        )


def key(graph: SimpleGraph) -> str:
    arcs = zip(graph.edges.tolist(), graph.edge_attributes.get("bond", [0] * len(graph.edges)), strict=True)

    return str((graph.node_attributes.get("kind"), list(arcs)))


PARTIAL: dict[str, tuple[dict[str, Any], SimpleGraph, list[tuple[int, int]], list[Any], list[Any]]] = {
    "labels": (
        {"node_label": "kind"},
        graph_of([(0, 1)], False, node_attributes={"kind": ["u", None, None]}),
        [(1, 2)],
        ["u", None, None],
        [0],
    ),
    "types": (
        {"edge_label": "bond"},
        graph_of([(0, 1), (1, 2)], False, edge_attributes={"bond": ["a", None]}),
        [(0, 2)],
        [],
        ["a", None],
    ),
    "directed": ({}, graph_of([(0, 1), (2, 1)], True), [(2, 0)], [], [0, 0]),
    "directed with labels": (
        NAMES,
        graph_of([(0, 1), (1, 0)], True, edge_attributes={"bond": [None, "b"]}),
        [(1, 2)],
        [None, None, None],
        [None, "b"],
    ),
    "conditions": (
        {"node_label": "kind", "condition": ["class"]},
        graph_of([(0, 1)], False, attributes={"class": "y"}),
        [(0, 2)],
        [None, None, None],
        [0],
    ),
}


@pytest.mark.parametrize("method", ["enumeration", "chains"])
@pytest.mark.parametrize("kind", PARTIAL)
def test_completions_follow_the_exact_posterior(kind: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names, graph, unknown, labels, bonds = PARTIAL[kind]
    monkeypatch.setattr(estimator, "MIN_ORDERINGS", 1)
    model = attributed_model(directed=graph.directed, **names)
    partial = PartialGraph.from_pairs(graph, unknown)
    every = list(every_completion(model, partial, labels, bonds))
    joint = np.exp([exact_log_prob_of(model, collate([model.schema.encode(one)])) for one in every])
    expected = dict(zip(map(key, every), joint / joint.sum(), strict=True))
    draws, how = 4000, {"particles": 64} if method == "chains" else {}

    result = complete(model, partial, draws, steps=600 if method == "chains" else 1200, runs=4, seed=1, **how)

    assert result.method == method
    assert result.log_evidence == pytest.approx(np.log(joint.sum()), abs=0.15)
    found = dict.fromkeys(expected, 0.0)
    for one in result.samples:
        found[key(one)] += 1 / draws
    assert np.ptp(list(expected.values())) > 0.01
    assert found == pytest.approx(expected, abs=0.03)
    for score in result.scores:
        has_edge = [bool((one.edges == [score.source, score.target]).all(1).any()) for one in every]
        assert score.probability == pytest.approx(joint @ has_edge / joint.sum(), abs=0.03)
    unlabelled = [node for node, label in enumerate(labels) if label is None]
    assert [score.node for score in result.label_scores] == [node for node in unlabelled for _ in range(2)]
    for own in result.label_scores:
        is_label = [one.node_attributes["kind"][own.node] == own.label for one in every]
        assert own.probability == pytest.approx(joint @ is_label / joint.sum(), abs=0.03)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("method", ["enumeration", "chains"])
def test_unknown_weights_and_pairs_follow_the_exact_posterior(directed: bool, method: str) -> None:
    """The weight of one known edge is unknown, and a pair with its weight; that of the other edge is known."""
    model = attributed_model(directed=directed, weighted=True, scale=1.2)
    assert model.network.decoder.edge_weight is not None
    model.network.decoder.edge_weight.standardise_like(torch.tensor([0.5, 1.0, 2.0]))
    weights = {"weight": [2.5, None]}
    graph = graph_of([(0, 1), (1, 2)], directed, edge_attributes=weights)
    # One more pair, with one direction only: its arc back is known to be absent.
    marked = (
        graph_of([(0, 1), (0, 2), (1, 2), (2, 0)], directed) if directed else graph_of([(0, 1), (0, 2), (1, 2)], False)
    )
    states = ["present", "unknown", "present", "absent"][: len(marked.edges)]
    column = [2.5, None, None, None][: len(marked.edges)]
    partial = PartialGraph.from_marks(replace(marked, edge_attributes={"state": states, "weight": column}))
    assert partial.graph.edges.tolist() == graph.edges.tolist()
    grid = np.linspace(-6, 6, 61)
    values, step = np.exp(grid), grid[1] - grid[0]

    def log_p(*rows: tuple[int, int, float]) -> float:
        edges = sorted(rows)
        one = replace(
            SimpleGraph.from_pairs(3, [row[:2] for row in edges], directed), weights=np.array([row[2] for row in edges])
        )
        # The measure of a weight on the grid of its logarithm.
        jacobian = sum(math.log(w * step) for i, j, w in rows if (i, j) != (0, 1))
        return exact_log_prob_of(model, collate([model.schema.encode(one)])) + jacobian

    without = np.exp([log_p((0, 1, 2.5), (1, 2, w)) for w in values])
    coarse = values[::3]
    both = 9 * np.exp([[log_p((0, 1, 2.5), (1, 2, w), (0, 2, v)) for v in coarse] for w in coarse])
    total = without.sum() + both.sum()

    how = {"particles": 64} if method == "chains" else {}
    result = complete(model, partial, 3000, steps=800, runs=4, seed=2, **how)

    assert result.method == method
    assert result.log_evidence == pytest.approx(math.log(total), abs=0.15)
    assert result.scores[0].probability == pytest.approx(both.sum() / total, abs=0.03)
    drawn: dict[int, list[list[float]]] = {2: [], 3: []}
    for one in result.samples:
        assert one.weights is not None
        assert one.edges[0].tolist() == [0, 1]
        assert one.weights[0] == 2.5
        assert "weight" not in one.edge_attributes
        drawn[len(one.edges)].append(np.log(one.weights[1:]).tolist())
    for mass, found in ((without, drawn[2]), (both.T, drawn[3])):
        axes = (np.log(coarse), np.log(coarse)) if mass.ndim == 2 else (grid,)
        for axis, at in enumerate(axes):
            own = mass.sum(1 - axis) if mass.ndim == 2 else mass
            mean = own @ at / own.sum()
            deviation = math.sqrt(own @ np.square(at - mean) / own.sum())
            assert np.mean([row[axis] for row in found]) == pytest.approx(mean, abs=0.12 * deviation)
            assert np.std([row[axis] for row in found]) == pytest.approx(deviation, rel=0.15)
