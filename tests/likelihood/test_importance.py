from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from tiny import (
    all_graphs,
    coin_model,
    exact_nll,
    mild_model,
    normal,
    path,
    poor_model,
    random_graph,
    small_model,
    star,
)

from graphite_gen.data.batch import collate
from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import estimate_nll, graph_log_weights, iterate_nll, summarise
from graphite_gen.likelihood.importance import _blocks
from graphite_gen.records import GraphNLL
from graphite_gen.training.objectives import log_weights


@pytest.mark.parametrize("features", [("degree", "random"), ("constant",)])
def test_a_model_of_coins_has_exactly_the_closed_form(features: tuple[str, ...]) -> None:
    model = coin_model(0.7, encoder_features=features)
    graphs = [random_graph(nodes, 0) for nodes in (1, 3, 5)]

    rows = list(iterate_nll(model, graphs, samples=40))

    for row, graph in zip(rows, graphs, strict=True):
        pairs, edges = math.comb(graph.nodes, 2), len(graph.edges)
        assert row.nll == pytest.approx(pairs * math.log1p(math.exp(0.7)) - 0.7 * edges)
        assert row.elbo == pytest.approx(-row.nll)
        assert row.ess == pytest.approx(40)
        assert (row.nodes, row.edges) == (graph.nodes, edges)


@pytest.mark.parametrize("name", ["one-shot", "paper"])
def test_probabilities_of_all_graphs_on_four_nodes_sum_to_one(name: str) -> None:
    model = mild_model(name, latent=3)
    total, variance = 0.0, 0.0
    for index, graph in enumerate(all_graphs(4)):
        weights = graph_log_weights(model.network, collate([graph], 6), 1024, 0, index).exp()
        total += float(weights.mean())
        variance += float(weights.var()) / len(weights)

    assert variance**0.5 < 0.05
    assert abs(total - 1) < 5 * variance**0.5


@pytest.mark.parametrize("samples", [1, 5, 16, 17, 256, 300, 1000, 1001])
@pytest.mark.parametrize("nodes", [1, 20, 3000, 10**5])
def test_blocks_hold_exactly_the_samples_asked_for_and_never_too_many_cells(samples: int, nodes: int) -> None:
    blocks = list(_blocks(samples, nodes))

    assert sum(mixture * each for mixture, each in blocks) == samples
    assert all(mixture * each <= 256 for mixture, each in blocks)
    assert all(mixture * each * nodes**2 <= 1 << 24 or mixture * each == 1 for mixture, each in blocks)


def test_a_longer_estimate_begins_with_the_weights_of_the_shorter_one() -> None:
    model, batch = small_model(), collate([random_graph(4, 0)], 5)

    long = graph_log_weights(model.network, batch, 600, 0, 3)
    short = graph_log_weights(model.network, batch, 256, 0, 3)

    assert long.shape == (600,)
    assert long.dtype == torch.float64
    assert torch.equal(long[:256], short)
    assert not torch.equal(long[256:512], short)


def test_the_estimate_of_a_graph_depends_on_its_place_and_the_seed_and_not_on_its_neighbours() -> None:
    model, graph = small_model(), random_graph(4, 0)

    def second(other: SimpleGraph, seed: int) -> float:
        return list(iterate_nll(model, [other, graph], 32, seed))[1].nll

    assert second(path(2), 0) == second(star(5), 0)
    assert second(path(2), 0) != second(path(2), 1)


def test_a_mixture_of_proposals_agrees_with_single_ones() -> None:
    model, batch = mild_model(), collate([random_graph(4, 0)], 5)

    with torch.no_grad():
        mixed = graph_log_weights(model.network, batch, 8192, 0, 0).exp()
        noise, epsilon = normal(64, 1, 5, 3), normal(64, 128, 1, 5, 2, seed=1)
        single = torch.stack(
            [
                log_weights(model.network, batch, e[None], f[None])[:, 0].exp()
                for e, f in zip(noise, epsilon, strict=True)
            ]
        )

    # Weights of one single proposal share its random features: its mean is the independent unit.
    means = single.mean(1)
    error = math.sqrt(float(mixed.var()) / 8192 + float(means.var()) / 64)
    assert abs(float(mixed.mean() - means.mean())) < 5 * error
    assert error < 0.1 * float(mixed.mean())


def test_renumbering_the_nodes_changes_the_estimate_by_its_error_alone() -> None:
    model, graph = mild_model(latent=3), random_graph(4, 3)

    def mean(graph: SimpleGraph) -> tuple[float, float]:
        weights = graph_log_weights(model.network, collate([graph], 5), 8192, 0, 0).exp()
        return float(weights.mean()), float(weights.var()) / 8192

    (first, a), (second, b) = mean(graph), mean(graph.permuted([2, 3, 1, 0]))

    assert abs(first - second) < 5 * math.sqrt(a + b)
    assert math.sqrt(a + b) < 0.1 * first


def test_effective_samples_lie_between_one_and_all_and_the_bound_below_the_estimate() -> None:
    model = small_model()
    graphs = [random_graph(nodes, seed) for nodes in (2, 4, 5) for seed in range(3)]

    for row in iterate_nll(model, graphs, 64):
        assert 1 - 1e-9 <= row.ess <= 64 + 1e-9
        assert row.elbo <= -row.nll


def test_effective_samples_are_those_of_kish() -> None:
    model, graph = small_model(), random_graph(4, 0)
    # Twenty weights have no tail to speak of, so nothing is smoothed.
    weights = graph_log_weights(model.network, collate([graph]), 20, 0, 0).exp().numpy()

    (row,) = iterate_nll(model, [graph], 20)

    assert row.ess == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert row.nll == pytest.approx(-math.log(weights.mean()))
    assert row.elbo == pytest.approx(np.log(weights).mean())


def test_the_mean_carries_its_standard_error_over_graphs_and_its_company() -> None:
    model = small_model()
    graphs = [random_graph(nodes, 0) for nodes in (3, 4, 5)]

    estimate = estimate_nll(model, graphs, 32, seed=1)

    values = [row.nll for row in estimate.per_graph]
    assert estimate.nll == pytest.approx(np.mean(values))
    assert estimate.standard_error == pytest.approx(np.std(values, ddof=1) / math.sqrt(3))
    assert estimate.size_nats == pytest.approx(-np.mean([math.log(p) for p in (1 / 4, 2 / 4, 1 / 4)]))
    assert estimate.baseline == pytest.approx(np.mean([model.sizes.baseline(graph) for graph in graphs]))
    assert (estimate.graphs, estimate.samples, estimate.model, estimate.convention) == (3, 32, "tiny", "pairs")
    assert json.loads(json.dumps(estimate.to_json()))["per_graph"][2]["nodes"] == 5


def test_one_graph_has_no_standard_error_and_an_unseen_size_no_nats() -> None:
    estimate = estimate_nll(small_model(), [random_graph(2, 0)], 8)

    assert estimate.standard_error is None
    assert estimate.size_nats is None
    assert estimate.baseline is not None


def test_the_convention_of_the_paper_scores_every_cell_of_the_padded_matrix() -> None:
    model = coin_model(0.7)
    graph = random_graph(3, 1)

    estimate = estimate_nll(model, [graph], 8, convention="paper")

    # Five nodes were the most in training: 25 cells, of which both of each edge and the three loops are ones.
    ones = 2 * len(graph.edges) + 3
    cells = [0.7 if cell < ones else -0.7 for cell in range(25)]
    assert estimate.nll == pytest.approx(sum(math.log1p(math.exp(-x)) for x in cells))
    assert estimate.baseline is None
    assert estimate.convention == "paper"


def test_graphs_are_read_one_at_a_time() -> None:
    read: list[int] = []

    def graphs() -> object:
        for nodes in (3, 4, 5):
            read.append(nodes)
            yield random_graph(nodes, 0)

    next(iterate_nll(small_model(), graphs(), 4))

    assert read == [3]


@pytest.mark.parametrize(
    ("changes", "graph", "message"),
    [
        ({}, random_graph(0, 0), "Graph 0 has no nodes"),
        ({}, random_graph(3, 0, 1.0, weighted=True), "Graph 0 is weighted, but 'tiny' was trained on unweighted"),
        ({"observation": "normal"}, star(3), "Graph 0 is unweighted, but 'tiny' was trained on weighted"),
        ({}, random_graph(3, 0, features=2), "has 2 node features, but 'tiny' was trained with 0"),
        ({"node_features": 2}, star(3), "has 0 node features, but 'tiny' was trained with 2"),
        ({"name": "paper", "max_nodes": 4}, star(5), "has 5 nodes, but 'tiny' tells nodes apart by number and knows 4"),
    ],
)
def test_graphs_that_do_not_suit_the_model_are_refused(changes: dict, graph: SimpleGraph, message: str) -> None:
    with pytest.raises(DatasetError, match=message):
        estimate_nll(small_model(**changes), [graph], 4)


def test_weighted_graphs_have_a_density_and_no_baseline_and_an_edgeless_one_is_of_either_kind() -> None:
    model = small_model(observation="normal")

    estimate = estimate_nll(model, [random_graph(4, 0, weighted=True), random_graph(1, 0)], 16)

    assert math.isfinite(estimate.nll)
    assert estimate.per_graph[0].baseline is None
    assert estimate.per_graph[1].nll == pytest.approx(0, abs=1)


def test_what_cannot_be_estimated_is_refused_with_a_reason() -> None:
    graphs = [star(3)]

    with pytest.raises(DatasetError, match="'tiny' is a gae: an autoencoder has no likelihood"):
        estimate_nll(small_model(kind="gae"), graphs, 4)
    with pytest.raises(DatasetError, match="Convention 'paper' is for unweighted graphs"):
        estimate_nll(small_model(observation="normal"), graphs, 4, convention="paper")
    with pytest.raises(ConfigError, match="'convention' is 'cells'; choose one of pairs, paper"):
        estimate_nll(small_model(), graphs, 4, convention="cells")
    with pytest.raises(ConfigError, match="'samples' is 0; it should be at least 1"):
        estimate_nll(small_model(), graphs, 0)
    with pytest.raises(DatasetError, match="no graphs to score"):
        summarise("tiny", "pairs", 4, [])


@pytest.mark.usefixtures("single_precision")
def test_estimates_in_single_precision_agree_with_double() -> None:
    model, graph = small_model(), random_graph(5, 0)

    single = estimate_nll(model, [graph], 64).nll
    torch.set_default_dtype(torch.float64)
    model.network.double()
    double = estimate_nll(model, [graph], 64).nll

    assert single == pytest.approx(double, abs=1e-4)


@pytest.mark.parametrize("graph", [path(3), star(2), SimpleGraph.from_pairs(3, [])])
def test_importance_sampling_agrees_with_quadrature(graph: SimpleGraph) -> None:
    model = mild_model(latent=1)

    (row,) = iterate_nll(model, [graph], 20_000)

    assert row.nll == pytest.approx(exact_nll(model, graph), abs=5 / math.sqrt(row.ess))
    assert row.ess > 2000
    assert row.khat is not None
    assert row.khat < 0.7


def test_the_largest_finite_shape_stands_for_all_and_those_above_the_limit_are_counted() -> None:
    shapes = [0.2, 0.9, math.inf, None, 0.7]
    rows = [GraphNLL(3, 2, 1.0, -2.0, 5.0, None, None, khat) for khat in shapes]

    estimate = summarise("tiny", "pairs", 8, rows)

    assert estimate.khat == 0.9
    assert estimate.flagged == 2
    assert summarise("tiny", "pairs", 8, rows[2:4]).khat is None


def test_the_curve_is_averaged_over_graphs_and_begins_with_the_bound() -> None:
    model, graphs = small_model(), [random_graph(nodes, 0) for nodes in (3, 4, 5)]

    estimate = estimate_nll(model, graphs, 120, curve=True)

    assert [point.samples for point in estimate.curve] == [1, 10, 100, 120]
    assert estimate.curve[0].nll == pytest.approx(-estimate.elbo)
    assert estimate.curve[2].nll == pytest.approx(np.mean([dict(row.curve)[100] for row in estimate.per_graph]))
    assert estimate.curve[0].standard_error is not None
    assert estimate_nll(model, graphs, 120).curve == ()


def test_annealing_has_a_curve_over_its_chains_and_the_automatic_choice_one_over_samples(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("graphite_gen.likelihood.proposal.FIT_STEPS", 3)
    model, graph = poor_model(latent=1), path(3)

    ais = estimate_nll(model, [graph], 50, method="ais", chains=12, steps=2, curve=True)
    auto = estimate_nll(model, [graph], 50, method="auto", chains=12, steps=2, curve=True)

    assert [point.samples for point in ais.curve] == [1, 10, 12]
    assert [point.samples for point in auto.curve] == [1, 10, 50]
    assert auto.annealed == 1


def test_settings_of_the_methods_are_checked() -> None:
    model, graphs = small_model(), [star(3)]

    with pytest.raises(ConfigError, match="'method' is 'best'; choose one of is, ais, auto"):
        estimate_nll(model, graphs, 4, method="best")
    with pytest.raises(ConfigError, match="'steps' is 0; it should be at least 1"):
        estimate_nll(model, graphs, 4, method="ais", steps=0)
    with pytest.raises(ConfigError, match="Convention 'paper' is no law to anneal towards"):
        estimate_nll(model, graphs, 4, convention="paper", method="auto")
