r"""Completion of graphs with attributes: enumeration, and pseudo-marginal Markov chains over all that is unknown.

A graph is estimated by one node ordering, latents and draws of its unknown weights,

.. math:: \hat{p} = \frac{p(A_\sigma, L, S, W)}{n!\, q(\sigma | A)\, p(W_{drawn} | \ldots)}

so chains that use the estimate in place of the probability target the exact posterior of all of them (Andrieu &
Roberts, 2009).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ..autoregressive.heads import AttributeNoise
from ..autoregressive.ordering import ordering_matrix, propose_orderings
from ..likelihood.importance import block_size
from ..likelihood.proposal import standard_normal
from ..training.checkpoint import TrainedModel
from .mcmc import BURN_IN, CHAINS, move_edge
from .posterior import Posterior, systematic_resample
from .smc import extend_attributed
from .unknowns import Unknowns

__all__ = ["Completions", "enumerate_values", "estimate", "run_chains"]

# The fractions of unknown weights that a step draws again.
REDRAWN = (0.0, 0.2, 1.0)

Values = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Completions:
    """Weighted particles: the unknown values of graphs, and the weights of their arcs.

    Attributes:
        values: With shape :math:`(R, P, K)`.
        weights: The weights of the arcs of each particle of all runs, in the order of rows and columns; None without.
        log_weights: With shape :math:`(R, P)`, in nats.
        run_log_evidence: The log-marginal likelihood of what is known, per run, in nats.
    """

    values: Values
    weights: list[Floats] | None
    log_weights: Floats
    run_log_evidence: Floats


@dataclass(frozen=True, eq=False)
class _Estimate:
    """Estimates of G graphs: without weights (G,), and the weights with their log-densities, (G, n, n)."""

    log_p: Floats
    weights: Floats | None
    densities: Floats

    def total(self, drawn: NDArray[np.bool_]) -> Floats:
        """The log-estimates, in which densities of drawn weights cancel."""
        return np.asarray(self.log_p + np.where(drawn, 0, self.densities).sum((1, 2)))


@torch.no_grad()
def estimate(
    model: TrainedModel,
    unknowns: Unknowns,
    values: Values,
    weights: Floats | None,
    rng: np.random.Generator,
    **soft: float,
) -> _Estimate:
    """Estimate the probability of completions, of whose weights those that are NaN are drawn."""
    network, like = model.network, next(model.network.parameters())
    count, nodes = len(values), unknowns.nodes
    batch = unknowns.batch(values, weights, like)
    orders, log_q = propose_orderings(
        ordering_matrix(batch, model.config), np.full(count, nodes), model.config.ordering, rng, **soft
    )
    batch = batch.reordered(torch.from_numpy(orders).to(like.device))
    posterior = network.encode(batch, standard_normal(rng, like, count, nodes, network.noise_features))
    z = posterior.sample(standard_normal(rng, like, count, nodes, model.config.latent))
    graphs = network.decode_autoregressive(z, batch.x, batch.sizes)
    drawn, densities = None, np.zeros((count, 1, 1))
    if weights is None:
        log_p = graphs.log_prob_of(batch)
    else:
        noise = AttributeNoise.sample(graphs.decoder.attributes, (count, nodes), rng)
        log_p, own, own_densities = graphs.complete_weights(batch, noise.to(like.device))
        at = np.arange(count)[:, None, None], orders[:, :, None], orders[:, None, :]
        drawn, densities = np.zeros((count, nodes, nodes)), np.zeros((count, nodes, nodes))
        drawn[at], densities[at] = own.cpu().numpy(), own_densities.cpu().numpy()
    log_ratio = network.prior(batch.mask).log_prob(z) - posterior.log_prob(z)
    total = (log_p + log_ratio).double().cpu().numpy() - math.lgamma(nodes + 1) - log_q

    return _Estimate(total, drawn, densities)


def _arcs(unknowns: Unknowns, values: Values, weights: Floats) -> list[Floats]:
    """The weights of the arcs of each graph in the order of rows and columns."""
    rows, columns = np.divmod(np.arange(unknowns.nodes**2), unknowns.nodes)
    found = []
    for one, matrix in zip(values, weights, strict=True):
        has_arc = unknowns.has_arc(one)
        found.append(matrix[rows[has_arc.ravel()], columns[has_arc.ravel()]])

    return found


def enumerate_values(
    model: TrainedModel,
    unknowns: Unknowns,
    *,
    runs: int,
    orderings: int,
    soft_fraction: float,
    rng: np.random.Generator,
    tick: Callable[[], None],
) -> Completions:
    """Weight all unknown values by their probability, from a number of node orderings per run for each."""
    i, j = unknowns.pairs.T
    choices = [np.flatnonzero(row) for row in unknowns.allowed[i, j]]
    choices += [np.arange(len(unknowns.schema.node_values))] * len(unknowns.unlabelled)
    found: list[tuple[Values, list[Floats] | None, Floats]] = []
    completions = np.array(list(itertools.product(*choices)), dtype=np.int64)
    drawn = unknowns.unweighted
    size = block_size(unknowns.nodes, is_autoregressive=True)
    for one in completions:
        parts, log_p = [], []
        for start in range(0, runs * orderings, size):
            values = np.tile(one, (min(size, runs * orderings - start), 1))
            known = np.tile(unknowns.weights, (len(values), 1, 1)) if unknowns.has_weights else None
            result = estimate(model, unknowns, values, known, rng, soft_fraction=soft_fraction)
            log_p.append(result.total(drawn))
            if result.weights is not None:
                parts += _arcs(unknowns, values, result.weights)
        found.append((one, parts if unknowns.has_weights else None, np.concatenate(log_p).reshape(runs, orderings)))
        tick()
    # The marginal likelihood is the sum over completions, and the mean over their orderings.
    log_weights = np.concatenate([part for *_, part in found], 1)
    evidence = np.logaddexp.reduce(log_weights, axis=1) - math.log(orderings)
    values = np.tile(completions.repeat(orderings, 0), (runs, 1, 1))
    weights = None
    if unknowns.has_weights:
        each = [part for _, part, _ in found if part is not None]
        weights = [w for run in range(runs) for part in each for w in part[run * orderings : (run + 1) * orderings]]

    return Completions(values, weights, log_weights, evidence)


def run_chains(
    model: TrainedModel,
    unknowns: Unknowns,
    *,
    runs: int,
    particles: int,
    steps: int,
    rng: np.random.Generator,
    tick: Callable[[], None],
) -> Completions:
    """Sequential Monte Carlo, followed by chains of each run from its own particles."""
    values, weights, log_weights = extend_attributed(
        model, unknowns, runs=runs, particles=particles, rng=rng, tick=tick
    )
    start = Posterior.weighted(values, log_weights)  # type: ignore[arg-type]
    if not math.isfinite(start.log_evidence):
        return Completions(values, None, log_weights, start.run_log_evidence)
    chosen = [systematic_resample(own, CHAINS, rng) for own in log_weights]
    first = np.concatenate([own[at] for own, at in zip(values, chosen, strict=True)])
    own_weights = None
    if weights is not None:
        own_weights = np.concatenate([own[at] for own, at in zip(weights, chosen, strict=True)])
    chains = AttributeChains(model, unknowns, first, own_weights, rng)
    states, found = [], []
    for step in range(steps):
        chains.step()
        if step >= int(BURN_IN * steps):
            states.append(chains.values.reshape(runs, CHAINS, -1))
            if chains.current.weights is not None:
                found.append(_arcs(unknowns, chains.values, chains.current.weights))
        tick()
    particles_of = np.concatenate(states, axis=1)
    by_run = None
    if found:
        by_run = [w for run in range(runs) for step_ in found for w in step_[run * CHAINS : (run + 1) * CHAINS]]

    return Completions(particles_of, by_run, np.zeros(particles_of.shape[:2]), start.run_log_evidence)


class AttributeChains:
    """Parallel chains over unknown values of shape :math:`(C, K)` and unknown weights."""

    def __init__(
        self, model: TrainedModel, unknowns: Unknowns, values: Values, weights: Floats | None, rng: np.random.Generator
    ) -> None:
        self.model, self.unknowns, self.rng = model, unknowns, rng
        self.values = values
        self.current = estimate(model, unknowns, values, weights, rng)
        self._table = unknowns.proposals()
        i, j = unknowns.pairs.T
        # Edges move between pairs that may have any code.
        self._movable = unknowns.allowed[i, j].all(-1)
        self._open = unknowns.unweighted

    def step(self) -> None:
        """Propose other values and weights for every chain."""
        rng, unknowns, count = self.rng, self.unknowns, len(self.values)
        moves = [self._move(row) for row in self.values]
        proposed = np.stack([row for row, _ in moves])
        log_ratio = np.array([ratio for _, ratio in moves])
        drawn, weights = np.zeros((count, 1, 1), dtype=np.bool_), self.current.weights
        if weights is not None:
            chosen = np.triu(rng.random(self._open.shape) < rng.choice(REDRAWN))
            drawn = np.repeat((chosen | chosen.T)[None], count, 0)
            pairs = len(unknowns.pairs)
            chain, changed = np.nonzero((proposed != self.values)[:, :pairs])
            i, j = unknowns.pairs[changed].T
            drawn[chain, i, j] = drawn[chain, j, i] = True
            drawn &= self._open
            weights = np.where(drawn, np.nan, weights)
        other = estimate(self.model, unknowns, proposed, weights, rng)
        accept = np.log(rng.random(count)) < other.total(drawn) - self.current.total(drawn) + log_ratio
        self.values = np.where(accept[:, None], proposed, self.values)
        at = accept[:, None, None]
        new, old = other, self.current
        joined = None
        if new.weights is not None and old.weights is not None:
            joined = np.where(at, new.weights, old.weights)
        self.current = _Estimate(
            np.where(accept, new.log_p, old.log_p), joined, np.where(at, new.densities, old.densities)
        )

    def _move(self, row: Values) -> tuple[Values, float]:
        """Change one value, move an edge, or swap two labels; and the log-ratio of the proposal."""
        rng, new, pairs = self.rng, row.copy(), len(self.unknowns.pairs)
        kind = rng.integers(5)
        if kind in (1, 2):
            movable = self._movable
            moved = move_edge(self.unknowns.pairs, row[:pairs] > 0, movable, kind == 1, rng)
            if moved is None:
                return row, 0.0
            edge, gap, log_ratio = moved
            new[gap], new[edge] = row[edge], 0
            return new, log_ratio
        if kind == 3 and len(row) - pairs > 1:
            one, other = pairs + rng.choice(len(row) - pairs, 2, replace=False)
            new[one], new[other] = row[other], row[one]
            return new, 0.0
        if not len(row):
            return row, 0.0
        at = rng.integers(len(row))
        chances = self._table[at]
        new[at] = rng.choice(len(chances), p=chances)

        return new, math.log(chances[row[at]]) - math.log(chances[new[at]])
