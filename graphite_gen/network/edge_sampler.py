"""Exact samples of sparse graphs from low-rank logits, without a visit to every pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["BlockTree", "Blocks", "EdgeSampler", "sample_edges", "visit_every_pair"]

if TYPE_CHECKING:
    from .pair_logits import PairLogits


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


if TYPE_CHECKING:
    from .pair_logits import PairLogits


_SMALLEST_BLOCK = 8
# What a point costs, in terms of the weight of one node in one pair of blocks.
_POINT_COST = 4.0
# Where centres say nearly all about a block, and edges are rare, halves of it would have no closer bounds.
_CLOSE = 0.25
# How many weights or points are held at a time.
_CHUNK = 1 << 19


class EdgeSampler:
    r"""Draws graphs whose edges are independent, with the probabilities of low-rank logits (eq. 10).

    An edge of probability :math:`p = \sigma(l)` is there if any point of a Poisson process of rate
    :math:`-\log(1 - p) = \log(1 + e^l) \le e^l` falls on its pair. Nodes are in nested blocks of alike ones, with
    :math:`f_i = c + d_i` about a centre. Between two blocks,

    .. math:: l_{ij} \le (b_i + f_i^T S c' + \tfrac{t}{2} |d_i|^2)
                       + (b_j + f_j^T S c + \tfrac{1}{2t} |d_j|^2) - c^T S c' + shift

    is the sum of a number for each node, so points fall at the rate of the bound by drawing their number and each end
    by itself; a point stays with the ratio of its pair's own rate to the bound. That is exact, however loose the bound.
    Blocks are halved for as long as points cost more than the numbers, so the work grows with the edges, and with
    the pairs only between small blocks where most pairs have an edge.

    Arguments:
        logits: The logits of all pairs.
    """

    def __init__(self, logits: PairLogits) -> None:
        self._nodes = logits.nodes
        self._tree = BlockTree.of(logits, _SMALLEST_BLOCK)

    def sample(self, rng: np.random.Generator) -> Indices:
        """The edges of one graph, i < j in ascending order, with shape :math:`(2, E)`."""
        found = [np.empty(0, dtype=np.int64)]
        for block_pairs in self._block_pairs():
            for points in (block_pairs.every_cell(), block_pairs.thrown(rng)):
                for i, j, keep in points:
                    stays = rng.random(len(i)) < keep
                    first, second = self._tree.nodes[i[stays]], self._tree.nodes[j[stays]]
                    found.append(np.minimum(first, second) * self._nodes + np.maximum(first, second))
        # Several points may stay on one pair: it has one edge.
        keys = np.unique(np.concatenate(found))

        return np.stack(np.divmod(keys, self._nodes))

    def _block_pairs(self) -> Iterator[_BlockPairs]:
        """Pairs of blocks that cover every pair of nodes once, halved for as long as that pays."""
        waiting = [(0, np.zeros((2, 1), dtype=np.int64))]
        while waiting:
            level, pairs = waiting.pop()
            size = self._tree.levels[level].size
            some = max(_CHUNK // size, 1)
            if pairs.shape[1] > some:
                waiting += [(level, pairs[:, some:]), (level, pairs[:, :some])]
                continue
            block_pairs = _BlockPairs.of(self._tree, self._tree.levels[level], pairs)
            costly = np.minimum(block_pairs.points, size**2) * _POINT_COST > 2 * size
            costly &= block_pairs.loose > _CLOSE
            if level + 1 == len(self._tree.levels):
                costly[:] = False
            if not costly.all():
                yield block_pairs[~costly]
            if costly.any():
                waiting.append((level + 1, _halves(pairs[:, costly])))


@dataclass(frozen=True)
class _BlockPairs:
    """Pairs of blocks of one level, and the rates at which points fall between them.

    Attributes:
        tree: The tree of blocks.
        pairs: The two blocks of each pair, with shape :math:`(2, Q)`.
        log_rates: The two sums' logarithms, of either block's nodes, with shape :math:`(2, Q, S)`.
        points: The number of points that are expected to fall on each pair of blocks, with shape :math:`(Q,)`.
        loose: How far bounds are above the logarithms of rates, about, with shape :math:`(Q,)`: centres may say little
            about their blocks, and odds be far above rates, as those of a hub are.
    """

    tree: BlockTree
    pairs: Indices
    log_rates: Array
    points: Array
    loose: Array

    @classmethod
    def of(cls, tree: BlockTree, blocks: Blocks, pairs: Indices) -> _BlockPairs:
        """The bounds of pairs of blocks.

        Arguments:
            tree: The tree of blocks.
            blocks: The level of the blocks.
            pairs: The two blocks of each pair, with shape :math:`(2, Q)`.
        """
        centres = blocks.centres[pairs]
        factor = tree.factor.reshape(*blocks.away.shape, -1)
        bias = tree.bias.reshape(blocks.away.shape)
        # Of all t that serve a pair of blocks, the ratio of their spreads makes the sum of both terms least.
        spread = blocks.spread[pairs]
        ratio = spread[::-1] / spread
        log_rates = np.stack(
            [
                bias[own] + (factor[own] @ (tree.sign * other)[..., None])[..., 0] + 0.5 * t[:, None] * blocks.away[own]
                for own, other, t in zip(pairs, centres[::-1], ratio, strict=True)
            ]
        )
        log_rates[0] += (tree.shift - np.einsum("qr,r,qr->q", centres[0], tree.sign, centres[1]))[:, None]
        highest = log_rates.max(2)
        # Numpy's own log-sum-exp takes several times as long.
        sums = np.exp(log_rates - highest[..., None]).sum(2, dtype=np.float64)
        with np.errstate(over="ignore"):
            points = np.exp((np.log(sums) + highest).sum(0))

        return cls(tree, pairs, log_rates, points, spread.prod(0) + np.maximum(highest.sum(0), 0))

    def __getitem__(self, chosen: NDArray[np.bool_]) -> _BlockPairs:
        return _BlockPairs(
            self.tree, self.pairs[:, chosen], self.log_rates[:, chosen], self.points[chosen], self.loose[chosen]
        )

    @property
    def size(self) -> int:
        return self.log_rates.shape[2]

    @property
    def crowded(self) -> NDArray[np.bool_]:
        """Where more points would fall than there are cells to visit, with shape :math:`(Q,)`."""
        return self.points > self.size**2

    def every_cell(self) -> Iterator[tuple[Indices, Indices, Array]]:
        """Every cell of crowded pairs of blocks: places, and the probability of an edge."""
        pairs = self.pairs[:, self.crowded]
        for begin in range(0, pairs.shape[1] * self.size**2, _CHUNK):
            cell = np.arange(begin, min(begin + _CHUNK, pairs.shape[1] * self.size**2))
            at, within = np.divmod(cell, self.size**2)
            i, j = pairs[:, at] * self.size + np.stack(np.divmod(within, self.size))
            i, j = i[i < j], j[i < j]
            yield i, j, _sigmoid(self.tree.logits(i, j))

    def thrown(self, rng: np.random.Generator) -> Iterator[tuple[Indices, Indices, Array]]:
        """Points thrown at the other pairs of blocks: places, and the probability with which a point stays."""
        some = self[~self.crowded]
        counts = rng.poisson(some.points)
        ends = np.cumsum(counts)
        # Each block's rates add up to one, one block after the other, so that one search serves all of them.
        shares = np.exp(some.log_rates.astype(np.float64) - some.log_rates.max(2, keepdims=True))
        shares = np.cumsum(shares, axis=2)
        shares /= shares[..., -1:]
        shares += np.arange(shares.shape[1])[:, None]
        for begin in range(0, int(counts.sum()), _CHUNK):
            at = np.searchsorted(ends, np.arange(begin, min(begin + _CHUNK, ends[-1])), side="right")
            drawn = [np.searchsorted(side.ravel(), at + rng.random(len(at)), side="right") for side in shares]
            # Rounding may step over the end of a block.
            within = np.minimum(np.stack(drawn) - at * some.size, some.size - 1)
            i, j = some.pairs[:, at] * some.size + within
            log_bound = some.log_rates[0, at, within[0]] + some.log_rates[1, at, within[1]]
            # Of a block with itself, cells on and below the diagonal are no pairs.
            upper = i < j
            logits = self.tree.logits(i[upper], j[upper])
            yield i[upper], j[upper], np.logaddexp(0, logits) * np.exp(-log_bound[upper])


def _halves(pairs: Indices) -> Indices:
    """The pairs of halves of pairs of blocks; a block with itself gives three, not four."""
    halves = np.concatenate([2 * pairs + np.array(step)[:, None] for step in ((0, 0), (0, 1), (1, 0), (1, 1))], axis=1)

    return halves[:, halves[0] <= halves[1]]


def _sigmoid(logits: Array) -> Array:
    return np.exp(-np.logaddexp(0, -logits))


if TYPE_CHECKING:
    from .pair_logits import PairLogits


# Up to so many nodes a look at every pair costs less than bounds on blocks of them do, where logits are of a trained
# model: that takes 10 nanoseconds a pair.
VISITED_NODES = 1 << 15
# A tile of logits and its random numbers stay in a core's second-level cache.
_TILE = 1 << 17
# What numbers of single precision between 0 and 1 are multiples of, as they are drawn.
_GRAIN = 2.0**-24


def sample_edges(logits: PairLogits, rng: np.random.Generator) -> NDArray[np.int64]:
    """The edges of one graph, i < j in ascending order, with shape :math:`(2, E)`.

    Arguments:
        logits: The logits of all pairs; edges are independent.
        rng: The randomness.
    """
    return visit_every_pair(logits, rng) if logits.nodes <= VISITED_NODES else EdgeSampler(logits).sample(rng)


@torch.no_grad()
def visit_every_pair(logits: PairLogits, rng: np.random.Generator) -> NDArray[np.int64]:
    """The same by a look at every pair, some rows at a time."""
    nodes = logits.nodes
    found = [np.empty((2, 0), dtype=np.int64)]
    height = max(1, _TILE // max(nodes, 1))
    for start in range(0, nodes - 1, height):
        stop = min(start + height, nodes - 1)
        chances = logits.tile(slice(start, stop), slice(start, nodes)).sigmoid_().triu_(1).cpu().numpy()
        level = rng.random(chances.shape, dtype=np.float32)
        row, column = np.nonzero(level < chances)
        # Numbers of single precision are coarse beside the chances of rare edges: those few that may be below get the
        # rest of their digits.
        exact = level[row, column] + _GRAIN * rng.random(len(row))
        stays = exact < chances[row, column]
        found.append(np.stack([row[stays], column[stays]]) + start)

    return np.concatenate(found, axis=1)
