"""One round of the iterative decoder: from states to an intermediate graph to refined states."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..operators import LowRankGraph
from .conv import GraphConv, ResidualMessages

__all__ = ["GCNRefinement", "ResidualRefinement", "Skip"]


class Skip(nn.Module):
    r"""How a round joins its input :math:`Z` and its output :math:`Z^*`.

    ``convex`` is :math:`(1 - \lambda) Z + \lambda Z^*`, ``incremental`` is :math:`Z + \lambda Z^* / \|Z^*\|`.
    Either is the identity at :math:`\lambda = 0`, which makes Graphite exactly VGAE.
    """

    def __init__(self, form: str, weight: float) -> None:
        super().__init__()

        self.form = form
        self.weight = weight

    def forward(self, z: Tensor, refined: Tensor) -> Tensor:
        if self.form == "convex":
            return torch.lerp(z, refined, self.weight)
        norm = refined.square().sum((-2, -1), keepdim=True).clamp_min(torch.finfo(z.dtype).tiny).sqrt()

        return z + self.weight * refined / norm


class GCNRefinement(nn.Module):
    r"""The paper's refinement: a two-layer GCN over :math:`\hat{A}` and :math:`[Z | X]` (eqs. 8-9).

    The norm of eq. 8 is taken node by node, as in the authors' code: by the norm of the whole matrix the first term is
    of order :math:`1/n` beside the second, and every node would read almost the same.
    """

    def __init__(self, latent: int, width: int, node_features: int) -> None:
        super().__init__()

        self.hidden = GraphConv(latent + node_features, width)
        self.out = GraphConv(width, latent)

    def forward(self, z: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        graph = LowRankGraph.from_latents(z, mask, per_node=True).normalised()
        hidden = torch.relu(self.hidden(graph, torch.cat([z, x], dim=-1)))

        return self.out(graph, hidden) * mask.unsqueeze(-1).to(z)


class ResidualRefinement(nn.Module):
    r"""A residual refinement over the low-rank graph of projected states (beyond the paper).

    The states are projected to ``rank`` dimensions before eq. 8, so that who listens to whom is learned.
    """

    def __init__(self, width: int, rank: int, node_features: int) -> None:
        super().__init__()

        self.project = nn.Linear(width, rank)
        self.evidence = nn.Linear(node_features, width, bias=False) if node_features else None
        self.messages = ResidualMessages(width, graphs=1)

    def forward(self, z: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        graph = LowRankGraph.from_latents(self.project(z), mask).normalised()
        if self.evidence is not None:
            z = z + self.evidence(x)

        return self.messages((graph,), z, mask) * mask.unsqueeze(-1).to(z)
