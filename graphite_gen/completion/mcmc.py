r"""Pseudo-marginal Markov chains over the unknown pairs, under an autoregressive model.

The probability of a graph is a sum over node orderings, and one ordering from the model's rule gives the unbiased
estimate :math:`\hat{p}(A) = p(A_\sigma) / (n!\, q(\sigma | A))`, which training makes nearly constant. Chains that use
the estimate in place of :math:`p(A)` target the exact posterior (Andrieu & Roberts, 2009), so orderings need no moves
of their own: each proposed graph comes with one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from ..autoregressive.distribution import Schedule
from ..autoregressive.ordering import UNIFORM_FRACTION, attachment_degree, permute_nodes, propose_orderings
from ..data.batch import GraphBatch, node_mask
from ..likelihood.proposal import standard_normal
from ..training.checkpoint import TrainedModel
from ..training.objectives import autoregressive_log_weights
from .partial import PartialGraph
from .posterior import Posterior, systematic_resample

__all__ = ["CHAINS", "Chains", "initial_edges", "move_particles", "regular_completions"]

# Chains per run, regular completions that each may start from instead, and the fraction of steps discarded as burn-in.
CHAINS = 4
STARTS = 12
BURN_IN = 0.5
# Dominates all other terms of the removal key.
_LAST = 1 << 20


def regular_completions(
    partial: PartialGraph, density: float, count: int, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Random completions with regular attachment orderings where the known pairs allow it, with shape :math:`(G, U)`.

    Hardly any random completion has one, as a single edge too many is enough to rule it out. Therefore nodes are
    removed one by one, each completed to the number of edges it should have had when it was attached.
    """
    nodes = np.array([partial.nodes])
    m = attachment_degree(density * nodes * (nodes - 1) / 2, nodes)
    graphs = np.repeat(partial.graph.adjacency()[None], count, 0)
    _add_regular_edges(graphs, ~partial.known(), int(m[0]), rng)
    i, j = partial.unknown.T

    return graphs[:, i, j]


def _add_regular_edges(graphs: NDArray[np.bool_], unknown: NDArray[np.bool_], m: int, rng: np.random.Generator) -> None:
    """Add edges at unknown pairs so that nodes, the last one first, have m edges to earlier ones where possible."""
    count, nodes = graphs.shape[:2]
    rows = np.arange(count)
    left = np.ones((count, nodes), dtype=np.bool_)
    least = graphs.sum(-1)
    most = least + unknown.sum(-1)
    for _ in range(nodes - m):
        # First nodes that can have m edges, and of these the most likely ones.
        misses = np.maximum(least - m, 0) + np.maximum(m - most, 0)
        unlikely = np.abs(least + most - 2 * m) / 2
        key = np.where(left, _LAST * misses + unlikely + rng.random(left.shape), np.inf)
        chosen = key.argmin(1)
        left[rows, chosen] = False
        neighbours, candidates = graphs[rows, chosen] & left, unknown[chosen] & left
        rank = np.where(candidates, rng.random(left.shape), np.inf).argsort(1).argsort(1)
        new = candidates & (rank < (m - least[rows, chosen])[:, None])
        graphs[rows, chosen] |= new
        graphs[rows, :, chosen] |= new
        least = least - neighbours
        most = most - neighbours - candidates


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
    """Run chains from weighted particles; return their states after the burn-in, with equal weights.

    The chains of a run start from its own particles, resampled by weight, so that runs stay independent and their
    differences show whether the chains have converged; ``tick`` is called after each step.
    """
    runs = len(start.log_weights)
    chains = Chains(model, partial, initial_edges(start, rng), schedule=schedule, rng=rng)
    for _ in range(STARTS if model.config.ordering == "attachment" else 0):
        chains.try_regular()
    kept = []
    for step, edges in enumerate(islice(chains, steps)):
        if step >= int(BURN_IN * steps):
            kept.append(edges)
        tick()
    states = np.stack(kept)
    particles = states.reshape(len(states), runs, CHAINS, -1).transpose(1, 0, 2, 3).reshape(runs, -1, states.shape[-1])

    return Posterior(particles, np.zeros(particles.shape[:2]), start.run_log_evidence)


def initial_edges(start: Posterior, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return the initial states of the chains, those of a run from its own particles, with shape :math:`(R C, U)`."""
    runs = zip(start.probabilities > 0.5, start.log_weights, strict=True)

    return np.concatenate([particles[systematic_resample(weights, CHAINS, rng)] for particles, weights in runs])


class Chains:
    """Parallel Markov chains over the unknown pairs, from edges of shape :math:`(C, U)`; iterating gives each step."""

    def __init__(
        self,
        model: TrainedModel,
        partial: PartialGraph,
        edges: NDArray[np.bool_],
        *,
        schedule: Schedule,
        rng: np.random.Generator,
    ) -> None:
        self.model, self.partial, self.schedule, self.rng = model, partial, schedule, rng
        self.edges = edges
        self.log_p = self._estimate(edges)

    def __iter__(self) -> Iterator[NDArray[np.bool_]]:
        while True:
            moves = [self._move(row) for row in self.edges]
            self._accept(np.stack([row for row, _ in moves]), np.array([ratio for _, ratio in moves]))
            yield self.edges

    def try_regular(self) -> None:
        """Propose regular completions as if the proposal were symmetric; this is for initialisation only.

        Under a model that is certain of regular attachment, chains from elsewhere take long to find such graphs.
        """
        density = self.model.sizes.density(self.partial.nodes)
        proposed = regular_completions(self.partial, density, len(self.edges), self.rng)
        self._accept(proposed, np.zeros(len(proposed)))

    def _accept(self, proposed: NDArray[np.bool_], log_ratio: NDArray[np.float64]) -> None:
        """Accept or reject proposals, given the log-ratios of backward and forward proposal probabilities."""
        log_p = self._estimate(proposed)
        accept = np.log(self.rng.random(len(proposed))) < log_p - self.log_p + log_ratio
        self.edges = np.where(accept[:, None], proposed, self.edges)
        self.log_p = np.where(accept, log_p, self.log_p)

    def _move(self, row: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], float]:
        """Flip one pair, or move an edge to any non-edge or to an adjacent one; and the log-ratio of the proposal."""
        kind, new = self.rng.integers(4), row.copy()
        if kind == 0:
            new[self.rng.integers(len(row))] ^= True
            return new, 0.0
        edges = np.flatnonzero(row)
        if not len(edges):
            return row, 0.0
        edge = self.rng.choice(edges)
        gaps = np.flatnonzero(~row if kind == 1 else ~row & self._adjacent(edge))
        if not len(gaps):
            return row, 0.0
        gap = self.rng.choice(gaps)
        new[edge], new[gap] = False, True
        # The numbers of edges and non-edges are unchanged, those of adjacent non-edges are not.
        back = len(gaps) if kind == 1 else int((~new & self._adjacent(gap)).sum())

        return new, math.log(len(gaps)) - math.log(back)

    def _adjacent(self, pair: int) -> NDArray[np.bool_]:
        """True for unknown pairs that share a node with a pair; moving an edge there keeps that node's degree."""
        return (self.partial.unknown[:, :, None] == self.partial.unknown[pair]).any((1, 2))

    @torch.no_grad()
    def _estimate(self, edges: NDArray[np.bool_]) -> NDArray[np.float64]:
        r"""Estimates :math:`\log \hat{p}(A)`, each from one ordering and latents, with shape :math:`(C,)`."""
        network, partial, rng = self.model.network, self.partial, self.rng
        count, nodes, like = len(edges), partial.nodes, next(network.parameters())
        rule, sizes = self.model.config.ordering, np.full(count, nodes)
        graphs = np.repeat(partial.graph.adjacency()[None], count, 0)
        i, j = partial.unknown.T
        graphs[:, i, j] = graphs[:, j, i] = edges

        orderings, log_q = propose_orderings(graphs, sizes, rule, rng, UNIFORM_FRACTION)

        features = partial.graph.features if self.model.config.node_features else None
        x = like.new_zeros(nodes, 0) if features is None else torch.from_numpy(features).to(like)
        mask = node_mask(torch.from_numpy(sizes), nodes).to(like.device)
        batch = GraphBatch(torch.from_numpy(graphs).to(like), mask, x.expand(count, -1, -1))
        batch = permute_nodes(batch, torch.from_numpy(orderings).to(like.device))
        noise = standard_normal(rng, like, count, nodes, network.noise_features)
        epsilon = standard_normal(rng, like, count, nodes, self.model.config.latent)
        log_w = autoregressive_log_weights(
            network, batch, noise, epsilon, torch.from_numpy(log_q).to(like), self.schedule
        )

        return log_w.double().cpu().numpy()
