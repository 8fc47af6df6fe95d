r"""Completed graphs of a staged model, moved about by Markov chains that leave their law as it is.

The probability of a graph is a sum over orders, and a single order drawn from the model's rule gives an unbiased
estimate :math:`\hat{p}(A) = p(A_\sigma) / (n!\, q(\sigma | A))` of it, which training makes nearly constant. Chains
that take the estimate for the truth are exact all the same (pseudo-marginal; Andrieu & Roberts, 2009), so that orders
need not be moved at all: a proposed graph brings its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from ..arrival import in_order
from ..batch import GraphBatch, node_mask
from ..checkpoint import TrainedModel
from ..likelihood.proposal import standard_normal
from ..objectives import growth_log_weights
from ..orders import ANY_ORDER, draw_loose_orders, loose_log_prob
from ..schedule import Schedule
from .partial import PartialGraph
from .posterior import Posterior

__all__ = ["Chains", "move_particles"]

# Chains of a run, and the part of their steps that is not counted.
CHAINS = 8
UNCOUNTED = 0.25


def move_particles(
    model: TrainedModel,
    partial: PartialGraph,
    start: Posterior,
    *,
    steps: int,
    schedule: Schedule,
    rng: np.random.Generator,
    any_order: float = ANY_ORDER,
) -> Posterior:
    """Particles that chains have moved on from weighted ones, all of one weight.

    Arguments:
        model: A staged model.
        partial: What is known.
        start: Weighted completions; chains begin at them as often as their weights say, whatever their run.
        steps: Steps of each chain.
        schedule: Which pairs are decided at once.
        rng: The randomness.
        any_order: The part of the orders that follow no rule.
    """
    runs = len(start.log_weights)
    shares = start.weights.ravel().cumsum()
    ticks = rng.permutation((np.arange(runs * CHAINS) + rng.random()) / (runs * CHAINS))
    chosen = np.searchsorted(shares, ticks * shares[-1], side="right").clip(max=len(shares) - 1)
    answers = start.probabilities.reshape(len(shares), -1)[chosen] > 0.5
    chains = Chains(model, partial, answers, schedule=schedule, rng=rng, any_order=any_order)
    walked = np.stack(list(islice(chains, int(UNCOUNTED * steps), steps))).astype(np.float32)
    particles = walked.reshape(len(walked), runs, CHAINS, -1).transpose(1, 0, 2, 3).reshape(runs, -1, walked.shape[-1])

    return Posterior(particles, np.zeros(particles.shape[:2]), start.run_log_evidence)


class Chains:
    """Markov chains over the unknown pairs.

    Attributes:
        answers: True for an edge, with shape :math:`(C, U)`.
        accepted: How many moves were accepted.
    """

    def __init__(
        self,
        model: TrainedModel,
        partial: PartialGraph,
        answers: NDArray[np.bool_],
        *,
        schedule: Schedule,
        rng: np.random.Generator,
        any_order: float = ANY_ORDER,
    ) -> None:
        """Begin at given completions.

        Arguments:
            model: A staged model.
            partial: What is known.
            answers: Where to begin, with shape :math:`(C, U)`.
            schedule: Which pairs are decided at once.
            rng: The randomness.
            any_order: The part of the orders that follow no rule.
        """
        self.model, self.partial, self.schedule, self.rng = model, partial, schedule, rng
        self.any_order = any_order
        i, j = partial.unknown.T
        # Pairs with a node in common: an edge that moves from one to the other keeps that node's degree.
        self.joined = (i[:, None] == i) | (i[:, None] == j) | (j[:, None] == i) | (j[:, None] == j)
        self.answers = answers
        self.accepted = 0
        self.log_p = self._estimate(answers)

    def __iter__(self) -> Iterator[NDArray[np.bool_]]:
        """The answers after each further step, with shape :math:`(C, U)`."""
        while True:
            moves = [self._move(row) for row in self.answers]
            proposed = np.stack([row for row, _ in moves])
            log_p = self._estimate(proposed)
            log_ratio = log_p - self.log_p + np.array([ratio for _, ratio in moves])
            accept = np.log(self.rng.random(len(moves))) < log_ratio
            self.accepted += int(accept.sum())
            self.answers = np.where(accept[:, None], proposed, self.answers)
            self.log_p = np.where(accept, log_p, self.log_p)
            yield self.answers

    def _move(self, row: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], float]:
        """Turn one pair over, or move an edge to an absent pair, any one or one beside it; and the ratio of chances."""
        kind = self.rng.integers(4)
        if kind == 0:
            new = row.copy()
            new[self.rng.integers(len(row))] ^= True
            return new, 0.0
        swaps = row[:, None] & ~row
        if kind > 1:
            swaps &= self.joined
        choices = np.flatnonzero(swaps)
        if not len(choices):
            return row, 0.0
        edge, gap = divmod(int(choices[self.rng.integers(len(choices))]), len(row))
        new = row.copy()
        new[edge], new[gap] = False, True
        back = new[:, None] & ~new
        if kind > 1:
            back &= self.joined

        return new, math.log(len(choices)) - math.log(int(back.sum()))

    @torch.no_grad()
    def _estimate(self, answers: NDArray[np.bool_]) -> NDArray[np.float64]:
        r"""Estimates :math:`\log \hat{p}(A)` of completed graphs, each by an order and latents, with shape (C,)."""
        network, partial, rng = self.model.network, self.partial, self.rng
        count, nodes, like = len(answers), partial.nodes, next(network.parameters())
        rule, sizes = self.model.config.order, np.full(count, nodes)
        graphs = np.repeat(partial.graph.adjacency()[None], count, 0)
        i, j = partial.unknown.T
        graphs[:, i, j] = graphs[:, j, i] = answers

        orders = draw_loose_orders(graphs, sizes, rule, rng, self.any_order)
        log_q = loose_log_prob(graphs, sizes, rule, orders, self.any_order)

        features = partial.graph.features if self.model.config.node_features else None
        x = like.new_zeros(nodes, 0) if features is None else torch.from_numpy(features).to(like)
        mask = node_mask(torch.from_numpy(sizes), nodes).to(like.device)
        batch = GraphBatch(torch.from_numpy(graphs).to(like), mask, x.expand(count, -1, -1))
        batch = in_order(batch, torch.from_numpy(orders).to(like.device))
        noise = standard_normal(rng, like, count, nodes, network.noise_features)
        epsilon = standard_normal(rng, like, count, nodes, self.model.config.latent)
        log_w = growth_log_weights(network, batch, noise, epsilon, torch.from_numpy(log_q).to(like), self.schedule)

        return log_w.double().cpu().numpy()
