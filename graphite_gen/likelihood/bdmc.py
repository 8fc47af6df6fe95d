r"""Bidirectional Monte Carlo (Grosse et al., 2015): the NLL between two bounds.

A graph that the model drew itself comes with an exact sample of its posterior: the latents it was decoded from.
Annealed chains from the proposal bound the NLL from above; with a chain from those latents back to the proposal among
them they bound it from below (Brekelmans et al., 2022), with less noise than such chains alone. Where the bounds meet,
the estimate between them is right, whatever any diagnostic says.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..autoregressive.distribution import Schedule
from ..autoregressive.ordering import UNIFORM_FRACTION, proposal_log_prob
from ..data.batch import GraphBatch
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import ConfigError, DatasetError
from ..graph import SimpleGraph
from ..records import Record, mean_with_error
from ..rng import stream
from ..training.checkpoint import TrainedModel
from .annealed import CHAINS, STEPS, AnnealedPath
from .estimate import check_model
from .importance import graph_log_weights, order_log_weights
from .proposal import standard_normal
from .psis import needs_annealing, smooth_weights

__all__ = [
    "BDMCEstimate",
    "GraphBDMC",
    "autoregressive_bounds",
    "bdmc_nll",
    "iterate_bdmc",
    "join_bdmc",
    "log_mean",
    "lower_bound",
]


@dataclass(frozen=True)
class GraphBDMC(Record):
    """The bounds of one graph that the model drew, in nats.

    Attributes:
        nodes: Its number of nodes.
        edges: Its number of pairs that are not zero.
        lower: The lower bound on -log p(A|n), by proposals with the truth among them.
        upper: The upper bound, by the proposals alone: what method ``ais`` gives; of a staged model, which has no such
            method, by orders of which a few follow no rule.
        importance: What method ``is`` gives.
        khat: The Pareto shape of the weights of ``is``; None where there are too few to tell.
        anneals: Whether the model has a method ``ais``, which a staged one has not.
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
        """What method ``auto`` gives: that of a staged model is ``is``, however poor its weights are."""
        return self.upper if self.anneals and needs_annealing(self.khat) else self.importance


def log_mean(log_weights: Tensor) -> float:
    """The logarithm of the plain mean of weights: smoothed, it would be no bound."""
    return float(log_weights.logsumexp(0)) - math.log(len(log_weights))


def lower_bound(true: Tensor, others: Tensor) -> float:
    r"""A lower bound, in expectation, on the NLL of a graph, from a weight of the truth among those of proposals.

    .. math:: E\left[\frac{K}{w_{true} + \sum_{k=2}^{K} w_k}\right] = \frac{1}{p(A)}

    (Sobolev & Vetrov, 2019; of annealed chains, Brekelmans et al., 2022), so that the logarithm of a mean over several
    weights of the truth stays below :math:`-\log p(A)` in expectation.

    Arguments:
        true: Log-weights of exact posterior samples, with shape :math:`(J,)`.
        others: Log-weights of the proposals beside each, with shape :math:`(K - 1,)` or :math:`(J, K - 1)`.
    """
    among = torch.cat([true.unsqueeze(-1), others.expand(len(true), -1)], dim=-1)

    return log_mean(math.log(among.shape[-1]) - among.logsumexp(-1))


@torch.no_grad()
def autoregressive_bounds(
    model: TrainedModel,
    index: int,
    seed: int,
    samples: int,
    schedule: Schedule,
    evidence: SimpleGraph | None = None,
) -> GraphBDMC:
    """The bounds of a graph that a staged model grows.

    Arguments:
        model: A staged model.
        index: Which graph to grow.
        seed: The run's seed.
        samples: Orders and latents proposed.
        schedule: Which pairs are decided at once.
        evidence: A graph whose node features condition the model.
    """
    rng = stream(seed, "growth bounds", index)
    grown, z = _grow(model, schedule, rng, evidence)
    true = _true_log_weight(model, schedule, grown, z, rng)
    proposed = graph_log_weights(
        model.network, grown, samples, seed, index, schedule=schedule, any_order=UNIFORM_FRACTION
    )
    # Method 'is' keeps to the orders of the rule, and is held against the bounds as it is.
    plain = smooth_weights(graph_log_weights(model.network, grown, samples, seed, index, schedule=schedule).numpy())

    return GraphBDMC(
        nodes=grown.adj.shape[-1],
        edges=int(grown.adj.sum()) // 2,
        lower=lower_bound(true, proposed[1:]),
        upper=-log_mean(proposed),
        importance=-plain.log_mean,
        khat=plain.khat,
        anneals=False,
    )


def _grow(
    model: TrainedModel, schedule: Schedule, rng: np.random.Generator, evidence: SimpleGraph | None
) -> tuple[GraphBatch, Tensor]:
    """A graph of the model in order of arrival, as a batch of one, and its latents, with shape :math:`(1, N, D)`."""
    nodes = int(model.sizes.sample(1, rng)[0]) if evidence is None else evidence.nodes
    like = next(model.network.parameters())
    features = np.zeros((nodes, 0)) if evidence is None or evidence.features is None else evidence.features
    x = torch.from_numpy(rng.permutation(features)).to(like).unsqueeze(0)
    z = standard_normal(rng, like, 1, nodes, model.config.latent)
    law = model.network.decode_autoregressive(z, x, torch.tensor([nodes], device=like.device), schedule)
    adj = law.sample(torch.from_numpy(rng.random((1, nodes, nodes))).to(like))

    return GraphBatch(adj, torch.ones(1, nodes, dtype=torch.bool, device=like.device), x), z


def _true_log_weight(
    model: TrainedModel, schedule: Schedule, grown: GraphBatch, z: Tensor, rng: np.random.Generator
) -> Tensor:
    """The log-weight of the order and the latents that the graph was grown with, with shape :math:`(1,)`."""
    nodes = grown.adj.shape[-1]
    order = np.arange(nodes)[None]
    log_q = proposal_log_prob(
        grown.adj.cpu().numpy() > 0, np.array([nodes]), model.config.ordering, order, rng, UNIFORM_FRACTION
    )

    return order_log_weights(model.network, grown, order, log_q, schedule, rng, z)


@dataclass(frozen=True)
class BDMCEstimate(Record):
    """Bounds on the mean NLL of graphs that the model drew, in nats per graph.

    Attributes:
        model: The model's name.
        graphs: The number of graphs.
        samples: The proposals per graph of importance sampling.
        chains: The annealed chains per graph, in either direction; None of a staged model, which has none.
        steps: The temperatures of each chain; None likewise.
        lower: The mean lower bound.
        upper: The mean upper bound, which is what method ``ais`` gives where there is one.
        gap: The mean of upper less lower.
        gap_standard_error: Its standard error over graphs; None for a single graph.
        largest_gap: The largest gap of a graph.
        importance: What method ``is`` gives, in the mean.
        auto: What method ``auto`` gives, in the mean.
        importance_distance: How far ``importance`` lies outside of the bounds: above them where it is positive, 0
            within them.
        auto_distance: The same of ``auto``.
        per_graph: The bounds of each graph.
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
    model: TrainedModel,
    graphs: int = 20,
    seed: int = 0,
    *,
    samples: int = 1000,
    chains: int = CHAINS,
    steps: int = STEPS,
    evidence: Sequence[SimpleGraph] = (),
    decoding_steps: int | None = None,
) -> BDMCEstimate:
    """Bounds on the mean NLL of graphs that the model draws itself.

    Arguments:
        model: A variational model.
        graphs: How many graphs to draw.
        seed: The run's seed.
        samples: Proposals per graph of importance sampling, to be held against the bounds.
        chains: Annealed chains per graph, in either direction.
        steps: Temperatures of each chain.
        evidence: Graphs whose node features condition the model, used in turn; only for models that read some.
        stages: The stages of a staged model; None for its default. Chains and steps have no use there.

    Raises:
        ConfigError: A count is not positive.
        DatasetError: The model has no likelihood, or needs evidence.
    """
    rows = list(
        iterate_bdmc(
            model,
            graphs,
            seed,
            samples=samples,
            chains=chains,
            steps=steps,
            evidence=evidence,
            decoding_steps=decoding_steps,
        )
    )

    return join_bdmc(model.name, samples, chains, steps, rows)


def iterate_bdmc(
    model: TrainedModel,
    graphs: int = 20,
    seed: int = 0,
    *,
    samples: int = 1000,
    chains: int = CHAINS,
    steps: int = STEPS,
    evidence: Sequence[SimpleGraph] = (),
    decoding_steps: int | None = None,
    group: ProcessGroup = SINGLE_PROCESS,
) -> Iterator[GraphBDMC]:
    """The bounds of :func:`sandwich_nll`, graph by graph, gathered on rank 0."""
    for name, count in (("graphs", graphs), ("samples", samples), ("chains", chains), ("steps", steps)):
        if count < 1:
            raise ConfigError(f"'{name}' is {count}; it should be at least 1.")
    check_model(model)
    width = model.config.node_features
    if width and not evidence:
        raise DatasetError(f"'{model.name}' draws edges given {width} node features. Pass graphs that have them.")
    schedule = (
        Schedule(model.config.decoding_steps if decoding_steps is None else decoding_steps)
        if model.config.is_autoregressive
        else None
    )

    def bound(index: int) -> GraphBDMC:
        given = evidence[index % len(evidence)] if width else None
        if schedule is not None:
            return autoregressive_bounds(model, index, seed, samples, schedule, given)
        batch, z = _draw(model, seed, index, given)
        rng = stream(seed, "sandwich", index)
        path = AnnealedPath.prepare(model.network, batch, steps, rng)
        forward = path.forward(chains, rng)
        true, ends = path.reverse(z, chains, rng)
        plain = smooth_weights(graph_log_weights(model.network, batch, samples, seed, index).numpy())

        return GraphBDMC(
            nodes=len(z),
            edges=int(torch.count_nonzero(batch.adj[0].triu(1))),
            lower=lower_bound(true, path.beside(forward, ends, rng)),
            upper=-log_mean(forward),
            importance=-plain.log_mean,
            khat=plain.khat,
        )

    yield from group.gather_in_order(graphs, bound)


@torch.no_grad()
def _draw(model: TrainedModel, seed: int, index: int, evidence: SimpleGraph | None) -> tuple[GraphBatch, Tensor]:
    """A graph of the model as a batch of one, and the latents it was decoded from, with shape :math:`(N, D)`."""
    network, device = model.network, model.device
    rng = stream(seed, "sandwich graph", index)
    nodes = int(model.sizes.sample(1, rng)[0]) if evidence is None else evidence.nodes
    features = np.zeros((nodes, 0)) if evidence is None or evidence.features is None else evidence.features
    mask = torch.ones(1, nodes, dtype=torch.bool, device=device)
    like = next(network.parameters())
    x = torch.from_numpy(np.asarray(features)).to(like).unsqueeze(0)
    z = standard_normal(rng, like, 1, nodes, model.config.latent)
    adj = network.decode(z, x, mask).sample(torch.from_numpy(rng.random((1, nodes, nodes))).to(like))

    return GraphBatch(adj, mask, x), z[0]


def join_bdmc(model: str, samples: int, chains: int, steps: int, rows: Sequence[GraphBDMC]) -> BDMCEstimate:
    """The means over graphs."""
    lower, upper, importance, auto = (
        float(np.mean([getattr(row, name) for row in rows])) for name in ("lower", "upper", "importance", "auto")
    )
    gap, error = mean_with_error([row.upper - row.lower for row in rows])
    anneals = all(row.anneals for row in rows)

    return BDMCEstimate(
        model=model,
        graphs=len(rows),
        samples=samples,
        chains=chains if anneals else None,
        steps=steps if anneals else None,
        lower=lower,
        upper=upper,
        gap=gap,
        gap_standard_error=error,
        largest_gap=max(row.upper - row.lower for row in rows),
        importance=importance,
        auto=auto,
        importance_distance=_distance(importance, lower, upper),
        auto_distance=_distance(auto, lower, upper),
        per_graph=tuple(rows),
    )


def _distance(value: float, lower: float, upper: float) -> float:
    """How far a value lies outside of two bounds, which noise may have swapped; positive above them."""
    low, high = sorted((lower, upper))

    return value - min(max(value, low), high)
