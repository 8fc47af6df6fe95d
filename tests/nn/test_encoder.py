import networkx as nx
import pytest
import torch
from tiny import normal, small_batch

from graphite_gen.data.batch import GraphBatch, collate
from graphite_gen.graph import as_simple_graph
from graphite_gen.nn.encoder import (
    MAX_LOG_SIGMA,
    GCNStack,
    GraphEncoder,
    NodeFeatures,
    ResidualStack,
    spectral_features,
)
from graphite_gen.nn.operators import gcn_normalise


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


def test_spectral_features_span_the_leading_eigenvectors() -> None:
    """Two communities: the leading two eigenvectors are well separated from the others."""
    graph = nx.planted_partition_graph(2, 12, 0.9, 0.05, seed=1)
    batch = collate([as_simple_graph(graph)], 30)
    vectors = torch.linalg.eigh(gcn_normalise(batch.adj, batch.mask)[0, :24, :24])[1][:, -2:]

    basis = spectral_features(batch, normal(1, 30, 2))[0]

    assert torch.allclose(basis.mT @ basis, 24 * torch.eye(2), atol=0.1)
    assert torch.allclose(torch.linalg.svdvals(vectors.mT @ basis[:24] / 24**0.5), torch.ones(2), atol=1e-2)
    assert (basis[24:] == 0).all()


def test_spectral_features_depend_on_neither_padding_nor_numbering() -> None:
    """Also with more columns than nodes."""
    batch, noise = small_batch(), normal(2, 3, 7, 6)
    features = NodeFeatures(("spectral",), 7, 6, 0)
    order = torch.tensor([2, 0, 1, 3, 4, 5, 6])
    permuted = GraphBatch(batch.adj[:, order][:, :, order], batch.mask[:, order], batch.x[:, order])

    found = features(batch, noise)

    assert features.noise_features == features.out_features == 6
    assert found.abs().max() > 0.5
    assert torch.allclose(features(permuted, noise[:, :, order]), found[:, :, order])
    padded = spectral_features(small_batch(padding=4), torch.nn.functional.pad(noise, (0, 0, 0, 2), value=3.0))
    assert torch.allclose(padded[:, :, :7], found)
