r"""Sequential Monte Carlo over node orderings and unknown pairs, under an autoregressive model.

The model has the distribution :math:`p(A) = \frac{1}{n!} \sum_\sigma p(A_\sigma)`. A particle is the first part of a
node ordering with the edges among these nodes. :class:`NextNodeProposal` proposes the next node; the known pairs of its
row are fixed, and the unknown ones are sampled from the model. With the weights

.. math:: w = \prod_t \frac{\prod_{known} p(A_{t i} | A_{<t}, A_{t, <i}, Z)}{q(\sigma_t | \sigma_{<t})} / n!

particles are samples of orderings and unknown pairs given the known ones, and the mean weight is the marginal
likelihood. Particles are resampled when the effective sample size is low (Doucet & Johansen, 2009). There is no
lookahead, so few particles survive under confident models: :mod:`graphite_gen.completion.mcmc` continues from those.
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
from ..autoregressive.ordering import sample_orderings
from ..likelihood.proposal import standard_normal
from ..training.checkpoint import TrainedModel
from .partial import PartialGraph
from .posterior import Posterior, systematic_resample

__all__ = ["NextNodeProposal", "extend_particles"]

ORDERINGS = 512
# The fraction of proposals that are uniform: a model may generate graphs in orderings its rule never gives.
UNIFORM_FRACTION = 0.05
# The weight of an ordering is this base to the power of the length of its agreement with a particle.
AGREEMENT_BASE = 2.0
# Cells of the comparison of orderings with particles held at once.
ORDERING_CELLS = 1 << 24
# Cells of the matrices of particles decoded at once.
CHUNK_CELLS = 1 << 21


class NextNodeProposal:
    r"""Proposal distribution of the next node given the earlier ones.

    .. math:: q(v | \sigma_{<t}) = \frac{\epsilon}{n - t} + (1 - \epsilon) \sum_k \omega_k [v = v_k]

    Here :math:`v_k` is the first node of ordering :math:`k` that is not among the earlier ones, and :math:`\omega_k`
    increases with its position. The orderings are those of random completions.

    Arguments:
        partial: The known pairs.
        rule: The model's ordering rule, one of :data:`graphite_gen.config.ORDERINGS`.
        density: The probability of an edge at unknown pairs of the random completions.
        rng: The random generator.
    """

    def __init__(self, partial: PartialGraph, rule: str, density: float, rng: np.random.Generator) -> None:
        graphs = np.repeat(partial.graph.adjacency()[None], ORDERINGS, 0)
        i, j = partial.unknown.T
        graphs[:, i, j] = graphs[:, j, i] = rng.random((ORDERINGS, len(i))) < density
        self.orderings, _ = sample_orderings(graphs, np.full(ORDERINGS, partial.nodes), rule, rng)

    def sample(
        self, earlier: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Sample the next node of each particle, given the earlier ones with shape :math:`(K, t)`.

        Returns:
            The nodes and their log-probabilities, each with shape :math:`(K,)`.
        """
        count, nodes = len(earlier), self.orderings.shape[1]
        used = np.zeros((count, nodes), dtype=np.bool_)
        used[np.arange(count)[:, None], earlier] = True
        # Many particles share their set of nodes.
        sets, index = np.unique(used, axis=0, return_inverse=True)
        size = max(1, ORDERING_CELLS // self.orderings.size)
        tables = np.concatenate([self._probabilities(sets[k : k + size]) for k in range(0, len(sets), size)])
        cumulative = tables.cumsum(1)[index.ravel()]
        chosen = (cumulative <= rng.random((count, 1)) * cumulative[:, -1:]).sum(1)

        return chosen, np.log(tables[index.ravel(), chosen])

    def _probabilities(self, used: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The probability of each node to be next, given the nodes used, both with shape :math:`(S, N)`."""
        first = used[:, self.orderings].argmin(-1)
        nodes = self.orderings[np.arange(ORDERINGS), first]
        weights = AGREEMENT_BASE ** (first - first.max(1, keepdims=True))
        table = np.zeros(used.shape)
        np.add.at(table, (np.arange(len(used))[:, None], nodes), weights)
        table *= (1 - UNIFORM_FRACTION) / weights.sum(1, keepdims=True)

        return table + UNIFORM_FRACTION * ~used / (~used).sum(1, keepdims=True)


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
    """Sample weighted completions under an autoregressive model; ``tick`` is called after each node."""
    nodes, count = partial.nodes, runs * particles
    known, edges = partial.known(), partial.graph.adjacency()
    state = _Particles.start(model, partial, count, rng)
    proposal = NextNodeProposal(partial, model.config.ordering, model.sizes.density(nodes), rng)
    log_weights, log_means = np.zeros((runs, particles)), np.zeros(runs)
    block = int(schedule.block(np.array([nodes]))[0])

    for first in range(0, nodes, block):
        positions = range(first, min(first + block, nodes))
        for position in positions:
            log_weights -= state.add_node(position, proposal, rng).reshape(runs, particles)
        for position in positions:
            if position:
                log_weights += state.sample_row(position, known, edges, schedule, rng).reshape(runs, particles)
            tick()
            if positions.stop < nodes and position == positions[-1]:
                log_weights, log_means, chosen = _resample(log_weights, log_means, rng)
                if chosen is not None:
                    state.select(chosen, positions.stop)

    total = log_weights + log_means[:, None] - math.lgamma(nodes + 1)

    return Posterior.weighted(state.edges_at(partial.unknown).reshape(runs, particles, -1), total)


@dataclass
class _Particles:
    """Partial graphs in their node orderings; later positions are unused.

    Attributes:
        model: The model.
        orderings: The node at each position, with shape :math:`(K, N)`.
        adj: Edges, with shape :math:`(K, N, N)`.
        z: Latents, sampled from the prior as the model does, with shape :math:`(K, N, D)`.
        x: Node features in the orderings, with shape :math:`(K, N, F)`.
        features: Node features of the graph, with shape :math:`(N, F)`.
    """

    model: TrainedModel
    orderings: NDArray[np.int64]
    adj: Tensor
    z: Tensor
    x: Tensor
    features: Tensor

    @classmethod
    def start(cls, model: TrainedModel, partial: PartialGraph, count: int, rng: np.random.Generator) -> _Particles:
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

    def add_node(self, position: int, proposal: NextNodeProposal, rng: np.random.Generator) -> NDArray[np.float64]:
        """Propose the node at a position; return the log-probabilities of the choices, with shape :math:`(K,)`."""
        chosen, log_q = proposal.sample(self.orderings[:, :position], rng)
        self.orderings[:, position] = chosen
        self.z[:, position] = standard_normal(rng, self.z, len(chosen), self.z.shape[-1])
        self.x[:, position] = self.features[torch.from_numpy(chosen).to(self.features.device)]

        return log_q

    def sample_row(
        self,
        position: int,
        known: NDArray[np.bool_],
        edges: NDArray[np.bool_],
        schedule: Schedule,
        rng: np.random.Generator,
    ) -> NDArray[np.float64]:
        """Sample the row of a position; return the log-probability of its known pairs, with shape :math:`(K,)`."""
        count, nodes = self.orderings.shape
        pairs = self.orderings[:, position, None], self.orderings[:, :position]
        is_known, values = (torch.from_numpy(matrix[pairs]).to(self.adj.device) for matrix in (known, edges))
        uniform = torch.from_numpy(rng.random((count, nodes), dtype=np.float32)).to(self.adj)
        log_prob = np.zeros(count)
        size = max(1, CHUNK_CELLS // nodes**2)
        for start in range(0, count, size):
            part = slice(start, start + size)
            fixed = _FixedPairs(is_known[part], values[part])
            log_prob[part] = self._sample_row(position, part, fixed, uniform[part], schedule)

        return log_prob

    def _sample_row(
        self, position: int, part: slice, fixed: _FixedPairs, uniform: Tensor, schedule: Schedule
    ) -> NDArray[np.float64]:
        adj = self.adj[part]
        count, nodes = adj.shape[:2]
        sizes = torch.full((count,), nodes, device=adj.device)
        graphs: AutoregressiveGraphs = self.model.network.decode_autoregressive(
            self.z[part], self.x[part], sizes, schedule
        )

        sampled, logits = graphs.sample_rows(adj, np.arange(count), np.full(count, position), uniform, fixed)
        row_edges, logits = sampled[:, :position], logits[:, :position]
        adj[:, position, :position] = adj[:, :position, position] = row_edges

        return ((row_edges * logits - F.softplus(logits)) * fixed.known).sum(-1).double().cpu().numpy()

    def select(self, chosen: NDArray[np.int64], positions: int) -> None:
        """Replace the particles by the chosen ones; only the first positions are copied."""
        at = torch.from_numpy(chosen).to(self.adj.device)
        self.orderings[:, :positions] = self.orderings[chosen, :positions]
        self.adj[:, :positions, :positions] = self.adj[at, :positions, :positions]
        for values in (self.z, self.x):
            values[:, :positions] = values[at, :positions]

    def edges_at(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each particle has an edge at each pair of nodes, with shape :math:`(K, U)`."""
        positions = np.argsort(self.orderings, axis=1)
        rows = np.arange(len(positions))[:, None]

        return self.adj.cpu().numpy()[rows, positions[:, pairs[:, 0]], positions[:, pairs[:, 1]]] > 0


@dataclass(frozen=True)
class _FixedPairs:
    """Row constraints that fix the known pairs and leave the others to the model."""

    known: Tensor
    values: Tensor

    def __call__(self, graphs: Tensor, adj: Tensor, rows: Tensor, sizes: Tensor) -> _FixedPairs:
        nodes = adj.shape[-1]

        return _FixedPairs(*(F.pad(part, (0, nodes - part.shape[-1])) for part in (self.known, self.values)))

    def enforce(self, rows: Tensor, sampled: Tensor, row_edges: Tensor) -> Tensor:
        return torch.where(self.known[rows], self.values[rows], sampled)


def _resample(
    log_weights: NDArray[np.float64], log_means: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64] | None]:
    """Resample the runs whose effective sample size is below half the number of particles.

    Returns:
        The weights, the mean weights factored out of each run so far, and the indices of the particles, if any changed.
    """
    runs, particles = log_weights.shape
    totals = np.logaddexp.reduce(log_weights, axis=1)
    ess = np.exp(2 * totals - np.logaddexp.reduce(2 * log_weights, axis=1))
    low = ess < particles / 2
    if not low.any():
        return log_weights, log_means, None
    chosen = np.arange(runs * particles).reshape(runs, particles)
    for run in np.flatnonzero(low):
        chosen[run] = run * particles + systematic_resample(log_weights[run], particles, rng)
    means = log_means + np.where(low, totals - math.log(particles), 0)

    return np.where(low[:, None], 0.0, log_weights), means, chosen.ravel()
