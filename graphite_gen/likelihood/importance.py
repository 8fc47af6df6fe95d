"""Importance sampling over latents (eq. 4) and node orderings, graph by graph, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..autoregressive.ordering import SOFT_FRACTION, ordering_matrix, propose_orderings
from ..data.batch import GraphBatch
from ..rng import stream
from ..training.model import GraphNetwork
from ..training.objectives import autoregressive_log_weights, log_weights
from .proposal import standard_normal

__all__ = ["block_size", "graph_log_weights", "order_log_weights"]

# Proposals per block: a mixture of MIXTURE encoders, each with its own random features. Blocks do not depend on the
# machine, so neither do estimates.
BLOCK = 256
MIXTURE = 16
BLOCK_CELLS = 1 << 24
AUTOREGRESSIVE_CELLS = 1 << 21
# The fraction of latents that are proposed by the prior, which bounds the weights where the encoder is overconfident.
PRIOR_FRACTION = 0.1


def block_size(nodes: int, is_autoregressive: bool = False) -> int:
    """The number of proposals that are scored together, for a graph of some size."""
    cells = AUTOREGRESSIVE_CELLS if is_autoregressive else BLOCK_CELLS

    return max(1, min(BLOCK, cells // max(nodes, 1) ** 2))


def _blocks(samples: int, nodes: int) -> Iterator[tuple[int, int]]:
    """Split the proposals into blocks of M mixture components with S samples each."""
    left = samples
    while left:
        take = min(block_size(nodes), left)
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
    soft_fraction: float = SOFT_FRACTION,
) -> Tensor:
    """The log-weights of one graph, in double precision, with shape :math:`(K,)`; the mean weight is p(A).

    Those of an autoregressive model are over node orderings, a fraction of which follow a softened rule that gives
    every ordering (:func:`.propose_orderings`). The seed and the index of the graph name its random stream.
    """
    nodes, weights = batch.mask.shape[-1], []
    if network.config.is_autoregressive:
        largest = block_size(nodes, is_autoregressive=True)
        for number, start in enumerate(range(0, samples, largest)):
            count = min(largest, samples - start)
            rng = stream(seed, "nll", index, number)
            adj = np.repeat(ordering_matrix(batch, network.config), count, 0)
            orders, log_q = propose_orderings(adj, np.full(count, nodes), network.config.ordering, rng, soft_fraction)
            weights.append(order_log_weights(network, batch, orders, log_q, rng))
        return torch.cat(weights)
    for number, (mixture, each) in enumerate(_blocks(samples, nodes)):
        rng = stream(seed, "nll", index, number)
        noise = standard_normal(rng, batch.adj, mixture, 1, nodes, network.noise_features)
        epsilon = standard_normal(rng, batch.adj, mixture, each, 1, nodes, network.config.latent)
        weights.append(log_weights(network, batch, noise, epsilon, convention)[:, 0].double().cpu())

    return torch.cat(weights)


@torch.no_grad()
def order_log_weights(
    network: GraphNetwork,
    batch: GraphBatch,
    orders: NDArray[np.int64],
    log_q: NDArray[np.float64],
    rng: np.random.Generator,
    z: Tensor | None = None,
) -> Tensor:
    """The log-weights of given node orderings of one graph, in double precision, with shape :math:`(K,)`.

    The batch has no padding. ``orders`` has the node at each position, with shape :math:`(K, N)`; ``z`` the latents in
    these orderings, with shape :math:`(K, N, D)`, or None to sample them from the encoder.
    """
    count, nodes = orders.shape
    many = batch.each(lambda part: part.expand(count, *part.shape[1:]))
    ordered = many.reordered(torch.from_numpy(orders).to(batch.adj.device))
    # Each proposal has its own random features and is weighted by that encoder alone, which is unbiased. Dividing by a
    # mixture of encoders, as for one-shot models, would be tighter and cost another pass.
    noise = standard_normal(rng, batch.adj, count, nodes, network.noise_features)
    from_prior = None
    if z is None:
        epsilon = standard_normal(rng, batch.adj, count, nodes, network.config.latent)
        from_prior = torch.from_numpy(rng.random(count) < PRIOR_FRACTION).to(batch.adj.device)
    else:
        posterior = network.encode(ordered, noise)
        epsilon = (z - posterior.mu) / posterior.sigma
    log_weights = autoregressive_log_weights(
        network,
        ordered,
        noise,
        epsilon,
        torch.from_numpy(log_q).to(batch.adj.device),
        prior_fraction=PRIOR_FRACTION,
        from_prior=from_prior,
    )

    return log_weights.double().cpu()
