"""Sequential Monte Carlo over node orderings and unknown pairs, under an autoregressive model."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ..autoregressive.distribution import AutoregressiveGraphs, RowConstraints, Schedule
from ..autoregressive.ordering import sample_orderings
from ..likelihood.proposal import standard_normal
from ..training.checkpoint import TrainedModel
from .partial import PartialGraph
from .posterior import Posterior, batch_for, systematic_resample

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
    increases with its position. The orderings are those of random completions, with edges at unknown pairs of
    probability ``density``.
    """

    def __init__(self, partial: PartialGraph, rule: str, density: float, rng: np.random.Generator) -> None:
        graphs = partial.completions(rng.random((ORDERINGS, len(partial.unknown))) < density)
        self.orderings, _ = sample_orderings(graphs, np.full(ORDERINGS, partial.nodes), rule, rng)

    def sample(
        self, earlier: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the next nodes and their log-probabilities, :math:`(K,)`, given the earlier ones, :math:`(K, t)`."""
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
    r"""Sample weighted completions under an autoregressive model; ``tick`` is called after each node.

    A particle is the first part of a node ordering with the edges among these nodes. The known pairs of the next node
    are fixed, and the unknown ones are sampled from the model. The mean of the weights

    .. math:: w = \prod_t \frac{\prod_{known} p(A_{t i} | A_{<t}, A_{t, <i}, Z)}{q(\sigma_t | \sigma_{<t})} / n!

    is the marginal likelihood. Particles are resampled when the effective sample size is low (Doucet & Johansen, 2009).
    There is no lookahead, so few survive under confident models: :func:`move_particles` continues from those.
    """
    nodes, count = partial.nodes, runs * particles
    state = _Particles(model, partial, count, schedule, rng)
    proposal = NextNodeProposal(partial, model.config.ordering, model.sizes.density(nodes), rng)
    log_weights, log_means = np.zeros((runs, particles)), np.zeros(runs)
    block = int(schedule.block(np.array([nodes]))[0])

    for first in range(0, nodes, block):
        positions = range(first, min(first + block, nodes))
        for position in positions:
            log_weights -= state.add_node(position, proposal).reshape(runs, particles)
        for position in positions:
            if position:
                log_weights += state.sample_row(position).reshape(runs, particles)
            tick()
            if positions.stop < nodes and position == positions[-1]:
                log_weights, log_means, chosen = _resample(log_weights, log_means, rng)
                if chosen is not None:
                    state.select(chosen, positions.stop)

    total = log_weights + log_means[:, None] - math.lgamma(nodes + 1)

    return Posterior.weighted(state.edges_at(partial.unknown).reshape(runs, particles, -1), total)


class _Particles:
    """Orderings :math:`(K, N)`, edges :math:`(K, N, N)`, latents :math:`(K, N, D)` and features :math:`(K, N, F)`.

    Latents are sampled from the prior, as the model does. Positions that are not yet decoded are unused.
    """

    def __init__(
        self, model: TrainedModel, partial: PartialGraph, count: int, schedule: Schedule, rng: np.random.Generator
    ) -> None:
        self.model, self.schedule, self.rng = model, schedule, rng
        self.known, self.edges = partial.known(), partial.graph.adjacency()
        self.features = batch_for(model, partial.graph).x[0]
        widths = partial.nodes, model.config.latent, self.features.shape[1]
        self.adj, self.z, self.x = (self.features.new_zeros(count, partial.nodes, width) for width in widths)
        self.orderings = np.zeros((count, partial.nodes), dtype=np.int64)

    def add_node(self, position: int, proposal: NextNodeProposal) -> NDArray[np.float64]:
        """Propose the node at a position; return the log-probabilities of the choices, with shape :math:`(K,)`."""
        chosen, log_q = proposal.sample(self.orderings[:, :position], self.rng)
        self.orderings[:, position] = chosen
        self.z[:, position] = standard_normal(self.rng, self.z, len(chosen), self.z.shape[-1])
        self.x[:, position] = self.features[torch.from_numpy(chosen).to(self.features.device)]

        return log_q

    def sample_row(self, position: int) -> NDArray[np.float64]:
        """Sample the row of a position; return the log-probability of its known pairs, with shape :math:`(K,)`."""
        count, nodes = self.orderings.shape
        uniform = torch.from_numpy(self.rng.random((count, nodes), dtype=np.float32)).to(self.adj)
        size = max(1, CHUNK_CELLS // nodes**2)
        parts = [slice(start, start + size) for start in range(0, count, size)]

        return np.concatenate([self._sample_part(position, part, uniform[part]) for part in parts])

    def _sample_part(self, position: int, part: slice, uniform: Tensor) -> NDArray[np.float64]:
        adj, orderings = self.adj[part], self.orderings[part]
        count, nodes = orderings.shape
        sizes = torch.full((count,), nodes, device=adj.device)
        distribution: AutoregressiveGraphs = self.model.network.decode_autoregressive(
            self.z[part], self.x[part], sizes, self.schedule
        )
        pairs = orderings[:, position, None], orderings[:, :position]
        known, edges = (torch.from_numpy(matrix[pairs]).to(adj.device) for matrix in (self.known, self.edges))

        def fix_known(graphs: Tensor, adj: Tensor, rows: Tensor, sizes: Tensor) -> RowConstraints:
            is_fixed, fixed = (F.pad(matrix, (0, adj.shape[-1] - position)) for matrix in (known, edges))
            return lambda at, sampled, _: torch.where(is_fixed[at], fixed[at], sampled)

        graphs, rows = np.arange(count), np.full(count, position)
        before = distribution.partial_graphs(adj, graphs, rows)
        h = distribution.decoder.states(before)
        found = distribution.sample_rows(before, h, graphs, rows, uniform, fix_known)
        row_edges, logits = (values[:, :position] for values in found)
        adj[:, position, :position] = adj[:, :position, position] = row_edges

        return ((row_edges * logits - F.softplus(logits)) * known).sum(-1).double().cpu().numpy()

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


def _resample(
    log_weights: NDArray[np.float64], log_means: NDArray[np.float64], rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64] | None]:
    """Resample the runs whose effective sample size is below half the number of particles.

    The result is the weights, the mean weights factored out of each run, and the indices of the particles, if changed.
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
