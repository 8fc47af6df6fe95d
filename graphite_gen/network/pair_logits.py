"""The logits of all pairs of one large graph, in a form that is never written out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["PairLogits"]

# So many numbers of either end are held at once: they stay in a core's second-level cache.
_NUMBERS = 1 << 17


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
        products: Tensor = _SignedProducts.apply(self.factor, self.sign, pairs)  # type: ignore[no-untyped-call]

        return products + self.bias.index_select(0, i) + self.bias.index_select(0, j) + self.shift

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


class _SignedProducts(torch.autograd.Function):
    r"""The sum :math:`\sum_k s_k f_{ik} f_{jk}` of some pairs, with shape :math:`(M,)`.

    Some rows at a time, forward and backward: what has the size of all pairs and dimensions would be written to memory
    and read from it many times over.
    """

    @staticmethod
    def forward(ctx: Any, factor: Tensor, sign: Tensor, pairs: Tensor) -> Tensor:
        ctx.save_for_backward(factor, sign, pairs)
        products = factor.new_empty(pairs.shape[1])
        for part, (i, j) in _parts(pairs, len(sign)):
            near = factor.index_select(0, i)
            torch.mv(near.mul_(factor.index_select(0, j)), sign, out=products[part])

        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, None, None]:
        factor, sign, pairs = ctx.saved_tensors
        gradient = torch.zeros_like(factor)
        for part, (i, j) in _parts(pairs, len(sign)):
            weights = scale[part].unsqueeze(-1)
            gradient.index_add_(0, i, factor.index_select(0, j).mul_(weights))
            gradient.index_add_(0, j, factor.index_select(0, i).mul_(weights))

        return gradient.mul_(sign), None, None


def _parts(pairs: Tensor, width: int) -> Iterator[tuple[slice, Tensor]]:
    size = max(1, _NUMBERS // max(width, 1))
    for start in range(0, pairs.shape[1], size):
        part = slice(start, start + size)
        yield part, pairs[:, part]
