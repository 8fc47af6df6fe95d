r"""Completions by a staged model: sequential Monte Carlo over arriving nodes.

A staged model has the law :math:`p(A) = \frac{1}{n!} \sum_\sigma p(A_\sigma)`. A particle is an order of arrival so far
and the edges among those who came. The next node is proposed by :class:`ArrivalProposal`; of its pairs the known ones
are held and the others drawn from the model, each seeing the ones before it. With

.. math:: w = \prod_t \frac{\prod_{known} p(A_{t i} | A_{<t}, A_{t, <i}, Z)}{q(\sigma_t | \sigma_{<t})} / n!

weighted particles are samples of orders and unknown pairs given the known ones, and the mean weight is the probability
of what is known. Particles that explain little of it are dropped for copies of others as soon as the weights differ
much (Doucet & Johansen, 2009). What a node must be for later ones to fit is not foreseen, so where models are sure of
much, few particles come through: :mod:`graphite_gen.completion.mcmc` then goes on from those.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ..autoregressive.distribution import AutoregressiveGraphs, Schedule
from ..autoregressive.ordering import draw_orders
from ..likelihood.proposal import standard_normal
from ..training.checkpoint import TrainedModel
from .partial import PartialGraph
from .posterior import Posterior, pick_evenly

__all__ = ["ArrivalProposal", "extend_particles"]

GUESSES = 512
# Part of the choices that follow no order at all: a model may grow graphs as its rule never would.
ANY_NODE = 0.05
# Orders count the more, the longer they agree with what has come.
AGREEMENT = 2.0
# Cells of the comparison of orders with particles held at once.
ORDER_CELLS = 1 << 24


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
            rule: The model's rule, one of :data:`graphite_gen.config.ORDERINGS`.
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
        size = max(1, ORDER_CELLS // self.orders.size)
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


# Matrices of particles worked on at once.
CHUNK_CELLS = 1 << 21


@torch.no_grad()
def extend_particles(
    model: TrainedModel,
    partial: PartialGraph,
    *,
    runs: int,
    particles: int,
    schedule: Schedule,
    rng: np.random.Generator,
    tick: Callable[[], None] = lambda: None,
) -> Posterior:
    """Weighted completions by a staged model.

    Arguments:
        model: A staged model.
        partial: What is known.
        runs: Independent runs.
        particles: Particles of each.
        schedule: Which pairs are decided at once.
        rng: The randomness.
        tick: Called as each node has arrived.
    """
    nodes, count = partial.nodes, runs * particles
    known, edges = partial.known(), partial.graph.adjacency()
    cloud = _Cloud.start(model, partial, count, rng)
    proposal = ArrivalProposal(partial, model.config.ordering, model.sizes.density(nodes), rng)
    log_weights, log_means = np.zeros((runs, particles)), np.zeros(runs)
    block = int(schedule.block(np.array([nodes]))[0])

    for first in range(0, nodes, block):
        places = range(first, min(first + block, nodes))
        for place in places:
            log_weights -= cloud.arrive(place, proposal, rng).reshape(runs, particles)
        for place in places:
            if place:
                gained = cloud.answer(place, known, edges, schedule, rng)
                log_weights += gained.reshape(runs, particles)
            tick()
            if places.stop < nodes and place == places[-1]:
                log_weights, log_means, chosen = _resample(log_weights, log_means, rng)
                if chosen is not None:
                    cloud.keep(chosen, places.stop)

    total = log_weights + log_means[:, None] - math.lgamma(nodes + 1)

    return Posterior.weighted(cloud.answers(partial.unknown).reshape(runs, particles, -1), total)


@dataclass
class _Cloud:
    """Particles in the making.

    Attributes:
        model: The model.
        orders: The node at each place, with shape :math:`(K, N)`; places to come hold anything.
        adj: Edges in order of arrival, with shape :math:`(K, N, N)`.
        z: Latents in order of arrival, with shape :math:`(K, N, D)`. They come from the prior with their nodes, as they
            do when the model samples; places to come hold zeros.
        x: Node features in order of arrival, with shape :math:`(K, N, F)`.
        features: Those of the graph, with shape :math:`(N, F)`.
    """

    model: TrainedModel
    orders: NDArray[np.int64]
    adj: Tensor
    z: Tensor
    x: Tensor
    features: Tensor

    @classmethod
    def start(cls, model: TrainedModel, partial: PartialGraph, count: int, rng: np.random.Generator) -> _Cloud:
        nodes, like = partial.nodes, next(model.network.parameters())
        given = partial.graph.features
        features = torch.zeros(nodes, 0) if given is None or not model.config.node_features else torch.from_numpy(given)

        return cls(
            model,
            np.zeros((count, nodes), dtype=np.int64),
            like.new_zeros(count, nodes, nodes),
            like.new_zeros(count, nodes, model.config.latent),
            like.new_zeros(count, nodes, features.shape[1]),
            features.to(like),
        )

    def arrive(self, place: int, proposal: ArrivalProposal, rng: np.random.Generator) -> NDArray[np.float64]:
        """Choose who comes next, and give the log-probabilities of the choices, with shape :math:`(K,)`."""
        chosen, log_q = proposal.draw(self.orders[:, :place], rng)
        self.orders[:, place] = chosen
        self.z[:, place] = standard_normal(rng, self.z, len(chosen), self.z.shape[-1])
        self.x[:, place] = self.features[torch.from_numpy(chosen).to(self.features.device)]

        return log_q

    def answer(
        self,
        place: int,
        known: NDArray[np.bool_],
        edges: NDArray[np.bool_],
        schedule: Schedule,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Decide the pairs of the node at a place, and give the log-probability of the known, with shape (K,)."""
        count, nodes = self.orders.shape
        pairs = self.orders[:, place, None], self.orders[:, :place]
        held, values = (torch.from_numpy(matrix[pairs]).to(self.adj.device) for matrix in (known, edges))
        uniform = torch.from_numpy(rng.random((count, nodes), dtype=np.float32)).to(self.adj)
        gained = np.zeros(count)
        size = max(1, CHUNK_CELLS // nodes**2)
        for start in range(0, count, size):
            part = slice(start, start + size)
            gained[part] = self._answer(place, part, held[part], values[part], uniform[part], schedule)

        return gained

    def _answer(
        self, place: int, part: slice, held: Tensor, values: Tensor, uniform: Tensor, schedule: Schedule
    ) -> NDArray[np.float64]:
        adj = self.adj[part]
        count, nodes = adj.shape[:2]
        sizes = torch.full((count,), nodes, device=adj.device)
        law: AutoregressiveGraphs = self.model.network.decode_autoregressive(
            self.z[part], self.x[part], sizes, schedule
        )
        rows = np.full(count, place)

        answers, logits = law.draw_rows(adj, np.arange(count), rows, uniform, _Held(held, values))
        answers, logits = answers[:, :place], logits[:, :place]
        adj[:, place, :place] = adj[:, :place, place] = answers

        return ((answers * logits - F.softplus(logits)) * held).sum(-1).double().cpu().numpy()

    def keep(self, chosen: NDArray[np.int64], places: int) -> None:
        """Go on with some particles, each as often as it is named; only what is at the first places is copied."""
        at = torch.from_numpy(chosen).to(self.adj.device)
        self.orders[:, :places] = self.orders[chosen, :places]
        self.adj[:, :places, :places] = self.adj[at, :places, :places]
        for values in (self.z, self.x):
            values[:, :places] = values[at, :places]

    def answers(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """What the particles say of pairs of nodes, with shape :math:`(K, U)`."""
        places = np.argsort(self.orders, axis=1)
        rows = np.arange(len(places))[:, None]

        return self.adj.cpu().numpy()[rows, places[:, pairs[:, 0]], places[:, pairs[:, 1]]] > 0


@dataclass(frozen=True)
class _Held:
    """Holds the known pairs of arriving nodes to what they are, and leaves the others to the model."""

    known: Tensor
    values: Tensor

    def __call__(self, graphs: Tensor, adj: Tensor, rows: Tensor, sizes: Tensor) -> _Held:
        nodes = adj.shape[-1]

        return _Held(*(F.pad(part, (0, nodes - part.shape[-1])) for part in (self.known, self.values)))

    def settle(self, rows: Tensor, wanted: Tensor, answers: Tensor) -> Tensor:
        return torch.where(self.known[rows], self.values[rows], wanted)


def _resample(
    log_weights: NDArray[np.float64], log_means: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64] | None]:
    """Even out the weights of the runs whose effective number of particles has fallen below half.

    Returns:
        The weights, the mean weight of each run that was taken out of them, and which particles go on.
    """
    runs, particles = log_weights.shape
    totals = np.logaddexp.reduce(log_weights, axis=1)
    ess = np.exp(2 * totals - np.logaddexp.reduce(2 * log_weights, axis=1))
    poor = ess < particles / 2
    if not poor.any():
        return log_weights, log_means, None
    chosen = np.arange(runs * particles).reshape(runs, particles)
    for run in np.flatnonzero(poor):
        chosen[run] = run * particles + pick_evenly(log_weights[run], particles, rng)
    means = log_means + np.where(poor, totals - math.log(particles), 0)

    return np.where(poor[:, None], 0.0, log_weights), means, chosen.ravel()
