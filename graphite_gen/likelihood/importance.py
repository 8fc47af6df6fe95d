"""Importance sampling from the encoder (eq. 4) and over orders, graph by graph, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..autoregressive.distribution import Schedule
from ..autoregressive.ordering import permute_nodes, propose_orderings
from ..data.batch import GraphBatch
from ..rng import stream
from ..training.model import GraphNetwork
from ..training.objectives import autoregressive_log_weights, log_weights
from .proposal import standard_normal

__all__ = ["block_size", "graph_log_weights", "order_log_weights"]

# Proposals of one block: a mixture of MIXTURE encoders, each with its own random features. Blocks are the same
# whatever the machine, so that an estimate never depends on how it was cut.
BLOCK = 256
MIXTURE = 16
BLOCK_CELLS = 1 << 24


def block_size(nodes: int) -> int:
    """How many proposals for a graph of some nodes are scored together."""
    return max(1, min(BLOCK, BLOCK_CELLS // max(nodes, 1) ** 2))


def _blocks(samples: int, nodes: int) -> Iterator[tuple[int, int]]:
    """Cut the proposals into blocks of M mixture components with S samples each."""
    largest = block_size(nodes)
    left = samples
    while left:
        take = min(largest, left)
        mixture = min(MIXTURE, take)
        yield mixture, take // mixture
        left -= mixture * (take // mixture)


@torch.no_grad()
def graph_log_weights(
    network: GraphNetwork,
    batch: GraphBatch,
    samples: int,
    seed: int,
    index: int,
    convention: str = "pairs",
    schedule: Schedule | None = None,
    any_order: float = 0.0,
) -> Tensor:
    """The log-weights of one graph, in double precision, with shape :math:`(K,)`.

    Those of a staged model are over the orders that its rule can give, so that their mean is a bound, and all but the
    law where the model keeps to its rule; with some orders by no rule it is the law itself.

    Arguments:
        network: The model.
        batch: A batch of that one graph.
        samples: The number of proposals :math:`K`.
        seed: The run's seed.
        index: The number of the graph, which names its random stream.
        convention: ``pairs`` or ``paper``.
        schedule: The stages of a staged model; None for its default.
        any_order: The part of a staged model's orders that follow no rule.
    """
    if network.config.is_autoregressive:
        schedule = schedule or Schedule(network.config.decoding_steps)
        return _autoregressive_log_weights(network, batch, samples, seed, index, schedule, any_order)
    nodes = batch.mask.shape[-1]
    weights = []
    for number, (mixture, each) in enumerate(_blocks(samples, nodes)):
        rng = stream(seed, "nll", index, number)
        noise = standard_normal(rng, batch.adj, mixture, 1, nodes, network.noise_features)
        epsilon = standard_normal(rng, batch.adj, mixture, each, 1, nodes, network.config.latent)
        weights.append(log_weights(network, batch, noise, epsilon, convention)[:, 0].double().cpu())

    return torch.cat(weights)


def _autoregressive_log_weights(
    network: GraphNetwork,
    batch: GraphBatch,
    samples: int,
    seed: int,
    index: int,
    schedule: Schedule,
    any_order: float,
) -> Tensor:
    """The same of a staged model: each proposal is an order of arrival, and latents."""
    nodes = batch.mask.shape[-1]
    largest = block_size(nodes)
    weights = []
    for number, start in enumerate(range(0, samples, largest)):
        count = min(largest, samples - start)
        rng = stream(seed, "nll", index, number)
        adj = np.repeat(batch.adj.cpu().numpy() > 0, count, 0)
        orders, log_q = propose_orderings(adj, np.full(count, nodes), network.config.ordering, rng, any_order)
        weights.append(order_log_weights(network, batch, orders, log_q, schedule, rng))

    return torch.cat(weights)


@torch.no_grad()
def order_log_weights(
    network: GraphNetwork,
    batch: GraphBatch,
    orders: NDArray[np.int64],
    log_q: NDArray[np.float64],
    schedule: Schedule,
    rng: np.random.Generator,
    z: Tensor | None = None,
) -> Tensor:
    """The log-weights of orders of one graph, in double precision, with shape :math:`(K,)`.

    Arguments:
        network: A staged model.
        batch: A batch of that one graph, without dummy nodes.
        orders: The node at each place, with shape :math:`(K, N)`.
        log_q: The log-probabilities of the orders, with shape :math:`(K,)`.
        schedule: Which pairs are decided at once.
        rng: The randomness of the encoder's features and of the latents.
        z: Latents in these orders, with shape :math:`(K, N, D)`; None draws them from the encoder.
    """
    count, nodes = orders.shape
    many = GraphBatch(*(part.expand(count, *part.shape[1:]) for part in (batch.adj, batch.mask, batch.x)))
    ordered = permute_nodes(many, torch.from_numpy(orders).to(batch.adj.device))
    # Each proposal has random features of its own and is weighed by them alone: unbiased, as they are drawn alike
    # whatever the latents. Dividing by a mixture of encoders, as in one stage, would be tighter and cost one more pass.
    noise = standard_normal(rng, batch.adj, count, nodes, network.noise_features)
    if z is None:
        epsilon = standard_normal(rng, batch.adj, count, nodes, network.config.latent)
    else:
        posterior = network.encode(ordered, noise)
        epsilon = (z - posterior.mu) / posterior.sigma
    log_weights = autoregressive_log_weights(
        network, ordered, noise, epsilon, torch.from_numpy(log_q).to(batch.adj), schedule
    )

    return log_weights.double().cpu()
