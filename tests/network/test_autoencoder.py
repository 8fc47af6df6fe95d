"""Autoencoders of networks against dense matrices."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from graphite_gen.network.autoencoder import build_link_network
from graphite_gen.network.fitting import link_loss
from graphite_gen.network.hyperparameters import LinkSettings
from graphite_gen.network.node_inputs import IdentityInputs, NodeInputs, inputs_of
from graphite_gen.nn.operators import SparseGraph, gcn_normalise

from .graphs import planted

PAPER = LinkSettings(
    width=6, latent=3, hops=1, teleport=0.0, rounds=2, skip_weight=0.5, head="inner", targets="all", subsample=0.0
)
EVERY = slice(None)


def dense_graph() -> tuple[torch.Tensor, torch.Tensor]:
    graph = planted().graph
    edges = torch.tensor(graph.edges.T.copy(), dtype=torch.int64)

    return edges, gcn_normalise(torch.tensor(graph.adjacency(), dtype=torch.float64), torch.ones(60, dtype=torch.bool))


@pytest.mark.parametrize("features", [False, True])
def test_one_hop_without_teleport_is_the_gcn_of_the_paper(features: bool) -> None:
    edges, propagation = dense_graph()
    inputs: NodeInputs = inputs_of(planted(), features)
    x = inputs @ torch.eye(inputs.width)
    network = build_link_network(PAPER, inputs.width, 0)
    posterior = network.encode(SparseGraph.from_edges(edges, 60).normalised(), inputs)

    hidden, last = network.encoder.hidden, network.encoder.mu
    h = torch.relu(propagation @ x @ hidden.weight + hidden.bias)
    assert torch.allclose(posterior.mu, propagation @ h @ last.linear.weight.T + last.bias)


def test_without_a_hidden_layer_embeddings_are_propagated() -> None:
    edges, propagation = dense_graph()
    network = build_link_network(replace(PAPER, width=0, hops=2, teleport=0.25), 60, 0)
    posterior = network.encode(SparseGraph.from_edges(edges, 60).normalised(), IdentityInputs(60))

    w = network.encoder.mu.weight
    assert torch.allclose(posterior.mu, 0.75 * propagation @ (0.75 * propagation @ w + 0.25 * w) + 0.25 * w)
    assert posterior.log_sigma.shape == (posterior.mu.shape[1],), "all nodes share theirs"


@pytest.mark.parametrize("skip", ["convex", "incremental"])
def test_graphite_with_skip_weight_zero_is_vgae(skip: str) -> None:
    z, inputs = torch.randn(60, 3), IdentityInputs(60)
    graphite = build_link_network(replace(PAPER, skip=skip, skip_weight=0.0, head="biased"), 60, 0)
    plain = build_link_network(replace(PAPER, kind="vgae", head="biased"), 60, 0)
    shared = {name: value for name, value in graphite.state_dict().items() if name != "evidence"}
    plain.load_state_dict(shared, strict=False)

    first, second = graphite.decode(z, inputs), plain.decode(z, inputs)
    assert torch.equal(first.tile(EVERY, EVERY), second.tile(EVERY, EVERY))


def test_a_round_is_a_gcn_over_the_intermediate_graph() -> None:
    z, inputs = torch.randn(60, 3), IdentityInputs(60)
    network = build_link_network(replace(PAPER, rounds=1), 60, 0)
    (layer,) = network.decoder.rounds
    unit = F.normalize(z)
    graph = unit @ unit.T + 1
    scale = graph.sum(1).rsqrt()
    graph = scale[:, None] * graph * scale
    x = torch.cat([z, network.evidence], dim=1)
    h = torch.relu(graph @ x @ layer.hidden.linear.weight.T + layer.hidden.bias)
    refined = graph @ h @ layer.out.linear.weight.T + layer.out.bias
    states = 0.5 * z + 0.5 * refined

    pairs = torch.tensor([[0, 3, 7], [1, 9, 59]])
    assert torch.allclose(network.decode(z, inputs).of(pairs), (states @ states.T)[pairs[0], pairs[1]])


def test_the_unweighted_loss_is_the_negative_elbo() -> None:
    edges, _ = dense_graph()
    propagation = SparseGraph.from_edges(edges, 60).normalised()
    settings = replace(PAPER, balanced=False, edge_dropout=0.0)
    network = build_link_network(settings, 60, 1)
    nothing, inputs = torch.zeros(edges.shape[1], dtype=torch.bool), IdentityInputs(60)
    posterior = network.encode(propagation, inputs)
    loss = link_loss(network, settings, posterior, inputs, edges, nothing, torch.Generator().manual_seed(5))

    noise = torch.randn(posterior.mu.shape, generator=torch.Generator().manual_seed(5))
    logits = network.decode(posterior.sample(noise), inputs).tile(EVERY, EVERY)
    upper = torch.ones(60, 60).triu(1).bool()
    adjacency = torch.tensor(planted().graph.adjacency(), dtype=torch.float64)
    observation = torch.distributions.Bernoulli(logits=logits[upper])
    q = torch.distributions.Normal(posterior.mu, posterior.sigma)
    divergence = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum()
    elbo = observation.log_prob(adjacency[upper]).sum() - divergence
    assert torch.allclose(loss * (60 * 59 / 2 - edges.shape[1]), -elbo)
