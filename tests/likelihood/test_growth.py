"""The NLL of a staged model against the sum over all orders of arrival."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from tiny import all_graphs, random_graph, small_model
from tiny import autoregressive_model as autoregressive

from graphite_gen.autoregressive import ordering as orders_module
from graphite_gen.autoregressive.distribution import Schedule
from graphite_gen.autoregressive.ordering import permute_nodes, proposal_log_prob
from graphite_gen.config import ORDERINGS
from graphite_gen.data.batch import collate
from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import bdmc as growth
from graphite_gen.likelihood import estimate_nll, graph_log_weights, importance
from graphite_gen.likelihood.bdmc import _grow, bdmc_nll
from graphite_gen.likelihood.importance import order_log_weights
from graphite_gen.rng import stream
from graphite_gen.sampling import Sampler
from graphite_gen.training.checkpoint import TrainedModel


@torch.no_grad()
def exact_log_prob(model: TrainedModel, graph: SimpleGraph, decoding_steps: int = 0) -> float:
    """log p(A) by summing over all orders of arrival."""
    n = graph.nodes
    orders = torch.tensor(list(itertools.permutations(range(n))))
    batch = collate([graph] * len(orders))
    ordered = permute_nodes(batch, orders)
    z = torch.zeros(len(orders), n, model.config.latent)
    law = model.network.decode_autoregressive(z, ordered.x, ordered.sizes, Schedule(decoding_steps))

    return float(law.log_prob(ordered.adj).logsumexp(0)) - math.lgamma(n + 1)


@pytest.mark.parametrize("decoding_steps", [0, 1, 2])
def test_the_exchangeable_law_sums_to_one_over_all_graphs_on_four_nodes(decoding_steps: int) -> None:
    model = autoregressive()

    total = sum(math.exp(exact_log_prob(model, graph, decoding_steps)) for graph in all_graphs(4))

    assert total == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("order", ORDERINGS)
def test_the_mean_weight_is_the_law_over_all_orders_whatever_the_rule(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An untrained model keeps to no rule, so what a rule leaves out counts: with as few orders of no rule as are in use
    # the noise would hide it.
    monkeypatch.setattr(orders_module, "IRREGULAR_WEIGHT", 0.3)
    model = autoregressive(order)
    for index, graph in enumerate([random_graph(4, 0), random_graph(4, 2), SimpleGraph.from_pairs(4, [(0, 1)])]):
        weights = graph_log_weights(model.network, collate([graph]), 800, 0, index, any_order=0.5)
        ratios = (weights - exact_log_prob(model, graph)).exp()
        error = float(ratios.std()) / math.sqrt(len(ratios))

        assert error < 0.08
        assert abs(float(ratios.mean()) - 1) < 4 * error + 1e-6


@pytest.mark.parametrize("order", ["bfs", "degeneracy", "attachment"])
def test_the_mean_weight_over_the_orders_of_a_rule_is_a_bound(order: str) -> None:
    model = autoregressive(order)
    graph = SimpleGraph.from_pairs(4, [(0, 1), (1, 2)])
    weights = graph_log_weights(model.network, collate([graph]), 500, 0, 0)

    assert float(weights.exp().mean()) < math.exp(exact_log_prob(model, graph))


def encoding(order: str) -> TrainedModel:
    """A staged model whose latents matter and which guesses them by an encoder, far from perfectly."""
    model = autoregressive(order, encoder="residual")
    with torch.no_grad():
        model.network.decoder.latents.weight.fill_(0.7)
        for parameter in model.network.encoder.stack.out.parameters():  # type: ignore[union-attr]
            parameter.mul_(0.3)

    return model


@torch.no_grad()
def quadrature_log_prob(model: TrainedModel, graph: SimpleGraph, points: int = 10) -> float:
    """log p(A) by Gauss-Hermite quadrature over one latent of each node, summed over all orders of arrival."""
    n = graph.nodes
    at, mass = np.polynomial.hermite_e.hermegauss(points)
    grid = torch.from_numpy(np.stack(np.meshgrid(*[at] * n, indexing="ij"), -1).reshape(-1, n, 1))
    log_mass = torch.from_numpy(np.log(mass / mass.sum())[np.indices([points] * n).reshape(n, -1)].sum(0))
    terms = []
    for order in itertools.permutations(range(n)):
        ordered = permute_nodes(collate([graph] * len(grid)), torch.tensor([order] * len(grid)))
        law = model.network.decode_autoregressive(grid, ordered.x, ordered.sizes, Schedule(0))
        terms.append((law.log_prob(ordered.adj) + log_mass).logsumexp(0))

    return float(torch.stack(terms).logsumexp(0)) - math.lgamma(n + 1)


def test_weights_of_an_encoder_agree_with_quadrature_over_the_latents() -> None:
    model = encoding("uniform")
    for index, graph in enumerate([SimpleGraph.from_pairs(2, [(0, 1)]), SimpleGraph.from_pairs(3, [(0, 1), (1, 2)])]):
        exact = quadrature_log_prob(model, graph)
        weights = graph_log_weights(model.network, collate([graph]), 4000, 0, index)
        ratios = (weights - exact).exp()

        assert float(weights.std()) > 0.01, "the encoder is to be put right by its weights"
        assert float(ratios.std()) / math.sqrt(len(ratios)) < 0.1
        assert abs(float(ratios.mean()) - 1) < 5 * float(ratios.std()) / math.sqrt(len(ratios))


def test_weights_of_an_encoder_sum_to_one_over_all_graphs_on_three_nodes() -> None:
    model, total, variance = encoding("uniform"), 0.0, 0.0
    for edges, copies in (([], 1), ([(0, 1)], 3), ([(0, 1), (1, 2)], 3), ([(0, 1), (1, 2), (0, 2)], 1)):
        batch = collate([SimpleGraph.from_pairs(3, edges)])
        weights = graph_log_weights(model.network, batch, 3000, 0, len(edges)).exp()
        total += copies * float(weights.mean())
        variance += copies**2 * float(weights.var()) / len(weights)

    assert variance**0.5 < 0.05
    assert abs(total - 1) < 5 * variance**0.5


def test_numbering_the_nodes_otherwise_does_not_matter() -> None:
    model, graph = autoregressive("uniform"), random_graph(4, 3)
    other = graph.permuted(np.array([3, 0, 1, 2]))

    first, second = estimate_nll(model, [graph], 3000).nll, estimate_nll(model, [other], 3000).nll

    assert first == pytest.approx(second, abs=0.1)


def test_fewer_stages_are_scored_as_such() -> None:
    model, graph = autoregressive("uniform"), random_graph(4, 1)

    for decoding_steps in (1, 2, 3):
        assert estimate_nll(model, [graph], 2000, decoding_steps=decoding_steps).nll == pytest.approx(
            -exact_log_prob(model, graph, decoding_steps), abs=0.1
        )


def grown_for_the_check(model: TrainedModel, count: int) -> list[SimpleGraph]:
    """The graphs that the two-sided check of seed 0 grows."""
    batches = [_grow(model, Schedule(0), stream(0, "growth bounds", index), None)[0] for index in range(count)]

    return [
        SimpleGraph(batch.adj.shape[-1], np.argwhere(np.triu(batch.adj[0].numpy())).astype(np.int32))
        for batch in batches
    ]


@pytest.mark.parametrize("order", ["uniform", "bfs", "degeneracy", "attachment"])
def test_the_bounds_close_on_the_exact_law_of_graphs_that_the_model_grows(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An untrained model keeps to no rule: with as few orders of no rule as are in use, bounds would be too loose to
    # tell a wrong one from a right one.
    monkeypatch.setattr(growth, "UNIFORM_FRACTION", 0.5)
    monkeypatch.setattr(orders_module, "IRREGULAR_WEIGHT", 0.3)
    model = autoregressive(order)
    rows = bdmc_nll(model, 12, samples=400).per_graph
    exact = [-exact_log_prob(model, graph) for graph in grown_for_the_check(model, len(rows))]

    for name, sign in (("upper", 1), ("lower", -1)):
        beyond = sign * (np.array([getattr(row, name) for row in rows]) - exact)
        error = beyond.std(ddof=1) / math.sqrt(len(rows))
        assert error < 0.02
        # A bound is one in expectation and may fall short by its noise; of 400 orders little is left to gain.
        assert -4 * error < beyond.mean() < 4 * error + 0.02


@pytest.mark.parametrize("order", ["bfs", "attachment"])
def test_what_is_checked_is_what_method_is_gives(order: str) -> None:
    model = autoregressive(order)
    rows = bdmc_nll(model, 3, samples=40).per_graph

    estimate = estimate_nll(model, grown_for_the_check(model, len(rows)), 40, method="auto")

    # An untrained model grows graphs as its rule never would: of those orders 'is' knows nothing, and is to be told so.
    assert [row.importance for row in rows] == pytest.approx([row.nll for row in estimate.per_graph])
    assert [row.auto for row in rows] == [row.importance for row in rows]
    assert [row.khat for row in rows] == pytest.approx([row.khat for row in estimate.per_graph])


def test_a_true_order_among_others_has_the_inverse_law_as_its_mean() -> None:
    graph = SimpleGraph.from_pairs(4, [(0, 1), (1, 2), (2, 3)])
    model, batch, rng = autoregressive("attachment"), collate([graph]), np.random.default_rng(0)
    orders = np.array(list(itertools.permutations(range(4))))
    adj, sizes = np.repeat(batch.adj.numpy() > 0, len(orders), 0), np.full(len(orders), 4)
    weights = order_log_weights(model.network, batch, orders, np.zeros(len(orders)), Schedule(0), rng)
    exact, posterior = float(weights.logsumexp(0)), weights.softmax(0)

    # E[1/w] over the posterior, where each order is one candidate among fresh ones, is 1/p(A) exactly.
    means = [
        float(
            posterior
            @ torch.from_numpy(np.exp(proposal_log_prob(adj, sizes, "attachment", orders, rng))).div(weights.exp())
        )
        for _ in range(600)
    ]

    assert np.mean(means) * math.exp(exact) == pytest.approx(
        1, abs=5 * np.std(means) * math.exp(exact) / math.sqrt(600)
    )


def test_larger_graphs_are_weighed_in_smaller_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    weigh = importance.order_log_weights
    monkeypatch.setattr(importance, "BLOCK_CELLS", 16 * 5)
    monkeypatch.setattr(
        importance,
        "order_log_weights",
        lambda *args: seen.append(len(args[2])) or weigh(*args),  # type: ignore[func-returns-value]
    )

    bdmc_nll(autoregressive(graphs=[random_graph(4, 0)]), 1, samples=12)

    # Once for the bounds, and once for what method 'is' gives.
    assert seen == [5, 5, 2, 5, 5, 2]


def test_samples_follow_the_exchangeable_law() -> None:
    model, draws = autoregressive("bfs"), 4000
    classes = {(len(graph.edges), tuple(sorted(graph.degrees().tolist()))): 0.0 for graph in all_graphs(4)}
    for graph in all_graphs(4):
        classes[len(graph.edges), tuple(sorted(graph.degrees().tolist()))] += math.exp(exact_log_prob(model, graph))

    seen = dict.fromkeys(classes, 0)
    labels = np.zeros(4)
    for graph in Sampler(model, draws, nodes=4):
        seen[len(graph.edges), tuple(sorted(graph.degrees().tolist()))] += 1
        labels += graph.degrees()

    for key, probability in classes.items():
        assert abs(seen[key] - draws * probability) < 5 * math.sqrt(draws * probability) + 3
    # A node's number says nothing about when it came.
    assert labels.max() - labels.min() < 0.1 * labels.mean()


def test_what_a_staged_model_cannot_do_is_said() -> None:
    model, graphs = autoregressive(), [random_graph(4, 0)]

    with pytest.raises(ConfigError, match="cannot be annealed"):
        estimate_nll(model, graphs, method="ais")
    with pytest.raises(DatasetError, match="no convention 'paper'"):
        estimate_nll(model, graphs, convention="paper")
    with pytest.raises(ConfigError, match="stages have no use"):
        estimate_nll(small_model(), graphs, decoding_steps=4)
