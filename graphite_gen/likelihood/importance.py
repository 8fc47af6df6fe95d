"""Importance sampling from the encoder (eq. 4), graph by graph, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ..batch import GraphBatch
from ..models import GraphNetwork
from ..objectives import log_weights
from ..seeding import stream
from .proposal import standard_normal

__all__ = ["graph_log_weights"]

# Proposals of one block: a mixture of MIXTURE encoders, each with its own random features. Blocks are the same
# whatever the machine, so that an estimate never depends on how it was cut.
BLOCK = 256
MIXTURE = 16
BLOCK_CELLS = 1 << 24


def _blocks(samples: int, nodes: int) -> Iterator[tuple[int, int]]:
    """Cut the proposals into blocks of M mixture components with S samples each."""
    largest = max(1, min(BLOCK, BLOCK_CELLS // max(nodes, 1) ** 2))
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
) -> Tensor:
    """The log-weights of one graph, in double precision, with shape :math:`(K,)`.

    Arguments:
        network: The model.
        batch: A batch of that one graph.
        samples: The number of proposals :math:`K`.
        seed: The run's seed.
        index: The number of the graph, which names its random stream.
        convention: ``pairs`` or ``paper``.
    """
    nodes = batch.mask.shape[-1]
    weights = []
    for number, (mixture, each) in enumerate(_blocks(samples, nodes)):
        rng = stream(seed, "nll", index, number)
        noise = standard_normal(rng, batch.adj, mixture, 1, nodes, network.noise_features)
        epsilon = standard_normal(rng, batch.adj, mixture, each, 1, nodes, network.config.latent)
        weights.append(log_weights(network, batch, noise, epsilon, convention)[:, 0].double().cpu())

    return torch.cat(weights)
