"""The logits of all pairs of one large graph, in a form that is never written out."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["PairLogits"]


@dataclass(frozen=True)
class PairLogits:
    r"""Symmetric logits of low rank, the observation of eq. 10 in :math:`O(N r)` memory.

    .. math:: l_{ij} = \sum_k s_k f_{ik} f_{jk} + b_i + b_j + c

    Attributes:
        factor: The factor :math:`f`, with shape :math:`(N, r)`.
        sign: :math:`s`, plus or minus one for each dimension, with shape :math:`(r,)`.
        bias: :math:`b`, one number for each node, with shape :math:`(N,)`.
        shift: :math:`c`, a scalar: the density of the graph.
    """

    factor: Tensor
    sign: Tensor
    bias: Tensor
    shift: Tensor

    @classmethod
    def inner_product(cls, z: Tensor) -> PairLogits:
        r"""The paper's :math:`Z^* Z^{*T}` (eq. 10), of states with shape :math:`(N, r)`."""
        return cls(z, z.new_ones(z.shape[1]), z.new_zeros(len(z)), z.new_zeros(()))

    @property
    def nodes(self) -> int:
        """The number of nodes :math:`N`."""
        return len(self.factor)

    def of(self, pairs: Tensor) -> Tensor:
        """The logits of some pairs, with shape :math:`(M,)`.

        Arguments:
            pairs: The nodes of each pair, with shape :math:`(2, M)`.
        """
        i, j = pairs
        products = (self.factor * self.sign)[i] * self.factor[j]

        return products.sum(-1) + self.bias[i] + self.bias[j] + self.shift

    def tile(self, rows: slice, columns: slice) -> Tensor:
        """The logits of a block of the matrix, with the shape of the two slices; the diagonal means nothing."""
        products = (self.factor[rows] * self.sign) @ self.factor[columns].mT

        return products + self.bias[rows, None] + self.bias[columns] + self.shift

    def two_sided(self) -> tuple[Tensor, Tensor]:
        r"""Two matrices whose product :math:`L R^T` is the logits, each with shape :math:`(N, r + 2)`."""
        ones = torch.ones_like(self.bias)
        left = torch.cat([self.factor * self.sign, torch.stack([self.bias, ones], -1)], -1)
        right = torch.cat([self.factor, torch.stack([ones, self.bias + self.shift], -1)], -1)

        return left, right
