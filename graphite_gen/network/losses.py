"""Reconstruction loss of one network: exact over all pairs, or an unbiased estimate of it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from .pair_logits import PairLogits

__all__ = ["exact_loss", "sampled_loss"]

# A tile of logits and its probabilities fit in the L2 cache.
_ROWS, _COLUMNS = 256, 512


def exact_loss(
    logits: PairLogits, edges: Tensor, *, positive_weight: float = 1.0, scored: Tensor | None = None
) -> Tensor:
    r"""Negative log-likelihood over all pairs (eq. 10), a scalar in nats.

    .. math:: -\sum_{i<j} w a_{ij} \log \sigma(l_{ij}) + (1 - a_{ij}) \log \sigma(-l_{ij})

    It takes :math:`O(N^2)` time and the memory of one tile of pairs, forward and backward. Edges are given once, with
    shape :math:`(2, E)`; ``scored`` is the mask :math:`(E,)` of those in the loss, all by default.
    """
    left, right = logits.two_sided()
    # All pairs as non-edges, then corrected: w softplus(-l) - softplus(l) = (w - 1) softplus(-l) - l.
    absent: Tensor = _SoftplusOfPairs.apply(left, right)  # type: ignore[no-untyped-call]
    observed = logits.of(edges)
    weights = positive_weight if scored is None else positive_weight * scored

    return absent + ((weights - 1) * F.softplus(-observed) - observed).sum()


def sampled_loss(
    logits: PairLogits,
    edges: Tensor,
    count: int,
    generator: torch.Generator,
    *,
    positive_weight: float = 1.0,
    scored: Tensor | None = None,
) -> Tensor:
    r"""An unbiased estimate of :func:`exact_loss` in :math:`O(E + M)`, a scalar.

    All edges (i < j) are scored, and non-edges by :math:`M` pairs drawn uniformly with replacement, :math:`c |E|` in
    the paper.
    """
    targets = edges if scored is None else edges[:, scored]
    pairs = uniform_pairs(logits.nodes, count, generator)
    # Drawn pairs that are edges count zero, so the weight of a draw is that of all pairs over the number of draws.
    drawn = pairs[:, ~contains(edges, pairs, logits.nodes)]
    present, absent = logits.of(torch.cat([targets, drawn], dim=1)).tensor_split([targets.shape[1]])
    weight = math.comb(logits.nodes, 2) / max(count, 1)

    return positive_weight * F.softplus(-present).sum() + weight * F.softplus(absent).sum()


def uniform_pairs(nodes: int, count: int, generator: torch.Generator) -> Tensor:
    """Pairs i < j drawn uniformly with replacement, ascending, with shape :math:`(2, M)`; empty without pairs."""
    if nodes < 2:
        return torch.empty(2, 0, dtype=torch.int64, device=generator.device)
    # Each unordered pair can be drawn in two ways.
    first = torch.randint(nodes, (count,), generator=generator, device=generator.device)
    step = torch.randint(1, nodes, (count,), generator=generator, device=generator.device)
    second = (first + step) % nodes
    # Sorted, for locality of memory access.
    keys = (torch.minimum(first, second) * nodes + torch.maximum(first, second)).sort().values

    return torch.stack([keys // nodes, keys % nodes])


def contains(edges: Tensor, pairs: Tensor, nodes: int) -> Tensor:
    """Whether each pair is an edge, both with i < j, with shape :math:`(M,)`."""
    keys, wanted = (each[0] * nodes + each[1] for each in (edges, pairs))
    if (keys[1:] < keys[:-1]).any():
        keys = keys.sort().values

    # Several times faster than torch.isin. Keys are not negative; -1 stands for the place after the last one.
    return torch.cat([keys, keys.new_full((1,), -1)])[torch.searchsorted(keys, wanted)] == wanted


class _SoftplusOfPairs(torch.autograd.Function):
    r"""The sum of :math:`\log(1 + e^{l_{ij}})` over pairs i < j, where :math:`l = L R^T`.

    Gradients are accumulated in the forward pass, so that only matrices of the shape of the factors are kept.
    """

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        total = torch.zeros((), dtype=torch.float64, device=left.device)
        wanted = any(ctx.needs_input_grad)
        # Transposed: products with few columns cost nearly twice as much.
        sides = left.mT.contiguous(), right.mT.contiguous()
        gradients = (torch.zeros_like(sides[0]), torch.zeros_like(sides[1])) if wanted else None
        nodes = len(left)
        space = left.new_empty(_ROWS * _COLUMNS)
        for start in range(0, nodes, _ROWS):
            rows = slice(start, min(start + _ROWS, nodes))
            for begin in range(start, nodes, _COLUMNS):
                columns = slice(begin, min(begin + _COLUMNS, nodes))
                shape = rows.stop - rows.start, columns.stop - columns.start
                tile = space[: shape[0] * shape[1]].view(shape)
                torch.mm(left[rows], sides[1][:, columns], out=tile)
                if begin < rows.stop:
                    # Cells on and below the diagonal are not pairs: their probability is zero.
                    row = torch.arange(rows.start, rows.stop, device=left.device)
                    column = torch.arange(columns.start, columns.stop, device=left.device)
                    tile.masked_fill_(row[:, None] >= column, -torch.inf)
                total += F.softplus(tile).sum()
                tile.sigmoid_()
                if gradients is not None:
                    gradients[0][:, rows].addmm_(sides[1][:, columns], tile.mT)
                    gradients[1][:, columns].addmm_(sides[0][:, rows], tile)
        ctx.gradients = gradients

        return total.to(left.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, scale: Tensor) -> tuple[Tensor, Tensor]:
        left, right = ctx.gradients

        return scale * left.mT, scale * right.mT
