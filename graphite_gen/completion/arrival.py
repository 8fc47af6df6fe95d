r"""Who comes next, when the graph is known in part.

A rule :math:`q(\sigma | A)` draws whole orders of whole graphs. Here it draws orders of many guesses at the graph, in
which unknown pairs are edges at random, and the next node is the first one of such an order that has not come yet.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..orders import draw_orders
from .partial import PartialGraph

__all__ = ["ArrivalProposal"]

GUESSES = 512
# Part of the choices that follow no order at all: a model may grow graphs as its rule never would.
ANY_NODE = 0.05
# Orders count the more, the longer they agree with what has come.
AGREEMENT = 2.0
# Cells of the comparison of orders with particles held at once.
CHUNK_CELLS = 1 << 24


class ArrivalProposal:
    r"""A proposal for the next node given those that came.

    .. math:: q(v | \sigma_{<t}) = \frac{\epsilon}{n - t} + (1 - \epsilon) \sum_k \omega_k [v = v_k]

    Here :math:`v_k` is the first node of guessed order :math:`k` that has not come, and :math:`\omega_k` grows with the
    number of nodes before it.
    """

    def __init__(self, partial: PartialGraph, rule: str, density: float, rng: np.random.Generator) -> None:
        """Guess at graphs and draw their orders.

        Arguments:
            partial: What is known.
            rule: The model's rule, one of :data:`graphite_gen.config.ORDERS`.
            density: The share of unknown pairs that are guessed to be edges.
            rng: The randomness.
        """
        guesses = np.repeat(partial.graph.adjacency()[None], GUESSES, 0)
        i, j = partial.unknown.T
        guesses[:, i, j] = guesses[:, j, i] = rng.random((GUESSES, len(i))) < density
        self.orders, _ = draw_orders(guesses, np.full(GUESSES, partial.nodes), rule, rng)

    def draw(
        self, arrived: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Who comes next in each particle.

        Arguments:
            arrived: Who has come, with shape :math:`(K, t)`.
            rng: The randomness.

        Returns:
            The nodes and their log-probabilities, each with shape :math:`(K,)`.
        """
        count, nodes = len(arrived), self.orders.shape[1]
        here = np.zeros((count, nodes), dtype=np.bool_)
        here[np.arange(count)[:, None], arrived] = True
        # Many particles have the same nodes, in whatever order.
        sets, which = np.unique(here, axis=0, return_inverse=True)
        size = max(1, CHUNK_CELLS // self.orders.size)
        tables = np.concatenate([self._probabilities(sets[k : k + size]) for k in range(0, len(sets), size)])
        steps = tables.cumsum(1)[which.ravel()]
        chosen = (steps <= rng.random((count, 1)) * steps[:, -1:]).sum(1)

        return chosen, np.log(tables[which.ravel(), chosen])

    def _probabilities(self, here: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The probability of each node to come next, given who has come, both with shape :math:`(S, N)`."""
        first = here[:, self.orders].argmin(-1)
        nodes = self.orders[np.arange(GUESSES), first]
        weights = AGREEMENT ** (first - first.max(1, keepdims=True))
        table = np.zeros(here.shape)
        np.add.at(table, (np.arange(len(here))[:, None], nodes), weights)
        table *= (1 - ANY_NODE) / weights.sum(1, keepdims=True)

        return table + ANY_NODE * ~here / (~here).sum(1, keepdims=True)
