"""The paper's right-multiplication trick, made an object."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["LowRankGraph"]


@dataclass(frozen=True)
class LowRankGraph:
    r"""The graph :math:`\hat{A} = F F^T` of a factor, never written out.

    A product :math:`\hat{A} H` is computed as :math:`F (F^T H)` in :math:`O(N k d)`.

    Attributes:
        factor: The factor :math:`F`, zero at dummy nodes, with shape :math:`(*, N, k)`.
    """

    factor: Tensor

    @classmethod
    def from_latents(cls, z: Tensor, mask: Tensor, *, per_node: bool = False) -> LowRankGraph:
        r"""The decoder's intermediate graph (Grover et al., 2019, eq. 8).

        .. math:: \hat{A} = Z Z^T / \|Z\|^2 + 1 1^T

        The rank-one term is one more column of the factor, equal to the mask.

        Arguments:
            z: The node latents :math:`Z`, with shape :math:`(*, N, D)`.
            mask: True for real nodes, with shape :math:`(*, N)`.
            per_node: Whether each node has its own norm, which makes the first term a cosine, as in the authors' code;
                else the norm is that of the matrix.

        Returns:
            A graph of rank :math:`D + 1`; padding has no neighbours.
        """
        ones = mask.unsqueeze(-1).to(z).expand(*z.shape[:-1], 1)
        z = z * ones
        norm = z.square().sum(-1 if per_node else (-2, -1), keepdim=True).clamp_min(torch.finfo(z.dtype).tiny).sqrt()

        return cls(torch.cat([z / norm, ones], dim=-1))

    def normalised(self) -> LowRankGraph:
        r"""Symmetric degree normalisation :math:`D^{-1/2} \hat{A} D^{-1/2}` (eq. 3): the factor's rows rescaled.

        The entries of eq. 8 are not negative, so degrees are positive wherever a node is real.
        """
        degrees = self.factor @ self.factor.sum(-2).unsqueeze(-1)
        scale = torch.where(degrees > 0, degrees.clamp_min(torch.finfo(degrees.dtype).tiny).rsqrt(), 0)

        return LowRankGraph(scale * self.factor)

    def __matmul__(self, h: Tensor) -> Tensor:
        return self.factor @ (self.factor.mT @ h)
