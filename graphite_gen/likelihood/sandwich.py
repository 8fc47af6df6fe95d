r"""Bidirectional Monte Carlo (Grosse et al., 2015): the NLL between two bounds.

A graph that the model drew itself comes with an exact sample of its posterior: the latents it was decoded from.
Annealed chains from the proposal bound the NLL from above; with a chain from those latents back to the proposal among
them they bound it from below (Brekelmans et al., 2022), with less noise than such chains alone. Where the bounds meet,
the estimate between them is right, whatever any diagnostic says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from ..batch import GraphBatch
from ..checkpoint import TrainedModel
from ..crew import ALONE, Crew
from ..errors import ConfigError, DatasetError
from ..graph import SimpleGraph
from ..means import mean_with_error
from ..parcels import pack_record, unpack_record
from ..records import Record
from ..schedule import Schedule
from ..seeding import stream
from .annealed import CHAINS, STEPS, AnnealedPath
from .bounds import GraphSandwich, log_mean, lower_bound
from .diagnostics import smooth_weights
from .estimate import check_model
from .growth import growth_bounds
from .importance import graph_log_weights
from .proposal import standard_normal

__all__ = ["GraphSandwich", "Sandwich", "iterate_sandwich", "join_sandwich", "sandwich_nll"]


@dataclass(frozen=True)
class Sandwich(Record):
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
    per_graph: tuple[GraphSandwich, ...]


def sandwich_nll(
    model: TrainedModel,
    graphs: int = 20,
    seed: int = 0,
    *,
    samples: int = 1000,
    chains: int = CHAINS,
    steps: int = STEPS,
    evidence: Sequence[SimpleGraph] = (),
    stages: int | None = None,
) -> Sandwich:
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
        iterate_sandwich(
            model, graphs, seed, samples=samples, chains=chains, steps=steps, evidence=evidence, stages=stages
        )
    )

    return join_sandwich(model.name, samples, chains, steps, rows)


def iterate_sandwich(
    model: TrainedModel,
    graphs: int = 20,
    seed: int = 0,
    *,
    samples: int = 1000,
    chains: int = CHAINS,
    steps: int = STEPS,
    evidence: Sequence[SimpleGraph] = (),
    stages: int | None = None,
    crew: Crew = ALONE,
) -> Iterator[GraphSandwich]:
    """The bounds of :func:`sandwich_nll`, graph by graph; of a crew, for the process that leads."""
    for name, count in (("graphs", graphs), ("samples", samples), ("chains", chains), ("steps", steps)):
        if count < 1:
            raise ConfigError(f"'{name}' is {count}; it should be at least 1.")
    check_model(model)
    width = model.config.node_features
    if width and not evidence:
        raise DatasetError(f"'{model.name}' draws edges given {width} node features. Pass graphs that have them.")
    schedule = Schedule(model.config.stages if stages is None else stages) if model.config.is_staged else None

    def bound(index: int) -> GraphSandwich:
        given = evidence[index % len(evidence)] if width else None
        if schedule is not None:
            return growth_bounds(model, index, seed, samples, schedule, given)
        batch, z = _draw(model, seed, index, given)
        rng = stream(seed, "sandwich", index)
        path = AnnealedPath.prepare(model.network, batch, steps, rng)
        forward = path.forward(chains, rng)
        true, ends = path.reverse(z, chains, rng)
        plain = smooth_weights(graph_log_weights(model.network, batch, samples, seed, index).numpy())

        return GraphSandwich(
            nodes=len(z),
            edges=int(torch.count_nonzero(batch.adj[0].triu(1))),
            lower=lower_bound(true, path.beside(forward, ends, rng)),
            upper=-log_mean(forward),
            importance=-plain.log_mean,
            khat=plain.khat,
        )

    yield from crew.ordered(graphs, bound, pack_record, partial(unpack_record, GraphSandwich))


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


def join_sandwich(model: str, samples: int, chains: int, steps: int, rows: Sequence[GraphSandwich]) -> Sandwich:
    """The means over graphs."""
    lower, upper, importance, auto = (
        float(np.mean([getattr(row, name) for row in rows])) for name in ("lower", "upper", "importance", "auto")
    )
    gap, error = mean_with_error([row.upper - row.lower for row in rows])
    anneals = all(row.anneals for row in rows)

    return Sandwich(
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
