"""Edges drawn by their log-odds, in whichever exact way is the faster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from .sampler import EdgeSampler

if TYPE_CHECKING:
    from .pairs import PairLogits

__all__ = ["sample_edges", "visit_every_pair"]

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
