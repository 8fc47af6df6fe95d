from dataclasses import replace
from itertools import combinations, product
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from tiny import AUTOREGRESSIVE, path, small_model

import graphite_gen as gg
from graphite_gen.autoregressive import ordering
from graphite_gen.completion import PartialGraph, complete
from graphite_gen.errors import ConfigError, DatasetError, SamplingError
from graphite_gen.graph import SimpleGraph

from .test_smc import HIDDEN, PAW, autoregressive, exact


@pytest.mark.parametrize("changes", [{}, AUTOREGRESSIVE])
def test_known_pairs_stay_and_unknown_ones_vary(changes: dict[str, Any]) -> None:
    model = gg.Model(small_model(**changes))
    graph = nx.relabel_nodes(nx.path_graph(5), dict(enumerate("abcde")))
    unknown = [("a", "b"), ("a", "c"), ("b", "d"), ("a", "e")]

    result = model.complete(graph, 40, unknown=unknown, seed=3, particles=64, steps=20)
    free = {frozenset(pair) for pair in unknown}

    assert isinstance(result, gg.Completion)
    assert len({frozenset(map(frozenset, found.edges)) for found in result.graphs}) > 1
    for found in result.graphs:
        assert list(found) == list("abcde")
        changed = {frozenset(edge) for edge in found.edges} ^ {frozenset(edge) for edge in graph.edges}
        assert changed <= free
        assert all(frozenset((u, v)) in free for u, v, sampled in found.edges(data="sampled") if sampled)
    assert {frozenset((score.source, score.target)) for score in result.scores} == free
    assert [s.probability for s in result.scores] == sorted((s.probability for s in result.scores), reverse=True)


@pytest.mark.parametrize("changes", [{}, AUTOREGRESSIVE])
def test_graph_i_does_not_depend_on_the_count(changes: dict[str, Any]) -> None:
    partial = PartialGraph.from_marks(path(4), add_nodes=2)
    few, many = (complete(small_model(**changes), partial, count, particles=20, steps=20, seed=1) for count in (3, 9))

    assert [graph.edges.tolist() for graph in few.samples] == [graph.edges.tolist() for graph in many.samples[:3]]
    assert few.scores == many.scores
    assert all(graph.nodes == 6 for graph in few.samples)


def test_the_baseline_counts_known_pairs_alone() -> None:
    model = small_model(graphs=[path(4), path(4), SimpleGraph.from_pairs(4, [(0, 1)])])
    partial = PartialGraph.from_pairs(path(4), [(0, 1), (0, 3)])
    completions = [partial.completed(np.array(edges)) for edges in product((False, True), repeat=2)]

    baseline = complete(model, partial, 0, particles=2).baseline

    # The probability of the known pairs is the sum over completions.
    assert baseline == pytest.approx(np.log(sum(np.exp(-model.sizes.baseline(graph)) for graph in completions)))


@pytest.mark.parametrize(
    ("rule", "particles", "steps", "method", "bias"),
    [
        ("uniform", 16, 60, "chains", 0.05),
        ("uniform", None, 60, "enumeration", 0.02),
        # An untrained model has orderings that these rules never give.
        ("bfs", None, 60, "enumeration", 0.03),
        ("degeneracy", None, 60, "enumeration", 0.03),
        ("attachment", None, 200, "enumeration", 0.06),
    ],
)
def test_probabilities_are_exact_within_their_stated_errors(
    rule: str, particles: int | None, steps: int, method: str, bias: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nearly uniform orderings: an untrained model ignores the rule.
    monkeypatch.setattr(ordering, "SOFTNESS", (0.99,))
    model, partial = autoregressive(rule), PartialGraph.from_pairs(PAW, HIDDEN)
    joint, edges = exact(model, partial)

    found = [complete(model, partial, 0, seed=seed, particles=particles, steps=steps, runs=8) for seed in range(4)]
    scores = [sorted((s.source, s.target, s.probability, s.standard_error) for s in result.scores) for result in found]
    probabilities, errors = np.moveaxis(np.array(scores), -1, 0)[2:]
    off = probabilities - joint / joint.sum() @ edges

    assert {result.method for result in found} == {method}
    assert np.mean([result.log_evidence for result in found]) == pytest.approx(np.log(joint.sum()), abs=0.05)
    assert off.mean(0) == pytest.approx(0, abs=bias)
    # With eight runs, this is the square of a Student t of 7 degrees of freedom, with mean 7 / 5; shared starts or
    # stuck chains would make it many times as large.
    assert 0.3 < np.square(off / errors).mean() < 3.5


@pytest.mark.parametrize(
    ("model", "hidden", "options", "method", "parts"),
    [
        (autoregressive("uniform"), 5, {}, "enumeration", 2**5),
        # The budget of 4 chains of 200 steps is enough for 25 orderings of 32 completions, not of 64.
        (autoregressive("uniform"), 6, {"steps": 200}, "chains", 4 + 200),
        (autoregressive("uniform"), 5, {"steps": 199}, "chains", 4 + 199),
        (autoregressive("attachment"), 3, {"steps": 200}, "enumeration", 2**3),
        (autoregressive("attachment"), 3, {"steps": 199}, "chains", 4 + 199),
        (autoregressive("uniform"), 1, {"particles": 8, "steps": 4}, "chains", 4 + 4),
        (small_model(), 1, {"particles": 8}, "latents", 0),
    ],
)
def test_few_completions_are_enumerated_and_progress_is_reported(
    model: Any, hidden: int, options: dict[str, Any], method: str, parts: int
) -> None:
    partial = PartialGraph.from_pairs(PAW, list(combinations(range(4), 2))[:hidden])
    reported: list[tuple[int, int]] = []

    result = complete(model, partial, 1, progress=lambda done, total: reported.append((done, total)), **options)

    assert result.method == method
    assert reported == [(done, parts) for done in range(1, parts + 1)]


@pytest.mark.parametrize(
    ("model", "graph", "options", "found"),
    [
        (small_model(kind="gae"), path(4), {}, "no-prior"),
        (small_model(observation="normal"), path(4), {}, "weighted-model"),
        (small_model(node_features=3), path(4), {}, "3 node features"),
        (small_model(decoder_features=("identity",), max_nodes=3), path(4), {}, "identity-features"),
        (small_model(), replace(path(4), weights=np.array([2.0, 1.0, 1.0])), {}, "weighted-graph"),
        (small_model(), path(4), {"runs": 1}, "'runs' 1"),
    ],
)
def test_unsuitable_models_and_graphs_fail(model: Any, graph: SimpleGraph, options: dict[str, int], found: str) -> None:
    with pytest.raises(SamplingError) as error:
        complete(model, PartialGraph.from_pairs(graph, [(0, 3)]), 1, **options)

    assert error.value.reason == found or found in str(error.value)


@pytest.mark.parametrize(("changes", "method"), [({}, "particles"), (AUTOREGRESSIVE, "enumeration")])
def test_known_pairs_of_probability_zero_are_refused(changes: dict[str, Any], method: str) -> None:
    model = small_model(**changes)
    with torch.no_grad():
        for parameter in model.network.decoder.parameters():
            parameter.fill_(float("nan"))

    with pytest.raises(SamplingError) as error:
        complete(model, PartialGraph.from_pairs(path(4), [(0, 3)]), 1, steps=20)

    assert error.value.reason == f"impossible-{method}"


def test_graphs_without_unknown_pairs_and_directed_graphs_are_refused() -> None:
    arcs = SimpleGraph.from_pairs(4, [(0, 1)], directed=True)
    for graph, unknown, reason in ((path(4), [], "nothing-unknown"), (arcs, [(0, 2)], "directed-graph")):
        with pytest.raises(DatasetError) as error:
            complete(small_model(), PartialGraph.from_pairs(graph, unknown), 1)
        assert error.value.reason == reason


def test_unlisted_and_unknown_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="'unlisted'"):
        gg.Model(small_model()).complete(nx.path_graph(4), 1, unknown=[(0, 3)], unlisted="absent")
