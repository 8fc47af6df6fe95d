import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from tiny import autoregressive_model as autoregressive
from tiny import coin_model, exact_nll, mild_model, path, poor_model, random_graph, small_model, star

from graphite_gen.data.batch import collate
from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import NLLOptions, estimate_nll, graph_log_weights, iterate_nll, summarise
from graphite_gen.records import GraphNLL


@pytest.mark.parametrize("method", ["is", "ais"])
@pytest.mark.parametrize("features", [("degree", "random"), ("constant",)])
def test_independent_edges_are_exact(features: tuple[str, ...], method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphite_gen.likelihood.proposal.FIT_STEPS", 10)
    model = coin_model(0.7, encoder_features=features)
    graphs = [random_graph(nodes, 0) for nodes in (1, 3, 5)] + [SimpleGraph.from_pairs(4, []), star(5)]

    rows = list(iterate_nll(model, graphs, NLLOptions(40, method=method, chains=40, steps=3)))

    for row, graph in zip(rows, graphs, strict=True):
        pairs, edges = math.comb(graph.nodes, 2), len(graph.edges)
        assert row.nll == pytest.approx(pairs * math.log1p(math.exp(0.7)) - 0.7 * edges)
        assert row.elbo == pytest.approx(-row.nll)
        assert row.ess == pytest.approx(40)
        assert (row.nodes, row.edges, row.khat, row.method) == (graph.nodes, edges, 0, method)


@pytest.mark.parametrize("method", ["is", "ais"])
def test_an_estimate_depends_on_the_index_and_the_seed_alone(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphite_gen.likelihood.proposal.FIT_STEPS", 5)
    model, graph = small_model(), random_graph(4, 0)

    def second(other: SimpleGraph, seed: int) -> float:
        return list(iterate_nll(model, [other, graph], NLLOptions(32, seed, method=method, chains=8, steps=3)))[1].nll

    assert second(path(2), 0) == second(star(5), 0)
    assert second(path(2), 0) != second(path(2), 1)


def test_few_weights_are_reduced_by_their_plain_mean_and_the_ess_of_kish() -> None:
    model, graph = small_model(), random_graph(4, 0)
    # Twenty weights have no tail to smooth.
    weights = graph_log_weights(model.network, collate([graph]), 20, 0, 0).exp().numpy()

    (row,) = iterate_nll(model, [graph], NLLOptions(20))

    assert row.ess == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert row.nll == pytest.approx(-math.log(weights.mean()))
    assert row.elbo == pytest.approx(np.log(weights).mean())


def test_the_mean_has_a_standard_error_a_size_term_and_a_baseline() -> None:
    model = small_model()
    graphs = [random_graph(nodes, 0) for nodes in (3, 4, 5)]

    estimate = estimate_nll(model, graphs, NLLOptions(32, seed=1))

    values = [row.nll for row in estimate.per_graph]
    assert estimate.nll == pytest.approx(np.mean(values))
    assert estimate.standard_error == pytest.approx(np.std(values, ddof=1) / math.sqrt(3))
    assert estimate.size_nats == pytest.approx(-np.mean([math.log(p) for p in (1 / 4, 2 / 4, 1 / 4)]))
    assert estimate.baseline == pytest.approx(np.mean([model.sizes.baseline(graph) for graph in graphs]))
    assert (estimate.graphs, estimate.samples, estimate.model, estimate.convention) == (3, 32, "tiny", "pairs")
    assert json.loads(json.dumps(estimate.to_json()))["per_graph"][2]["nodes"] == 5
    one = estimate_nll(model, [random_graph(2, 0)], NLLOptions(8))
    assert (one.standard_error, one.size_nats) == (None, None)
    assert one.baseline is not None
    with pytest.raises(DatasetError) as error:
        estimate_nll(model, [])
    assert error.value.reason == "empty-dataset"


def test_convention_paper_scores_all_cells_of_the_padded_matrix() -> None:
    graph = random_graph(3, 1)

    estimate = estimate_nll(coin_model(0.7), [graph], NLLOptions(8, convention="paper"))

    # The largest training graph has five nodes: 25 cells, with ones for both directions of an edge and three loops.
    ones = 2 * len(graph.edges) + 3
    cells = [0.7 if cell < ones else -0.7 for cell in range(25)]
    assert estimate.nll == pytest.approx(sum(math.log1p(math.exp(-x)) for x in cells))
    assert (estimate.baseline, estimate.convention) == (None, "paper")


def test_graphs_are_read_one_at_a_time() -> None:
    read: list[int] = []

    def graphs() -> Any:
        for nodes in (3, 4, 5):
            read.append(nodes)
            yield random_graph(nodes, 0)

    next(iterate_nll(small_model(), graphs(), NLLOptions(4)))

    assert read == [3]


def test_weighted_graphs_have_a_density_and_no_baseline() -> None:
    # A graph without edges is both weighted and unweighted.
    graphs = [random_graph(4, 0, weighted=True), random_graph(1, 0)]

    estimate = estimate_nll(small_model(observation="normal"), graphs, NLLOptions(16))

    assert math.isfinite(estimate.nll)
    assert estimate.per_graph[0].baseline is None
    assert estimate.per_graph[1].nll == pytest.approx(0, abs=1)


@pytest.mark.parametrize(
    ("changes", "graph", "fact"),
    [
        ({}, random_graph(0, 0), "Graph 0 has no nodes"),
        ({}, random_graph(3, 0, 1.0, weighted=True), "weighted-unlike-model"),
        ({"observation": "normal"}, star(3), "weighted-unlike-model"),
        ({}, random_graph(3, 0, features=2), "2 node features"),
        ({"node_features": 2}, star(3), "0 node features"),
        ({"name": "paper", "max_nodes": 4}, star(5), "identity-too-small"),
        ({"kind": "gae"}, star(3), "no-likelihood"),
    ],
)
def test_graphs_and_models_that_do_not_fit_are_refused(changes: dict[str, Any], graph: SimpleGraph, fact: str) -> None:
    with pytest.raises(DatasetError) as error:
        estimate_nll(small_model(**changes), [graph], NLLOptions(4))

    assert fact in (error.value.reason or str(error.value))


@pytest.mark.parametrize(
    ("options", "fact"),
    [
        ({"convention": "cells"}, "'convention' is 'cells'"),
        ({"method": "best"}, "'method' is 'best'"),
        ({"samples": 0}, "'samples' is 0"),
        ({"chains": 0}, "'chains' is 0"),
        ({"steps": 0}, "'steps' is 0"),
        ({"convention": "paper", "method": "auto"}, "not a distribution"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], fact: str) -> None:
    with pytest.raises(ConfigError, match=fact):
        NLLOptions(**options)


def test_options_are_resolved_for_a_model() -> None:
    one_shot, sequential = small_model(), autoregressive()

    assert NLLOptions().for_model(one_shot) == NLLOptions(1000)
    assert NLLOptions(method="auto").for_model(one_shot).method == "auto"
    assert NLLOptions(method="auto").for_model(sequential) == NLLOptions(100, method="is")
    with pytest.raises(ConfigError, match="annealed"):
        NLLOptions(method="ais").for_model(sequential)
    for model in (sequential, small_model(observation="normal")):
        with pytest.raises(DatasetError) as dataset:
            NLLOptions(convention="paper").for_model(model)
        assert dataset.value.reason == "needs-pairs"


@pytest.mark.usefixtures("single_precision")
def test_estimates_in_single_precision_agree_with_double() -> None:
    model, graph = small_model(), random_graph(5, 0)
    coins, options = coin_model(0.7), NLLOptions(method="ais", chains=25, steps=3)

    (annealed,) = iterate_nll(coins, [graph], options)
    single = estimate_nll(model, [graph], NLLOptions(64)).nll
    torch.set_default_dtype(torch.float64)
    model.network.double()
    double = estimate_nll(model, [graph], NLLOptions(64)).nll

    assert single == pytest.approx(double, abs=1e-4)
    assert annealed.nll == pytest.approx(10 * math.log1p(math.exp(0.7)) - 0.7 * len(graph.edges), abs=1e-4)
    assert annealed.khat == 0


def test_the_summary_has_the_largest_finite_khat_and_counts_those_above_the_limit() -> None:
    rows = [GraphNLL(3, 2, 1.0, -2.0, 5.0, None, None, khat) for khat in (0.2, 0.9, math.inf, None, 0.7)]

    estimate = summarise("tiny", NLLOptions(8), rows)

    assert (estimate.khat, estimate.flagged) == (0.9, 2)
    assert summarise("tiny", NLLOptions(8), rows[2:4]).khat is None


def test_the_curve_is_averaged_over_graphs_and_starts_at_the_elbo() -> None:
    model, graphs = small_model(), [random_graph(nodes, 0) for nodes in (3, 4, 5)]

    estimate = estimate_nll(model, graphs, NLLOptions(120, curve=True))

    assert [point.samples for point in estimate.curve] == [1, 10, 100, 120]
    assert estimate.curve[0].nll == pytest.approx(-estimate.elbo)
    assert estimate.curve[2].nll == pytest.approx(np.mean([dict(row.curve)[100] for row in estimate.per_graph]))
    assert estimate.curve[0].standard_error is not None
    assert estimate_nll(model, graphs, NLLOptions(120)).curve == ()


def test_the_curve_is_over_chains_for_ais_and_over_samples_for_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphite_gen.likelihood.proposal.FIT_STEPS", 3)
    model, graph = poor_model(latent=1), path(3)

    ais, auto = (
        estimate_nll(model, [graph], NLLOptions(50, method=method, chains=12, steps=2, curve=True))
        for method in ("ais", "auto")
    )

    assert [point.samples for point in ais.curve] == [1, 10, 12]
    assert [point.samples for point in auto.curve] == [1, 10, 50]
    assert auto.annealed == 1


def test_auto_anneals_graphs_with_a_high_khat_and_gets_closer_to_the_exact_nll() -> None:
    model, graph = poor_model(latent=1), path(3)
    exact = exact_nll(model, graph)

    plain = estimate_nll(model, [graph], NLLOptions(300))
    auto = estimate_nll(model, [graph], NLLOptions(300, method="auto", steps=15))

    assert plain.khat is not None
    assert plain.khat > 0.7
    assert (plain.flagged, plain.annealed, plain.method) == (1, 0, "is")
    assert (auto.annealed, auto.method, auto.per_graph[0].method) == (1, "auto", "ais")
    assert abs(auto.nll - exact) < 0.1 < abs(plain.nll - exact)
    assert (auto.chains, auto.steps) == (64, 15)


def test_auto_keeps_good_estimates_and_anneals_where_khat_is_unknown() -> None:
    model, graph = mild_model(latent=1), path(3)

    good = estimate_nll(model, [graph], NLLOptions(300, method="auto"))
    few = estimate_nll(model, [graph], NLLOptions(10, method="auto", chains=8, steps=2))

    assert good.per_graph == estimate_nll(model, [graph], NLLOptions(300)).per_graph
    assert (good.annealed, few.annealed) == (0, 1)
