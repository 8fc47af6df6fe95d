"""One training step: its random numbers, its loss, and the gradients, which several ranks compute together.

Every rank draws the random numbers of the whole batch and computes the gradients of some of its parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..autoregressive.ordering import permute_to_ordering
from ..config import ModelConfig, TrainConfig
from ..data.batch import GraphBatch
from ..distributed import ProcessGroup
from ..rng import derive_seed, stream
from .model import GraphNetwork
from .objectives import autoregressive_bound, draft_cost, elbo, reconstruction, weight_terms

__all__ = ["BATCH_CELLS", "Step", "assign_parts", "backward", "draw_step", "normal_noise", "padded_nodes", "step_loss"]

BATCH_CELLS = 1 << 21
"""The most cells of padded matrices in a batch, which bounds its memory."""
# The smallest part of a batch, in matrix cells, of an autoregressive decoder for each of its sequential rows, and the
# largest number of parts.
PART_CELLS = 1 << 14
ROW_CELLS = 800
MOST_PARTS = 8
# The fractions of a run between which the free bits of a one-shot model fall to zero: it depends on its latents, which
# stay in use once it has learned to read them.
FREE_BITS_FALL = (0.3, 0.6)
# The part of an equal share of the free bits that every latent dimension of an autoregressive model has to carry.
LEAST_PART = 0.4
# The fixed cost of a part, as a number of matrix cells.
CALL_CELLS = 1 << 13


@dataclass(frozen=True)
class Step:
    r"""A batch and its random numbers.

    Attributes:
        batch: The graphs, with their nodes in decoding order for an autoregressive decoder.
        noise: Noise for random features, with shape :math:`(B, N, R)`, or :math:`(K, B, N, R)` for K samples.
        epsilon: Standard normal noise, with shape :math:`(B, N, D)`, or :math:`(K, 1, B, N, D)`.
        log_orders: :math:`\log n! + \log q(\sigma | A)` of the node ordering, with shape :math:`(B,)`; autoregressive
            only.
        free_bits: The KL divergence in nats per node that costs nothing (Kingma et al., 2016).
        reconstruction: The weight of :func:`.draft_cost`.
        dropout_seed: The seed of dropout, which is drawn part by part.
    """

    batch: GraphBatch
    noise: Tensor
    epsilon: Tensor
    kl_weight: float = 1.0
    free_bits: float = 0.0
    reconstruction: float = 0.0
    log_orders: Tensor | None = None
    dropout_seed: int = 0

    def parts(self) -> list[Step]:
        """Split the batch into few parts of similar cost, small graphs first, whatever the world size."""
        sizes = self.batch.sizes.cpu().numpy()
        order = np.argsort(sizes, kind="stable")
        cells = np.cumsum(np.square(sizes[order], dtype=np.float64)) * self.samples
        smallest = PART_CELLS if self.log_orders is None else ROW_CELLS * int(sizes.max())
        # A power of two divides evenly among most world sizes.
        count = 2 ** int(np.log2(np.clip(cells[-1] / smallest, 1, min(MOST_PARTS, len(sizes)))))
        if count == 1:
            return [self]
        ends = np.searchsorted(cells, cells[-1] * np.arange(1, count) / count)

        return [self._select(part) for part in np.split(order, ends) if len(part)]

    @property
    def samples(self) -> int:
        """The number of samples of the latents."""
        return len(self.noise) if self.noise.dim() == 4 else 1

    @property
    def cost(self) -> float:
        """An estimate of the computing time, in matrix cells."""
        sizes = self.batch.sizes

        return CALL_CELLS + self.samples * len(sizes) * float(sizes.max()) ** 2

    def _select(self, graphs: NDArray[np.int64]) -> Step:
        at = torch.from_numpy(graphs).to(self.batch.adj.device)

        return replace(
            self,
            batch=self.batch.each(lambda part: part[at]),
            noise=self.noise.index_select(-3, at),
            epsilon=self.epsilon.index_select(-3, at),
            log_orders=None if self.log_orders is None else self.log_orders[at],
        )


def draw_step(network: GraphNetwork, batch: GraphBatch, training: TrainConfig, number: int, fraction: float) -> Step:
    """Draw the random numbers of a step, named by its number, when some fraction of the run is done."""
    config = network.config
    generator = torch.Generator().manual_seed(derive_seed(training.seed, "step", number))
    kl_weight = min(1.0, fraction / training.kl_warmup) if training.kl_warmup else 1.0
    free_bits = 0.0 if config.encoder == "none" else training.free_bits
    if config.is_autoregressive:
        step = _draw_autoregressive(network, batch, training, number, generator)
        weight = 0.0 if config.encoder == "none" else training.reconstruction
        return replace(step, kl_weight=kl_weight, free_bits=free_bits, reconstruction=weight)
    samples = training.samples if config.is_variational and fraction >= training.samples_from else 1
    several, one = ((samples,), (samples, 1)) if samples > 1 else ((), ())
    noise = normal_noise(generator, batch, *several, *batch.mask.shape, network.noise_features)
    # Without a variational posterior, the mean is decoded.
    latent = config.latent if config.is_variational else 0
    epsilon = normal_noise(generator, batch, *one, *batch.mask.shape, latent)

    first, last = FREE_BITS_FALL

    return Step(batch, noise, epsilon, kl_weight, free_bits * min(1.0, max(0.0, (last - fraction) / (last - first))))


def _draw_autoregressive(
    network: GraphNetwork, batch: GraphBatch, training: TrainConfig, number: int, generator: torch.Generator
) -> Step:
    """Draw one node ordering of each graph."""
    config = network.config
    # The names of streams stay as they are, since they determine the random numbers.
    rng = stream(training.seed, "growth", number)
    ordered, log_q = permute_to_ordering(batch, config, rng)
    noise = normal_noise(generator, batch, *batch.mask.shape, network.noise_features)
    epsilon = normal_noise(generator, batch, *batch.mask.shape, config.latent)
    log_orders = torch.lgamma(batch.sizes.double() + 1) + log_q

    return Step(
        ordered, noise, epsilon, log_orders=log_orders, dropout_seed=derive_seed(training.seed, "dropout", number)
    )


def padded_nodes(config: ModelConfig, training: TrainConfig) -> int | None:
    """The number of nodes that batches are padded to: of the largest graph in convention ``paper``, else their own."""
    return config.max_nodes if training.convention == "paper" else None


def normal_noise(generator: torch.Generator, batch: GraphBatch, *shape: int) -> Tensor:
    """Standard normal noise on the device of a batch."""
    # Drawn on the CPU, so that the noise does not depend on the device.
    return torch.randn(*shape, generator=generator, dtype=batch.adj.dtype).to(batch.adj.device)


def step_loss(network: GraphNetwork, step: Step, convention: str) -> tuple[Tensor, Tensor]:
    """The loss and the KL divergence of every graph of a batch or a part of it, each with shape :math:`(B,)`."""
    batch, noise, epsilon = step.batch, step.noise, step.epsilon
    if step.log_orders is not None:
        posterior = network.encode(batch, noise)
        log_likelihood, by_dimension = autoregressive_bound(network, batch, posterior, epsilon)
        kl = by_dimension.sum(-1)
        cost = _kl_cost(step, kl) + _shortfall(step, by_dimension) + step.log_orders - log_likelihood
        if step.reconstruction:
            cost = cost + step.reconstruction * draft_cost(network, batch, posterior)
        return cost, kl
    if not network.config.is_variational:
        return -reconstruction(network, batch, noise, convention), batch.adj.new_zeros(len(batch.mask))
    if step.samples > 1:
        log_likelihood, log_ratio = weight_terms(network, batch, noise, epsilon, convention)
        return math.log(len(noise)) - (log_likelihood - log_ratio).logsumexp(0), log_ratio.mean(0)
    log_likelihood, kl = elbo(network, batch, noise, epsilon, convention)

    return _kl_cost(step, kl) - log_likelihood, kl


def _kl_cost(step: Step, kl: Tensor) -> Tensor:
    """The weighted KL divergence, at least that of the free bits, with shape :math:`(B,)`."""
    # A decoder that can do without latents would otherwise ignore them, and the encoder would collapse.
    return step.kl_weight * torch.maximum(kl, step.free_bits * step.batch.sizes.to(kl))


def _shortfall(step: Step, by_dimension: Tensor) -> Tensor:
    """The cost of dimensions with less than their part of the free bits, with shape :math:`(B,)`, given (B, D)."""
    # Otherwise one dimension would carry all, since each costs noise before it tells anything.
    least = LEAST_PART * step.free_bits * step.batch.sizes.to(by_dimension).unsqueeze(-1) / by_dimension.shape[-1]

    return step.kl_weight * (least - by_dimension).clamp_min(0).sum(-1)


def backward(
    network: GraphNetwork, step: Step, convention: str, graphs: int, group: ProcessGroup
) -> tuple[float, float]:
    """Set the gradients of a batch, and return the sums of its loss and KL divergence over the graphs.

    Every rank computes some parts. The gradients, but not the sums, are divided by a number of graphs.
    """
    network.zero_grad()
    parts, sums = step.parts(), [0.0, 0.0]
    for part in assign_parts([part.cost for part in parts], group.world_size)[group.rank]:
        # Dropout has no generator of its own; the state of torch's global one is restored.
        with torch.random.fork_rng(devices=[], enabled=network.config.dropout > 0):
            if network.config.dropout:
                torch.manual_seed(step.dropout_seed + part)
            loss, kl = step_loss(network, parts[part], convention)
            torch.autograd.backward(loss.sum() / graphs)
        sums[0] += float(loss.detach().double().sum())
        sums[1] += float(kl.detach().double().sum())
    if group.world_size > 1:
        _sum_gradients(list(network.parameters()), group)
    total, divergence = group.all_reduce_sum(sums)

    return total, divergence


def _sum_gradients(parameters: Sequence[Tensor], group: ProcessGroup) -> None:
    """Sum the gradients over all ranks; a parameter without a gradient on any rank still has none afterwards."""
    is_set = parameters[0].new_tensor([parameter.grad is not None for parameter in parameters])
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = torch.cat([is_set, *(gradient.flatten() for gradient in gradients)])
    group.all_reduce(flat)
    counts, *sums = torch.split(flat, [len(parameters), *(parameter.numel() for parameter in parameters)])
    for parameter, count, gradient in zip(parameters, counts.tolist(), sums, strict=True):
        parameter.grad = gradient.view_as(parameter) if count else None


def assign_parts(costs: Sequence[float], world_size: int) -> list[list[int]]:
    """Assign parts to ranks: the most expensive part first, always to the rank with the lowest total cost."""
    assigned: list[list[int]] = [[] for _ in range(world_size)]
    totals = [0.0] * world_size
    for part in sorted(range(len(costs)), key=lambda part: -costs[part]):
        rank = totals.index(min(totals))
        assigned[rank].append(part)
        totals[rank] += costs[part]

    return [sorted(parts) for parts in assigned]
