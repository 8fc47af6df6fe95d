"""From graphs to the posterior of their latents."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from ..batch import GraphBatch
from ..distributions import NodeNormal
from ..operators import gcn_normalise
from .conv import GraphConv, ResidualMessages
from .features import NodeFeatures

__all__ = ["GCNStack", "GraphEncoder", "ResidualStack"]

# Posterior deviations stay within e^±MAX_LOG_SIGMA, so that no weight of an importance sample overflows.
MAX_LOG_SIGMA = 6.0


class GCNStack(nn.Module):
    """Graph convolutions with ReLU between them, as in Kipf & Welling (2016)."""

    def __init__(self, in_features: int, width: int, out_features: int, layers: int) -> None:
        super().__init__()

        sizes = [in_features, *[width] * layers]
        self.hidden = nn.ModuleList(GraphConv(a, b) for a, b in pairwise(sizes))
        self.out = GraphConv(sizes[-1], out_features)

    def forward(self, batch: GraphBatch, h: Tensor) -> Tensor:
        graph = gcn_normalise(batch.adj, batch.mask)
        for layer in self.hidden:
            h = torch.relu(layer(graph, h))

        return self.out(graph, h)


class ResidualStack(nn.Module):
    """Residual message passing over the graph and over its normalised form (beyond the paper)."""

    def __init__(self, in_features: int, width: int, out_features: int, layers: int) -> None:
        super().__init__()

        self.inp = nn.Linear(in_features, width)
        self.hidden = nn.ModuleList(ResidualMessages(width, graphs=2) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, out_features)

    def forward(self, batch: GraphBatch, h: Tensor) -> Tensor:
        # A third keeps sums over neighbours on the scale of the states they join.
        graphs = (batch.adj / 3, gcn_normalise(batch.adj, batch.mask))
        h = self.inp(h)
        for layer in self.hidden:
            h = layer(graphs, h, batch.mask)

        return self.out(self.norm(h))


class GraphEncoder(nn.Module):
    r"""The encoder :math:`\mu, \sigma = GNN(A, X)` (eqs. 6-7)."""

    def __init__(self, features: NodeFeatures, stack: GCNStack | ResidualStack) -> None:
        super().__init__()

        self.features = features
        self.stack = stack

    def forward(self, batch: GraphBatch, noise: Tensor) -> NodeNormal:
        """The posterior of the latents.

        Arguments:
            batch: The graphs.
            noise: Noise for ``random`` features, with shape :math:`(*, B, N, R)`.

        Returns:
            A distribution over latents with shape :math:`(*, B, N, D)`.
        """
        mu, log_sigma = self.stack(batch, self.features(batch, noise)).chunk(2, dim=-1)

        return NodeNormal(mu, MAX_LOG_SIGMA * torch.tanh(log_sigma / MAX_LOG_SIGMA), batch.mask)
