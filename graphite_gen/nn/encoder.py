"""From graphs to the posterior of their latents."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from ..data.batch import GraphBatch
from .conv import GraphConv, ResidualMessages
from .distributions import NodeNormal
from .operators import gcn_normalise

__all__ = ["GCNStack", "GraphEncoder", "NodeFeatures", "ResidualStack"]


class NodeFeatures(nn.Module):
    r"""The input features :math:`H^0` of a batch of graphs.

    ``identity`` is the paper's :math:`H^0 = I`; it tells nodes apart by their number, so it knows at most
    ``max_nodes`` of them. ``constant`` and ``degree`` are invariant; ``random`` breaks symmetries by noise, which
    makes the encoder a different one for each draw (a mixture of them is the proposal of the NLL).
    """

    def __init__(self, kinds: tuple[str, ...], max_nodes: int, random_features: int, node_features: int) -> None:
        super().__init__()

        widths = {"identity": max_nodes, "constant": 1, "degree": 4, "random": random_features}
        self.kinds = kinds
        self.max_nodes = max_nodes
        self.noise_features = random_features if "random" in kinds else 0
        self.out_features = sum(widths[kind] for kind in kinds) + node_features

    def forward(self, batch: GraphBatch, noise: Tensor) -> Tensor:
        """The features of every node; zero at dummy nodes.

        Arguments:
            batch: The graphs.
            noise: Standard normal noise, with shape :math:`(*, B, N, R)`; :math:`R` may be zero.

        Returns:
            Features with shape :math:`(*, B, N, F)`.
        """
        parts = [batch.x.expand(*noise.shape[:-1], -1)]
        for kind in self.kinds:
            if kind == "identity":
                parts.append(self._identity(batch, noise))
            elif kind == "constant":
                parts.append(noise.new_ones(*noise.shape[:-1], 1))
            elif kind == "degree":
                parts.append(_degree_features(batch).expand(*noise.shape[:-1], -1))
            else:
                parts.append(noise)

        return torch.cat(parts, dim=-1) * batch.mask.unsqueeze(-1).to(noise)

    def _identity(self, batch: GraphBatch, noise: Tensor) -> Tensor:
        nodes = batch.mask.shape[-1]

        return torch.eye(nodes, self.max_nodes, dtype=noise.dtype, device=noise.device).expand(*noise.shape[:-1], -1)


def _degree_features(batch: GraphBatch) -> Tensor:
    """Degree and size on scales that suit graphs of ten nodes and of thousands, with shape :math:`(B, N, 4)`."""
    sizes = batch.sizes.to(batch.adj).unsqueeze(-1).expand(batch.mask.shape)
    degrees = batch.adj.sum(-1)

    return torch.stack(
        [
            degrees / sizes.clamp_min(1),
            torch.log1p(degrees.clamp_min(0)),
            degrees / degrees.sum(-1, keepdim=True).clamp_min(1),
            torch.log1p(sizes) / 3,
        ],
        dim=-1,
    )


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
