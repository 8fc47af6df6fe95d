r"""Completed graphs of a staged model, moved about by Markov chains that leave their law as it is.

The probability of a graph is a sum over orders, and a single order drawn from the model's rule gives an unbiased
estimate :math:`\hat{p}(A) = p(A_\sigma) / (n!\, q(\sigma | A))` of it, which training makes nearly constant. Chains
that take the estimate for the truth are exact all the same (pseudo-marginal; Andrieu & Roberts, 2009), so that orders
need not be moved at all: a proposed graph brings its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from ..autoregressive.distribution import Schedule
from ..autoregressive.ordering import ANY_ORDER, draw_chosen_orders, even_degree, in_order
from ..data.batch import GraphBatch, node_mask
from ..likelihood.proposal import standard_normal
from ..training.checkpoint import TrainedModel
from ..training.objectives import autoregressive_log_weights
from .partial import PartialGraph
from .posterior import Posterior, pick_evenly

__all__ = ["CHAINS", "Chains", "first_answers", "guess_even_graphs", "move_particles"]

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


# Chains of a run, the guesses that each may begin at instead, and the part of their steps that is not counted.
CHAINS = 4
GUESSES = 12
UNCOUNTED = 0.5


def move_particles(
    model: TrainedModel,
    partial: PartialGraph,
    start: Posterior,
    *,
    steps: int,
    schedule: Schedule,
    rng: np.random.Generator,
    tick: Callable[[], None] = lambda: None,
) -> Posterior:
    """Particles that chains have moved on from weighted ones, all of one weight.

    Arguments:
        model: A staged model.
        partial: What is known.
        start: Weighted completions; the chains of a run begin at its own as often as their weights say, so that runs
            stay independent and their differences tell how far the chains have forgotten where they began.
        steps: Steps of each chain.
        schedule: Which pairs are decided at once.
        rng: The randomness.
        tick: Called after each step.
    """
    runs = len(start.log_weights)
    chains = Chains(model, partial, first_answers(start, rng), schedule=schedule, rng=rng)
    for _ in range(GUESSES if model.config.ordering == "attachment" else 0):
        chains.try_guesses()
    counted = []
    for step, answers in enumerate(islice(chains, steps)):
        if step >= int(UNCOUNTED * steps):
            counted.append(answers)
        tick()
    walked = np.stack(counted)
    particles = walked.reshape(len(walked), runs, CHAINS, -1).transpose(1, 0, 2, 3).reshape(runs, -1, walked.shape[-1])

    return Posterior(particles, np.zeros(particles.shape[:2]), start.run_log_evidence)


def first_answers(start: Posterior, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Where the chains of all runs begin, each run at particles of its own, with shape :math:`(R C, U)`."""
    runs = zip(start.probabilities > 0.5, start.log_weights, strict=True)

    return np.concatenate([particles[pick_evenly(log_weights, CHAINS, rng)] for particles, log_weights in runs])


class Chains:
    """Markov chains over the unknown pairs.

    Attributes:
        answers: True for an edge, with shape :math:`(C, U)`.
    """

    def __init__(
        self,
        model: TrainedModel,
        partial: PartialGraph,
        answers: NDArray[np.bool_],
        *,
        schedule: Schedule,
        rng: np.random.Generator,
    ) -> None:
        """Begin at given completions.

        Arguments:
            model: A staged model.
            partial: What is known.
            answers: Where to begin, with shape :math:`(C, U)`.
            schedule: Which pairs are decided at once.
            rng: The randomness.
        """
        self.model, self.partial, self.schedule, self.rng = model, partial, schedule, rng
        self.answers = answers
        self.log_p = self._estimate(answers)

    def __iter__(self) -> Iterator[NDArray[np.bool_]]:
        """The answers after each further step, with shape :math:`(C, U)`."""
        while True:
            moves = [self._move(row) for row in self.answers]
            self._go(np.stack([row for row, _ in moves]), np.array([ratio for _, ratio in moves]))
            yield self.answers

    def try_guesses(self) -> None:
        """Step to guesses, as if all were equally likely ones: this leaves the law, and is for the beginning alone.

        Where a model is sure that all nodes bring as many edges, chains that begin elsewhere take long to find out.
        """
        density = self.model.sizes.density(self.partial.nodes)
        guesses = guess_even_graphs(self.partial, density, len(self.answers), self.rng)
        self._go(guesses, np.zeros(len(guesses)))

    def _go(self, proposed: NDArray[np.bool_], log_ratio: NDArray[np.float64]) -> None:
        """Accept or reject proposed answers, given the log-ratio of the chances of the way back and the way there."""
        log_p = self._estimate(proposed)
        accept = np.log(self.rng.random(len(proposed))) < log_p - self.log_p + log_ratio
        self.answers = np.where(accept[:, None], proposed, self.answers)
        self.log_p = np.where(accept, log_p, self.log_p)

    def _move(self, row: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], float]:
        """Turn one pair over, or move an edge to an absent pair, any one or one beside it; and the log-ratio of the
        chances of the way back and the way there."""
        kind, new = self.rng.integers(4), row.copy()
        if kind == 0:
            new[self.rng.integers(len(row))] ^= True
            return new, 0.0
        edges = np.flatnonzero(row)
        if not len(edges):
            return row, 0.0
        edge = self.rng.choice(edges)
        gaps = np.flatnonzero(~row if kind == 1 else ~row & self._beside(edge))
        if not len(gaps):
            return row, 0.0
        gap = self.rng.choice(gaps)
        new[edge], new[gap] = False, True
        # There are as many edges and as many gaps afterwards, though not beside every edge.
        back = len(gaps) if kind == 1 else int((~new & self._beside(gap)).sum())

        return new, math.log(len(gaps)) - math.log(back)

    def _beside(self, pair: int) -> NDArray[np.bool_]:
        """True for unknown pairs with a node in common with one: an edge that moves between them keeps its degree."""
        return (self.partial.unknown[:, :, None] == self.partial.unknown[pair]).any((1, 2))

    @torch.no_grad()
    def _estimate(self, answers: NDArray[np.bool_]) -> NDArray[np.float64]:
        r"""Estimates :math:`\log \hat{p}(A)` of completed graphs, each by an order and latents, with shape (C,)."""
        network, partial, rng = self.model.network, self.partial, self.rng
        count, nodes, like = len(answers), partial.nodes, next(network.parameters())
        rule, sizes = self.model.config.ordering, np.full(count, nodes)
        graphs = np.repeat(partial.graph.adjacency()[None], count, 0)
        i, j = partial.unknown.T
        graphs[:, i, j] = graphs[:, j, i] = answers

        orders, log_q = draw_chosen_orders(graphs, sizes, rule, rng, ANY_ORDER)

        features = partial.graph.features if self.model.config.node_features else None
        x = like.new_zeros(nodes, 0) if features is None else torch.from_numpy(features).to(like)
        mask = node_mask(torch.from_numpy(sizes), nodes).to(like.device)
        batch = GraphBatch(torch.from_numpy(graphs).to(like), mask, x.expand(count, -1, -1))
        batch = in_order(batch, torch.from_numpy(orders).to(like.device))
        noise = standard_normal(rng, like, count, nodes, network.noise_features)
        epsilon = standard_normal(rng, like, count, nodes, self.model.config.latent)
        log_w = autoregressive_log_weights(
            network, batch, noise, epsilon, torch.from_numpy(log_q).to(like), self.schedule
        )

        return log_w.double().cpu().numpy()
