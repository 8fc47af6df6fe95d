"""Graph convolution and residual message passing."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .operators import Graph

__all__ = ["GraphConv", "ResidualMessages", "masked_mean"]


class GraphConv(nn.Module):
    r"""Graph convolution :math:`H' = \tilde{A} H W + b` (eq. 3) over a dense, sparse or low-rank graph."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()

        self.linear = nn.Linear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.linear.weight)

    def forward(self, graph: Graph, h: Tensor) -> Tensor:
        # Multiply by the graph on the narrower side: the result is the same, and this product dominates the cost.
        if self.linear.in_features < self.linear.out_features:
            return self.linear(graph @ h) + self.bias

        return graph @ self.linear(h) + self.bias


def masked_mean(h: Tensor, mask: Tensor) -> Tensor:
    """Mean state of the real nodes, with shape :math:`(*, 1, d)`."""
    weights = mask.to(h)
    weights = weights / weights.sum(-1, keepdim=True).clamp_min(1)

    return weights.unsqueeze(-2) @ h


class ResidualMessages(nn.Module):
    """Residual message passing over several graphs at once (beyond the paper).

    The update of a node is a two-layer network of its own state, the aggregated messages of each graph and the mean
    state of all nodes. The attribute names are keys of saved weights.
    """

    def __init__(self, width: int, graphs: int) -> None:
        super().__init__()

        self.norm = nn.LayerNorm(width)
        self.own = nn.Linear(width, width * (graphs + 1))
        self.everyone = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, graphs: tuple[Graph, ...], h: Tensor, mask: Tensor) -> Tensor:
        state = self.norm(h)
        hidden, *messages = self.own(state).chunk(len(graphs) + 1, dim=-1)
        hidden = hidden + self.everyone(masked_mean(state, mask))
        for graph, message in zip(graphs, messages, strict=True):
            hidden = hidden + graph @ message

        return h + self.out(torch.relu(hidden))
