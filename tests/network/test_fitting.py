from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tiny import normal
from torch import Tensor
from torch.nn import functional as F

from graphite_gen.network import fitting as training
from graphite_gen.network.autoencoder import LinkNetwork, build_link_network
from graphite_gen.network.fitting import hide_edges, link_loss, train_autoencoder
from graphite_gen.network.hyperparameters import LinkSettings
from graphite_gen.network.node_inputs import inputs_of
from graphite_gen.network.pair_logits import PairLogits
from graphite_gen.nn.distributions import NodeNormal
from graphite_gen.nn.operators import SparseGraph

from .graphs import adjacency, dense, dense_gcn, edge_tensor, planted

GRAPH = planted()
NODES = GRAPH.nodes
EDGES = edge_tensor(GRAPH)
INPUTS = inputs_of(GRAPH, False)
QUICK = LinkSettings(latent=4, hops=2, epochs=6, validate_every=1, learning_rate=0.1)


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.8])
def test_the_encoder_gets_the_graph_without_hidden_edges(rate: float) -> None:
    whole = SparseGraph.from_edges(EDGES, NODES).normalised()
    generator = torch.Generator().manual_seed(0)
    parts = []
    for _ in range(20):
        seen, hidden = hide_edges(EDGES, whole, rate, generator)
        assert torch.allclose(seen.matrix.to_dense(), dense_gcn(EDGES[:, ~hidden], NODES))
        parts.append(hidden.double().mean())

    assert torch.stack(parts).mean() == pytest.approx(rate, abs=0.03)
    assert len(set(map(float, parts))) > 1 or rate == 0


def test_steps_encode_without_hidden_edges_and_validation_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Tensor] = []
    hidden: list[Tensor] = []

    def encode(network: LinkNetwork, graph: SparseGraph, *rest: Any) -> NodeNormal:
        encoded.append(graph.matrix.to_dense())
        return network.encoder(graph, *rest)

    def loss(*args: Any) -> Tensor:
        hidden.append(args[5])
        return link_loss(*args)

    monkeypatch.setattr(LinkNetwork, "encode", encode)
    monkeypatch.setattr(training, "link_loss", loss)
    trained = train_autoencoder(QUICK, EDGES, NODES, INPUTS, 0, validate=lambda _: 0.0)

    assert len(hidden) == QUICK.epochs
    assert all(0 < part.sum() < part.numel() for part in hidden)
    for seen, whole, gone in zip(encoded[::2], encoded[1::2], hidden, strict=True):
        assert torch.allclose(seen, dense_gcn(EDGES[:, ~gone], NODES))
        assert torch.allclose(whole, dense_gcn(EDGES, NODES))
    assert torch.allclose(trained.graph.matrix.to_dense(), dense_gcn(EDGES, NODES))


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize(("targets", "subsample"), [("hidden", 0.0), ("all", 0.0), ("hidden", 200.0), ("all", 200.0)])
def test_targets_of_the_loss_are_hidden_edges_or_all(targets: str, subsample: float, balanced: bool) -> None:
    settings = replace(QUICK, kind="gae", targets=targets, balanced=balanced, subsample=subsample)
    network = build_link_network(settings, INPUTS.width, 0)
    posterior = NodeNormal(normal(NODES, 4), torch.zeros(NODES, 4), torch.ones(NODES, dtype=torch.bool))
    hidden = torch.arange(EDGES.shape[1]) % 3 == 0
    found = link_loss(network, settings, posterior, INPUTS, EDGES, hidden, torch.Generator().manual_seed(0))

    logits = dense(network.decode(posterior.mu, INPUTS))
    free = (1 - adjacency(EDGES, NODES)).triu(1).bool()
    wanted = EDGES[:, hidden] if targets == "hidden" else EDGES
    weight = free.sum() / wanted.shape[1] if balanced else 1.0
    nats = F.softplus(logits[free]).sum() + weight * F.softplus(-logits[wanted[0], wanted[1]]).sum()

    # Sampled non-edges give an estimate.
    assert torch.allclose(found, nats / free.sum(), rtol=0.03 if subsample else 1e-9)


@pytest.mark.parametrize(
    ("scores", "every", "best"),
    [
        ([3, 9, 1, 2, 9, 0], 1, 2),
        ([5, 4, 3, 2, 1, 0], 1, 1),
        ([0, 1, 2, 3, 4, 5], 1, 6),
        # Every second epoch, and the last one in any case.
        ([1, 8, 2], 2, 4),
        ([1, 2], 5, 6),
    ],
)
def test_the_weights_of_the_best_epoch_are_kept(scores: list[float], every: int, best: int) -> None:
    seen: list[Tensor] = []

    def validate(logits: PairLogits) -> float:
        seen.append(dense(logits).clone())
        return scores[len(seen) - 1]

    trained = train_autoencoder(replace(QUICK, validate_every=every), EDGES, NODES, INPUTS, 0, validate=validate)
    kept = dense(trained.logits())

    assert trained.epoch == best
    assert len(seen) == len(scores)
    assert [torch.equal(kept, logits) for logits in seen] == [k == int(np.argmax(scores)) for k in range(len(seen))]


def test_without_validation_the_last_epoch_is_kept() -> None:
    scores = iter(range(QUICK.epochs))
    rising = train_autoencoder(QUICK, EDGES, NODES, INPUTS, 0, validate=lambda _: next(scores))
    trained = train_autoencoder(QUICK, EDGES, NODES, INPUTS, 0)

    assert trained.epoch == rising.epoch == QUICK.epochs
    assert torch.equal(trained.latents(), rising.latents())
