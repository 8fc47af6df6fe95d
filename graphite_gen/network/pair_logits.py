"""Logits of all pairs of one network, stored as low-rank factors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ..nn.operators import csr_product, csr_tensor

__all__ = ["PairLogits"]

# Factor entries of either end in memory at once, to fit in the L2 cache.
_NUMBERS = 1 << 17


@dataclass(frozen=True)
class PairLogits:
    r"""Symmetric low-rank logits: the observation model of eq. 10 in :math:`O(N r)` memory.

    .. math:: l_{ij} = \sum_k s_k f_{ik} f_{jk} + b_i + b_j + c

    Attributes:
        factor: The factor :math:`f`, with shape :math:`(N, r)`.
        sign: The sign :math:`s` of each dimension, plus or minus one, with shape :math:`(r,)`.
        bias: The bias :math:`b` of each node, with shape :math:`(N,)`.
        shift: The global bias :math:`c`, a scalar.
    """

    factor: Tensor
    sign: Tensor
    bias: Tensor
    shift: Tensor

    @classmethod
    def inner_product(cls, z: Tensor) -> PairLogits:
        r"""The paper's logits :math:`Z^* Z^{*T}` (eq. 10), of states with shape :math:`(N, r)`."""
        return cls(z, z.new_ones(z.shape[1]), z.new_zeros(len(z)), z.new_zeros(()))

    @property
    def nodes(self) -> int:
        """The number of nodes :math:`N`."""
        return len(self.factor)

    def of(self, pairs: Tensor) -> Tensor:
        """Logits of the given pairs :math:`(2, M)`, with shape :math:`(M,)`."""
        i, j = pairs
        products: Tensor = _SignedProducts.apply(self.factor, self.sign, pairs)  # type: ignore[no-untyped-call]

        return products + self.bias.index_select(0, i) + self.bias.index_select(0, j) + self.shift

    def tile(self, rows: slice, columns: slice) -> Tensor:
        """A block of the logit matrix; its diagonal has no meaning."""
        products = (self.factor[rows] * self.sign) @ self.factor[columns].mT

        return products + self.bias[rows, None] + self.bias[columns] + self.shift

    def two_sided(self) -> tuple[Tensor, Tensor]:
        r"""Two matrices whose product :math:`L R^T` is the logits, each with shape :math:`(N, r + 2)`."""
        ones = torch.ones_like(self.bias)
        left = torch.cat([self.factor * self.sign, torch.stack([self.bias, ones], -1)], -1)
        right = torch.cat([self.factor, torch.stack([ones, self.bias + self.shift], -1)], -1)

        return left, right


class _SignedProducts(torch.autograd.Function):
    r"""The sums :math:`\sum_k s_k f_{ik} f_{jk}` of the given pairs, forward in chunks that fit in the cache."""

    @staticmethod
    def forward(ctx: Any, factor: Tensor, sign: Tensor, pairs: Tensor) -> Tensor:
        ctx.save_for_backward(factor, sign, pairs)
        products = factor.new_empty(pairs.shape[1])
        for part, (i, j) in _chunks(pairs, len(sign)):
            near = factor.index_select(0, i)
            torch.mv(near.mul_(factor.index_select(0, j)), sign, out=products[part])

        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, None, None]:
        factor, sign, pairs = ctx.saved_tensors
        rows, columns = torch.cat([pairs, pairs.flip(0)], dim=1)
        # A sparse product of the sorted pairs takes less time than to scatter their gradients.
        order = torch.argsort(rows.int())
        ends = torch.bincount(rows, minlength=len(factor)).cumsum(0)
        ends = torch.cat([ends.new_zeros(1), ends])
        weights = csr_tensor(ends, columns[order], scale.repeat(2)[order], len(factor))

        return csr_product(weights, factor).mul_(sign), None, None


def _chunks(pairs: Tensor, width: int) -> Iterator[tuple[slice, Tensor]]:
    size = max(1, _NUMBERS // max(width, 1))
    for start in range(0, pairs.shape[1], size):
        part = slice(start, start + size)
        yield part, pairs[:, part]
