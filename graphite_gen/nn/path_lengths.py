"""Path lengths, and features of nodes that depend on them."""

from __future__ import annotations

import torch
from scipy import sparse
from scipy.sparse.csgraph import shortest_path
from torch import Tensor

from ..data.batch import GraphBatch

__all__ = ["STRUCTURAL_FEATURES", "path_lengths", "structural_features"]

STRUCTURAL_FEATURES = 4
# Up to this number of nodes, dense products take less time than a search from every node.
DENSE = 64


@torch.no_grad()
def path_lengths(adj: Tensor, mask: Tensor) -> Tensor:
    """Numbers of edges on shortest paths, with shape :math:`(B, N, N)`; one more than the longest where there is none.

    Edges are the non-zero entries of a symmetric matrix. Pairs with padding have no path.
    """
    if adj.shape[-1] > DENSE:
        return torch.stack([_sparse_path_lengths(graph) for graph in adj])
    edges, reached = (adj != 0).to(adj), torch.diag_embed(mask.to(adj))
    lengths, steps = torch.zeros_like(reached), 0
    while True:
        wider = torch.maximum((reached @ edges).sign(), reached)
        found = wider - reached
        if not found.any():
            return torch.where(reached > 0, lengths, lengths.amax((-2, -1), keepdim=True) + 1)
        steps += 1
        lengths, reached = lengths + steps * found, wider


def _sparse_path_lengths(adj: Tensor) -> Tensor:
    """The same for a large graph: the time follows its edges and not the longest path."""
    graph = sparse.csr_array((adj != 0).cpu().numpy())
    lengths = torch.from_numpy(shortest_path(graph, directed=False, unweighted=True)).to(adj)
    longest = lengths[lengths.isfinite()].max()

    return torch.where(lengths.isfinite(), lengths, longest + 1)


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
