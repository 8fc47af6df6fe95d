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
from graphite_gen.completion import PartialGraph, Unknowns, complete, estimator
from graphite_gen.completion.attribute_chains import AttributeChains
from graphite_gen.completion.posterior import Posterior
from graphite_gen.completion.smc import extend_attributed
from graphite_gen.data.batch import collate
from graphite_gen.errors import DatasetError, SamplingError
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
    nodes = [schema.node_values if label is None else (label,) for label in labels] if schema.node_label else []
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


@pytest.mark.parametrize("value", [["u"], {"u": 1}, "w"])
def test_labels_that_no_training_graph_has_are_refused_whatever_they_are(value: Any) -> None:
    graph = graph_of([(0, 1)], False, node_attributes={"kind": [value, None, "u"]})

    with pytest.raises(DatasetError, match=r"The node 0 has kind .* which no training graph has"):
        Unknowns.of(attributed_model(node_label="kind"), PartialGraph.from_pairs(graph, []))


@pytest.mark.parametrize("unknown", [[], [(0, 2)]])
def test_a_graph_without_an_attribute_that_is_a_condition_is_refused(unknown: list[tuple[int, int]]) -> None:
    model = attributed_model(node_label="kind", condition=["class"])
    graph = graph_of([(0, 1)], False, node_attributes={"kind": ["u", None, "u"]})

    with pytest.raises(SamplingError, match="is conditioned on 'class', an attribute that the graph lacks"):
        Unknowns.of(model, PartialGraph.from_pairs(graph, unknown))


def exact(kind: str) -> tuple[TrainedModel, PartialGraph, dict[str, SimpleGraph], dict[str, float], float]:
    """A model and a partial graph, all completions, their posterior, and the marginal likelihood."""
    names, graph, unknown, labels, bonds = PARTIAL[kind]
    model = attributed_model(directed=graph.directed, **names)
    partial = PartialGraph.from_pairs(graph, unknown)
    every = {key(one): one for one in every_completion(model, partial, labels, bonds)}
    joint = np.exp([exact_log_prob_of(model, collate([model.schema.encode(one)])) for one in every.values()])

    return model, partial, every, dict(zip(every, joint / joint.sum(), strict=True)), float(np.log(joint.sum()))


@pytest.mark.parametrize("kind", PARTIAL)
def test_few_completions_are_enumerated_exactly(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimator, "MIN_ORDERINGS", 1)
    model, partial, every, posterior, evidence = exact(kind)

    result = complete(model, partial, 1000, steps=600, runs=4, seed=1)

    assert result.method == "enumeration"
    assert result.log_evidence == pytest.approx(evidence, abs=0.05)
    found = dict.fromkeys(posterior, 0.0)
    for one in result.samples:
        found[key(one)] += 1 / 1000
    assert np.ptp(list(posterior.values())) > 0.01
    assert found == pytest.approx(posterior, abs=0.06)
    for score in result.scores:
        has_edge = [bool((one.edges == [score.source, score.target]).all(1).any()) for one in every.values()]
        assert score.probability == pytest.approx(np.array([*posterior.values()]) @ has_edge, abs=0.03)
    unlabelled = [node for node, label in enumerate(PARTIAL[kind][3]) if label is None]
    assert [score.node for score in result.label_scores] == [node for node in unlabelled for _ in range(2)]
    for own in result.label_scores:
        is_label = [one.node_attributes["kind"][own.node] == own.label for one in every.values()]
        assert own.probability == pytest.approx(np.array([*posterior.values()]) @ is_label, abs=0.03)


@pytest.mark.parametrize("kind", ["labels", "types", "directed with labels"])
def test_particles_and_chains_follow_the_exact_posterior(kind: str) -> None:
    model, partial, _, posterior, evidence = exact(kind)
    unknowns, rng = Unknowns.of(model, partial), np.random.default_rng(0)

    values, weights, log_weights = extend_attributed(model, unknowns, runs=1, particles=1500, rng=rng)

    assert weights is None
    assert Posterior.weighted(values, log_weights).log_evidence == pytest.approx(evidence, abs=0.1)
    share = np.exp(log_weights[0] - np.logaddexp.reduce(log_weights[0]))
    assert frequencies(unknowns, values[0], share, posterior) == pytest.approx(posterior, abs=0.06)

    # All chains start in the same place.
    chains = AttributeChains(model, unknowns, np.tile(values[0, :1], (800, 1)), None, rng)
    states = []
    for step in range(45):
        chains.step()
        states += [chains.values] * (step >= 25)
    one = np.full(800 * len(states), 1 / (800 * len(states)))
    assert frequencies(unknowns, np.concatenate(states), one, posterior) == pytest.approx(posterior, abs=0.045)


def frequencies(unknowns: Unknowns, values: Any, weights: Any, posterior: dict[str, float]) -> dict[str, float]:
    found = dict.fromkeys(posterior, 0.0)
    unique, place = np.unique(values, axis=0, return_inverse=True)
    for index, one in enumerate(unique):
        found[key(unknowns.completed(one, None))] += float(weights[place.ravel() == index].sum())

    return found


@torch.no_grad()
def exact_log_probs(model: TrainedModel, graph: SimpleGraph, weights: torch.Tensor) -> torch.Tensor:
    """log p of a graph on three nodes with many weight matrices, (G, 3, 3)."""
    batch = collate([model.schema.encode(graph)]).each(lambda part: part.expand(len(weights), *part.shape[1:]))
    batch, terms = replace(batch, weights=weights), []
    for order in itertools.permutations(range(3)):
        ordered = batch.reordered(torch.tensor([order] * len(weights)))
        z = torch.zeros(len(weights), 3, 1)
        terms.append(model.network.decode_autoregressive(z, ordered.x, ordered.sizes).log_prob_of(ordered))

    return torch.stack(terms).logsumexp(0) - math.log(6)


@pytest.mark.parametrize("method", ["enumeration", "particles", "chains"])
@pytest.mark.parametrize("directed", [False, True])
def test_unknown_weights_and_pairs_follow_the_exact_posterior(directed: bool, method: str) -> None:
    """The weight of one of two edges is unknown, and so is a third edge with its weight."""
    model = attributed_model(directed=directed, weighted=True, scale=0.6)
    head = model.network.decoder.edge_weight
    assert head is not None
    head.standardise_like(torch.tensor([0.5, 1.0, 2.0]))
    # The arc back of the third edge is known to be absent.
    pairs, states = [(0, 1), (0, 2), (1, 2)], ["present", "unknown", "present"]
    if directed:
        pairs, states = [*pairs, (2, 0)], [*states, "absent"]
    column = [2.5, *[None] * (len(pairs) - 1)]
    graph = replace(SimpleGraph.from_pairs(3, pairs, directed), edge_attributes={"state": states, "weight": column})
    partial = PartialGraph.from_marks(graph)
    step = 0.4
    grid = np.arange(-10, 10, step)
    first, second = np.meshgrid(grid, grid, indexing="ij")

    def mass(edges: list[tuple[int, int]], *logs: Any) -> Any:
        weights = torch.zeros(logs[0].size, 3, 3)
        for (i, j), values in zip(edges, (np.full(logs[0].size, np.log(2.5)), *logs), strict=True):
            weights[:, i, j] = torch.from_numpy(np.exp(values.ravel()))
            weights[:, j, i] += 0 if directed else weights[:, i, j]
        one = replace(SimpleGraph.from_pairs(3, edges, directed), weights=np.ones(len(edges)))
        log_p = exact_log_probs(model, one, weights).numpy() + sum(values.ravel() + np.log(step) for values in logs)
        return np.exp(log_p).reshape(logs[0].shape)

    without, both = mass([(0, 1), (1, 2)], grid), mass([(0, 1), (1, 2), (0, 2)], first, second)
    total = without.sum() + both.sum()
    assert max(without[0], without[-1], both[0].max(), both[-1].max()) < 1e-3 * total

    unknowns, rng = Unknowns.of(model, partial), np.random.default_rng(0)
    if method == "enumeration":
        result = complete(model, partial, 2000, steps=400, runs=4, seed=2)
        assert result.method == "enumeration"
        assert result.log_evidence == pytest.approx(math.log(total), abs=0.1)
        graphs = [(one, 1 / 2000) for one in result.samples]
    else:
        values, weights, log_weights = extend_attributed(model, unknowns, runs=1, particles=1500, rng=rng)
        assert weights is not None
        assert Posterior.weighted(values, log_weights).log_evidence == pytest.approx(math.log(total), abs=0.1)
        share = np.exp(log_weights[0] - np.logaddexp.reduce(log_weights[0]))
        matrices, values = weights[0], values[0]
        if method == "chains":
            chains = AttributeChains(
                model, unknowns, np.zeros((1500, 1), dtype=np.int64), np.tile(matrices[:1], (1500, 1, 1)), rng
            )
            for _ in range(25):
                chains.step()
            assert chains.current.weights is not None
            values, matrices, share = chains.values, chains.current.weights, np.full(1500, 1 / 1500)
        graphs = [
            (unknowns.completed(value, matrix[unknowns.has_arc(value)]), chance)
            for value, matrix, chance in zip(values, matrices, share, strict=True)
        ]

    three = sum(chance for one, chance in graphs if len(one.edges) == 3)
    assert three == pytest.approx(both.sum() / total, abs=0.05)
    for edges, own in ((2, {(1, 2): without}), (3, {(1, 2): both.sum(1), (0, 2): both.sum(0)})):
        rows = [(one, chance) for one, chance in graphs if len(one.edges) == edges]
        for edge, chances in own.items():
            at = [one.edges.tolist().index(list(edge)) for one, _ in rows]
            logs = np.log([one.weights[place] for (one, _), place in zip(rows, at, strict=True)])  # type: ignore[index]
            share = np.array([chance for _, chance in rows]) / sum(chance for _, chance in rows)
            mean = chances @ grid / chances.sum()
            deviation = math.sqrt(chances @ np.square(grid - mean) / chances.sum())
            assert share @ logs == pytest.approx(mean, abs=0.2 * deviation)
            assert math.sqrt(share @ np.square(logs - share @ logs)) == pytest.approx(deviation, rel=0.2)
    for one, _ in graphs[:50]:
        assert one.weights is not None
        assert (one.edges[0].tolist(), one.weights[0]) == ([0, 1], 2.5)
        assert "weight" not in one.edge_attributes
