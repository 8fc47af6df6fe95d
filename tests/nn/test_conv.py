from dataclasses import replace

import pytest
import torch
from tiny import normal, small_batch
from torch import Tensor
from torch_geometric.nn import GCNConv

from graphite_gen.nn.conv import GraphConv, ResidualMessages, masked_mean
from graphite_gen.nn.encoder import GCNStack


def oracle(layer: GraphConv) -> GCNConv:
    """The same layer of torch-geometric."""
    conv = GCNConv(layer.linear.in_features, layer.linear.out_features)
    with torch.no_grad():
        conv.lin.weight.copy_(layer.linear.weight)
        conv.bias.copy_(layer.bias.normal_(generator=torch.Generator().manual_seed(0)))

    return conv


@pytest.mark.parametrize("weighted", [False, True])
def test_two_layers_are_the_gcn_of_torch_geometric(weighted: bool) -> None:
    batch, h = small_batch(weighted=weighted), normal(3, 7, 4)
    batch = replace(batch, adj=batch.adj.abs())  # torch-geometric has no roots of negative degrees
    stack = GCNStack(4, 6, 2, layers=1)
    first, second = oracle(stack.hidden[0]), oracle(stack.out)

    out = stack(batch, h)

    for row, n in enumerate(batch.sizes.tolist()):
        edges = batch.adj[row].nonzero().T
        graph = edges, batch.adj[row][tuple(edges)]
        assert torch.allclose(out[row, :n], second(first(h[row, :n], *graph).relu(), *graph))


def test_masked_mean_is_the_mean_of_the_real_rows() -> None:
    batch = small_batch()
    h = normal(3, 7, 4)

    out = masked_mean(h, batch.mask)

    for row, n in enumerate(batch.sizes.tolist()):
        assert torch.allclose(out[row, 0], h[row, :n].mean(0))
    assert (masked_mean(h, torch.zeros_like(batch.mask)) == 0).all()


@pytest.mark.parametrize("graph", [0, 1])
def test_residual_messages_reach_neighbours_directly_and_others_through_the_mean(graph: int) -> None:
    edges = torch.zeros(2, 5, 5)
    edges[graph, 0, 1] = edges[graph, 1, 0] = 1
    mask = torch.tensor([True, True, True, True, False])
    torch.manual_seed(0)
    h, layer = normal(5, 4), ResidualMessages(4, graphs=2)

    def gap(changed: Tensor) -> Tensor:
        """Change of the state of each node."""
        return (layer(tuple(edges), changed, mask) - layer(tuple(edges), h, mask)).abs().sum(-1)

    # Swapping the states of nodes 1 and 2 keeps the mean, so only they and their neighbour 0 change.
    swapped = gap(h[[0, 2, 1, 3, 4]])
    changed = gap(h + torch.tensor([0.0, 0.0, 1.0, 0.0, 0.0]).unsqueeze(-1) * normal(4, seed=5))
    padding = gap(h + torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0]).unsqueeze(-1))

    assert swapped[0] > 1e-3
    assert swapped[3] < 1e-12
    assert changed[3] > 1e-6
    assert (padding[:4] == 0).all()
