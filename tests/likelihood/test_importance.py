from __future__ import annotations

import math

import pytest
import torch
from tiny import all_graphs, exact_nll, mild_model, normal, path, random_graph, small_model, star

from graphite_gen.data.batch import collate
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import NLLOptions, graph_log_weights, iterate_nll
from graphite_gen.likelihood.importance import _blocks
from graphite_gen.training.objectives import log_weights


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


@pytest.mark.parametrize("graph", [path(3), star(2), SimpleGraph.from_pairs(3, [])])
def test_importance_sampling_agrees_with_quadrature(graph: SimpleGraph) -> None:
    model = mild_model(latent=1)

    (row,) = iterate_nll(model, [graph], NLLOptions(20_000))

    assert row.nll == pytest.approx(exact_nll(model, graph), abs=5 / math.sqrt(row.ess))
    assert row.ess > 2000
    assert row.khat is not None
    assert row.khat < 0.7


@pytest.mark.parametrize("samples", [1, 5, 16, 17, 256, 300, 1000, 1001])
@pytest.mark.parametrize("nodes", [1, 20, 3000, 10**5])
def test_blocks_have_the_requested_samples_within_the_memory_limit(samples: int, nodes: int) -> None:
    blocks = list(_blocks(samples, nodes))

    assert sum(mixture * each for mixture, each in blocks) == samples
    assert all(mixture * each <= 256 for mixture, each in blocks)
    assert all(mixture * each * nodes**2 <= 1 << 24 or mixture * each == 1 for mixture, each in blocks)


def test_more_samples_extend_the_weights_of_fewer() -> None:
    model, batch = small_model(), collate([random_graph(4, 0)], 5)

    long = graph_log_weights(model.network, batch, 600, 0, 3)
    short = graph_log_weights(model.network, batch, 256, 0, 3)

    assert long.shape == (600,)
    assert long.dtype == torch.float64
    assert torch.equal(long[:256], short)
    assert not torch.equal(long[256:512], short)


def test_a_mixture_of_proposals_agrees_with_single_ones() -> None:
    model, batch = mild_model(), collate([random_graph(4, 0)], 5)

    with torch.no_grad():
        mixed = graph_log_weights(model.network, batch, 8192, 0, 0).exp()
        noise, epsilon = normal(64, 1, 5, 3), normal(64, 128, 1, 5, 2, seed=1)
        # Weights of a single proposal share its random features: its mean is the independent unit.
        means = torch.stack(
            [
                log_weights(model.network, batch, e[None], f[None])[:, 0].exp().mean()
                for e, f in zip(noise, epsilon, strict=True)
            ]
        )

    error = math.sqrt(float(mixed.var()) / 8192 + float(means.var()) / 64)
    assert abs(float(mixed.mean() - means.mean())) < 5 * error
    assert error < 0.1 * float(mixed.mean())


def test_renumbering_nodes_changes_the_estimate_within_its_error() -> None:
    model, graph = mild_model(latent=3), random_graph(4, 3)

    def mean(graph: SimpleGraph) -> tuple[float, float]:
        weights = graph_log_weights(model.network, collate([graph], 5), 8192, 0, 0).exp()
        return float(weights.mean()), float(weights.var()) / 8192

    (first, a), (second, b) = mean(graph), mean(graph.permuted([2, 3, 1, 0]))

    assert abs(first - second) < 5 * math.sqrt(a + b)
    assert math.sqrt(a + b) < 0.1 * first
