import itertools
import json
import math
from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from tiny import all_graphs, coin_model, exact_nll, mild_model, poor_model, random_graph, small_model
from tiny import autoregressive_model as autoregressive

from graphite_gen.autoregressive import ordering as orders_module
from graphite_gen.autoregressive.ordering import proposal_log_prob
from graphite_gen.config import ORDERINGS
from graphite_gen.data.batch import GraphBatch, collate
from graphite_gen.data.schema import AttributeSchema
from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import NLLOptions, bdmc, bdmc_nll, estimate_nll, graph_log_weights, importance, proposal
from graphite_gen.likelihood.bdmc import GraphBDMC, _simulate, summarise_bdmc
from graphite_gen.likelihood.importance import order_log_weights
from graphite_gen.rng import stream
from graphite_gen.sampling import Sampler
from graphite_gen.training.checkpoint import TrainedModel

from ..families.helpers import ALPHA, fit


def simulated(model: TrainedModel, index: int) -> tuple[GraphBatch, torch.Tensor]:
    """The graph that is sampled for the bounds, and its latents."""
    rng = stream(0, "growth bounds" if model.config.is_autoregressive else "sandwich graph", index)

    return _simulate(model, rng, None)


def simulated_graph(model: TrainedModel, index: int) -> SimpleGraph:
    return SimpleGraph.from_adjacency(simulated(model, index)[0].adj[0].numpy())


def test_the_bounds_of_independent_edges_are_their_closed_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal, "FIT_STEPS", 10)
    result = bdmc_nll(coin_model(0.7), 3, NLLOptions(30, chains=8, steps=2))

    for row in result.per_graph:
        exact = math.comb(row.nodes, 2) * math.log1p(math.exp(0.7)) - 0.7 * row.edges
        assert row.lower == pytest.approx(exact)
        assert row.upper == pytest.approx(exact)
        assert row.importance == pytest.approx(exact)
    assert result.gap == pytest.approx(0, abs=1e-9)


def test_the_exact_nll_lies_between_the_bounds() -> None:
    graphs = [SimpleGraph.from_pairs(3, [(0, 1)])] * 3
    model = poor_model(latent=1, graphs=graphs)
    result = bdmc_nll(model, 6, NLLOptions(50, chains=16, steps=10))
    sampled = [simulated_graph(model, index) for index in range(6)]

    assert [(row.nodes, row.edges) for row in result.per_graph] == [(3, len(graph.edges)) for graph in sampled]
    # The bounds hold on average.
    exact = np.mean([exact_nll(model, graph) for graph in sampled])
    assert result.lower - 0.05 < exact < result.upper + 0.05
    assert result.gap < 0.5


def test_samples_follow_the_distribution_of_the_model() -> None:
    model = mild_model(latent=1, graphs=[SimpleGraph.from_pairs(2, [])])
    batch, z = simulated(model, 7)
    assert batch.adj.shape == (1, 2, 2)
    assert z.shape == (1, 2, 1)
    assert torch.equal(batch.adj, batch.adj.mT)

    edges = np.mean([float(simulated(model, index)[0].adj[0, 0, 1]) for index in range(4000)])

    exact = math.exp(-exact_nll(model, SimpleGraph.from_pairs(2, [(0, 1)])))
    assert edges == pytest.approx(exact, abs=5 * 0.5 / math.sqrt(4000))


def test_importance_sampling_from_a_poor_proposal_is_outside_the_bounds() -> None:
    model = poor_model(latent=2)
    result = bdmc_nll(model, 5, NLLOptions(30, chains=16, steps=20))

    assert result.gap < 0.5
    assert result.importance_distance > 0.1
    assert result.importance - result.importance_distance == pytest.approx(max(result.upper, result.lower))
    assert abs(result.auto_distance) < result.importance_distance
    assert json.loads(json.dumps(result.to_json()))["per_graph"][4]["nodes"] == result.per_graph[4].nodes


def test_the_means_are_over_graphs_and_the_gap_is_paired() -> None:
    rows = [GraphBDMC(3, 1, 10.0, 11.0, 14.0, 0.9), GraphBDMC(4, 2, 20.0, 20.5, 20.2, 0.1)]

    result = summarise_bdmc("tiny", NLLOptions(9, chains=8, steps=7), rows)

    assert (result.lower, result.upper, result.gap) == (15.0, 15.75, 0.75)
    assert result.gap_standard_error == pytest.approx(np.std([1, 0.5], ddof=1) / math.sqrt(2))
    assert result.largest_gap == 1.0
    assert (result.importance, result.auto) == pytest.approx((17.1, 15.6))
    assert result.importance_distance == pytest.approx(17.1 - 15.75)
    assert result.auto_distance == 0
    assert (result.samples, result.chains, result.steps) == (9, 8, 7)
    # Only one-shot models are annealed.
    poor, orderings = (GraphBDMC(3, 1, 10.0, 11.0, 14.0, 0.9, anneals=anneals) for anneals in (True, False))
    assert (poor.auto, orderings.auto) == (11.0, 14.0)
    result = summarise_bdmc("tiny", NLLOptions(9), [orderings])
    assert (result.chains, result.steps, result.auto) == (None, None, 14.0)


def test_weighted_graphs_and_node_features_have_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal, "FIT_STEPS", 20)
    features = [random_graph(3, 0, features=2), random_graph(5, 0, features=2)]

    options = NLLOptions(30, chains=8, steps=10)
    weighted = bdmc_nll(mild_model(observation="normal"), 2, options)
    featured = bdmc_nll(mild_model(node_features=2), 3, options, features=features)

    assert abs(weighted.gap) < 2
    assert abs(featured.gap) < 2
    assert [row.nodes for row in featured.per_graph] == [3, 5, 3]


def test_models_without_likelihood_or_features_are_refused() -> None:
    with pytest.raises(DatasetError) as error:
        bdmc_nll(small_model(kind="gae"), 1)
    assert error.value.reason == "no-likelihood"
    with pytest.raises(DatasetError, match="2 node features"):
        bdmc_nll(small_model(node_features=2), 1)
    with pytest.raises(ConfigError, match="'graphs' is 0"):
        bdmc_nll(small_model(), 0)


@torch.no_grad()
def exact_log_prob(model: TrainedModel, graph: SimpleGraph) -> float:
    """log p(A) by summing over all node orderings."""
    return exact_log_prob_of(model, collate([model.schema.encode(graph)]))


@torch.no_grad()
def exact_log_prob_of(model: TrainedModel, batch: GraphBatch) -> float:
    """The same for the one graph of a batch without padding, with all its attributes."""
    n = batch.mask.shape[-1]
    orders = torch.tensor(list(itertools.permutations(range(n))))
    ordered = batch.each(lambda part: part.expand(len(orders), *part.shape[1:])).reordered(orders)
    z = torch.zeros(len(orders), n, model.config.latent)
    graphs = model.network.decode_autoregressive(z, ordered.x, ordered.sizes)

    return float(graphs.log_prob_of(ordered).logsumexp(0)) - math.lgamma(n + 1)


@pytest.mark.parametrize("order", [order for order in ORDERINGS if order != "topological"])
def test_the_mean_weight_is_the_sum_over_all_node_orderings(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # An untrained model ignores the rule: with the default proposals, noise would hide a bias.
    monkeypatch.setattr(orders_module, "IRREGULAR_WEIGHT", 0.3)
    monkeypatch.setattr(orders_module, "SOFTNESS", (0.9, 0.99))
    model = autoregressive(order)
    for index, graph in enumerate([random_graph(4, 0), random_graph(4, 2), SimpleGraph.from_pairs(4, [(0, 1)])]):
        weights = graph_log_weights(model.network, collate([graph]), 1600, 0, index, soft_fraction=0.5)
        ratios = (weights - exact_log_prob(model, graph)).exp()
        error = float(ratios.std()) / math.sqrt(len(ratios))

        assert error < 0.08
        assert abs(float(ratios.mean()) - 1) < 4 * error + 1e-6


@pytest.mark.parametrize("order", ["bfs", "degeneracy", "attachment"])
def test_the_mean_weight_over_the_orderings_of_a_rule_is_a_lower_bound(order: str) -> None:
    model = autoregressive(order)
    graph = SimpleGraph.from_pairs(4, [(0, 1), (1, 2)])
    weights = graph_log_weights(model.network, collate([graph]), 500, 0, 0, soft_fraction=0)

    assert float(weights.exp().mean()) < math.exp(exact_log_prob(model, graph))


def test_orderings_that_a_rule_cannot_give_are_flagged_or_found() -> None:
    model = autoregressive("attachment", scale=0.6)
    graphs = [random_graph(6, seed) for seed in range(6)]
    exact = np.array([-exact_log_prob(model, graph) for graph in graphs])

    found = estimate_nll(model, graphs, NLLOptions(1000)).per_graph

    for row, nll in zip(found, exact, strict=True):
        assert row.nll == pytest.approx(nll, abs=0.3) or (row.khat or 0) > 0.7


def encoding(order: str) -> TrainedModel:
    """An autoregressive model that depends on its latents and has an inaccurate encoder."""
    model = autoregressive(order, encoder="residual")
    with torch.no_grad():
        model.network.decoder.products.weight.fill_(0.7)
        for parameter in model.network.encoder.stack.out.parameters():  # type: ignore[union-attr]
            parameter.mul_(0.3)

    return model


@torch.no_grad()
def quadrature_log_prob(model: TrainedModel, graph: SimpleGraph, points: int = 10) -> float:
    """log p(A) by Gauss-Hermite quadrature over one latent per node, summed over all node orderings."""
    n = graph.nodes
    at, mass = np.polynomial.hermite_e.hermegauss(points)
    grid = torch.from_numpy(np.stack(np.meshgrid(*[at] * n, indexing="ij"), -1).reshape(-1, n, 1))
    log_mass = torch.from_numpy(np.log(mass / mass.sum())[np.indices([points] * n).reshape(n, -1)].sum(0))
    terms = []
    for order in itertools.permutations(range(n)):
        ordered = collate([graph] * len(grid)).reordered(torch.tensor([order] * len(grid)))
        graphs = model.network.decode_autoregressive(grid, ordered.x, ordered.sizes)
        terms.append((graphs.log_prob(ordered.adj) + log_mass).logsumexp(0))

    return float(torch.stack(terms).logsumexp(0)) - math.lgamma(n + 1)


def test_weights_of_an_encoder_agree_with_quadrature_over_the_latents() -> None:
    model = encoding("uniform")
    for index, graph in enumerate([SimpleGraph.from_pairs(2, [(0, 1)]), SimpleGraph.from_pairs(3, [(0, 1), (1, 2)])]):
        exact = quadrature_log_prob(model, graph)
        weights = graph_log_weights(model.network, collate([graph]), 4000, 0, index)
        ratios = (weights - exact).exp()

        assert float(weights.std()) > 0.01, "the encoder is not exact"
        assert float(ratios.std()) / math.sqrt(len(ratios)) < 0.1
        assert abs(float(ratios.mean()) - 1) < 5 * float(ratios.std()) / math.sqrt(len(ratios))


@pytest.mark.parametrize("order", ["uniform", "bfs", "degeneracy", "attachment"])
def test_autoregressive_bounds_agree_with_the_exact_nll(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # An untrained model ignores the rule: with the default proposals, the bounds would be loose.
    monkeypatch.setattr(orders_module, "SOFTNESS", (0.9, 0.99))
    for name in ("graph_log_weights", "proposal_log_prob"):
        monkeypatch.setattr(bdmc, name, partial(getattr(bdmc, name), soft_fraction=0.5))
    monkeypatch.setattr(orders_module, "IRREGULAR_WEIGHT", 0.3)
    model = autoregressive(order)
    rows = bdmc_nll(model, 12, NLLOptions(400)).per_graph
    exact = [-exact_log_prob(model, graph) for graph in (simulated_graph(model, index) for index in range(12))]

    for name, sign in (("upper", 1), ("lower", -1)):
        beyond = sign * (np.array([getattr(row, name) for row in rows]) - exact)
        error = beyond.std(ddof=1) / math.sqrt(len(rows))
        assert error < 0.03
        # A bound holds in expectation, and 400 orderings make it tight.
        assert -4 * error < beyond.mean() < 4 * error + 0.02


ATTRIBUTED: dict[str, dict[str, Any]] = {
    "labels": {"node_label": "kind"},
    "types": {"edge_label": "bond"},
    "weights": {"weighted": True},
    "directed": {"directed": True, "edge_label": "bond"},
    "topological": {"directed": True, "weighted": True},
    "conditions": {"node_label": "kind", "condition": ["class", "edges"]},
    "all": {"directed": True, "node_label": "kind", "edge_label": "bond", "weighted": True, "condition": ["class"]},
}


def attributed_model(
    directed: bool = False, order: str = "uniform", scale: float = 0.5, nodes: int = 3, **names: Any
) -> TrainedModel:
    """An untrained model of graphs with attributes, whose weights matter, but which ignores its latents."""
    rng, graphs = np.random.default_rng(1), []
    for kind in ("x", "y"):
        pairs = [(0, 1), (1, 0), (2, 1)] if directed else [(0, 1), (1, 2)]
        graph = SimpleGraph.from_pairs(nodes, pairs, directed)
        count = len(graph.edges)
        graph = replace(graph, weights=rng.lognormal(size=count) if names.get("weighted") else None)
        columns: dict[str, Any] = {"edge_attributes": {"bond": [*"abb"][:count]} if "edge_label" in names else {}}
        columns["node_attributes"] = {"kind": [*"uvvu"][:nodes]} if "node_label" in names else {}
        graphs.append(replace(graph, attributes={"class": kind}, **columns))
    schema = AttributeSchema.of(graphs, **names)
    model = autoregressive(order, scale, graphs=[graph.skeleton() for graph in graphs], **schema.settings())

    return replace(model, schema=schema)


@pytest.mark.parametrize("kind", ATTRIBUTED)
def test_bounds_of_graphs_with_attributes_agree_with_the_exact_nll(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders_module, "SOFTNESS", (0.9, 0.99))
    for name in ("graph_log_weights", "proposal_log_prob"):
        monkeypatch.setattr(bdmc, name, partial(getattr(bdmc, name), soft_fraction=0.5))
    model = attributed_model(**ATTRIBUTED[kind], order="topological" if kind == "topological" else "uniform")

    rows = bdmc_nll(model, 12, NLLOptions(300)).per_graph

    batches = [simulated(model, index)[0] for index in range(12)]
    exact = np.array([-exact_log_prob_of(model, batch) for batch in batches])
    assert exact.std() > 0.1
    for name, sign in (("upper", 1), ("lower", -1)):
        beyond = sign * (np.array([getattr(row, name) for row in rows]) - exact)
        error = beyond.std(ddof=1) / math.sqrt(len(rows))
        assert error < 0.03
        assert -4 * error - 1e-6 < beyond.mean() < 4 * error + 0.02


def test_graphs_with_attributes_are_simulated_from_the_model() -> None:
    model, draws = attributed_model(**{**ATTRIBUTED["all"], "weighted": False}, scale=0.9), 600
    seen = [simulated(model, index)[0] for index in range(draws)]

    def log_probs(batches: list[GraphBatch]) -> dict[str, torch.Tensor]:
        whole = GraphBatch(
            *(
                None if parts[0] is None else torch.cat(parts)
                for parts in zip(*(vars(batch).values() for batch in batches), strict=True)
            )
        )
        z = torch.zeros(len(batches), 3, 1)
        with torch.no_grad():
            return model.network.decode_autoregressive(z, whole.x, whole.sizes).log_probs(whole)

    # The probability of the discrete part of every graph, by its own conditions.
    found = log_probs(seen)
    chances = (found["structure"] + found["labels"] + found["types"]).exp()
    keys = [tuple(part.flatten().tolist() for part in (b.x, b.adj, b.labels, b.states)) for b in seen]  # type: ignore[union-attr]
    unique = {str(key): index for index, key in enumerate(keys)}
    counts = Counter(map(str, keys))
    conditions = Counter(str(key[0]) for key in keys)
    assert len(conditions) == 2
    chosen = [key for key, index in unique.items() if chances[index] * conditions[str(keys[index][0])] > 4]
    assert len(chosen) > 8
    expected = np.array([float(chances[unique[key]]) * conditions[str(keys[unique[key]][0])] for key in chosen])
    observed = np.array([counts[key] for key in chosen])
    assert (np.square(observed - expected) / expected).sum() < len(chosen) + 5 * math.sqrt(2 * len(chosen))


@pytest.mark.parametrize("order", ["bfs", "attachment"])
def test_the_checked_estimate_is_that_of_method_is(order: str) -> None:
    model = autoregressive(order)
    rows = bdmc_nll(model, 3, NLLOptions(40)).per_graph

    estimate = estimate_nll(model, [simulated_graph(model, index) for index in range(3)], NLLOptions(40))

    assert [row.importance for row in rows] == pytest.approx([row.nll for row in estimate.per_graph])
    assert [row.auto for row in rows] == [row.importance for row in rows]
    assert [row.khat for row in rows] == pytest.approx([row.khat for row in estimate.per_graph])


def test_the_inverse_weight_of_an_exact_ordering_is_unbiased() -> None:
    graph = SimpleGraph.from_pairs(4, [(0, 1), (1, 2), (2, 3)])
    model, batch, rng = autoregressive("attachment"), collate([graph]), np.random.default_rng(0)
    orders = np.array(list(itertools.permutations(range(4))))
    adj, sizes = np.repeat(batch.adj.numpy() > 0, len(orders), 0), np.full(len(orders), 4)
    weights = order_log_weights(model.network, batch, orders, np.zeros(len(orders)), rng)
    exact, posterior = float(weights.logsumexp(0)), weights.softmax(0)

    # E[1/w] over the posterior of orderings is 1/p(A).
    ratios = (posterior / weights.exp() * math.exp(exact)).numpy()
    means = [ratios @ np.exp(proposal_log_prob(adj, sizes, "attachment", orders, rng)) for _ in range(600)]

    assert np.mean(means) == pytest.approx(1, abs=5 * np.std(means) / math.sqrt(600))


def test_larger_graphs_are_scored_in_smaller_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    weigh = importance.order_log_weights
    monkeypatch.setattr(importance, "AUTOREGRESSIVE_CELLS", 16 * 5)
    monkeypatch.setattr(
        importance,
        "order_log_weights",
        lambda *args: seen.append(len(args[2])) or weigh(*args),  # type: ignore[func-returns-value]
    )

    bdmc_nll(autoregressive(graphs=[random_graph(4, 0)]), 1, NLLOptions(12))

    assert seen == [5, 5, 2]


def test_samples_follow_the_exchangeable_distribution() -> None:
    model, draws = autoregressive("bfs"), 4000
    classes, seen, labels = defaultdict[tuple[int, ...], float](float), Counter[tuple[int, ...]](), np.zeros(4)
    for graph in all_graphs(4):
        classes[tuple(sorted(graph.degrees()))] += math.exp(exact_log_prob(model, graph))
    for graph in Sampler(model, draws, nodes=4):
        seen[tuple(sorted(graph.degrees()))] += 1
        labels += graph.degrees()

    # On four nodes degrees determine the isomorphism class.
    assert fit(seen, classes) > ALPHA
    # The number of a node is independent of its position in the ordering.
    assert labels.max() - labels.min() < 0.1 * labels.mean()
