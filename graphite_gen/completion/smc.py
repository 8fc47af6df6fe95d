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
from ..autoregressive.distribution import AutoregressiveGraphs
from ..autoregressive.heads import AttributeNoise
from ..autoregressive.ordering import sample_orderings
from ..autoregressive.row_sampling import RowConstraints
from ..data.batch import GraphBatch
from ..likelihood.importance import block_size
from ..likelihood.proposal import standard_normal
from ..training.checkpoint import TrainedModel
from .partial import PartialGraph
from .posterior import Posterior, systematic_resample
from .unknowns import Unknowns

__all__ = ["NextNodeProposal", "extend_attributed", "extend_particles"]

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
        # The edges of a directed graph have two arcs, hardly ever both.
        density = density / 2 if partial.graph.directed else density
        graphs = partial.completions(rng.random((ORDERINGS, len(partial.unknown))) < density)
        if rule != "topological":
            graphs |= graphs.swapaxes(1, 2)
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
    values, _, log_weights = extend_attributed(
        model, Unknowns.of(model, partial), runs=runs, particles=particles, rng=rng, tick=tick
    )

    return Posterior.weighted(values > 0, log_weights)


@torch.no_grad()
def extend_attributed(
    model: TrainedModel,
    unknowns: Unknowns,
    *,
    runs: int,
    particles: int,
    rng: np.random.Generator,
    tick: Callable[[], None] = lambda: None,
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None, NDArray[np.float64]]:
    """The same for graphs with attributes, whose known part may be a set of allowed values.

    Returns:
        The unknown values, with shape :math:`(R, P, K)`, all weights, with shape :math:`(R, P, n, n)` or None, and the
        log-weights of the particles, with shape :math:`(R, P)`.
    """
    nodes = unknowns.nodes
    proposal = NextNodeProposal(unknowns.partial, model.config.ordering, model.sizes.density(nodes), rng)
    state = _Particles(model, unknowns, runs * particles, proposal, rng)
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
    values, weights = state.values().reshape(runs, particles, -1), None
    if unknowns.has_weights:
        weights, densities = state.draw_weights()
        total += densities.reshape(runs, particles)
        weights = weights.reshape(runs, particles, nodes, nodes)

    return values, weights, total


class _Particles:
    """Graphs that are decoded together, their node orderings :math:`(K, N)`, and what is known about them.

    Latents are sampled from the prior, as the model does.
    """

    def __init__(
        self,
        model: TrainedModel,
        unknowns: Unknowns,
        count: int,
        proposal: NextNodeProposal,
        rng: np.random.Generator,
    ) -> None:
        self.proposal, self.rng, self.unknowns = proposal, rng, unknowns
        self.orderings = np.zeros((count, unknowns.nodes), dtype=np.int64)
        self.log_q = np.zeros((count, unknowns.nodes))
        like = next(model.network.parameters())
        features = torch.from_numpy(unknowns.features).to(like)
        self._proposed = 0
        if features.shape[1]:
            # The decoder reads the features of all nodes before the first row.
            for position in range(unknowns.nodes):
                self.propose(position)
        self.x = features[torch.from_numpy(self.orderings).to(features.device)]
        self.z = standard_normal(rng, self.x, count, unknowns.nodes, model.config.latent)
        sizes = torch.full((count,), unknowns.nodes, device=self.x.device)
        decoder = model.network.decode_autoregressive(self.z, self.x, sizes).decoder
        noise = AttributeNoise.sample(decoder.attributes, (count, unknowns.nodes), rng).to(self.x.device)
        self.decoding = Decoding(decoder, self.z, self.x, sizes, noise)

    def propose(self, position: int) -> NDArray[np.float64]:
        """Propose the node at a position; return the log-probabilities of the choices, with shape :math:`(K,)`."""
        if position >= self._proposed:
            chosen, log_q = self.proposal.sample(self.orderings[:, :position], self.rng)
            self.orderings[:, position], self.log_q[:, position] = chosen, log_q
            self._proposed = position + 1

        return self.log_q[:, position]

    def add_node(self, position: int) -> NDArray[np.float64]:
        """Add the node at a position; return the log-probability of what is known, with shape :math:`(K,)`."""
        decoding, unknowns = self.decoding, self.unknowns
        device = self.z.device
        pairs = self.orderings[:, position, None], self.orderings[:, :position]
        allowed = torch.from_numpy(unknowns.allowed[pairs]).to(device)
        labels = None if unknowns.allowed_labels is None else unknowns.allowed_labels[self.orderings[:, position]]
        count = decoding.start_row(
            None if labels is None else torch.from_numpy(labels).to(device),
            None if decoding.states is None else allowed[..., 1:],
        )
        noise = torch.from_numpy(self.rng.random((count, position), dtype=np.float32)).to(self.z)
        known, edges = ~(allowed[..., 0] & allowed[..., 1:].any(-1)), ~allowed[..., 0]
        row_edges, logits = decoding.sample_row(noise, _KnownPairs(known, edges))
        decoding.add_node(row_edges)
        of_pairs = (torch.where(row_edges, logits, 0) - F.softplus(logits)).mul(known).sum(-1).double()

        return (of_pairs + decoding.log_allowed).cpu().numpy()

    def select(self, chosen: NDArray[np.int64]) -> None:
        """Replace the particles by the chosen ones."""
        self.orderings, self.log_q = self.orderings[chosen], self.log_q[chosen]
        at = torch.from_numpy(chosen).to(self.z.device)
        self.z, self.x = self.z[at], self.x[at]
        self.decoding.select(chosen)

    def values(self) -> NDArray[np.int64]:
        """The unknown values of each particle, with shape :math:`(K, U + V)`."""
        positions = np.argsort(self.orderings, axis=1)
        rows, (i, j) = np.arange(len(positions))[:, None], self.unknowns.pairs.T
        decoding = self.decoding
        at = rows, positions[:, i], positions[:, j]
        codes = decoding.adj.cpu().numpy()[at].astype(np.int64)
        if decoding.states is not None:
            codes *= decoding.states.cpu().numpy()[at] + 1
        if decoding.labels is None:
            return codes
        labels = decoding.labels.cpu().numpy()[rows, positions[:, self.unknowns.unlabelled]]

        return np.concatenate([codes, labels], 1)

    def draw_weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Draw the unknown weights :math:`(K, n, n)`; the log-densities of the known ones have shape :math:`(K,)`."""
        decoding, count, nodes = self.decoding, *self.orderings.shape
        pairs = self.orderings[:, :, None], self.orderings[:, None, :]
        known = torch.from_numpy(self.unknowns.weights[pairs]).to(self.z.device)
        batch = GraphBatch(
            decoding.adj.to(self.z),
            torch.ones_like(decoding.adj[:, 0]),
            self.x,
            decoding.labels,
            decoding.states,
            known,
        )
        weights, log_known = np.zeros((count, nodes, nodes)), np.zeros(count)
        size = block_size(nodes, is_autoregressive=True)
        for part in (slice(start, start + size) for start in range(0, count, size)):
            one = batch.each(lambda values, part=part: values[part])  # type: ignore[misc]
            graphs = AutoregressiveGraphs(decoding.decoder, self.z[part], self.x[part], one.sizes)
            noise = AttributeNoise.sample(decoding.decoder.attributes, (len(one.mask), nodes), self.rng)
            _, drawn, densities = graphs.complete_weights(one, noise.to(self.z.device))
            rows = np.arange(count)[part, None, None]
            weights[rows, pairs[0][part], pairs[1][part]] = drawn.cpu().numpy()
            log_known[part] = densities.masked_fill(known[part].isnan(), 0).sum((1, 2)).cpu().numpy()

        return weights, log_known


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
