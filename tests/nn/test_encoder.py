import pytest
import torch
from tiny import normal, small_batch

from graphite_gen.nn.encoder import MAX_LOG_SIGMA, GCNStack, GraphEncoder, NodeFeatures, ResidualStack


@pytest.mark.parametrize("layers", [0, 1])
@pytest.mark.parametrize("stack", [GCNStack, ResidualStack])
def test_standard_deviations_are_bounded_at_any_depth(stack: type[GCNStack | ResidualStack], layers: int) -> None:
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
    assert (features.noise_features, NodeFeatures(("degree",), 6, 3, 0).noise_features) == (3, 0)
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


def test_features_of_weighted_graphs_and_of_graphs_without_edges_are_finite() -> None:
    features = NodeFeatures(("degree",), 6, 0, 0)

    for batch in (small_batch(weighted=True), small_batch(density=0.0)):
        assert features(batch, torch.zeros(3, 7, 0)).isfinite().all()
