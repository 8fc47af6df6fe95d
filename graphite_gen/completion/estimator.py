"""Completions of a graph that is known in part, by any variational model of unweighted graphs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autoregressive.distribution import Schedule
from ..errors import SamplingError
from ..graph import SimpleGraph
from ..records import Record
from ..rng import stream
from ..training.checkpoint import TrainedModel
from .enumeration import enumerate_completions
from .latent_importance import decode_completions
from .mcmc import CHAINS, move_particles
from .partial import PartialGraph
from .smc import extend_particles

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["CHAIN_STEPS", "RUNS", "Completion", "EdgeScore", "complete"]

RUNS = 4
CHAIN_STEPS = 200
# Particles of a run: of a staged model, whose chains do the rest, and of another.
AUTOREGRESSIVE_PARTICLES = 64
PARTICLES = 256
# All completions are weighed where as much work as the chains would be makes at least so many orders of each in a run.
FEWEST_ORDERINGS = 25
# By the rule 'even', which seldom chooses an order that is not even, fewer hold too few of those to tell their noise.
FEWEST_ATTACHMENT_ORDERINGS = 100


@dataclass(frozen=True)
class EdgeScore(Record):
    """How likely an unknown pair is an edge.

    Attributes:
        source: The name of one node.
        target: The name of the other.
        probability: The probability of an edge given all that is known.
        standard_error: Its standard error over independent runs.
    """

    source: Any
    target: Any
    probability: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class Completion:
    """Completed graphs, and what is believed of each unknown pair.

    Attributes:
        samples: The completed graphs, as :class:`SimpleGraph`; every edge says in an attribute ``sampled`` whether it
            was unknown, every node in ``added`` whether it is new, where there are new ones.
        scores: The unknown pairs, the likeliest edges first.
        log_evidence: The log-probability of the known pairs under the model, in nats.
        spread: The standard deviation of its estimates by single runs, in nats.
        error: The root mean square of the standard errors of the scores.
        disagreement: The part of the variance of the unknown pairs that lies between runs: about one over the number
            of independent graphs that a run has seen, and 1 where every run has its own single graph.
        baseline: The log-probability of the known pairs under the ER baseline, in nats.
        method: How they were found: by ``enumeration`` of all completions or ``chains`` of a staged model, or by the
            ``latents`` of another.
    """

    samples: tuple[SimpleGraph, ...]
    scores: tuple[EdgeScore, ...]
    log_evidence: float
    spread: float
    error: float
    disagreement: float
    baseline: float
    method: str

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
    decoding_steps: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Completion:
    """Sample what is unknown of a graph, given what is known.

    Where few pairs are unknown a staged model weighs all completions by their probability; where more are, sequential
    Monte Carlo and Markov chains find likely ones. One that decides all pairs at once is left its latents to sample.

    Arguments:
        model: A variational model of unweighted graphs.
        partial: What is known.
        count: How many completed graphs.
        seed: The run's seed; graph i is the same for a seed, however many are asked for.
        particles: Particles of each run; None for 256, or 64 of a staged model, which weighs all completions instead
            where they are few.
        steps: Steps by which chains move the particles of a staged model; more make the answer more exact. All
            completions are weighed by as much work as so many steps would be.
        runs: Runs, at least 2, whose differences tell how exact the answer is.
        stages: In how many stages a staged model decides, 0 for one pair at a time; None for its default.
        progress: Called with how many parts of a staged model's work are done, and how many there are.

    Raises:
        SamplingError: The model cannot complete such a graph, or gives what is known no chance at all.
    """
    _check(model, partial)
    if count < 0 or steps < 4 or runs < 2 or (particles is not None and particles < 1):
        raise SamplingError("Ask for at least 0 graphs, 1 particle, 4 steps and 2 runs.")
    rng = stream(seed, "completion")
    if model.config.is_autoregressive:
        schedule = Schedule(model.config.decoding_steps if decoding_steps is None else decoding_steps)
        orders = CHAINS * steps // 2 ** len(partial.unknown)
        fewest = FEWEST_ATTACHMENT_ORDERINGS if model.config.ordering == "attachment" else FEWEST_ORDERINGS
        method = "enumeration" if particles is None and orders >= fewest else "chains"
    elif decoding_steps not in (None, 1):
        raise SamplingError(f"'{model.name}' decides all pairs at once, so stages have no use. Use a staged model.")
    else:
        method = "latents"

    if method == "enumeration":
        tick = _ticking(progress, 2 ** len(partial.unknown))
        posterior = enumerate_completions(
            model, partial, runs=runs, orders=orders, schedule=schedule, seed=seed, tick=tick
        )
    elif method == "chains":
        tick, size = _ticking(progress, partial.nodes + steps), particles or AUTOREGRESSIVE_PARTICLES
        posterior = extend_particles(model, partial, runs=runs, particles=size, schedule=schedule, rng=rng, tick=tick)
        if math.isfinite(posterior.log_evidence):
            posterior = move_particles(model, partial, posterior, steps=steps, schedule=schedule, rng=rng, tick=tick)
    else:
        posterior = decode_completions(model, partial, runs=runs, particles=particles or PARTICLES, rng=rng)
    if not math.isfinite(posterior.log_evidence):
        # Particles would make an enumeration something else, not more of the same.
        more = "steps ('--steps')" if method == "enumeration" else "particles ('--particles')"
        raise SamplingError(
            f"'{model.name}' gives what is known of the graph no chance at all. "
            f"Use a model of such graphs, or more {more}."
        )

    means, errors = posterior.edge_probabilities()
    names = partial.names
    ranked = np.argsort(-means, kind="stable")

    return Completion(
        samples=tuple(partial.completed(answers) for answers in posterior.samples(count, seed)),
        scores=tuple(
            EdgeScore(names[i], names[j], float(means[pair]), float(errors[pair]))
            for pair, (i, j) in zip(ranked, partial.unknown[ranked].tolist(), strict=True)
        ),
        log_evidence=posterior.log_evidence,
        spread=float(posterior.run_log_evidence.std(ddof=1)),
        error=float(np.sqrt(np.square(errors).mean())),
        disagreement=posterior.disagreement,
        baseline=_baseline(model, partial),
        method=method,
    )


def _ticking(progress: Callable[[int, int], None] | None, total: int) -> Callable[[], None]:
    """A function that counts the parts of the work that are done."""
    numbers = itertools.count(1)

    return lambda: None if progress is None else progress(next(numbers), total)


def _baseline(model: TrainedModel, partial: PartialGraph) -> float:
    density = model.sizes.density(partial.nodes)
    edges = len(partial.graph.edges)
    absent = math.comb(partial.nodes, 2) - len(partial.unknown) - edges

    return edges * math.log(density) + absent * math.log1p(-density)


def _check(model: TrainedModel, partial: PartialGraph) -> None:
    config, graph = model.config, partial.graph
    if not config.is_variational:
        raise SamplingError(
            f"'{model.name}' is a {config.kind}: an autoencoder has no law to complete graphs by. "
            f"Train with '--kind graphite-vae'."
        )
    if config.observation == "normal":
        raise SamplingError(
            f"'{model.name}' draws a weight for every pair and has no absent edges to tell from present ones. "
            f"Train with '--ignore-weights'."
        )
    if graph.is_weighted:
        raise SamplingError(
            f"The graph is weighted, and '{model.name}' knows edges alone. "
            f"Pass '--ignore-weights' (in Python, a graph without weights)."
        )
    width = 0 if graph.features is None else graph.features.shape[1]
    if config.node_features and width != config.node_features:
        raise SamplingError(
            f"'{model.name}' reads {config.node_features} node features, and the graph's nodes have {width}. "
            f"Pass a graph like those it was trained on, and add no nodes."
        )
    if "identity" in config.decoder_features and partial.nodes > config.max_nodes:
        raise SamplingError(
            f"The graph has {partial.nodes} nodes, but '{model.name}' tells nodes apart by number and knows "
            f"{config.max_nodes} of them. Use a model trained with '--preset default'."
        )
