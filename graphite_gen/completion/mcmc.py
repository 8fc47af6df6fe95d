"""Pseudo-marginal Markov chains over the unknown pairs, under an autoregressive model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray

from ..autoregressive.ordering import attachment_degree, propose_orderings
from ..data.batch import GraphBatch
from ..likelihood.proposal import standard_normal
from ..training.checkpoint import TrainedModel
from ..training.objectives import autoregressive_log_weights
from .partial import PartialGraph
from .posterior import Posterior, batch_for, systematic_resample

__all__ = ["BURN_IN", "CHAINS", "Chains", "initial_edges", "move_edge", "move_particles", "regular_completions"]

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
    removed one by one, the last one first, each completed to the m edges it should have had when it was attached.
    """
    nodes = np.array([partial.nodes])
    m = int(attachment_degree(density * nodes * (nodes - 1) / 2, nodes)[0])
    graphs, unknown = np.repeat(partial.graph.adjacency()[None], count, 0), ~partial.known()
    rows = np.arange(count)
    left = np.ones((count, partial.nodes), dtype=np.bool_)
    least = graphs.sum(-1)
    most = least + unknown.sum(-1)
    for _ in range(partial.nodes - m):
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
    i, j = partial.unknown.T

    return graphs[:, i, j]


def move_particles(
    model: TrainedModel,
    partial: PartialGraph,
    start: Posterior,
    *,
    steps: int,
    rng: np.random.Generator,
    tick: Callable[[], None] = lambda: None,
) -> Posterior:
    """Run chains from weighted particles; return their states after the burn-in, with equal weights.

    The chains of a run start from its own particles, resampled by weight, so that runs stay independent and their
    differences show whether the chains have converged; ``tick`` is called after each step.
    """
    runs = len(start.log_weights)
    chains = Chains(model, partial, initial_edges(start, rng), rng)
    for _ in range(STARTS if model.config.ordering == "attachment" else 0):
        chains.try_regular()
    states = []
    for step, edges in enumerate(islice(chains, steps)):
        if step >= int(BURN_IN * steps):
            states.append(edges.reshape(runs, CHAINS, -1))
        tick()
    particles = np.concatenate(states, axis=1)

    return Posterior(particles, np.zeros(particles.shape[:2]), start.run_log_evidence)


def initial_edges(start: Posterior, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return the initial states of the chains, those of a run from its own particles, with shape :math:`(R C, U)`."""
    runs = zip(start.probabilities > 0.5, start.log_weights, strict=True)

    return np.concatenate([particles[systematic_resample(weights, CHAINS, rng)] for particles, weights in runs])


def move_edge(
    pairs: NDArray[np.int64],
    row: NDArray[np.bool_],
    movable: NDArray[np.bool_],
    anywhere: bool,
    rng: np.random.Generator,
) -> tuple[int, int, float] | None:
    """Choose a movable edge, and a non-edge anywhere or one that shares a node with it; None if there is none.

    The result is their places among the pairs :math:`(U, 2)`, and the log-ratio of the proposal. A move to an adjacent
    pair keeps the degree of the common node.
    """

    def near(pair: int) -> NDArray[np.bool_]:
        return np.asarray((pairs[:, :, None] == pairs[pair]).any((1, 2)) & movable)

    edges = np.flatnonzero(row & movable)
    if not len(edges):
        return None
    edge = int(rng.choice(edges))
    gaps = np.flatnonzero(~row & movable if anywhere else ~row & near(edge))
    if not len(gaps):
        return None
    gap = int(rng.choice(gaps))
    # The numbers of edges and non-edges are unchanged, those of adjacent non-edges are not.
    new = row.copy()
    new[edge], new[gap] = False, True
    back = len(gaps) if anywhere else int((~new & near(gap)).sum())

    return edge, gap, math.log(len(gaps)) - math.log(back)


class Chains:
    r"""Parallel Markov chains over the unknown pairs, from edges of shape :math:`(C, U)`; iterating gives each step.

    The probability of a graph is a sum over node orderings, and one ordering from the model's rule gives the unbiased
    estimate :math:`\hat{p}(A) = p(A_\sigma) / (n!\, q(\sigma | A))`. Chains that use it in place of :math:`p(A)` target
    the exact posterior (Andrieu & Roberts, 2009).
    """

    def __init__(
        self,
        model: TrainedModel,
        partial: PartialGraph,
        edges: NDArray[np.bool_],
        rng: np.random.Generator,
    ) -> None:
        self.model, self.partial, self.rng = model, partial, rng
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
        moved = move_edge(self.partial.unknown, row, np.ones_like(row), kind == 1, self.rng)
        if moved is None:
            return row, 0.0
        edge, gap, log_ratio = moved
        new[edge], new[gap] = False, True

        return new, log_ratio

    @torch.no_grad()
    def _estimate(self, edges: NDArray[np.bool_]) -> NDArray[np.float64]:
        r"""Estimates :math:`\log \hat{p}(A)`, each from one ordering and latents, with shape :math:`(C,)`."""
        network, partial, rng = self.model.network, self.partial, self.rng
        count, nodes, like = len(edges), partial.nodes, next(network.parameters())
        graphs = partial.completions(edges)
        orderings, log_q = propose_orderings(graphs, np.full(count, nodes), self.model.config.ordering, rng)

        known = batch_for(self.model, partial.graph)
        batch = GraphBatch(
            torch.from_numpy(graphs).to(like), known.mask.expand(count, -1), known.x.expand(count, -1, -1)
        )
        batch = batch.reordered(torch.from_numpy(orderings).to(like.device))
        noise = standard_normal(rng, like, count, nodes, network.noise_features)
        epsilon = standard_normal(rng, like, count, nodes, self.model.config.latent)
        log_q_ = torch.from_numpy(log_q).to(like.device)

        return autoregressive_log_weights(network, batch, noise, epsilon, log_q_).double().cpu().numpy()
