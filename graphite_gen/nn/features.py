"""What the encoder reads at each node."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..batch import GraphBatch

__all__ = ["NodeFeatures"]


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
