"""The NLL of graphs: log-weights by one method or another, reduced in one way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from ..autoregressive.distribution import CHUNK_CELLS, Schedule
from ..data.batch import collate
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import ConfigError, DatasetError
from ..graph import SimpleGraph
from ..memory import check_memory
from ..records import CurvePoint, GraphNLL, NLLEstimate, mean_with_error
from ..rng import stream
from ..training.checkpoint import TrainedModel
from .annealed import CHAINS, STEPS, annealed_log_weights
from .importance import block_size, graph_log_weights
from .psis import KHAT_LIMIT, needs_annealing, nll_curve, smooth_weights

__all__ = [
    "METHODS",
    "check_model",
    "check_suits",
    "default_samples",
    "estimate_nll",
    "iterate_nll",
    "summarise",
]

CONVENTIONS = ("pairs", "paper")
METHODS = ("is", "ais", "auto")
# Bytes per cell, as measured: of the rows that a staged model scores together, and of each proposal.
AUTOREGRESSIVE_BYTES = 330
ONE_SHOT_BYTES = 30


def iterate_nll(
    model: TrainedModel,
    graphs: Iterable[SimpleGraph],
    samples: int | None = None,
    seed: int = 0,
    convention: str = "pairs",
    *,
    method: str = "is",
    chains: int = CHAINS,
    steps: int = STEPS,
    curve: bool = False,
    decoding_steps: int | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Iterator[GraphNLL]:
    r"""The NLL of each graph, in nats.

    .. math:: -\log p(A | n) \approx -\log \frac{1}{K} \sum_k w_k

    Arguments:
        model: A variational model.
        graphs: What to score; read once, one at a time unless processes share them.
        samples: Proposals per graph, :math:`K`, of importance sampling; None for as many as the model needs.
        seed: The run's seed.
        convention: ``pairs`` (a law over graphs) or ``paper`` (all cells of the padded matrix).
        method: ``is`` for importance sampling from the encoder, ``ais`` for annealed importance sampling, ``auto`` for
            the first, and for the second where :math:`\hat{k}` says that the first cannot be trusted.
        chains: Chains per graph of annealed importance sampling.
        steps: Temperatures of each chain.
        curve: Whether to keep the estimates that fewer samples would have given.
        stages: The stages of a staged model, 0 for one pair at a time; None for its default.
        group: The processes that divide the graphs; the estimates are gathered on rank 0.

    Raises:
        ConfigError: There is no such convention or method, or there are no samples.
        DatasetError: A graph does not suit the model.
    """
    samples = default_samples(model) if samples is None else samples
    _check_settings(convention, method, samples=samples, chains=chains, steps=steps)
    check_model(model, convention)
    schedule = _schedule(model, method, decoding_steps)

    def score(index: int, graph: SimpleGraph) -> GraphNLL:
        check_suits(model, graph, index)
        width = max(graph.nodes, model.sizes.largest) if convention == "paper" else graph.nodes
        _check_memory(model, width, index, samples if method == "is" else max(samples, chains), group.local_world_size)
        batch = collate([graph], width).to(model.device)
        row: GraphNLL | None = None
        points: tuple[tuple[int, float], ...] = ()
        if method != "ais":
            weights = graph_log_weights(model.network, batch, samples, seed, index, convention, schedule).numpy()
            points = _curve(weights, seed, index) if curve else ()
            row = _estimate(model, graph, weights, convention, "is", points)
        if row is None or (method == "auto" and schedule is None and needs_annealing(row.khat)):
            weights = annealed_log_weights(model.network, batch, chains, steps, seed, index).numpy()
            points = _curve(weights, seed, index) if curve and row is None else points
            row = _estimate(model, graph, weights, convention, "ais", points)

        return row

    if group.world_size == 1:
        yield from starmap(score, enumerate(graphs))
        return
    known = list(graphs)
    yield from group.gather_in_order(len(known), lambda index: score(index, known[index]))


def default_samples(model: TrainedModel) -> int:
    """How many proposals per graph serve a model: orders of a staged one are costly, and few of them do."""
    return 100 if model.config.is_autoregressive else 1000


def _schedule(model: TrainedModel, method: str, decoding_steps: int | None) -> Schedule | None:
    """The schedule of a staged model, None for others."""
    if not model.config.is_autoregressive:
        if decoding_steps not in (None, 1):
            raise ConfigError(f"'{model.name}' decides all pairs at once, so stages have no use. Leave them out.")
        return None
    if method == "ais":
        raise ConfigError(
            f"'{model.name}' is a staged model, and orders of arrival cannot be annealed. Use method 'is' with more "
            f"samples."
        )

    return Schedule(model.config.decoding_steps if decoding_steps is None else decoding_steps)


def _check_settings(convention: str, method: str, **counts: int) -> None:
    for name, value, choices in (("convention", convention, CONVENTIONS), ("method", method, METHODS)):
        if value not in choices:
            raise ConfigError(f"'{name}' is '{value}'; choose one of {', '.join(choices)}.")
    for name, count in counts.items():
        if count < 1:
            raise ConfigError(f"'{name}' is {count}; it should be at least 1.")
    if convention == "paper" and method != "is":
        raise ConfigError(f"Convention 'paper' is no law to anneal towards, so method '{method}' has no use. Use 'is'.")


def check_model(model: TrainedModel, convention: str = "pairs") -> None:
    """Refuse a model that has no likelihood.

    Raises:
        DatasetError: It is an autoencoder, or weighs edges where the convention knows none.
    """
    if not model.config.is_variational:
        raise DatasetError(
            f"'{model.name}' is a {model.config.kind}: an autoencoder has no likelihood. "
            f"Train with '--kind graphite-vae'."
        )
    if convention == "paper" and model.config.is_autoregressive:
        raise DatasetError("A staged model has no convention 'paper': it scores pairs. Use '--convention pairs'.")
    if convention == "paper" and model.config.observation == "normal":
        raise DatasetError("Convention 'paper' is for unweighted graphs. Use '--convention pairs'.")


def check_suits(model: TrainedModel, graph: SimpleGraph, index: int) -> None:
    """Refuse a graph that the model cannot score.

    Raises:
        DatasetError: It is weighted or has features where the model has none (or the reverse), or is too large.
    """
    config = model.config
    weighted = graph.is_weighted if config.observation == "bernoulli" else graph.weights is not None
    features = 0 if graph.features is None else graph.features.shape[1]
    if graph.nodes < 1:
        raise DatasetError(f"Graph {index} has no nodes; a model needs at least one. Remove it from the file.")
    # Without edges there is nothing to weigh: such a graph is of either kind.
    if len(graph.edges) and weighted != (config.observation == "normal"):
        kinds = ("unweighted", "weighted")
        raise DatasetError(
            f"Graph {index} is {kinds[weighted]}, but '{model.name}' was trained on {kinds[not weighted]} graphs. "
            f"Train a model on such graphs with 'graphite-gen train FILE', or pass '--ignore-weights'."
        )
    if features != config.node_features:
        raise DatasetError(
            f"Graph {index} has {features} node features, but '{model.name}' was trained with {config.node_features}. "
            f"Use graphs like those it was trained on."
        )
    identity = "identity" in config.encoder_features + config.decoder_features
    if identity and graph.nodes > config.max_nodes:
        raise DatasetError(
            f"Graph {index} has {graph.nodes} nodes, but '{model.name}' tells nodes apart by number and knows "
            f"{config.max_nodes} of them. Train with '--preset default', or on graphs of that size."
        )


def _check_memory(model: TrainedModel, nodes: int, index: int, samples: int, processes: int) -> None:
    """Refuse a graph whose matrices over all pairs of nodes cannot fit, as many times as there are processes here."""
    if model.device.type != "cpu":
        return
    one = nodes**2 * ONE_SHOT_BYTES
    proposals = min(samples, block_size(nodes))
    # The rows that a staged model scores together, of nodes that see few others or all.
    rows = max(nodes**2, min(proposals * nodes**3 // 3, CHUNK_CELLS)) if model.config.is_autoregressive else 0
    fixed = rows * AUTOREGRESSIVE_BYTES
    needed = processes * (fixed + proposals * one)

    def remedy(available: int) -> str:
        fitting = (available // processes - fixed) // one
        fewer = "Use fewer processes, or leave" if processes > 1 else "Leave"
        return f"Pass '--samples {fitting}'." if fitting > 0 else f"{fewer} out graphs of so many nodes."

    check_memory(needed, f"Graph {index}, on {nodes} nodes,", remedy, DatasetError)


def _curve(weights: NDArray[np.float64], seed: int, index: int) -> tuple[tuple[int, float], ...]:
    return nll_curve(weights, stream(seed, "curve", index))


def _estimate(
    model: TrainedModel,
    graph: SimpleGraph,
    weights: NDArray[np.float64],
    convention: str,
    method: str,
    curve: tuple[tuple[int, float], ...],
) -> GraphNLL:
    """What any vector of log-weights says about a graph."""
    smoothed = smooth_weights(weights)
    size_nats = -model.sizes.log_prob(graph.nodes)
    plain = graph.weights is None and convention == "pairs"

    return GraphNLL(
        nodes=graph.nodes,
        edges=len(graph.edges),
        nll=-smoothed.log_mean,
        elbo=float(weights.mean()),
        ess=smoothed.ess,
        size_nats=size_nats if math.isfinite(size_nats) else None,
        baseline=model.sizes.baseline(graph) if plain else None,
        khat=smoothed.khat,
        method=method,
        curve=curve,
    )


def summarise(
    model: str,
    convention: str,
    samples: int,
    rows: Sequence[GraphNLL],
    *,
    method: str = "is",
    chains: int | None = None,
    steps: int | None = None,
) -> NLLEstimate:
    """The mean over graphs.

    Raises:
        DatasetError: There are none.
    """
    if not rows:
        raise DatasetError("There are no graphs to score. Check the file with 'graphite-gen inspect'.")
    shapes = [row.khat for row in rows if row.khat is not None]
    finite = [shape for shape in shapes if math.isfinite(shape)]
    nll, error = mean_with_error([row.nll for row in rows])

    return NLLEstimate(
        model=model,
        convention=convention,
        graphs=len(rows),
        samples=samples,
        nll=nll,
        standard_error=error,
        elbo=float(np.mean([row.elbo for row in rows])),
        ess=float(np.median([row.ess for row in rows])),
        size_nats=_mean_or_none([row.size_nats for row in rows]),
        baseline=_mean_or_none([row.baseline for row in rows]),
        per_graph=tuple(rows),
        method=method,
        chains=chains,
        steps=steps,
        khat=max(finite) if finite else None,
        flagged=sum(shape > KHAT_LIMIT for shape in shapes),
        annealed=sum(row.method == "ais" for row in rows),
        curve=_mean_curve(rows),
    )


def _mean_curve(rows: Sequence[GraphNLL]) -> tuple[CurvePoint, ...]:
    """The curves of all graphs, which have the same numbers of samples, averaged point by point."""
    points = [
        (column[0][0], *mean_with_error([nats for _, nats in column]))
        for column in zip(*(row.curve for row in rows), strict=True)
    ]

    return tuple(starmap(CurvePoint, points))


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]

    return float(np.mean(known)) if len(known) == len(values) else None


def estimate_nll(
    model: TrainedModel,
    graphs: Iterable[SimpleGraph],
    samples: int | None = None,
    seed: int = 0,
    convention: str = "pairs",
    *,
    method: str = "is",
    chains: int = CHAINS,
    steps: int = STEPS,
    curve: bool = False,
    decoding_steps: int | None = None,
) -> NLLEstimate:
    """The mean NLL of graphs, in nats per graph, with its standard error; the arguments are those of
    :func:`iterate_nll`.
    """
    samples = default_samples(model) if samples is None else samples
    rows = list(
        iterate_nll(
            model,
            graphs,
            samples,
            seed,
            convention,
            method=method,
            chains=chains,
            steps=steps,
            curve=curve,
            decoding_steps=decoding_steps,
        )
    )
    anneals = method != "is"

    return summarise(
        model.name,
        convention,
        samples,
        rows,
        method=method,
        chains=chains if anneals else None,
        steps=steps if anneals else None,
    )
