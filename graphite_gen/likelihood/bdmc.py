"""Bidirectional Monte Carlo (BDMC; Grosse et al., 2015): upper and lower bounds on the NLL of simulated graphs.

A graph sampled from the model comes with an exact sample of its posterior: the latents it was decoded from.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..autoregressive.heads import AttributeNoise
from ..autoregressive.ordering import ordering_matrix, proposal_log_prob
from ..config import require_count
from ..data.batch import GraphBatch
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import DatasetError
from ..graph import SimpleGraph
from ..records import Record, mean_with_error
from ..rng import stream
from ..training.checkpoint import TrainedModel
from .annealed import AnnealedPath
from .estimate import DEFAULTS, NLLOptions
from .importance import graph_log_weights, order_log_weights
from .proposal import standard_normal
from .psis import needs_annealing, smooth_weights

__all__ = ["BDMCEstimate", "GraphBDMC", "bdmc_nll", "iterate_bdmc", "lower_bound", "summarise_bdmc"]


@dataclass(frozen=True)
class GraphBDMC(Record):
    """Bounds on the NLL of one graph sampled from the model, in nats.

    Attributes:
        lower: The lower bound on -log p(A|n), from proposals and the true posterior sample.
        upper: The upper bound, from proposals alone: annealed chains, or node orderings of an autoregressive model.
        importance: The estimate of method ``is``, whose weights have the Pareto shape ``khat``.
        anneals: Whether the model has a method ``ais``, which an autoregressive one has not.
    """

    nodes: int
    edges: int
    lower: float
    upper: float
    importance: float
    khat: float | None
    anneals: bool = True

    @property
    def auto(self) -> float:
        """The estimate of method ``auto``, which is ``is`` for an autoregressive model."""
        return self.upper if self.anneals and needs_annealing(self.khat) else self.importance


@dataclass(frozen=True)
class BDMCEstimate(Record):
    """Bounds on the mean NLL of graphs sampled from the model, in nats per graph.

    Attributes:
        samples: Proposals per graph of importance sampling.
        chains: Annealed chains per graph, in either direction; None for an autoregressive model, as are ``steps``.
        gap: The mean of upper minus lower.
        gap_standard_error: Its standard error over graphs; None for a single graph.
        importance: The mean estimate of method ``is``; ``auto`` is that of method ``auto``.
        importance_distance: The distance of ``importance`` from the interval of the bounds, positive above it.
    """

    model: str
    graphs: int
    samples: int
    chains: int | None
    steps: int | None
    lower: float
    upper: float
    gap: float
    gap_standard_error: float | None
    largest_gap: float
    importance: float
    auto: float
    importance_distance: float
    auto_distance: float
    per_graph: tuple[GraphBDMC, ...]


def bdmc_nll(
    model: TrainedModel, graphs: int = 20, options: NLLOptions = DEFAULTS, *, features: Sequence[SimpleGraph] = ()
) -> BDMCEstimate:
    """Bound the mean NLL of graphs sampled from the model; the arguments are those of :func:`iterate_bdmc`."""
    options = options.for_model(model)

    return summarise_bdmc(model.name, options, list(iterate_bdmc(model, graphs, options, features=features)))


def iterate_bdmc(
    model: TrainedModel,
    graphs: int = 20,
    options: NLLOptions = DEFAULTS,
    *,
    features: Sequence[SimpleGraph] = (),
    group: ProcessGroup = SINGLE_PROCESS,
) -> Iterator[GraphBDMC]:
    """Bound the NLL of graphs sampled from the model, one at a time; rank 0 of the group gets the bounds.

    The node features of graphs in ``features`` condition a model with node features; they are used in turn. Conditions
    are those of training graphs, drawn as for samples.
    """
    require_count("graphs", graphs)
    options = options.for_model(model)
    width = model.config.node_features
    if width and not features:
        raise DatasetError(f"'{model.name}' samples edges given {width} node features: pass graphs that have them.")
    bounds = _autoregressive_bounds if model.config.is_autoregressive else _one_shot_bounds

    yield from group.gather_in_order(
        graphs, lambda index: bounds(model, index, options, features[index % len(features)] if width else None)
    )


def _one_shot_bounds(model: TrainedModel, index: int, options: NLLOptions, features: SimpleGraph | None) -> GraphBDMC:
    """The bounds of one graph by annealed chains in both directions."""
    samples = options.samples or 0
    # The names of random streams are kept, because they determine the random numbers.
    batch, z = _simulate(model, stream(options.seed, "sandwich graph", index), features)
    rng = stream(options.seed, "sandwich", index)
    path = AnnealedPath.prepare(model.network, batch, options.steps, rng)
    forward = path.forward(options.chains, rng)
    true, ends = path.reverse(z[0], options.chains, rng)
    plain = smooth_weights(graph_log_weights(model.network, batch, samples, options.seed, index).numpy())

    return GraphBDMC(
        nodes=z.shape[1],
        edges=int(torch.count_nonzero(batch.adj[0].triu(1))),
        lower=lower_bound(true, path.beside(forward, ends, rng)),
        upper=-_log_mean(forward),
        importance=-plain.log_mean,
        khat=plain.khat,
    )


@torch.no_grad()
def _autoregressive_bounds(
    model: TrainedModel, index: int, options: NLLOptions, features: SimpleGraph | None
) -> GraphBDMC:
    """The bounds of one graph by node orderings, with the one it was sampled in among them."""
    rng = stream(options.seed, "growth bounds", index)
    batch, z = _simulate(model, rng, features)
    nodes = batch.adj.shape[-1]
    order, adj = np.arange(nodes)[None], ordering_matrix(batch, model.config)
    log_q = proposal_log_prob(adj, np.array([nodes]), model.config.ordering, order, rng)
    true = order_log_weights(model.network, batch, order, log_q, rng, z)
    proposed = graph_log_weights(model.network, batch, options.samples or 0, options.seed, index)
    plain = smooth_weights(proposed.numpy())

    return GraphBDMC(
        nodes=nodes,
        edges=int(batch.adj.sum()) // 2,
        lower=lower_bound(true, proposed[1:]),
        upper=-_log_mean(proposed),
        importance=-plain.log_mean,
        khat=plain.khat,
        anneals=False,
    )


@torch.no_grad()
def _simulate(model: TrainedModel, rng: np.random.Generator, given: SimpleGraph | None) -> tuple[GraphBatch, Tensor]:
    """Sample a graph as a batch of one, in the order of decoding, with its latents of shape :math:`(1, N, D)`."""
    network, device = model.network, model.device
    nodes = int(model.sizes.sample(1, rng)[0]) if given is None else given.nodes
    features = np.zeros((nodes, 0)) if given is None or given.features is None else given.features
    is_ordered, like = model.config.is_autoregressive, next(network.parameters())
    x = torch.from_numpy(rng.permutation(features) if is_ordered else np.asarray(features)).to(like).unsqueeze(0)
    z = standard_normal(rng, like, 1, nodes, model.config.latent)
    mask = torch.ones(1, nodes, dtype=torch.bool, device=device)
    uniform = torch.from_numpy(rng.random((1, nodes, nodes))).to(like)
    if not is_ordered:
        return GraphBatch(network.decode(z, x, mask).sample(uniform), mask, x), z
    conditions = model.schema.conditions
    if conditions.each:
        own = torch.from_numpy(conditions.encode(conditions.draw({}, np.array([nodes]), rng)[0]))
        x = torch.cat([x, own.to(like).expand(1, nodes, -1)], -1)
    graphs = network.decode_autoregressive(z, x, torch.tensor([nodes], device=device))
    noise = AttributeNoise.sample(graphs.decoder.attributes, (1, nodes), rng)

    return graphs.sample_graphs(uniform, noise=noise.to(device)), z


def lower_bound(true: Tensor, others: Tensor) -> float:
    r"""A lower bound, in expectation, on the NLL of a graph, from the weight of an exact posterior sample.

    .. math:: E\left[\frac{K}{w_{true} + \sum_{k=2}^{K} w_k}\right] = \frac{1}{p(A)}

    (Sobolev & Vetrov, 2019; for annealed chains Brekelmans et al., 2022), so the logarithm of a mean over several exact
    samples, with shape :math:`(J,)`, stays below :math:`-\log p(A)` in expectation. Each is combined with other
    proposals, with shape :math:`(K - 1,)` or :math:`(J, K - 1)`.
    """
    among = torch.cat([true.unsqueeze(-1), others.expand(len(true), -1)], dim=-1)

    return _log_mean(math.log(among.shape[-1]) - among.logsumexp(-1))


def _log_mean(log_weights: Tensor) -> float:
    """The logarithm of the mean weight, not smoothed: PSIS would not be a bound."""
    return float(log_weights.logsumexp(0)) - math.log(len(log_weights))


def summarise_bdmc(model: str, options: NLLOptions, rows: Sequence[GraphBDMC]) -> BDMCEstimate:
    """Average the bounds over graphs; the arguments are those of :func:`.summarise`."""
    assert options.samples is not None, "options are resolved for a model"
    lower, upper, importance, auto = (
        float(np.mean([getattr(row, name) for row in rows])) for name in ("lower", "upper", "importance", "auto")
    )
    gap, error = mean_with_error([row.upper - row.lower for row in rows])
    anneals = all(row.anneals for row in rows)

    def distance(value: float) -> float:
        # Noise may have swapped the bounds.
        return value - float(np.clip(value, min(lower, upper), max(lower, upper)))

    return BDMCEstimate(
        model=model,
        graphs=len(rows),
        samples=options.samples,
        chains=options.chains if anneals else None,
        steps=options.steps if anneals else None,
        lower=lower,
        upper=upper,
        gap=gap,
        gap_standard_error=error,
        largest_gap=max(row.upper - row.lower for row in rows),
        importance=importance,
        auto=auto,
        importance_distance=distance(importance),
        auto_distance=distance(auto),
        per_graph=tuple(rows),
    )
