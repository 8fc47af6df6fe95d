"""From latents to a distribution over graphs, by iterative refinement."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .heads import InnerProduct, SignedInnerProduct, size_features
from .refinement import GCNRefinement, ResidualRefinement, Skip

__all__ = ["GraphiteDecoder", "LatentMLP"]


class LatentMLP(nn.Module):
    """A two-layer network on each node's latents, which may also read the size of the graph."""

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


class GraphiteDecoder(nn.Module):
    """The iterative decoder (eqs. 8-10): latents, rounds of refinement, logits.

    Without rounds it is the decoder of VGAE.
    """

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
        """Begin with graphs of a given density."""
        self.head.start_at(log_odds)

    def forward(self, z: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        """Symmetric logits (or means) of every pair, with shape :math:`(*, N, N)`.

        Arguments:
            z: Latents, with shape :math:`(*, N, D)`.
            x: Node features, with shape :math:`(*, N, F)`.
            mask: True for real nodes, with shape :math:`(*, N)`.
        """
        real = mask.unsqueeze(-1).to(z)
        x = x.expand(*z.shape[:-1], -1)
        if self.identity_features:
            eye = torch.eye(z.shape[-2], self.identity_features, dtype=z.dtype, device=z.device)
            x = torch.cat([x, eye.expand(*z.shape[:-1], -1) * real], dim=-1)

        sizes = mask.sum(-1).expand(z.shape[:-2])
        h = z if self.mlp is None else self.mlp(z, sizes) * real
        for refine in self.rounds:
            h = self.skip(h, refine(h, x, mask))

        return self.head(h, sizes)
