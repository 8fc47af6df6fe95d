from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from tiny import coin_model, exact_nll, mild_model, poor_model, random_graph, small_model

from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import bdmc_nll, proposal
from graphite_gen.likelihood.bdmc import GraphBDMC, _draw, join_bdmc


def test_the_bounds_of_a_model_of_coins_are_its_closed_form() -> None:
    result = bdmc_nll(coin_model(0.7), 3, samples=30, chains=8, steps=2)

    for row in result.per_graph:
        exact = math.comb(row.nodes, 2) * math.log1p(math.exp(0.7)) - 0.7 * row.edges
        assert row.lower == pytest.approx(exact)
        assert row.upper == pytest.approx(exact)
        assert row.importance == pytest.approx(exact)
    assert result.gap == pytest.approx(0, abs=1e-9)


def test_the_exact_nll_lies_between_the_bounds() -> None:
    graphs = [SimpleGraph.from_pairs(3, [(0, 1)])] * 3
    model = poor_model(latent=1, graphs=graphs)
    lower, upper, exact = [], [], []
    for index, row in enumerate(bdmc_nll(model, 6, samples=50, chains=16, steps=10).per_graph):
        adj = _draw(model, 0, index, None)[0].adj[0]
        graph = SimpleGraph(3, np.argwhere(np.triu(adj.numpy())).astype(np.int32))
        assert (row.nodes, row.edges) == (3, len(graph.edges))
        exact.append(exact_nll(model, graph))
        lower.append(row.lower)
        upper.append(row.upper)

    # Single graphs may stray by their noise; in the mean the bounds hold.
    assert np.mean(lower) - 0.05 < np.mean(exact) < np.mean(upper) + 0.05
    assert np.mean(upper) - np.mean(lower) < 0.5


def test_graphs_are_drawn_with_the_latents_they_come_from() -> None:
    model = small_model()

    batch, z = _draw(model, 3, 7, None)
    again, _ = _draw(model, 3, 7, None)
    other, _ = _draw(model, 3, 8, None)

    assert torch.equal(batch.adj, again.adj)
    assert batch.adj.shape != other.adj.shape or not torch.equal(batch.adj, other.adj)
    assert z.shape == (batch.mask.shape[-1], model.config.latent)
    assert batch.mask.shape[-1] in model.sizes.graphs
    assert torch.equal(batch.adj, batch.adj.mT)
    assert set(batch.adj.unique().tolist()) <= {0.0, 1.0}


def test_draws_follow_the_law_of_the_model() -> None:
    graphs = [SimpleGraph.from_pairs(2, [])]
    model = mild_model(latent=1, graphs=graphs)

    edges = np.mean([float(_draw(model, 0, index, None)[0].adj[0, 0, 1]) for index in range(4000)])

    exact = math.exp(-exact_nll(model, SimpleGraph.from_pairs(2, [(0, 1)])))
    assert edges == pytest.approx(exact, abs=5 * 0.5 / math.sqrt(4000))


def test_a_poor_proposal_lies_outside_of_the_bounds_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    model = poor_model(latent=2)
    result = bdmc_nll(model, 5, samples=30, chains=16, steps=20)

    assert result.gap < 0.5
    assert result.importance_distance > 0.1
    assert result.importance - result.importance_distance == pytest.approx(max(result.upper, result.lower))
    assert abs(result.auto_distance) < result.importance_distance
    assert json.loads(json.dumps(result.to_json()))["per_graph"][4]["nodes"] == result.per_graph[4].nodes


def test_the_means_are_over_graphs_and_the_gap_is_paired() -> None:
    rows = [GraphBDMC(3, 1, 10.0, 11.0, 14.0, 0.9), GraphBDMC(4, 2, 20.0, 20.5, 20.2, 0.1)]

    result = join_bdmc("tiny", 9, 8, 7, rows)

    assert (result.lower, result.upper, result.gap) == (15.0, 15.75, 0.75)
    assert result.gap_standard_error == pytest.approx(np.std([1, 0.5], ddof=1) / math.sqrt(2))
    assert result.largest_gap == 1.0
    assert (result.importance, result.auto) == pytest.approx((17.1, 15.6))
    assert result.importance_distance == pytest.approx(17.1 - 15.75)
    assert result.auto_distance == 0
    assert (result.samples, result.chains, result.steps) == (9, 8, 7)


def test_auto_is_what_it_gives_for_that_kind_of_model() -> None:
    poor, autoregressive = (GraphBDMC(3, 1, 10.0, 11.0, 14.0, 0.9, anneals=anneals) for anneals in (True, False))

    assert (poor.auto, autoregressive.auto) == (11.0, 14.0)
    result = join_bdmc("tiny", 9, 8, 7, [autoregressive])
    assert (result.chains, result.steps, result.auto) == (None, None, 14.0)


def test_weights_and_node_features_are_sandwiched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal, "FIT_STEPS", 20)
    evidence = [random_graph(3, 0, features=2), random_graph(5, 0, features=2)]

    weighted = bdmc_nll(mild_model(observation="normal"), 2, samples=30, chains=8, steps=10)
    featured = bdmc_nll(mild_model(node_features=2), 3, samples=30, chains=8, steps=10, evidence=evidence)

    assert abs(weighted.gap) < 2
    assert abs(featured.gap) < 2
    assert [row.nodes for row in featured.per_graph] == [3, 5, 3]


def test_what_cannot_be_sandwiched_is_refused_with_a_reason() -> None:
    with pytest.raises(DatasetError, match="'tiny' is a gae: an autoencoder has no likelihood"):
        bdmc_nll(small_model(kind="gae"), 1)
    with pytest.raises(DatasetError, match="draws edges given 2 node features"):
        bdmc_nll(small_model(node_features=2), 1)
    with pytest.raises(ConfigError, match="'chains' is 0; it should be at least 1"):
        bdmc_nll(small_model(), 1, chains=0)
