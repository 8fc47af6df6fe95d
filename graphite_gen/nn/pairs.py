"""States of pairs: what two nodes of a graph are to each other, beyond whether they are neighbours."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..batch import node_mask

__all__ = ["PairStates"]

FEATURES = 5


class PairStates(nn.Module):
    r"""States of all pairs of nodes, and what nodes gather from them (beyond the paper).

    .. math:: E' = E + W_3 \, relu(W_1 E + W_2 (W_a E)(W_b E))

    A product of matrices, channel by channel, counts the ways from one node to another over a third: repeated, it tells
    how far apart two nodes are, which messages between nodes cannot (Maron et al., 2019).
    """

    def __init__(self, channels: int, layers: int, kernels: int, width: int) -> None:
        super().__init__()

        self.first = nn.Linear(FEATURES, channels)
        self.layers = nn.ModuleList(_PairLayer(channels) for _ in range(layers))
        self.kernels = nn.Linear(channels, kernels)
        self.nodes = nn.Linear(channels, width, bias=False)

    def forward(self, adj: Tensor, arrived: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of pairs, with shape :math:`(B, T, T, k)`, and states of nodes, with shape :math:`(B, T, d)`.

        Arguments:
            adj: The edges among arrived nodes, with shape :math:`(B, T, T)`.
            arrived: How many nodes have arrived, with shape :math:`(B,)`.
        """
        mask = node_mask(arrived, adj.shape[-1]).to(adj)
        both = mask.unsqueeze(-1) * mask.unsqueeze(-2)
        scale = (2 / arrived.clamp_min(1).to(adj))[:, None, None]
        # Channels come first: a linear map of all pairs is then one product of matrices.
        e = _linear(self.first, _pair_features(adj)) * both
        for layer in self.layers:
            e = layer(e, scale) * both

        gathered = (e.sum(-1) * scale[..., 0]).movedim(0, -1)

        return (_linear(self.kernels, e) * both).movedim(0, -1), self.nodes(gathered)


class _PairLayer(nn.Module):
    """One residual step of the states of pairs."""

    def __init__(self, channels: int) -> None:
        super().__init__()

        self.own = nn.Linear(channels, 2 * channels)
        # No bias: what is zero at pairs that are not there stays zero.
        self.factors = nn.Linear(channels, 2 * channels, bias=False)
        self.ways = nn.Linear(channels, 2 * channels, bias=False)
        self.out = nn.Linear(2 * channels, channels)

    def forward(self, e: Tensor, scale: Tensor) -> Tensor:
        left, right = _linear(self.factors, e).chunk(2)

        hidden = torch.addmm(_columns(self.own, e), self.ways.weight, (left @ right * scale).flatten(1))

        return e + _linear(self.out, torch.relu(hidden).view(-1, *e.shape[1:]))


def _linear(layer: nn.Linear, e: Tensor) -> Tensor:
    """A linear map of the first axis."""
    return _columns(layer, e).view(-1, *e.shape[1:])


def _columns(layer: nn.Linear, e: Tensor) -> Tensor:
    """A linear map of the first axis, with all others as one."""
    if layer.bias is None:
        return layer.weight @ e.flatten(1)

    return torch.addmm(layer.bias.unsqueeze(-1), layer.weight, e.flatten(1))


def _pair_features(adj: Tensor) -> Tensor:
    """What is known of two nodes at first, with shape :math:`(f, B, T, T)`.

    Whether they are neighbours, the part of their neighbours that they share, whether they are one, and both degrees.
    """
    degrees = adj.sum(-1)
    scale = degrees.clamp_min(1).rsqrt()
    alike = scale.unsqueeze(-1) * (adj @ adj) * scale.unsqueeze(-2)
    same = torch.eye(adj.shape[-1], dtype=adj.dtype, device=adj.device).expand_as(adj)
    own = (degrees / 4).unsqueeze(-1).expand_as(adj)

    return torch.stack([adj, alike, same, own, own.mT])
