"""The one-shot decoder: from latents to edge logits by iterative refinement (eqs. 8-10)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from .conv import GraphConv, ResidualMessages
from .operators import LowRankGraph, masked

__all__ = [
    "GCNRefinement",
    "GraphiteDecoder",
    "InnerProduct",
    "LatentMLP",
    "ResidualRefinement",
    "SignedInnerProduct",
    "Skip",
    "refine_iteratively",
]


class Skip(nn.Module):
    r"""Skip connection that combines the input :math:`Z` and the output :math:`Z^*` of a refinement.

    ``convex`` is :math:`(1 - \lambda) Z + \lambda Z^*`, ``incremental`` is :math:`Z + \lambda Z^* / \|Z^*\|`.
    Both are the identity at :math:`\lambda = 0`, which makes Graphite exactly VGAE. An ``outer`` skip combines the
    first input with the output of the last round, as the paper's appendix has it for link prediction; otherwise every
    round has a skip.
    """

    def __init__(self, form: str, weight: float, outer: bool = False) -> None:
        super().__init__()

        self.form = form
        self.weight = weight
        self.outer = outer

    def forward(self, z: Tensor, refined: Tensor) -> Tensor:
        if self.form == "convex":
            return torch.lerp(z, refined, self.weight)
        norm = refined.square().sum((-2, -1), keepdim=True).clamp_min(torch.finfo(z.dtype).tiny).sqrt()

        return z + self.weight * refined / norm


class GCNRefinement(nn.Module):
    r"""The paper's refinement :math:`Z^* = GNN(\hat{A}, [Z | X])` (eq. 9): a two-layer GCN over the graph of eq. 8.

    The norm of eq. 8 is taken per node, as in the authors' code. With the norm of the whole matrix the first term is of
    order :math:`1/n` relative to the second, and all nodes receive nearly the same messages.
    """

    def __init__(self, latent: int, width: int, node_features: int) -> None:
        super().__init__()

        self.hidden = GraphConv(latent + node_features, width)
        self.out = GraphConv(width, latent)

    def forward(self, z: Tensor, x: Tensor, mask: Tensor | None) -> Tensor:
        graph = LowRankGraph.from_latents(z, mask, per_node=True).normalised()
        hidden = torch.relu(self.hidden(graph, torch.cat([z, x], dim=-1)))

        return masked(self.out(graph, hidden), mask)


class ResidualRefinement(nn.Module):
    r"""A residual refinement over the intermediate graph of projected states (beyond the paper).

    States are projected to ``rank`` dimensions before eq. 8, so the intermediate graph is learned. ``evidence`` maps
    the node features; its name is a key of saved weights.
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


class InnerProduct(nn.Module):
    r"""The paper's logits :math:`Z^* Z^{*T}` (eq. 10)."""

    def forward(self, h: Tensor, sizes: Tensor) -> Tensor:
        return h @ h.mT

    def start_at(self, log_odds: float) -> None:
        """Do nothing: there is no bias to initialise."""


class SignedInnerProduct(nn.Module):
    r"""A signed inner product with a bias per node and one that depends on the size (beyond the paper).

    .. math:: l_{ij} = u_i^T S u_j + b_i + b_j + c(n), \quad S = diag(1, …, 1, -1, …, -1)

    A plain inner product has no bias, so it cannot represent a sparse graph, and no negative direction, so it cannot
    represent disassortative mixing.
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
        """Symmetric logits with shape :math:`(*, N, N)`, of states :math:`(*, N, d)` and graph sizes :math:`(*,)`."""
        u, bias = self.project(self.norm(h)).split([len(self.sign), 1], dim=-1)

        return (u * self.sign) @ u.mT + bias + bias.mT + self.size(size_features(sizes, h)).unsqueeze(-1)

    def start_at(self, log_odds: float) -> None:
        """Initialise the bias to a given edge density, so that training starts at the ER baseline."""
        last = self.size[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.bias.fill_(log_odds)


def size_features(sizes: Tensor, like: Tensor) -> Tensor:
    """Two smooth functions of the graph size, with shape :math:`(*, 2)`."""
    sizes = sizes.to(like)

    return torch.stack([torch.log(sizes.clamp_min(1)), 10 / sizes.clamp_min(1)], dim=-1)


class LatentMLP(nn.Module):
    """A two-layer perceptron on the latents of each node, optionally conditioned on the graph size."""

    def __init__(self, latent: int, width: int, out_features: int, reads_size: bool) -> None:
        super().__init__()

        self.reads_size = reads_size
        self.hidden = nn.Linear(latent + 2 * reads_size, width)
        self.out = nn.Linear(width, out_features)

    def forward(self, z: Tensor, sizes: Tensor) -> Tensor:
        if self.reads_size:
            scale = size_features(sizes, z).unsqueeze(-2).expand(*z.shape[:-1], 2)
            z = torch.cat([z, scale], dim=-1)

        return self.out(torch.relu(self.hidden(z)))


def refine_iteratively(rounds: Iterable[nn.Module], skip: Skip, z: Tensor, x: Tensor, mask: Tensor | None) -> Tensor:
    """Node states after the refinements of eqs. 8-9, with the shape :math:`(*, N, D)` of the latents."""
    refined = z
    for refine in rounds:
        output = refine(refined, x, mask)
        refined = output if skip.outer else skip(refined, output)

    return skip(z, refined) if skip.outer and refined is not z else refined


class GraphiteDecoder(nn.Module):
    """The iterative decoder (eqs. 8-10): optional perceptron, refinement rounds, logits; VGAE's without rounds."""

    def __init__(
        self,
        mlp: LatentMLP | None,
        rounds: list[GCNRefinement] | list[ResidualRefinement],
        skip: Skip,
        head: InnerProduct | SignedInnerProduct,
        identity_features: int = 0,
    ) -> None:
        super().__init__()

        self.mlp = mlp
        self.rounds = nn.ModuleList(rounds)
        self.skip = skip
        self.head = head
        self.identity_features = identity_features

    def start_at(self, log_odds: float) -> None:
        """Initialise the bias of the logits to a given edge density."""
        self.head.start_at(log_odds)

    def forward(self, z: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        """Symmetric logits (or means) :math:`(*, N, N)` of latents :math:`(*, N, D)` and features :math:`(*, N, F)`."""
        real = mask.unsqueeze(-1).to(z)
        x = x.expand(*z.shape[:-1], -1)
        if self.identity_features:
            eye = torch.eye(z.shape[-2], self.identity_features, dtype=z.dtype, device=z.device)
            x = torch.cat([x, eye.expand(*z.shape[:-1], -1) * real], dim=-1)

        sizes = mask.sum(-1).expand(z.shape[:-2])
        h = z if self.mlp is None else self.mlp(z, sizes) * real
        h = refine_iteratively(self.rounds, self.skip, h, x, mask)

        return self.head(h, sizes)
