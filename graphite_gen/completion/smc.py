"""Sequential Monte Carlo over node orderings and unknown pairs, under an autoregressive model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ..autoregressive.decoding import Decoding
from ..autoregressive.ordering import sample_orderings
from ..autoregressive.row_sampling import RowConstraints
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
    nodes = partial.nodes
    proposal = NextNodeProposal(partial, model.config.ordering, model.sizes.density(nodes), rng)
    state = _Particles(model, partial, runs * particles, proposal, rng)
    log_weights, log_means = np.zeros((runs, particles)), np.zeros(runs)

    for position in range(nodes):
        log_q = state.propose(position)
        log_weights += (state.add_node(position) - log_q).reshape(runs, particles)
        tick()
        if position < nodes - 1:
            log_weights, log_means, chosen = _resample(log_weights, log_means, rng)
            if chosen is not None:
                state.select(chosen)

    total = log_weights + log_means[:, None] - math.lgamma(nodes + 1)

    return Posterior.weighted(state.edges_at(partial.unknown).reshape(runs, particles, -1), total)


class _Particles:
    """Graphs that are decoded together, their node orderings :math:`(K, N)`, and the known pairs that fix some edges.

    Latents are sampled from the prior, as the model does.
    """

    def __init__(
        self,
        model: TrainedModel,
        partial: PartialGraph,
        count: int,
        proposal: NextNodeProposal,
        rng: np.random.Generator,
    ) -> None:
        self.proposal, self.rng = proposal, rng
        self.known, self.edges = partial.known(), partial.graph.adjacency()
        self.orderings = np.zeros((count, partial.nodes), dtype=np.int64)
        self.log_q = np.zeros((count, partial.nodes))
        features = batch_for(model, partial.graph).x[0]
        self._proposed = 0
        if features.shape[1]:
            # The decoder reads the features of all nodes before the first row.
            for position in range(partial.nodes):
                self.propose(position)
        x = features[torch.from_numpy(self.orderings).to(features.device)]
        z = standard_normal(rng, x, count, partial.nodes, model.config.latent)
        sizes = torch.full((count,), partial.nodes, device=x.device)
        decoder = model.network.decode_autoregressive(z, x, sizes).decoder
        self.decoding = Decoding(decoder, z, x, sizes)

    def propose(self, position: int) -> NDArray[np.float64]:
        """Propose the node at a position; return the log-probabilities of the choices, with shape :math:`(K,)`."""
        if position >= self._proposed:
            chosen, log_q = self.proposal.sample(self.orderings[:, :position], self.rng)
            self.orderings[:, position], self.log_q[:, position] = chosen, log_q
            self._proposed = position + 1

        return self.log_q[:, position]

    def add_node(self, position: int) -> NDArray[np.float64]:
        """Add the node at a position; return the log-probability of its known pairs, with shape :math:`(K,)`."""
        decoding = self.decoding
        count, like = decoding.start_row(), next(decoding.decoder.parameters())
        noise = torch.from_numpy(self.rng.random((count, position), dtype=np.float32)).to(like)
        pairs = self.orderings[:, position, None], self.orderings[:, :position]
        known, edges = (torch.from_numpy(matrix[pairs]).to(like.device) for matrix in (self.known, self.edges))
        row_edges, logits = decoding.sample_row(noise, _KnownPairs(known, edges))
        decoding.add_node(row_edges)

        return (torch.where(row_edges, logits, 0) - F.softplus(logits)).mul(known).sum(-1).double().cpu().numpy()

    def select(self, chosen: NDArray[np.int64]) -> None:
        """Replace the particles by the chosen ones."""
        self.orderings, self.log_q = self.orderings[chosen], self.log_q[chosen]
        self.decoding.select(chosen)

    def edges_at(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each particle has an edge at each pair of nodes, with shape :math:`(K, U)`."""
        positions = np.argsort(self.orderings, axis=1)
        rows = np.arange(len(positions))[:, None]

        return self.decoding.adj.cpu().numpy()[rows, positions[:, pairs[:, 0]], positions[:, pairs[:, 1]]]


@dataclass(frozen=True)
class _KnownPairs(RowConstraints):
    """Rows some of whose pairs are known, with their edges; both have shape :math:`(K, t)`."""

    known: Tensor
    edges: Tensor

    def __call__(self, rows: Tensor, sampled: Tensor, row_edges: Tensor) -> Tensor:
        return torch.where(self.known[rows], self.edges[rows], sampled)


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
