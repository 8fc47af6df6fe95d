from typing import Any

import numpy as np
import pytest
import torch
from tiny import AUTOREGRESSIVE, random_graph, small_network, star

from graphite_gen.config import TrainConfig
from graphite_gen.data.batch import GraphBatch
from graphite_gen.nn.distributions import NodeNormal
from graphite_gen.training import validation
from graphite_gen.training.validation import validation_activity

GRAPHS = [random_graph(nodes, seed) for seed, nodes in enumerate([6, 7, 3, 7])]


def gain(network: Any) -> float:
    return validation_activity(network, GRAPHS, TrainConfig())["gain"]


@pytest.mark.parametrize("changes", [{}, {**AUTOREGRESSIVE, "encoder": "residual"}])
def test_the_decoder_gains_nothing_from_latents_that_it_ignores(changes: dict[str, Any]) -> None:
    network = small_network(**changes)
    network.train()
    before = gain(network)

    assert before != 0
    assert gain(network) == before
    assert network.training
    with torch.no_grad():
        # Their only way to edges.
        (network.decoder.factor if changes else network.decoder.mlp.hidden).weight.zero_()
    if changes:
        network.decoder.rounds = torch.nn.ModuleList()
    assert gain(network) == pytest.approx(0, abs=1e-9)


def test_the_gain_is_positive_if_edges_follow_the_latents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes with an edge have a positive latent, and others zero; inner products are log-odds."""
    network = small_network(kind="vgae", mlp=False, head="inner", latent=1)

    def encode(batch: GraphBatch, noise: torch.Tensor) -> NodeNormal:
        is_linked = (batch.adj.sum(-1, keepdim=True) > 0).to(noise)
        return NodeNormal(3 * is_linked, torch.full_like(is_linked, -4.0), batch.mask)

    monkeypatch.setattr(network, "encode", encode)
    graphs = [random_graph(6, seed, density=density) for seed, density in enumerate([0.0, 1.0, 0.0, 1.0])]

    assert validation_activity(network, graphs, TrainConfig())["gain"] > 1


def test_the_gain_compares_samples_in_decoding_order_with_the_same_ones_shuffled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = small_network(**{**AUTOREGRESSIVE, "encoder": "residual", "ordering": "bfs"})
    seen: list[tuple[GraphBatch, torch.Tensor]] = []
    scores = iter([torch.tensor([5.0, 7.0, 9.0]), torch.tensor([1.0, 2.0, 1.0])])

    def encode(batch: GraphBatch, noise: torch.Tensor) -> NodeNormal:
        zero = torch.zeros(*batch.mask.shape, 2)
        return NodeNormal(zero, zero, batch.mask)

    def score(_: Any, batch: GraphBatch, z: torch.Tensor, *__: Any) -> torch.Tensor:
        seen.append((batch, z))
        return next(scores)

    monkeypatch.setattr(network, "encode", encode)
    monkeypatch.setattr(validation, "log_likelihood", score)
    monkeypatch.setattr(validation, "ENCODED", 3)
    found = validation_activity(network, [star(6, centre=5)] * 4, TrainConfig())

    assert found["gain"] == pytest.approx(17 / 3)
    assert found["gain_error"] == pytest.approx(np.std([4, 5, 8], ddof=1) / np.sqrt(3))
    (batch, own), (_, other) = seen
    # The centre of a star is the first or the second node of a breadth-first search.
    assert batch.adj[:, 0, 1].tolist() == [1, 1, 1]
    assert own.std() > 0.5
    assert not torch.equal(own, other)
    assert sorted(own[batch.mask].tolist()) == sorted(other[batch.mask].tolist())
