"""Nodes in nested blocks of alike ones, so that what two blocks have to do with each other is nearly a product."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .pairs import PairLogits

__all__ = ["BlockTree", "Blocks"]

Array = NDArray[np.floating]
Indices = NDArray[np.int64]

# The bias of nodes that only fill blocks up: far below any logit, and finite, so that no difference is undefined.
_NEVER = -1e6


@dataclass(frozen=True)
class Blocks:
    """All nodes in blocks of one size, of consecutive places.

    Attributes:
        centres: The mean factor of each block's nodes, with shape :math:`(B, r)`.
        away: The squared distance of each node to its block's centre, with shape :math:`(B, S)`.
        spread: The root of its mean over each block, with shape :math:`(B,)`; positive.
    """

    centres: Array
    away: Array
    spread: Array

    @classmethod
    def of(cls, factor: Array, real: NDArray[np.bool_], blocks: int) -> Blocks:
        """The first ``blocks``-th of the places, the next, and so on.

        Arguments:
            factor: The factor in order of places, zero at those without a node, with shape :math:`(P, r)`.
            real: Whether there is a node, with shape :math:`(P,)`.
            blocks: The number of blocks :math:`B`, a divisor of :math:`P`.
        """
        parts = factor.reshape(blocks, -1, factor.shape[1])
        weights = real.reshape(blocks, -1)
        count = np.maximum(weights.sum(1), 1)
        centres = parts.sum(1) / count[:, None].astype(factor.dtype)
        away = np.square(parts - centres[:, None]).sum(2) * weights
        spread = np.sqrt(away.sum(1) / count)

        return cls(centres, away, np.maximum(spread, np.finfo(factor.dtype).tiny ** 0.25))

    @property
    def size(self) -> int:
        """The number of places :math:`S` of a block."""
        return self.away.shape[1]


@dataclass(frozen=True)
class BlockTree:
    """The nodes of low-rank logits in places, and levels of blocks of which each is two of the level below.

    Attributes:
        nodes: The node at each place, or beyond the last node where there is none, with shape :math:`(P,)`.
        factor: Its factor, turned to principal axes, with shape :math:`(P, r)`.
        bias: Its bias, with shape :math:`(P,)`.
        sign: The signs of the dimensions, with shape :math:`(r,)`.
        shift: The shift of all logits.
        levels: From one block of all nodes to the smallest blocks.
    """

    nodes: Indices
    factor: Array
    bias: Array
    sign: Array
    shift: float
    levels: list[Blocks]

    @classmethod
    def of(cls, logits: PairLogits, smallest: int) -> BlockTree:
        r"""Halve blocks at the median of their widest coordinate, in :math:`O(N \log^2 N)`.

        Arguments:
            logits: The logits, of at least one node.
            smallest: The number of nodes that a smallest block has at least.
        """
        factor, sign, bias = (leaf.detach().cpu().numpy() for leaf in (logits.factor, logits.sign, logits.bias))
        depth = max(logits.nodes // smallest, 1).bit_length() - 1
        places = -(-logits.nodes >> depth) << depth
        fill = places - logits.nodes
        factor = np.pad(_along_axes(factor, sign), ((0, fill), (0, 0)))
        bias = np.pad(bias, (0, fill), constant_values=_NEVER)
        nodes = np.arange(places)
        levels = [Blocks.of(factor, nodes < logits.nodes, 1)]
        for level in range(1, depth + 1):
            parts = factor.reshape(2 ** (level - 1), -1, factor.shape[1])
            widest = np.argmax(parts.var(1), axis=1)
            keys = np.take_along_axis(parts, widest[:, None, None], axis=2)[..., 0]
            # Places without a node stay at the end.
            keys = np.where((nodes < logits.nodes).reshape(keys.shape), keys, np.inf)
            turn = (np.argsort(keys, axis=1) + np.arange(0, places, keys.shape[1])[:, None]).ravel()
            nodes, factor, bias = nodes[turn], factor[turn], bias[turn]
            levels.append(Blocks.of(factor, nodes < logits.nodes, 2**level))

        return cls(nodes, factor, bias, sign, float(logits.shift), levels)

    def logits(self, i: Indices, j: Indices) -> Array:
        """The logits between places, with shape :math:`(M,)`."""
        products = np.einsum("mr,mr->m", self.factor[i] * self.sign, self.factor[j])

        return products + self.bias[i] + self.bias[j] + self.shift


def _along_axes(factor: Array, sign: Array) -> Array:
    """The factor turned to its principal axes, the dimensions of either sign by themselves: logits stay the same."""
    turned = np.empty_like(factor)
    for one in (-1, 1):
        part = factor[:, sign == one]
        turned[:, sign == one] = part @ np.linalg.eigh(part.T @ part)[1]

    return turned
