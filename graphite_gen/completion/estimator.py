"""Completion of a partially known graph under any variational model of unweighted graphs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import DatasetError, SamplingError
from ..graph import SimpleGraph
from ..likelihood import graph_log_weights
from ..records import Record
from ..rng import stream
from ..sampling.sampler import check_model
from ..training.checkpoint import TrainedModel
from .attribute_chains import enumerate_values, run_chains
from .latent_importance import decode_completions
from .mcmc import CHAINS, move_particles
from .partial import MARK, PartialGraph
from .posterior import Posterior, batch_for
from .smc import extend_particles
from .unknowns import Unknowns, known_nats

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["CHAIN_STEPS", "RUNS", "Completion", "EdgeScore", "LabelScore", "complete"]

RUNS = 4
CHAIN_STEPS = 200
# Particles per run, of autoregressive models, where chains follow, and of one-shot models.
AUTOREGRESSIVE_PARTICLES = 64
ONE_SHOT_PARTICLES = 256
# Completions are enumerated if the cost of the chains is enough for this many orderings per completion and run.
MIN_ORDERINGS = 25
# The rule 'attachment' rarely gives irregular orderings: with fewer, their noise would go unnoticed.
MIN_ATTACHMENT_ORDERINGS = 100
# The fraction of softened orderings in an enumeration. With as few orderings as here, the default would give hardly
# any: every run would miss the same graphs, and agreement between runs would mean nothing. A half at most doubles the
# variance.
SOFT_FRACTION = 0.5
# More unknown weights are sampled by chains, which draw some of them at a time.
MOST_DRAWN = 8
_NOTHING = (
    f"so there is nothing to complete: no edge has '{MARK}' = 'unknown', unlisted pairs are absent, and no nodes are "
    f"added"
)


@dataclass(frozen=True)
class EdgeScore(Record):
    """The posterior probability of an edge at an unknown pair, or arc, by node names; its standard error over runs."""

    source: Any
    target: Any
    probability: float
    standard_error: float


@dataclass(frozen=True)
class LabelScore(Record):
    """The posterior probability of a label of a node without one, and its standard error over runs."""

    node: Any
    label: Any
    probability: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class Completion:
    """Completed graphs and edge probabilities.

    Attributes:
        samples: The completed graphs, as :class:`SimpleGraph`, with the edge attribute ``sampled`` and, if nodes were
            added, the node attribute ``added``.
        scores: The unknown pairs, most likely edges first.
        log_evidence: The log-marginal likelihood of the known pairs, in nats.
        spread: The standard deviation of its estimates over runs, in nats.
        error: The root mean square of the standard errors of the scores.
        disagreement: The fraction of the variance of the unknown pairs that lies between runs: about one over the
            effective number of graphs per run, and 1 if every run has a single graph of its own.
        baseline: The log-probability of the known pairs under the ER baseline, in nats.
        method: ``enumeration`` or ``chains`` for an autoregressive model, ``latents`` for a one-shot model.
        label_scores: The labels of nodes without one, most likely labels of each node first.
    """

    samples: tuple[SimpleGraph, ...] = field(repr=False)
    scores: tuple[EdgeScore, ...] = field(repr=False)
    log_evidence: float
    spread: float
    error: float
    disagreement: float
    baseline: float
    method: str
    label_scores: tuple[LabelScore, ...] = field(default=(), repr=False)

    @property
    def graphs(self) -> list[nx.Graph]:
        """The completed graphs, for networkx."""
        return [graph.to_networkx() for graph in self.samples]


def complete(
    model: TrainedModel,
    partial: PartialGraph,
    count: int,
    *,
    seed: int = 0,
    particles: int | None = None,
    steps: int = CHAIN_STEPS,
    runs: int = RUNS,
    progress: Callable[[int, int], None] | None = None,
) -> Completion:
    """Sample the unknown pairs of a graph given the known ones; see :meth:`graphite_gen.Model.complete`.

    For an autoregressive model, all completions are enumerated if they are few, and otherwise sampled by sequential
    Monte Carlo followed by Markov chains; ``progress`` is called with the number of finished and of all parts of the
    work. For a one-shot model, latents are sampled by importance sampling.
    """
    if count < 0 or steps < 4 or runs < 2 or (particles is not None and particles < 1):
        found = f"'count' is {count}, 'particles' {particles}, 'steps' {steps} and 'runs' {runs}"
        raise SamplingError(f"{found}; they should be at least 0, 1, 4 and 2.")
    rng, config = stream(seed, "completion"), model.config
    check_model(model, partial.nodes)
    _check(model, partial)
    if not model.schema.is_plain:
        return _complete_attributed(
            model, partial, count, seed=seed, particles=particles, steps=steps, runs=runs, progress=progress
        )
    if not len(partial.unknown):
        raise DatasetError(f"No pair of the graph is unknown, {_NOTHING}.", reason="nothing-unknown")
    orderings = CHAINS * steps // 2 ** len(partial.unknown)
    least = MIN_ATTACHMENT_ORDERINGS if config.ordering == "attachment" else MIN_ORDERINGS

    if not config.is_autoregressive:
        method = "latents"
        posterior = decode_completions(model, partial, runs=runs, particles=particles or ONE_SHOT_PARTICLES, rng=rng)
    elif particles is None and orderings >= least:
        method, tick = "enumeration", _ticking(progress, 2 ** len(partial.unknown))
        posterior = _enumerate(model, partial, runs=runs, orderings=orderings, seed=seed, tick=tick)
    else:
        method, tick = "chains", _ticking(progress, partial.nodes + steps)
        size = particles or AUTOREGRESSIVE_PARTICLES
        posterior = extend_particles(model, partial, runs=runs, particles=size, rng=rng, tick=tick)
        if math.isfinite(posterior.log_evidence):
            posterior = move_particles(model, partial, posterior, steps=steps, rng=rng, tick=tick)
    if not math.isfinite(posterior.log_evidence):
        raise _impossible(model, method)

    means, errors = posterior.edge_probabilities()
    names, unknown = partial.names, partial.unknown.tolist()
    density, edges = model.sizes.density(partial.nodes), len(partial.graph.edges)
    absent = math.comb(partial.nodes, 2) - len(unknown) - edges

    return Completion(
        samples=tuple(partial.completed(edges) for edges in posterior.samples(count, seed)),
        scores=tuple(
            EdgeScore(names[unknown[pair][0]], names[unknown[pair][1]], float(means[pair]), float(errors[pair]))
            for pair in np.argsort(-means, kind="stable")
        ),
        log_evidence=posterior.log_evidence,
        spread=float(posterior.run_log_evidence.std(ddof=1)),
        error=float(np.sqrt(np.square(errors).mean())),
        disagreement=posterior.disagreement,
        baseline=edges * math.log(density) + absent * math.log1p(-density),
        method=method,
    )


def _complete_attributed(
    model: TrainedModel,
    partial: PartialGraph,
    count: int,
    *,
    seed: int,
    particles: int | None,
    steps: int,
    runs: int,
    progress: Callable[[int, int], None] | None,
) -> Completion:
    """Sample unknown pairs, labels, edge labels and weights; see :func:`complete`."""
    rng, config, unknowns = stream(seed, "completion"), model.config, Unknowns.of(model, partial)
    if not unknowns.sizes.size and not unknowns.unweighted.any():
        raise DatasetError(
            f"Nothing of the graph is unknown: no label or weight is missing, {_NOTHING}.", reason="nothing-unknown"
        )
    completions = math.prod(unknowns.sizes.tolist())
    orderings = CHAINS * steps // completions
    least = MIN_ATTACHMENT_ORDERINGS if config.ordering == "attachment" else MIN_ORDERINGS
    if particles is None and orderings >= least and unknowns.unweighted.sum() <= MOST_DRAWN:
        method, tick = "enumeration", _ticking(progress, completions)
        found = enumerate_values(
            model, unknowns, runs=runs, orderings=orderings, soft_fraction=SOFT_FRACTION, rng=rng, tick=tick
        )
    else:
        method, tick = "chains", _ticking(progress, partial.nodes + steps)
        size = particles or AUTOREGRESSIVE_PARTICLES
        found = run_chains(model, unknowns, runs=runs, particles=size, steps=steps, rng=rng, tick=tick)
    if not np.isfinite(found.run_log_evidence).any():
        raise _impossible(model, method)

    pairs = len(partial.unknown)
    labels = found.values[..., len(unknowns.pairs) :, None] == np.arange(len(model.schema.node_values))
    columns = [unknowns.arcs_at(found.values), labels.reshape(*labels.shape[:2], -1)]
    posterior = Posterior(np.concatenate(columns, -1), found.log_weights, found.run_log_evidence)
    means, errors = posterior.edge_probabilities()
    names, unknown = partial.names, partial.unknown.tolist()
    flat = found.values.reshape(-1, found.values.shape[-1])
    samples = []
    for particle, _ in posterior.chosen(count, seed):
        weights = None if found.weights is None else found.weights[particle]
        samples.append(unknowns.completed(flat[particle], weights))
    nodes = [names[node] for node in unknowns.unlabelled]
    of_labels = itertools.product(nodes, model.schema.node_values)

    return Completion(
        samples=tuple(samples),
        scores=tuple(
            EdgeScore(names[unknown[pair][0]], names[unknown[pair][1]], float(means[pair]), float(errors[pair]))
            for pair in np.argsort(-means[:pairs], kind="stable")
        ),
        log_evidence=posterior.log_evidence,
        spread=float(posterior.run_log_evidence.std(ddof=1)),
        error=float(np.sqrt(np.square(errors).mean())) if len(errors) else 0.0,
        disagreement=posterior.disagreement,
        baseline=-sum(known_nats(model, unknowns).values()),
        method=method,
        label_scores=tuple(
            sorted(
                (
                    LabelScore(*of, *map(float, own))
                    for of, *own in zip(of_labels, means[pairs:], errors[pairs:], strict=True)
                ),
                key=lambda score: (nodes.index(score.node), -score.probability),
            )
        ),
    )


def _impossible(model: TrainedModel, method: str) -> SamplingError:
    return SamplingError(
        f"The known pairs have probability zero under '{model.name}', as far as {method} can tell.",
        reason="impossible-enumeration" if method == "enumeration" else "impossible-particles",
    )


def _ticking(progress: Callable[[int, int], None] | None, total: int) -> Callable[[], None]:
    """A callback that counts the finished parts of the work."""
    numbers = itertools.count(1)

    return lambda: None if progress is None else progress(next(numbers), total)


def _check(model: TrainedModel, partial: PartialGraph) -> None:
    config, graph = model.config, partial.graph
    if graph.directed and not model.schema.directed:
        raise DatasetError(
            f"The graph is directed, and '{model.name}' is a model of undirected graphs.", reason="directed-graph"
        )
    if config.observation == "normal":
        raise SamplingError(
            f"'{model.name}' samples a weight for every pair, so its graphs have no non-edges.", reason="weighted-model"
        )
    if graph.is_weighted and not model.schema.weights:
        raise SamplingError(
            f"The graph is weighted, and '{model.name}' is a model of unweighted graphs.", reason="weighted-graph"
        )
    width = 0 if graph.features is None else graph.features.shape[1]
    if config.node_features and width != config.node_features:
        raise SamplingError(
            f"'{model.name}' is conditioned on {config.node_features} node features, and the nodes of the graph have "
            f"{width}."
        )


def _enumerate(
    model: TrainedModel,
    partial: PartialGraph,
    *,
    runs: int,
    orderings: int,
    seed: int,
    tick: Callable[[], None],
) -> Posterior:
    r"""Weight all completions by their probability :math:`p(A) = \frac{1}{n!} \sum_\sigma p(A_\sigma)`.

    It is estimated without bias from ``orderings`` node orderings per run, as for the NLL. Every further unknown pair
    doubles the cost; ``tick`` is called after each completion.
    """
    pairs = len(partial.unknown)
    completions = np.array(list(itertools.product((False, True), repeat=pairs)))
    log_p = np.zeros((runs, len(completions)))
    for index, edges in enumerate(completions):
        batch = batch_for(model, partial.completed(edges))
        weights = graph_log_weights(model.network, batch, runs * orderings, seed, index, soft_fraction=SOFT_FRACTION)
        log_p[:, index] = weights.reshape(runs, orderings).logsumexp(1).numpy() - math.log(orderings)
        tick()

    # The marginal likelihood is the sum over completions, and that of a posterior is the mean of its weights.
    return Posterior.weighted(np.tile(completions, (runs, 1, 1)), log_p + pairs * math.log(2))
