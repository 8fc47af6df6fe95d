"""Pair states are equivariant, ignore padding and follow their formula."""

from __future__ import annotations

import networkx as nx
import pytest
import torch
from tiny import normal, small_network
from torch import Tensor

from graphite_gen.autoregressive.decoder import PairStates


@pytest.fixture
def pairs() -> PairStates:
    torch.manual_seed(0)

    return PairStates(channels=5, layers=2, kernels=3, width=4).double()


def adjacency(graph: nx.Graph, size: int) -> Tensor:
    adj = torch.zeros(1, size, size, dtype=torch.float64)
    n = len(graph)
    adj[0, :n, :n] = torch.from_numpy(nx.to_numpy_array(graph, nodelist=range(n)))

    return adj


def test_pair_states_are_equivariant_and_ignore_nodes_that_are_not_decoded(pairs: PairStates) -> None:
    graph = nx.gnp_random_graph(7, 0.4, seed=1)
    order = torch.randperm(7, generator=torch.Generator().manual_seed(2))
    adj = adjacency(graph, 7)

    kernels, states = pairs(adj, torch.tensor([7]))
    moved, moved_states = pairs(adj[:, order][:, :, order], torch.tensor([7]))
    padded, padded_states = pairs(adjacency(graph, 9), torch.tensor([7]))

    torch.testing.assert_close(moved, kernels[:, order][:, :, order])
    torch.testing.assert_close(moved_states, states[:, order])
    torch.testing.assert_close(padded[:, :7, :7], kernels)
    torch.testing.assert_close(padded_states[:, :7], states)
    assert not padded[:, 7:].any()
    assert not padded[:, :, 7:].any()


def test_pair_states_follow_the_formula(pairs: PairStates) -> None:
    adj = adjacency(nx.path_graph(4), 4)
    layer = pairs.layers[0]
    one_layer = PairStates(channels=5, layers=1, kernels=3, width=4).double()
    one_layer.load_state_dict({k: v for k, v in pairs.state_dict().items() if not k.startswith("layers.1")})
    degrees = adj[0].sum(-1)

    def first(i: int, j: int) -> Tensor:
        shared = (adj[0, i] * adj[0, j]).sum() / (degrees[i] * degrees[j]).sqrt()
        features = torch.stack(
            [adj[0, i, j], shared, torch.tensor(float(i == j)).double(), degrees[i] / 4, degrees[j] / 4]
        )
        return pairs.first(features)

    left, right = layer.factors.weight.chunk(2)
    ways = sum((left @ first(0, k)) * (right @ first(k, 2)) for k in range(4)) * (2 / 4)
    state = first(0, 2) + layer.out(torch.relu(layer.own(first(0, 2)) + layer.ways(ways)))

    torch.testing.assert_close(one_layer(adj, torch.tensor([4]))[0][0, 0, 2], pairs.kernels(state))


def test_pair_states_distinguish_graphs_that_message_passing_cannot(pairs: PairStates) -> None:
    """A hexagon and two triangles have the same node states under message passing."""
    triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    _, one = pairs(adjacency(nx.cycle_graph(6), 6), torch.tensor([6]))
    _, two = pairs(adjacency(triangles, 6), torch.tensor([6]))

    assert (one - two).abs().max() > 1e-3


@pytest.mark.parametrize("part", ["latents", "evidence", "project"])
def test_log_probabilities_depend_on_latents_node_features_and_the_low_rank_graph(part: str) -> None:
    network = small_network(decoding_steps=0, encoder="none", node_features=2, scale=0.5)
    z, x, sizes = normal(1, 6, 2), normal(1, 6, 2, seed=1), torch.tensor([6])
    adj = adjacency(nx.cycle_graph(6), 6)
    before = network.decode_autoregressive(z, x, sizes).log_prob(adj)

    with torch.no_grad():
        for parameter in getattr(network.decoder, part).parameters():
            parameter.zero_()

    assert (network.decode_autoregressive(z, x, sizes).log_prob(adj) - before).abs() > 1e-4
