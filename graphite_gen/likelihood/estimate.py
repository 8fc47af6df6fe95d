"""The NLL of graphs: log-weights from importance sampling or annealed importance sampling, reduced in one way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap
from typing import Any

import numpy as np
from torch import Tensor

from ..autoregressive.distribution import CHUNK_PAIRS
from ..config import require, require_count
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
from .parts import attribute_nats, baseline_nats
from .psis import KHAT_LIMIT, needs_annealing, nll_curve, smooth_weights

__all__ = ["NLLOptions", "default_samples", "estimate_nll", "iterate_nll", "summarise"]

# Measured bytes per matrix cell: of each proposal, and of those that an autoregressive model scores together.
ONE_SHOT_BYTES = 30
AUTOREGRESSIVE_BYTES = 130
SCORED_BYTES = 2200

# Orderings of the rule alone that the ELBO of an autoregressive model is estimated with: one for so many proposals.
RULE_FRACTION = 8


@dataclass(frozen=True)
class NLLOptions:
    r"""How the NLL is estimated.

    Attributes:
        samples: Proposals per graph, :math:`K`, of importance sampling: node orderings of an autoregressive model,
            latents of a one-shot model. None for :func:`default_samples`.
        seed: The seed of the estimate.
        convention: ``pairs`` for a distribution over graphs, or ``paper`` to score all cells of the padded matrix.
        method: ``is`` for importance sampling from the encoder, ``ais`` for annealed importance sampling (one-shot
            models only), ``auto`` for importance sampling followed, on one-shot models, by annealed importance sampling
            of the graphs with :math:`\hat{k} > 0.7`.
        chains: Chains per graph of annealed importance sampling.
        steps: Temperatures of each chain.
        curve: Whether to keep the estimates from fewer samples.
    """

    samples: int | None = None
    seed: int = 0
    convention: str = "pairs"
    method: str = "is"
    chains: int = CHAINS
    steps: int = STEPS
    curve: bool = False

    def __post_init__(self) -> None:
        require("convention", self.convention, ("pairs", "paper"))
        require("method", self.method, ("is", "ais", "auto"))
        for name in ("chains", "steps"):
            require_count(name, getattr(self, name))
        if self.samples is not None:
            require_count("samples", self.samples)
        if self.convention == "paper" and self.method != "is":
            raise ConfigError("Convention 'paper' is not a distribution over graphs: it needs method 'is'.")

    def for_model(self, model: TrainedModel) -> NLLOptions:
        """The same options with everything resolved that depends on the model.

        ``samples`` becomes a number, and ``auto`` becomes ``is`` for an autoregressive model.
        """
        config = model.config
        if not config.is_variational:
            raise DatasetError(
                f"'{model.name}' is a {config.kind}: an autoencoder has no likelihood.", reason="no-likelihood"
            )
        if self.convention == "paper" and (config.is_autoregressive or config.observation == "normal"):
            kind = "an autoregressive model" if config.is_autoregressive else "a model of weighted graphs"
            raise DatasetError(f"'{model.name}' is {kind}, which has no convention 'paper'.", reason="needs-pairs")
        samples = default_samples(model) if self.samples is None else self.samples
        if not config.is_autoregressive:
            return replace(self, samples=samples)
        if self.method == "ais":
            raise ConfigError(
                f"'{model.name}' is autoregressive, and node orderings cannot be annealed. Use method 'is'.",
                reason="no-annealing",
            )

        return replace(self, samples=samples, method="is")


DEFAULTS = NLLOptions()


def default_samples(model: TrainedModel) -> int:
    """Proposals per graph: 100 node orderings of an autoregressive model, which are costly, or 1000 latents."""
    return 100 if model.config.is_autoregressive else 1000


def iterate_nll(
    model: TrainedModel,
    graphs: Iterable[SimpleGraph],
    options: NLLOptions = DEFAULTS,
    *,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Iterator[GraphNLL]:
    r"""Estimate the NLL of each graph, in nats.

    .. math:: -\log p(A | n) \approx -\log \frac{1}{K} \sum_k w_k

    A single process reads graphs one at a time. Rank 0 of a group gets the estimates.
    """
    options = options.for_model(model)
    samples, seed, convention = options.samples or 0, options.seed, options.convention
    most = samples if options.method == "is" else max(samples, options.chains)

    def score(index: int, graph: SimpleGraph) -> GraphNLL:
        graph = model.read(graph, index)
        width = max(graph.nodes, model.sizes.largest) if convention == "paper" else graph.nodes
        _check_memory(model, width, index, most, group.local_world_size)
        batch = collate([graph], width).to(model.device)
        row: GraphNLL | None = None
        if options.method != "ais":
            weights = graph_log_weights(model.network, batch, samples, seed, index, convention)
            row = _estimate(model, graph, index, weights, options, "is")
            if model.config.is_autoregressive:
                # The bound of the ordering rule alone; softened orderings would make it loose.
                count = max(1, samples // RULE_FRACTION)
                bound = graph_log_weights(model.network, batch, count, seed, index, soft_fraction=0.0)
                row = replace(row, elbo=float(bound.mean()))
                if model.schema.generates:
                    own, bases = attribute_nats(model, batch, seed, index), baseline_nats(model, graph)
                    row = replace(row, baseline=sum(bases.values()))
                    # Directions are a part of the structure.
                    if own:
                        row = replace(row, parts={"structure": row.nll - sum(own.values()), **own}, baselines=bases)
        if row is None or (options.method == "auto" and needs_annealing(row.khat)):
            weights = annealed_log_weights(model.network, batch, options.chains, options.steps, seed, index)
            annealed = _estimate(model, graph, index, weights, options, "ais")
            # The curve of 'auto' is over samples, which all graphs have.
            row = annealed if row is None else replace(annealed, curve=row.curve)

        return row

    if group.world_size == 1:
        yield from starmap(score, enumerate(graphs))
        return
    known = list(graphs)
    yield from group.gather_in_order(len(known), lambda index: score(index, known[index]))


def estimate_nll(model: TrainedModel, graphs: Iterable[SimpleGraph], options: NLLOptions = DEFAULTS) -> NLLEstimate:
    """Estimate the mean NLL of graphs, in nats per graph, with its standard error; see :func:`iterate_nll`."""
    options = options.for_model(model)

    return summarise(model.name, options, list(iterate_nll(model, graphs, options)))


def _check_memory(model: TrainedModel, nodes: int, index: int, samples: int, processes: int) -> None:
    """Refuse a graph whose matrices over all pairs of nodes do not fit, once for each process on this machine."""
    if model.device.type != "cpu":
        return
    is_autoregressive, cells = model.config.is_autoregressive, nodes**2
    one = cells * (AUTOREGRESSIVE_BYTES if is_autoregressive else ONE_SHOT_BYTES)
    proposals = min(samples, block_size(nodes, is_autoregressive))
    fixed = SCORED_BYTES * min(proposals * cells, 2 * CHUNK_PAIRS) if is_autoregressive else 0

    def remedy(available: int) -> str:
        fitting = (available // processes - fixed) // one
        fewer = "Use fewer processes, or leave" if processes > 1 else "Leave"
        return f"{fitting} samples would fit." if fitting > 0 else f"{fewer} out graphs of that size."

    def error(text: str, *, available: int, **facts: Any) -> DatasetError:
        fitting = (available // processes - fixed) // one
        return DatasetError(
            text, reason="nll-memory" if fitting > 0 else "", fitting=fitting, available=available, **facts
        )

    check_memory(processes * (fixed + proposals * one), f"Graph {index}, on {nodes} nodes,", remedy, error)


def _estimate(
    model: TrainedModel, graph: SimpleGraph, index: int, weights: Tensor, options: NLLOptions, method: str
) -> GraphNLL:
    """Reduce the log-weights of one graph, whatever the method."""
    values = weights.numpy()
    smoothed = smooth_weights(values)
    size_nats = -model.sizes.log_prob(graph.nodes)
    has_baseline = graph.weights is None and options.convention == "pairs"

    return GraphNLL(
        nodes=graph.nodes,
        edges=len(graph.edges),
        nll=-smoothed.log_mean,
        elbo=float(values.mean()),
        ess=smoothed.ess,
        size_nats=size_nats if math.isfinite(size_nats) else None,
        baseline=model.sizes.baseline(graph) if has_baseline else None,
        khat=smoothed.khat,
        method=method,
        curve=nll_curve(values, stream(options.seed, "curve", index)) if options.curve else (),
    )


def summarise(model: str, options: NLLOptions, rows: Sequence[GraphNLL]) -> NLLEstimate:
    """Average the estimates over graphs; the options are those of :meth:`NLLOptions.for_model`."""
    assert options.samples is not None, "options are resolved for a model"
    if not rows:
        raise DatasetError("There are no graphs to score.", reason="empty-dataset")
    shapes = [row.khat for row in rows if row.khat is not None]
    nll, error = mean_with_error([row.nll for row in rows])
    anneals = options.method != "is"
    # The curves of all graphs have the same numbers of samples.
    curves = zip(*(row.curve for row in rows), strict=True)

    return NLLEstimate(
        model=model,
        convention=options.convention,
        graphs=len(rows),
        samples=options.samples,
        nll=nll,
        standard_error=error,
        elbo=float(np.mean([row.elbo for row in rows])),
        ess=float(np.median([row.ess for row in rows])),
        size_nats=_mean_or_none([row.size_nats for row in rows]),
        baseline=_mean_or_none([row.baseline for row in rows]),
        per_graph=tuple(rows),
        method=options.method,
        chains=options.chains if anneals else None,
        steps=options.steps if anneals else None,
        khat=max(filter(math.isfinite, shapes), default=None),
        flagged=sum(shape > KHAT_LIMIT for shape in shapes),
        annealed=sum(row.method == "ais" for row in rows),
        parts=_mean_parts([row.parts for row in rows]),
        baselines=_mean_parts([row.baselines for row in rows]),
        curve=tuple(CurvePoint(column[0][0], *mean_with_error([nats for _, nats in column])) for column in curves),
    )


def _mean_parts(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def _mean_or_none(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]

    return float(np.mean(known)) if len(known) == len(values) else None
