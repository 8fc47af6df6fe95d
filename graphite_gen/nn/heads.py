"""From node states to one number per pair."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["InnerProduct", "SignedInnerProduct"]


class InnerProduct(nn.Module):
    r"""The paper's :math:`Z^* Z^{*T}` (eq. 10)."""

    def forward(self, h: Tensor, sizes: Tensor) -> Tensor:
        return h @ h.mT

    def start_at(self, log_odds: float) -> None:
        """Do nothing: without a bias there is nowhere to put the density."""


class SignedInnerProduct(nn.Module):
    r"""A signed inner product with a bias per node and one that depends on the size (beyond the paper).

    .. math:: l_{ij} = u_i^T S u_j + b_i + b_j + c(n), \quad S = diag(1, …, 1, -1, …, -1)

    A plain inner product has no bias, so it cannot say that a graph is sparse, and no negative direction, so it
    cannot say that likes avoid each other.
    """

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()

        self.norm = nn.LayerNorm(width)
        self.project = nn.Linear(width, rank + 1)
        self.size = nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1))
        sign = torch.ones(rank)
        sign[rank // 2 :] = -1
        self.register_buffer("sign", sign, persistent=False)
        self.sign: Tensor

    def forward(self, h: Tensor, sizes: Tensor) -> Tensor:
        """Symmetric logits, with shape :math:`(*, N, N)`.

        Arguments:
            h: Node states, with shape :math:`(*, N, d)`.
            sizes: The number of real nodes of each graph, with shape :math:`(*,)`.
        """
        u, bias = self.project(self.norm(h)).split([len(self.sign), 1], dim=-1)

        return (u * self.sign) @ u.mT + bias + bias.mT + self.size(size_features(sizes, h)).unsqueeze(-1)

    def start_at(self, log_odds: float) -> None:
        """Begin with graphs of a given density, so that training starts at the ER baseline."""
        last = self.size[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.bias.fill_(log_odds)


def size_features(sizes: Tensor, like: Tensor) -> Tensor:
    """The size of a graph on two smooth scales, with shape :math:`(*, 2)`."""
    sizes = sizes.to(like)

    return torch.stack([torch.log(sizes.clamp_min(1)), 10 / sizes.clamp_min(1)], dim=-1)
