"""Particles follow the posterior of the unknown pairs, as enumeration shows."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny import all_graphs, autoregressive_model, path

from graphite_gen.completion.partial import PartialGraph
from graphite_gen.completion.posterior import Posterior
from graphite_gen.completion.smc import NextNodeProposal, extend_particles
from graphite_gen.graph import SimpleGraph
from graphite_gen.training.checkpoint import TrainedModel

PAW = SimpleGraph.from_pairs(4, [(0, 1), (1, 2), (0, 2), (2, 3)])
HIDDEN = [(0, 1), (1, 3), (2, 3)]


def autoregressive(order: str = "bfs", **changes: object) -> TrainedModel:
    return autoregressive_model(order, 0.35, **changes)


@torch.no_grad()
def exact(model: TrainedModel, partial: PartialGraph) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The probability of each completion, by summing over all orderings, and its edges at unknown pairs."""
    known, edges = partial.known(), partial.graph.adjacency()
    graphs = [graph.adjacency() for graph in all_graphs(4)]
    graphs = [adj for adj in graphs if (adj == edges)[known].all()]
    orders = np.array(list(permutations(range(4))))
    adj = np.stack([adj[np.ix_(order, order)] for adj in graphs for order in orders])
    features = np.zeros((4, 0)) if partial.graph.features is None else partial.graph.features
    x = np.stack([features[order] for _ in graphs for order in orders])
    z = torch.zeros(len(adj), 4, model.config.latent)
    distribution = model.network.decode_autoregressive(z, torch.from_numpy(x).to(z), torch.full((len(adj),), 4))
    joint = distribution.log_prob(torch.from_numpy(adj).to(z)).exp().reshape(len(graphs), len(orders)).mean(1).numpy()

    return joint, np.stack([adj[tuple(partial.unknown.T)] for adj in graphs])


def completions(model: TrainedModel, partial: PartialGraph, particles: int = 1000) -> Posterior:
    return extend_particles(model, partial, runs=4, particles=particles, rng=np.random.default_rng(5))


@pytest.mark.parametrize("order", ["bfs", "degeneracy", "uniform", "dfs"])
def test_unknown_pairs_follow_the_exact_posterior(order: str) -> None:
    model, partial = autoregressive(order), PartialGraph.from_pairs(PAW, HIDDEN)
    joint, unknown = exact(model, partial)
    posterior = completions(model, partial)

    expected = joint / joint.sum()
    draws = 1 / np.square(posterior.weights).sum()
    matches = (posterior.probabilities[:, :, None] == unknown).all(-1)
    found = np.einsum("rp,rpa->a", posterior.weights, matches)

    assert draws > 300
    assert np.ptp(expected @ unknown) > 0.02
    assert found.sum() == pytest.approx(1)
    assert posterior.log_evidence == pytest.approx(np.log(joint.sum()), abs=0.1)
    # Resampled particles share ancestors, so the tolerance is wider than that of independent samples.
    assert (draws * (found - expected) ** 2 / expected).sum() < 7 + 5 * np.sqrt(14)
    assert posterior.edge_probabilities()[0] == pytest.approx(expected @ unknown, abs=0.06)


def test_node_features_are_permuted_with_their_nodes() -> None:
    model = autoregressive("uniform", node_features=2)
    features = np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32)
    partial = PartialGraph.from_pairs(SimpleGraph(4, PAW.edges, features=features), HIDDEN)
    joint, unknown = exact(model, partial)

    posterior = completions(model, partial)

    assert posterior.log_evidence == pytest.approx(np.log(joint.sum()), abs=0.1)
    assert posterior.edge_probabilities()[0] == pytest.approx(joint / joint.sum() @ unknown, abs=0.06)


def test_the_marginal_likelihood_of_no_known_pairs_is_one() -> None:
    partial = PartialGraph.from_marks(SimpleGraph.from_pairs(5, []), unlisted="unknown")

    assert completions(autoregressive("degeneracy"), partial).log_evidence == pytest.approx(0, abs=0.1)
    assert completions(autoregressive(), partial, particles=1).probabilities.shape == (4, 1, 10)


@pytest.mark.parametrize("rule", ["bfs", "degeneracy"])
def test_the_next_node_is_new_and_has_the_stated_probability(rule: str) -> None:
    partial = PartialGraph.from_pairs(path(6), [(0, 5), (1, 2)])
    proposal = NextNodeProposal(partial, rule, 0.3, np.random.default_rng(0))
    earlier = np.tile([[2, 4]], (20_000, 1))

    chosen, log_q = proposal.sample(earlier, np.random.default_rng(1))
    frequencies = np.bincount(chosen, minlength=6) / len(chosen)
    stated = np.zeros(6)
    stated[chosen] = np.exp(log_q)

    assert set(chosen) == {0, 1, 3, 5}
    assert stated.sum() == pytest.approx(1)
    assert frequencies == pytest.approx(stated, abs=0.02)
