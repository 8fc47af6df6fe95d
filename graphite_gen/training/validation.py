"""The validation of a run: NLL and latents of held-out graphs, and the novelty of samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from ..autoregressive.ordering import permute_to_ordering
from ..config import TrainConfig
from ..data.batch import collate, consecutive_batches, node_mask
from ..data.encoded import EncodedGraph
from ..data.sizes import SizeDistribution
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..evaluation.activity import latent_activity
from ..evaluation.isomorphism import find_isomorphic
from ..graph import SimpleGraph
from ..rng import derive_seed, stream
from .checkpoint import TrainedModel
from .model import GraphNetwork
from .objectives import autoregressive_log_weights, log_likelihood, log_weights, reconstruction
from .step import BATCH_CELLS, normal_noise, padded_nodes

__all__ = [
    "measured_graphs",
    "novelty_samples",
    "sample_novelty",
    "validation_activity",
    "validation_nats",
    "validation_nll",
    "validation_parts",
]

VALIDATION_BATCH = 32
# Samples whose novelty is checked: fewer of large graphs, which are slower to sample.
SAMPLES, LEAST_SAMPLES, SAMPLED_NODES = 32, 8, 2000
# Graphs whose latents are examined, and the most cells of their padded matrices.
ENCODED, ENCODED_CELLS = 100, 1 << 18


def validation_nll(
    network: GraphNetwork,
    graphs: Sequence[SimpleGraph],
    training: TrainConfig,
    group: ProcessGroup = SINGLE_PROCESS,
    pause: Callable[[], None] = lambda: None,
) -> float:
    """The mean NLL by a few importance samples, or the reconstruction error of an autoencoder, in nats per graph.

    The noise is the same at every validation. The processes of a group share the work and all get the result; before
    each of their batches, all call ``pause``.
    """
    network.eval()
    parts = validation_parts(graphs, training)
    sums = [0.0] * len(parts)
    for first in range(0, len(parts), group.world_size):
        pause()
        for number in range(first + group.rank, len(parts), len(parts)):
            sums[number] = float(_validation_nats(network, graphs, training, *parts[number]).sum())
    network.train()

    return sum(group.all_reduce_sum(sums)) / len(graphs)


def validation_nats(model: TrainedModel, graphs: Sequence[SimpleGraph]) -> list[float]:
    """The terms of the mean :func:`validation_nll`, one for each graph."""
    nats = np.zeros(len(graphs))
    for start, indices in validation_parts(graphs, model.training):
        nats[indices] = _validation_nats(model.network, graphs, model.training, start, indices).cpu().numpy()

    return [float(value) for value in nats]


def validation_parts(graphs: Sequence[SimpleGraph], training: TrainConfig) -> list[tuple[int, list[int]]]:
    """The graphs that are scored together, and the rank by size of the first, which names their noise."""
    order = sorted(range(len(graphs)), key=lambda index: graphs[index].nodes)
    sizes = [graphs[index].nodes for index in order]
    parts, start = [], 0
    for count in consecutive_batches(sizes, VALIDATION_BATCH, BATCH_CELLS // training.validation_samples):
        parts.append((start, order[start : start + count]))
        start += count

    return parts


@torch.no_grad()
def _validation_nats(
    network: GraphNetwork, graphs: Sequence[SimpleGraph], training: TrainConfig, start: int, indices: list[int]
) -> Tensor:
    """The NLLs of graphs that are scored together, in double precision, with shape :math:`(B,)`."""
    device = next(network.parameters()).device
    batch = collate([graphs[index] for index in indices], padded_nodes(network.config, training)).to(device)
    generator = torch.Generator().manual_seed(derive_seed(training.seed, "validation", start))
    count, nodes = batch.mask.shape
    samples = training.validation_samples
    if network.config.is_autoregressive:
        rng, each = stream(training.seed, "validation orders", start), []
        for _ in range(samples):
            ordered, log_q = permute_to_ordering(batch, network.config, rng, is_unbiased=True)
            noise = normal_noise(generator, batch, count, nodes, network.noise_features)
            epsilon = normal_noise(generator, batch, count, nodes, network.config.latent)
            each.append(autoregressive_log_weights(network, ordered, noise, epsilon, log_q))
        values = torch.stack(each).logsumexp(0) - math.log(samples)
    elif network.config.is_variational:
        noise = normal_noise(generator, batch, samples, count, nodes, network.noise_features)
        epsilon = normal_noise(generator, batch, samples, 1, count, nodes, network.config.latent)
        weights = log_weights(network, batch, noise, epsilon, training.convention)
        values = weights.logsumexp(0) - math.log(samples)
    else:
        noise = normal_noise(generator, batch, count, nodes, network.noise_features)
        values = reconstruction(network, batch, noise, training.convention)

    return -values.double()


def measured_graphs(graphs: Sequence[SimpleGraph]) -> int:
    """The number of graphs whose latents are measured at a validation."""
    return next(consecutive_batches([graph.nodes for graph in graphs], ENCODED, ENCODED_CELLS))


@torch.no_grad()
def validation_activity(
    network: GraphNetwork, graphs: Sequence[SimpleGraph], training: TrainConfig
) -> dict[str, float]:
    """The activity of the latents of the first graphs (:class:`.LatentActivity`), and what the decoder gains from them.

    The ``gain`` is the mean difference of log p(A|Z), in nats per graph, between latents of the posterior and the same
    ones shuffled over the nodes of all graphs; ``gain_error`` is its standard error. It is empty without a variational
    posterior. The random numbers are the same at every validation.
    """
    if network.encoder is None or not network.config.is_variational:
        return {}
    device = next(network.parameters()).device
    network.eval()
    batch = collate(graphs[: measured_graphs(graphs)]).to(device)
    generator = torch.Generator().manual_seed(derive_seed(training.seed, "activity"))
    if network.config.is_autoregressive:
        batch, _ = permute_to_ordering(batch, network.config, stream(training.seed, "activity"))
    posterior = network.encode(batch, normal_noise(generator, batch, *batch.mask.shape, network.noise_features))
    sigma = posterior.sigma.expand_as(posterior.mu)
    encoded = [
        EncodedGraph(mu[mask].cpu().numpy(), std[mask].cpu().numpy())
        for mu, std, mask in zip(posterior.mu, sigma, batch.mask, strict=True)
    ]

    z = posterior.sample(normal_noise(generator, batch, *batch.mask.shape, network.config.latent))
    other = z.clone()
    other[batch.mask] = z[batch.mask][torch.randperm(int(batch.mask.sum()), generator=generator).to(device)]
    own, others = (log_likelihood(network, batch, latents, training.convention).double() for latents in (z, other))
    gains = (own - others).cpu().numpy()
    network.train()

    return {
        **latent_activity(encoded, training.seed).to_json(),
        "gain": float(gains.mean()),
        "gain_error": float(gains.std() / math.sqrt(max(1, len(gains) - 1))),
    }


def novelty_samples(graphs: Sequence[SimpleGraph]) -> int:
    """The number of samples that are compared with training graphs."""
    mean = sum(graph.nodes for graph in graphs) / len(graphs)

    return int(np.clip(SAMPLED_NODES / mean, LEAST_SAMPLES, SAMPLES))


@torch.no_grad()
def sample_novelty(network: GraphNetwork, graphs: Sequence[SimpleGraph], sizes: SizeDistribution, seed: int) -> float:
    """The proportion of a few samples that are isomorphic to no training graph.

    The model is autoregressive and has no node features. The random numbers are the same every time.
    """
    count = novelty_samples(graphs)
    rng, generator = stream(seed, "novelty"), torch.Generator().manual_seed(derive_seed(seed, "novelty"))
    nodes = torch.from_numpy(sizes.sample(count, rng))
    most = int(nodes.max())
    device = next(network.parameters()).device
    mask = node_mask(nodes, most).to(device)
    network.eval()
    prior = network.prior(mask)
    z = prior.sample(torch.randn(count, most, network.config.latent, generator=generator).to(device))
    uniform = torch.rand(count, most, most, generator=generator).to(device)
    adj = network.decode_autoregressive(z, z[..., :0], nodes.to(device)).sample(uniform).cpu().numpy()
    network.train()
    samples = [SimpleGraph.from_adjacency(a[:n, :n] > 0) for a, n in zip(adj, nodes.tolist(), strict=True)]

    return sum(copy is None for copy in find_isomorphic(samples, graphs)) / count
