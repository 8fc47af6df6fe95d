"""Guesses at graphs that are known in part, by what their nodes bring and no model."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..orders import even_degree
from .partial import PartialGraph

__all__ = ["guess_even_graphs"]

# Nodes that cannot bring what they should are taken last.
_LAST = 1 << 20


def guess_even_graphs(partial: PartialGraph, density: float, count: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Completions that have even orders where what is known allows it, with shape :math:`(G, U)`.

    Of completions at random hardly any has one, as a single edge too many spoils it. These graphs are taken apart node
    by node instead, each left with what it should have brought.

    Arguments:
        partial: What is known.
        density: The share of all pairs that are edges in graphs of that size.
        count: How many.
        rng: The randomness.

    Returns:
        True for unknown pairs that are edges.
    """
    nodes = np.array([partial.nodes])
    brought = even_degree(density * nodes * (nodes - 1) / 2, nodes)
    guesses = np.repeat(partial.graph.adjacency()[None], count, 0)
    _take_apart(guesses, ~partial.known(), int(brought[0]), rng)
    i, j = partial.unknown.T

    return guesses[:, i, j]


def _take_apart(guesses: NDArray[np.bool_], unknown: NDArray[np.bool_], brought: int, rng: np.random.Generator) -> None:
    """Decide the unknown pairs of graphs so that nodes, the last one first, bring as many edges each where they can.

    Arguments:
        guesses: The known edges, with shape :math:`(G, N, N)`; the others are added to them.
        unknown: True for unknown pairs, with shape :math:`(N, N)`.
        brought: What each node after the first few brings.
        rng: The randomness.
    """
    count, nodes = guesses.shape[:2]
    rows = np.arange(count)
    left = np.ones((count, nodes), dtype=np.bool_)
    least = guesses.sum(-1)
    most = least + unknown.sum(-1)
    for _ in range(nodes - brought):
        # First those that can bring it, and of these the ones that most likely do.
        misses = np.maximum(least - brought, 0) + np.maximum(brought - most, 0)
        unlikely = np.abs(least + most - 2 * brought) / 2
        key = np.where(left, _LAST * misses + unlikely + rng.random(left.shape), np.inf)
        chosen = key.argmin(1)
        left[rows, chosen] = False
        near, asked = guesses[rows, chosen] & left, unknown[chosen] & left
        rank = np.where(asked, rng.random(left.shape), np.inf).argsort(1).argsort(1)
        new = asked & (rank < (brought - least[rows, chosen])[:, None])
        guesses[rows, chosen] |= new
        guesses[rows, :, chosen] |= new
        least = least - near
        most = most - near - asked
