"""Degree normalisation of dense adjacency matrices."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["gcn_normalise"]


def gcn_normalise(adj: Tensor, mask: Tensor) -> Tensor:
    r"""The propagation matrix of a GCN (eq. 3), with self-loops as in Kipf & Welling (2017).

    .. math:: \tilde{A} = D^{-1/2} (A + I) D^{-1/2}

    Arguments:
        adj: Adjacency or weight matrices, with shape :math:`(*, N, N)`.
        mask: True for real nodes, with shape :math:`(*, N)`.

    Returns:
        The normalised matrices; rows and columns of dummy nodes are zero.
    """
    adj = adj + torch.diag_embed(mask.to(adj))
    # Weights may be negative: a degree is the sum of their sizes, so that its root exists.
    scale = adj.abs().sum(-1).clamp_min(torch.finfo(adj.dtype).tiny).rsqrt() * mask.to(adj)

    return scale.unsqueeze(-1) * adj * scale.unsqueeze(-2)
