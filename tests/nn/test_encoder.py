from __future__ import annotations

import pytest
import torch
from tiny import normal, permuted_rows, small_batch

from graphite_gen.data.batch import GraphBatch
from graphite_gen.nn.encoder import GraphEncoder, NodeFeatures
from graphite_gen.nn.encoder import MAX_LOG_SIGMA, GCNStack, ResidualStack


@pytest.mark.parametrize("stack", [GCNStack, ResidualStack])
@pytest.mark.parametrize("kinds", [("degree",), ("constant", "random")])
def test_renumbering_the_nodes_renumbers_the_posterior(
    stack: type[GCNStack | ResidualStack], kinds: tuple[str, ...]
) -> None:
    batch, noise = small_batch(features=1), normal(3, 7, 2)
    features = NodeFeatures(kinds, 7, 2, 1)
    encoder = GraphEncoder(features, stack(features.out_features, 6, 4, 2))
    order = [2, 0, 1]  # of the first three nodes, which are real in every graph

    def turned(values: torch.Tensor, *axes: int) -> torch.Tensor:
        for axis in axes:
            values = permuted_rows(values, order, axis)
        return values

    posterior = encoder(batch, noise)
    other = encoder(GraphBatch(turned(batch.adj, -1, -2), batch.mask, turned(batch.x, -2)), turned(noise, -2))

    assert torch.allclose(other.mu[batch.mask], turned(posterior.mu, -2)[batch.mask])
    assert torch.allclose(other.sigma[batch.mask], turned(posterior.sigma, -2)[batch.mask])
    assert not torch.allclose(other.mu[batch.mask], posterior.mu[batch.mask])


@pytest.mark.parametrize("stack", [GCNStack, ResidualStack])
def test_an_encoder_without_hidden_layers_works(stack: type[GCNStack | ResidualStack]) -> None:
    features = NodeFeatures(("degree",), 7, 0, 0)
    encoder = GraphEncoder(features, stack(features.out_features, 6, 4, 0))

    assert encoder(small_batch(), torch.zeros(3, 7, 0)).mu.shape == (3, 7, 2)


def test_deviations_never_leave_their_range_however_large_the_weights() -> None:
    features = NodeFeatures(("degree",), 7, 0, 0)
    encoder = GraphEncoder(features, GCNStack(features.out_features, 6, 4, 1))
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.mul_(1e4)

    posterior = encoder(small_batch(), torch.zeros(3, 7, 0))

    assert posterior.log_sigma.abs().max() <= MAX_LOG_SIGMA
    assert posterior.log_sigma.abs().max() > MAX_LOG_SIGMA / 2
