from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

from graphite_gen.network.autoencoder import build_link_network
from graphite_gen.network.fitting import link_loss
from graphite_gen.network.hyperparameters import LinkSettings
from graphite_gen.network.node_inputs import IdentityInputs, NodeInputs, inputs_of
from graphite_gen.nn.operators import SparseGraph

from .graphs import adjacency, dense, dense_gcn, edge_tensor, planted

PAPER = LinkSettings(
    width=6, latent=3, hops=1, teleport=0.0, rounds=2, skip_weight=0.5, head="inner", targets="all", subsample=0.0
)
EDGES = edge_tensor(planted())


def normalised() -> SparseGraph:
    return SparseGraph.from_edges(EDGES, 60).normalised()


@pytest.mark.parametrize("features", [False, True])
def test_one_hop_without_teleport_is_the_gcn_of_the_paper(features: bool) -> None:
    inputs: NodeInputs = inputs_of(planted(), features)
    x = inputs @ torch.eye(inputs.width)
    network = build_link_network(PAPER, inputs.width, 0)
    posterior = network.encode(normalised(), inputs)

    hidden, last, propagation = network.encoder.hidden, network.encoder.mu, dense_gcn(EDGES, 60)
    h = torch.relu(propagation @ x @ hidden.weight + hidden.bias)
    assert torch.allclose(posterior.mu, propagation @ h @ last.linear.weight.T + last.bias)


def test_without_a_hidden_layer_embeddings_are_propagated() -> None:
    network = build_link_network(replace(PAPER, width=0, hops=2, teleport=0.25), 60, 0)
    posterior = network.encode(normalised(), IdentityInputs(60))

    w, propagation = network.encoder.mu.weight, dense_gcn(EDGES, 60)
    assert torch.allclose(posterior.mu, 0.75 * propagation @ (0.75 * propagation @ w + 0.25 * w) + 0.25 * w)
    assert posterior.log_sigma.shape == (posterior.mu.shape[1],), "all nodes share theirs"


@pytest.mark.parametrize("skip", ["convex", "incremental"])
def test_graphite_with_skip_weight_zero_is_vgae(skip: str) -> None:
    z, inputs = torch.randn(60, 3), IdentityInputs(60)
    graphite = build_link_network(replace(PAPER, skip=skip, skip_weight=0.0, head="biased"), 60, 0)
    plain = build_link_network(replace(PAPER, kind="vgae", head="biased"), 60, 0)
    shared = {name: value for name, value in graphite.state_dict().items() if name != "evidence"}
    plain.load_state_dict(shared, strict=False)

    assert torch.equal(dense(graphite.decode(z, inputs)), dense(plain.decode(z, inputs)))


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

    assert torch.allclose(dense(network.decode(z, inputs)), states @ states.T)


def test_the_unweighted_loss_is_the_negative_elbo() -> None:
    settings = replace(PAPER, balanced=False, edge_dropout=0.0)
    network = build_link_network(settings, 60, 1)
    nothing, inputs = torch.zeros(EDGES.shape[1], dtype=torch.bool), IdentityInputs(60)
    posterior = network.encode(normalised(), inputs)
    loss = link_loss(network, settings, posterior, inputs, EDGES, nothing, torch.Generator().manual_seed(5))

    noise = torch.randn(posterior.mu.shape, generator=torch.Generator().manual_seed(5))
    upper = torch.ones(60, 60).triu(1).bool()
    observation = torch.distributions.Bernoulli(logits=dense(network.decode(posterior.sample(noise), inputs))[upper])
    q = torch.distributions.Normal(posterior.mu, posterior.sigma)
    divergence = torch.distributions.kl_divergence(q, torch.distributions.Normal(0.0, 1.0)).sum()
    elbo = observation.log_prob(adjacency(EDGES, 60)[upper]).sum() - divergence
    assert torch.allclose(loss * (60 * 59 / 2 - EDGES.shape[1]), -elbo)
