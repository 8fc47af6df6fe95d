"""Path lengths, and features of nodes that depend on them."""

from __future__ import annotations

import torch
from torch import Tensor

from ..data.batch import GraphBatch

__all__ = ["STRUCTURAL_FEATURES", "path_lengths", "structural_features"]

STRUCTURAL_FEATURES = 4


@torch.no_grad()
def path_lengths(adj: Tensor, mask: Tensor) -> Tensor:
    """Numbers of edges on shortest paths, with shape :math:`(B, N, N)`; one more than the longest where there is none.

    Edges are the non-zero entries of a symmetric matrix. Pairs with padding have no path.
    """
    edges, reached = (adj != 0).to(adj), torch.diag_embed(mask.to(adj))
    lengths, steps = torch.zeros_like(reached), 0
    while True:
        wider = torch.maximum((reached @ edges).sign(), reached)
        found = wider - reached
        if not found.any():
            return torch.where(reached > 0, lengths, lengths.amax((-2, -1), keepdim=True) + 1)
        steps += 1
        lengths, reached = lengths + steps * found, wider


@torch.no_grad()
def structural_features(batch: GraphBatch) -> Tensor:
    """What the place of a node in its graph is like, with shape :math:`(B, N, 4)`.

    The features are the logarithms of one plus the degree, the mean path length and the eccentricity, and the
    clustering coefficient.
    """
    lengths = path_lengths(batch.adj, batch.mask)
    edges = (batch.adj != 0).to(lengths)
    degrees = edges.sum(-1)
    triangles = ((edges @ edges) * edges).sum(-1)
    is_real = batch.mask.to(lengths)
    within = lengths * is_real.unsqueeze(-1) * is_real.unsqueeze(-2)
    mean = within.sum(-1) / batch.sizes.to(lengths).unsqueeze(-1).clamp_min(1)
    clustering = triangles / (degrees * (degrees - 1)).clamp_min(1)

    return torch.stack([degrees.log1p(), mean.log1p(), within.amax(-1).log1p(), clustering], -1)
