"""Exact samples of sparse graphs from low-rank logits, in less time than one visit per pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

__all__ = ["sample_edges", "thinned_edges"]

if TYPE_CHECKING:
    from .pair_logits import PairLogits

Array = NDArray[np.floating]
Indices = NDArray[np.int64]

# The bias of padding nodes: far below any logit, and finite, so that differences are defined.
_NEVER = -1e6
_SMALLEST_BLOCK = 8
# The cost of a point relative to that of the weight of one node in one pair of blocks.
_POINT_COST = 4.0
# Looseness of a bound below which smaller blocks do not improve it.
_CLOSE = 0.25
# Weights or points in memory at a time.
_CHUNK = 1 << 19
# Up to this many nodes visiting every pair is faster, at 10 ns per pair of a trained model.
VISITED_NODES = 1 << 15
# A tile of logits and its random numbers fit in the L2 cache.
_TILE = 1 << 17
# The spacing of uniform random numbers in single precision.
_SPACING = 2.0**-24


@dataclass(frozen=True)
class Blocks:
    """One level of the block tree: all nodes in equal blocks of consecutive positions.

    It has the mean factor of each block, :math:`(B, r)`, the squared distance of each node to it, :math:`(B, S)`, and
    the root mean square distance, positive, :math:`(B,)`.
    """

    centres: Array
    away: Array
    spread: Array

    @classmethod
    def of(cls, factor: Array, real: NDArray[np.bool_], blocks: int) -> Blocks:
        """Blocks of a factor of shape :math:`(P, r)`, zero at padding; ``real`` is its mask, ``blocks`` divides P."""
        parts = factor.reshape(blocks, -1, factor.shape[1])
        weights = real.reshape(blocks, -1)
        count = np.maximum(weights.sum(1), 1)
        centres = parts.sum(1) / count[:, None].astype(factor.dtype)
        away = np.square(parts - centres[:, None]).sum(2) * weights
        spread = np.sqrt(away.sum(1) / count)

        return cls(centres, away, np.maximum(spread, np.finfo(factor.dtype).tiny ** 0.25))


@dataclass(frozen=True)
class BlockTree:
    """A binary tree of blocks of similar nodes, in the manner of a k-d tree, from one block to the smallest ones.

    The node at each position has shape :math:`(P,)` and is at least the number of nodes for padding; the factors,
    rotated to principal axes, have shape :math:`(P, r)`.
    """

    nodes: Indices
    factor: Array
    bias: Array
    sign: Array
    shift: float
    levels: list[Blocks]

    @classmethod
    def of(cls, logits: PairLogits, smallest: int) -> BlockTree:
        r"""Split blocks at the median of their widest coordinate, down to ``smallest`` nodes: :math:`O(N \log^2 N)`."""
        factor, sign, bias = (leaf.detach().cpu().numpy() for leaf in (logits.factor, logits.sign, logits.bias))
        depth = max(logits.nodes // smallest, 1).bit_length() - 1
        places = -(-logits.nodes >> depth) << depth
        fill = places - logits.nodes
        factor = np.pad(_rotate(factor, sign), ((0, fill), (0, 0)))
        bias = np.pad(bias, (0, fill), constant_values=_NEVER)
        nodes = np.arange(places)
        levels = [Blocks.of(factor, nodes < logits.nodes, 1)]
        for level in range(1, depth + 1):
            parts = factor.reshape(2 ** (level - 1), -1, factor.shape[1])
            widest = np.argmax(parts.var(1), axis=1)
            keys = np.take_along_axis(parts, widest[:, None, None], axis=2)[..., 0]
            # Padding stays at the end.
            keys = np.where((nodes < logits.nodes).reshape(keys.shape), keys, np.inf)
            turn = (np.argsort(keys, axis=1) + np.arange(0, places, keys.shape[1])[:, None]).ravel()
            nodes, factor, bias = nodes[turn], factor[turn], bias[turn]
            levels.append(Blocks.of(factor, nodes < logits.nodes, 2**level))

        return cls(nodes, factor, bias, sign, float(logits.shift), levels)

    def logits(self, i: Indices, j: Indices) -> Array:
        """Logits of pairs of positions, with shape :math:`(M,)`."""
        products = np.einsum("mr,mr->m", self.factor[i] * self.sign, self.factor[j])

        return products + self.bias[i] + self.bias[j] + self.shift


def _rotate(factor: Array, sign: Array) -> Array:
    """The factor rotated to its principal axes, separately for each sign, which leaves logits unchanged."""
    turned = np.empty_like(factor)
    for one in (-1, 1):
        part = factor[:, sign == one]
        turned[:, sign == one] = part @ np.linalg.eigh(part.T @ part)[1]

    return turned


def thinned_edges(logits: PairLogits, rng: np.random.Generator) -> Indices:
    r"""Edges of one graph, by Poisson thinning in less time than one visit per pair; see :func:`sample_edges`.

    An edge of probability :math:`p = \sigma(l)` is present if a Poisson process of rate
    :math:`-\log(1 - p) = \log(1 + e^l) \le e^l` has a point on its pair. Nodes are in nested blocks of similar nodes,
    with :math:`f_i = c + d_i` about a centre. Between two blocks,

    .. math:: l_{ij} \le (b_i + f_i^T S c' + \tfrac{t}{2} |d_i|^2)
                       + (b_j + f_j^T S c + \tfrac{1}{2t} |d_j|^2) - c^T S c' + shift

    is a sum of one term per node, so points of the bounding process are sampled by their number and by each end
    independently, and kept with the ratio of the rate of their pair to the bound. That is exact for any bound. Blocks
    are halved while points cost more than node terms, so the time is proportional to the number of edges, and to the
    number of pairs only between small blocks where most pairs have an edge.
    """
    tree = BlockTree.of(logits, _SMALLEST_BLOCK)
    found = [np.empty(0, dtype=np.int64)]
    for block_pairs in _block_pairs(tree):
        # Visiting all cells is cheaper than more points than cells.
        crowded = block_pairs.points > block_pairs.size**2
        for points in (block_pairs[crowded].all_cells(), block_pairs[~crowded].poisson_points(rng)):
            for i, j, probability in points:
                kept = rng.random(len(i)) < probability
                first, second = tree.nodes[i[kept]], tree.nodes[j[kept]]
                found.append(np.minimum(first, second) * logits.nodes + np.maximum(first, second))
    # A pair may have several points: it has one edge.
    keys = np.unique(np.concatenate(found))

    return np.stack(np.divmod(keys, logits.nodes))


def _block_pairs(tree: BlockTree) -> Iterator[_BlockPairs]:
    """Pairs of blocks that cover every pair of nodes once, halved while that reduces the cost."""
    waiting = [(0, np.zeros((2, 1), dtype=np.int64))]
    while waiting:
        level, pairs = waiting.pop()
        size = tree.levels[level].away.shape[1]
        some = max(_CHUNK // size, 1)
        if pairs.shape[1] > some:
            waiting += [(level, pairs[:, some:]), (level, pairs[:, :some])]
            continue
        block_pairs = _BlockPairs.of(tree, tree.levels[level], pairs)
        costly = np.minimum(block_pairs.points, size**2) * _POINT_COST > 2 * size
        costly &= (block_pairs.loose > _CLOSE) & (level + 1 < len(tree.levels))
        if not costly.all():
            yield block_pairs[~costly]
        if costly.any():
            steps = np.array([(0, 0), (0, 1), (1, 0), (1, 1)])
            halves = np.concatenate([2 * pairs[:, costly] + step[:, None] for step in steps], axis=1)
            # A block with itself gives three pairs of halves, not four.
            waiting.append((level + 1, halves[:, halves[0] <= halves[1]]))


@dataclass(frozen=True)
class _BlockPairs:
    """Pairs of blocks of one level, and the rates of points between them.

    Attributes:
        pairs: The two blocks of each pair, with shape :math:`(2, Q)`.
        log_rates: The term of the bound for each node of either block, with shape :math:`(2, Q, S)`.
        points: The expected number of points of each pair of blocks, with shape :math:`(Q,)`.
        loose: Approximate excess of the bound over log rates, with shape :math:`(Q,)`; large for widely spread blocks,
            and where odds are far above rates, as for hubs.
    """

    tree: BlockTree
    pairs: Indices
    log_rates: Array
    points: Array
    loose: Array

    @classmethod
    def of(cls, tree: BlockTree, blocks: Blocks, pairs: Indices) -> _BlockPairs:
        centres = blocks.centres[pairs]
        factor = tree.factor.reshape(*blocks.away.shape, -1)
        bias = tree.bias.reshape(blocks.away.shape)
        # The ratio of spreads is the t that minimises the sum of both terms.
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
        # Several times faster than SciPy's logsumexp.
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

    def all_cells(self) -> Iterator[tuple[Indices, Indices, Array]]:
        """Every cell: positions, and the probability of an edge."""
        cells = self.pairs.shape[1] * self.size**2
        for begin in range(0, cells, _CHUNK):
            at, within = np.divmod(np.arange(begin, min(begin + _CHUNK, cells)), self.size**2)
            i, j = self.pairs[:, at] * self.size + np.stack(np.divmod(within, self.size))
            i, j = i[i < j], j[i < j]
            yield i, j, np.exp(-np.logaddexp(0, -self.tree.logits(i, j)))

    def poisson_points(self, rng: np.random.Generator) -> Iterator[tuple[Indices, Indices, Array]]:
        """Points of the bounding process: positions, and the probability to keep them."""
        counts = rng.poisson(self.points)
        ends = np.cumsum(counts)
        # Distribution functions of the nodes of each block, offset by its index, so that one search serves all blocks.
        cdf = np.exp(self.log_rates.astype(np.float64) - self.log_rates.max(2, keepdims=True))
        cdf = np.cumsum(cdf, axis=2)
        cdf /= cdf[..., -1:]
        cdf += np.arange(cdf.shape[1])[:, None]
        for begin in range(0, int(counts.sum()), _CHUNK):
            at = np.searchsorted(ends, np.arange(begin, min(begin + _CHUNK, ends[-1])), side="right")
            drawn = [np.searchsorted(side.ravel(), at + rng.random(len(at)), side="right") for side in cdf]
            # Rounding may exceed the end of a block.
            within = np.minimum(np.stack(drawn) - at * self.size, self.size - 1)
            i, j = self.pairs[:, at] * self.size + within
            log_bound = self.log_rates[0, at, within[0]] + self.log_rates[1, at, within[1]]
            # For a block with itself, cells on and below the diagonal are not pairs.
            upper = i < j
            logits = self.tree.logits(i[upper], j[upper])
            yield i[upper], j[upper], np.logaddexp(0, logits) * np.exp(-log_bound[upper])


def sample_edges(logits: PairLogits, rng: np.random.Generator) -> NDArray[np.int64]:
    """Edges of one graph, i < j in ascending order, with shape :math:`(2, E)`."""
    return (visit_every_pair if logits.nodes <= VISITED_NODES else thinned_edges)(logits, rng)


@torch.no_grad()
def visit_every_pair(logits: PairLogits, rng: np.random.Generator) -> NDArray[np.int64]:
    """Edges of one graph by visiting every pair, some rows at a time."""
    nodes = logits.nodes
    found = [np.empty((2, 0), dtype=np.int64)]
    height = max(1, _TILE // max(nodes, 1))
    for start in range(0, nodes - 1, height):
        stop = min(start + height, nodes - 1)
        p = logits.tile(slice(start, stop), slice(start, nodes)).sigmoid_().triu_(1).cpu().numpy()
        uniform = rng.random(p.shape, dtype=np.float32)
        row, column = np.nonzero(uniform < p)
        # Single precision is too coarse for rare edges: candidates get the remaining digits.
        exact = uniform[row, column] + _SPACING * rng.random(len(row))
        kept = exact < p[row, column]
        found.append(np.stack([row[kept], column[kept]]) + start)

    return np.concatenate(found, axis=1)
