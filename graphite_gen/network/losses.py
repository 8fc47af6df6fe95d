"""The reconstruction loss of one large graph: exact over all pairs, or an unbiased estimate of it."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from .pair_logits import PairLogits

__all__ = ["exact_loss", "pair_count", "sampled_loss", "uniform_pairs"]

# A tile of logits and its probabilities stay in a core's second-level cache.
_ROWS, _COLUMNS = 256, 512
# More saves nothing: few logarithms are left.
_JOINT = 32


def pair_count(nodes: int) -> int:
    """How many unordered pairs there are."""
    return nodes * (nodes - 1) // 2


def exact_loss(
    logits: PairLogits, edges: Tensor, *, positive_weight: float = 1.0, scored: Tensor | None = None
) -> Tensor:
    r"""The negative log-likelihood of a graph over all pairs (eq. 10), in nats, a scalar.

    .. math:: -\sum_{i<j} w a_{ij} \log \sigma(l_{ij}) + (1 - a_{ij}) \log \sigma(-l_{ij})

    Time is that of all pairs; memory is that of one tile of them, forward and backward.

    Arguments:
        logits: The logits of all pairs.
        edges: The edges, each once, with shape :math:`(2, E)`.
        positive_weight: :math:`w`, how much an edge counts beside a pair without one.
        scored: Which edges count at all, with shape :math:`(E,)`; all by default.
    """
    left, right = logits.two_sided()
    # Every pair is first scored as if it had no edge; w softplus(-l) - softplus(l) = (w - 1) softplus(-l) - l.
    nothing: Tensor = _SoftplusOfPairs.apply(left, right)  # type: ignore[no-untyped-call]
    observed = logits.of(edges)
    weights = positive_weight if scored is None else positive_weight * scored

    return nothing + ((weights - 1) * F.softplus(-observed) - observed).sum()


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

    All edges are scored; of the far more pairs without one, :math:`M` drawn uniformly, with replacement, stand for all.

    Arguments:
        logits: The logits of all pairs.
        edges: The edges, each once and with i < j, with shape :math:`(2, E)`.
        count: :math:`M`, the number of pairs to draw; the paper's :math:`c |E|`.
        generator: The source of the pairs, on the device of the edges.
        positive_weight: How much an edge counts beside a pair without one.
        scored: Which edges count at all, with shape :math:`(E,)`; all by default.
    """
    targets = edges if scored is None else edges[:, scored]
    pairs = uniform_pairs(logits.nodes, count, generator)
    # A drawn pair that is an edge counts nothing, so each draw stands for all pairs over the number of draws.
    drawn = pairs[:, ~contains(edges, pairs, logits.nodes)]
    present, absent = logits.of(torch.cat([targets, drawn], dim=1)).tensor_split([targets.shape[1]])
    standing = pair_count(logits.nodes) / max(count, 1)

    return positive_weight * F.softplus(-present).sum() + standing * F.softplus(absent).sum()


def uniform_pairs(nodes: int, count: int, generator: torch.Generator) -> Tensor:
    """Pairs i < j drawn uniformly with replacement, ascending, with shape :math:`(2, M)`; none if there is no pair."""
    if nodes < 2:
        count = 0
    # The second node is any but the first: every unordered pair has two ways to be drawn.
    first = torch.randint(max(nodes, 1), (count,), generator=generator, device=generator.device)
    step = torch.randint(1, max(nodes, 2), (count,), generator=generator, device=generator.device)
    second = (first + step) % max(nodes, 1)
    # In order, what is looked up for one pair is near in memory to that for the next.
    keys = (torch.minimum(first, second) * nodes + torch.maximum(first, second)).sort().values

    return torch.stack([keys // max(nodes, 1), keys % max(nodes, 1)])


def contains(edges: Tensor, pairs: Tensor, nodes: int) -> Tensor:
    """Whether each pair is one of the edges, both with i < j, with shape :math:`(M,)`."""
    if edges.shape[1] == 0:
        return torch.zeros(pairs.shape[1], dtype=torch.bool, device=pairs.device)
    keys = edges[0] * nodes + edges[1]
    if (keys[1:] < keys[:-1]).any():
        keys = keys.sort().values
    wanted = pairs[0] * nodes + pairs[1]
    place = torch.searchsorted(keys, wanted).clamp_max(len(keys) - 1)

    return keys[place] == wanted


class _SoftplusOfPairs(torch.autograd.Function):
    r"""The sum of :math:`\log(1 + e^{l_{ij}})` over pairs i < j, where :math:`l = L R^T`.

    The derivative is needed where the value is, so gradients are summed up on the way: nothing is kept for later but
    what has the shape of the factors.
    """

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        total = torch.zeros((), dtype=torch.float64, device=left.device)
        wanted = any(ctx.needs_input_grad)
        # Lying on their side: products that end in few columns cost nearly twice as much.
        sides = left.mT.contiguous(), right.mT.contiguous()
        gradients = (torch.zeros_like(sides[0]), torch.zeros_like(sides[1])) if wanted else None
        nodes = len(left)
        space = left.new_empty(2, _ROWS * _COLUMNS)
        for start in range(0, nodes, _ROWS):
            rows = slice(start, min(start + _ROWS, nodes))
            for begin in range(start, nodes, _COLUMNS):
                columns = slice(begin, min(begin + _COLUMNS, nodes))
                shape = rows.stop - rows.start, columns.stop - columns.start
                tile, odds = (each[: shape[0] * shape[1]].view(shape) for each in space)
                torch.mm(left[rows], sides[1][:, columns], out=tile)
                if begin < rows.stop:
                    # Cells on and below the diagonal are no pairs: they get a probability of zero.
                    row = torch.arange(rows.start, rows.stop, device=left.device)
                    column = torch.arange(columns.start, columns.stop, device=left.device)
                    tile.masked_fill_(row[:, None] >= column, -torch.inf)
                total += _softplus_to_sigmoid(tile, odds)
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


def _softplus_to_sigmoid(tile: Tensor, odds: Tensor) -> Tensor:
    """The sum of the softplus of some logits, which are replaced by their probabilities.

    The softplus is that of one plus the odds as rounded: in single precision a pair is right to 6e-8 nats, which is
    nothing beside those of an edge; the probabilities, which are the gradient, keep all their digits.

    Arguments:
        tile: The logits; their probabilities afterwards.
        odds: Space of the same shape, which is written over.
    """
    # Odds leave the range of numbers above this; far below it the softplus of a logit is the logit.
    sure = math.log(torch.finfo(tile.dtype).max) - 1
    highest = float(tile.amax())
    excess = tile.new_zeros(())
    if highest > sure:
        excess = (tile - sure).clamp_min_(0).sum()
        tile.clamp_max_(sure)
    torch.exp(tile, out=odds)
    torch.add(odds, 1, out=tile)
    # So many can be multiplied without leaving the range of numbers.
    joint = 2 ** int(math.log2((sure + 1) / (min(max(0.0, highest), sure) + 1)))
    logarithms = _sum_of_logs(tile.view(-1), min(joint, _JOINT))
    torch.div(odds, tile, out=tile)

    return logarithms + excess


def _sum_of_logs(x: Tensor, joint: int) -> Tensor:
    """The sum of the logarithms of some numbers, with shape :math:`(M,)`; few are taken, as products cost less."""
    groups = len(x) // joint
    products = x[: groups * joint].view(joint, groups).prod(0)

    return products.log_().sum() + x[groups * joint :].log().sum()
