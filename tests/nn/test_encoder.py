from __future__ import annotations

import pytest
import torch
from tiny import normal, permuted_rows, small_batch

from graphite_gen.data.batch import GraphBatch
from graphite_gen.nn.encoder import (
    MAX_LOG_SIGMA,
    GCNStack,
    GraphEncoder,
    NodeFeatures,
    ResidualStack,
    mean_field_posterior,
)


@pytest.mark.parametrize("stack", [GCNStack, ResidualStack])
@pytest.mark.parametrize("kinds", [("degree",), ("constant", "random")])
def test_the_posterior_is_permutation_equivariant(
    stack: type[GCNStack | ResidualStack], kinds: tuple[str, ...]
) -> None:
    batch, noise = small_batch(features=1), normal(3, 7, 2)
    features = NodeFeatures(kinds, 7, 2, 1)
    encoder = GraphEncoder(features, stack(features.out_features, 6, 4, 2))

    def turned(values: torch.Tensor, axis: int = -2) -> torch.Tensor:
        return permuted_rows(values, [2, 0, 1], axis)  # the first three nodes are real in every graph

    posterior = encoder(batch, noise)
    other = encoder(GraphBatch(turned(turned(batch.adj, -1)), batch.mask, turned(batch.x)), turned(noise))

    assert torch.allclose(other.mu[batch.mask], turned(posterior.mu)[batch.mask])
    assert torch.allclose(other.sigma[batch.mask], turned(posterior.sigma)[batch.mask])
    assert not torch.allclose(other.mu[batch.mask], posterior.mu[batch.mask])


@pytest.mark.parametrize("layers", [0, 1])
@pytest.mark.parametrize("stack", [GCNStack, ResidualStack])
def test_standard_deviations_are_bounded_with_and_without_hidden_layers(
    stack: type[GCNStack | ResidualStack], layers: int
) -> None:
    features = NodeFeatures(("degree",), 7, 0, 0)
    encoder = GraphEncoder(features, stack(features.out_features, 6, 4, layers))
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.mul_(1e4)

    posterior = encoder(small_batch(), torch.zeros(3, 7, 0))

    assert posterior.mu.shape == (3, 7, 2)
    assert MAX_LOG_SIGMA / 2 < posterior.log_sigma.abs().max() <= MAX_LOG_SIGMA


def test_features_are_concatenated_in_order_after_those_of_the_batch() -> None:
    batch = small_batch(features=2)
    noise = normal(3, 7, 3)
    features = NodeFeatures(("random", "identity", "constant", "degree"), 6, 3, 2)

    out = features(batch, noise)

    assert out.shape == (3, 7, features.out_features) == (3, 7, 2 + 3 + 6 + 1 + 4)
    own, random, identity, constant, degree = out.split([2, 3, 6, 1, 4], dim=-1)
    for row, n in enumerate(batch.sizes.tolist()):
        assert torch.equal(own[row, :n], batch.x[row, :n])
        assert torch.equal(random[row, :n], noise[row, :n])
        assert torch.equal(identity[row, :n], torch.eye(n, 6))
        assert (constant[row, :n] == 1).all()
        degrees = batch.adj[row, :n].sum(-1)
        assert torch.allclose(degree[row, :n, 0] * n, degrees)
        assert torch.allclose(degree[row, :n, 1].expm1(), degrees)
        assert (out[row, n:] == 0).all()


def test_features_broadcast_over_noise() -> None:
    batch = small_batch()
    noise = normal(5, 3, 7, 2)
    features = NodeFeatures(("degree", "random"), 6, 2, 0)

    alone = torch.stack([features(batch, each) for each in noise])

    assert torch.equal(features(batch, noise), alone)
    # Noise is needed by random features only.
    assert (features.noise_features, NodeFeatures(("degree",), 6, 3, 0).noise_features) == (2, 0)


def test_features_of_weighted_graphs_and_of_graphs_without_edges_are_finite() -> None:
    features = NodeFeatures(("degree",), 6, 0, 0)

    for batch in (small_batch(weighted=True), small_batch(density=0.0)):
        assert features(batch, torch.zeros(3, 7, 0)).isfinite().all()


def test_moderate_standard_deviations_are_hardly_changed_by_their_bound() -> None:
    log_sigma = torch.tensor([[[-0.5, 0.0, 0.5, 100.0]]])
    found = mean_field_posterior(torch.zeros(1, 1, 4), log_sigma, torch.ones(1, 1, dtype=torch.bool)).log_sigma
    assert torch.allclose(found[..., :3], log_sigma[..., :3], atol=0.01)
    assert float(found[0, 0, 3]) == pytest.approx(MAX_LOG_SIGMA)
