"""Features of nodes that path lengths tell: positions, centrality and eccentricity."""

from __future__ import annotations

import torch
from torch import Tensor

from ..data.batch import GraphBatch
from .eigenvectors import TINY, leading_eigenvectors

__all__ = ["POSITIONS", "STRUCTURAL_FEATURES", "distance_features", "path_lengths", "structural_features"]

POSITIONS = 3
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
def structural_features(batch: GraphBatch, lengths: Tensor | None = None) -> Tensor:
    """What the place of a node in its graph is like, whatever the numbering, with shape :math:`(B, N, 4)`.

    The features are the logarithms of one plus the degree, the mean path length and the eccentricity, and the
    clustering coefficient. ``lengths`` are those of :func:`path_lengths`, if known.
    """
    if lengths is None:
        lengths = path_lengths(batch.adj, batch.mask)
    edges = (batch.adj != 0).to(lengths)
    degrees = edges.sum(-1)
    triangles = ((edges @ edges) * edges).sum(-1)
    is_real = batch.mask.to(lengths)
    within = lengths * is_real.unsqueeze(-1) * is_real.unsqueeze(-2)
    mean = within.sum(-1) / batch.sizes.to(lengths).unsqueeze(-1).clamp_min(1)
    clustering = triangles / (degrees * (degrees - 1)).clamp_min(1)

    return torch.stack([degrees.log1p(), mean.log1p(), within.amax(-1).log1p(), clustering], -1)


@torch.no_grad()
def distance_features(batch: GraphBatch, noise: Tensor) -> Tensor:
    r"""Positions of nodes and structural features, with shape :math:`(*, B, N, \min(3, R) + 4)`.

    Positions are those of classical multidimensional scaling of path lengths :math:`L`: the leading eigenvectors of
    :math:`-\frac{1}{2} J L^2 J` with :math:`J = I - \frac{1}{n} 1 1^T`, each scaled by the root of its eigenvalue. They
    are approximated from noise of shape :math:`(*, B, N, R)`, so that signs are random, and scaled to a first one of
    mean square one.
    """
    lengths, is_real = path_lengths(batch.adj, batch.mask), batch.mask.to(noise)
    nodes = batch.sizes.to(noise)[:, None, None].clamp_min(1)
    squares = lengths.to(noise).square() * is_real.unsqueeze(-1) * is_real.unsqueeze(-2)
    means = squares.sum(-1, keepdim=True) / nodes
    centred = -(squares - means - means.mT + means.sum(-2, keepdim=True) / nodes) / 2
    centred = centred * is_real.unsqueeze(-1) * is_real.unsqueeze(-2)
    positions = leading_eigenvectors(centred, noise[..., :POSITIONS] * is_real.unsqueeze(-1))
    scale = (centred @ positions).square().sum(-2, keepdim=True).sqrt().sqrt()
    positions = positions * nodes.sqrt() * scale / scale[..., :1].clamp_min(TINY)
    own = structural_features(batch, lengths).to(noise)

    return torch.cat([positions, own.expand(*positions.shape[:-1], STRUCTURAL_FEATURES)], -1)
