from __future__ import annotations

import torch
from tiny import normal, small_batch

from graphite_gen.nn.encoder import NodeFeatures


def test_each_kind_adds_its_columns_after_the_users_own_in_the_order_named() -> None:
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


def test_features_of_many_proposals_differ_by_their_noise_alone() -> None:
    batch = small_batch()
    noise = normal(5, 3, 7, 2)
    features = NodeFeatures(("degree", "random"), 6, 2, 0)

    out = features(batch, noise)

    for number in range(5):
        assert torch.equal(out[number], features(batch, noise[number]))


def test_noise_is_asked_for_only_where_random_features_are_read() -> None:
    assert NodeFeatures(("degree",), 6, 3, 0).noise_features == 0
    assert NodeFeatures(("degree", "random"), 6, 3, 0).noise_features == 3


def test_features_of_weighted_graphs_and_of_graphs_without_edges_are_finite() -> None:
    features = NodeFeatures(("degree",), 6, 0, 0)

    for batch in (small_batch(weighted=True), small_batch(density=0.0)):
        assert features(batch, torch.zeros(3, 7, 0)).isfinite().all()
