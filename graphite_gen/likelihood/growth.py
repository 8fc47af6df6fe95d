r"""Two-sided bounds on the NLL of a staged model.

A graph that the model grew itself comes with an exact sample of its posterior: the order its nodes came in and their
latents. Averaging the weights of proposals alone bounds the NLL from above; averaging them with that of the true order
among them bounds it from below (both in expectation; Sobolev & Vetrov, 2019).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..arrival import in_order
from ..batch import GraphBatch
from ..checkpoint import TrainedModel
from ..graph import SimpleGraph
from ..objectives import growth_log_weights
from ..orders import draw_loose_orders, loose_log_prob
from ..schedule import Schedule
from ..seeding import stream
from .bounds import GraphSandwich, log_mean
from .diagnostics import smooth_weights
from .importance import BLOCK, graph_log_weights
from .proposal import standard_normal

__all__ = ["growth_bounds"]


@torch.no_grad()
def growth_bounds(
    model: TrainedModel,
    graphs: int,
    seed: int,
    samples: int,
    schedule: Schedule,
    evidence: Sequence[SimpleGraph] = (),
) -> Iterator[GraphSandwich]:
    """The bounds of graphs that a staged model grows, one by one.

    Arguments:
        model: A staged model.
        graphs: How many to grow.
        seed: The run's seed.
        samples: Orders and latents proposed per graph.
        schedule: Which pairs are decided at once.
        evidence: Graphs whose node features condition the model, used in turn.
    """
    for index in range(graphs):
        rng = stream(seed, "growth bounds", index)
        grown, z = _grow(model, schedule, rng, evidence[index % len(evidence)] if evidence else None)
        true = _log_weights(model, schedule, grown, _as_grown(grown), rng, z)
        blocks = [min(BLOCK, samples - start) for start in range(0, samples, BLOCK)]
        proposed = torch.cat(
            [_log_weights(model, schedule, grown, _any_orders(model, grown, count, rng), rng) for count in blocks]
        )
        plain = smooth_weights(graph_log_weights(model.network, grown, samples, seed, index, schedule=schedule).numpy())
        yield GraphSandwich(
            nodes=grown.adj.shape[-1],
            edges=int(grown.adj.sum()) // 2,
            lower=-log_mean(torch.cat([true, proposed[1:]])),
            upper=-log_mean(proposed),
            importance=-plain.log_mean,
            khat=plain.khat,
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
    law = model.network.grow(z, x, torch.tensor([nodes], device=like.device), schedule)
    adj = law.sample(torch.from_numpy(rng.random((1, nodes, nodes))).to(like))

    return GraphBatch(adj, torch.ones(1, nodes, dtype=torch.bool, device=like.device), x), z


def _as_grown(grown: GraphBatch) -> NDArray[np.int64]:
    return np.arange(grown.adj.shape[-1])[None]


def _any_orders(model: TrainedModel, grown: GraphBatch, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Orders by the model's rule, a few of them by none, with shape :math:`(K, N)`."""
    nodes = grown.adj.shape[-1]
    adj = np.repeat(grown.adj.cpu().numpy() > 0, count, 0)

    return draw_loose_orders(adj, np.full(count, nodes), model.config.order, rng)


def _log_weights(
    model: TrainedModel,
    schedule: Schedule,
    grown: GraphBatch,
    orders: NDArray[np.int64],
    rng: np.random.Generator,
    z: Tensor | None = None,
) -> Tensor:
    """The log-weights of orders, with latents from the proposal or given ones, with shape :math:`(K,)`."""
    network, count, nodes = model.network, *orders.shape
    many = GraphBatch(*(part.expand(count, *part.shape[1:]) for part in (grown.adj, grown.mask, grown.x)))
    adj, sizes = many.adj.cpu().numpy() > 0, np.full(count, nodes)
    log_q = torch.from_numpy(loose_log_prob(adj, sizes, model.config.order, orders)).to(grown.adj)
    batch = in_order(many, torch.from_numpy(orders).to(grown.adj.device))
    noise = standard_normal(rng, grown.adj, count, nodes, network.noise_features)
    epsilon = standard_normal(rng, grown.adj, count, nodes, model.config.latent)
    if z is not None:
        posterior = network.encode(batch, noise)
        epsilon = (z - posterior.mu) / posterior.sigma

    return growth_log_weights(network, batch, noise, epsilon, log_q, schedule).double().cpu()
