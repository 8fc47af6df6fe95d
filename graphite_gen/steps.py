"""What one step of training draws, and what it minimises.

Every process draws for the whole batch, by the step's number, and computes its own graphs' part; so what is learned
does not depend on how many there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from .arrival import arrange
from .batch import GraphBatch
from .config import ModelConfig, TrainConfig
from .crew import Crew
from .models import GraphNetwork
from .objectives import elbo, growth_bound, reconstruction, weight_terms
from .schedule import FINEST, Schedule
from .seeding import derive_seed, stream

__all__ = ["Step", "StepLoss", "draw_step", "normal_noise", "shared_out"]


@dataclass(frozen=True)
class Step:
    r"""A batch with all that was drawn for it.

    Attributes:
        batch: The graphs; those of a staged model in order of arrival.
        noise: Noise for ``random`` features, with shape :math:`(B, N, R)`, or :math:`(K, B, N, R)` for K samples.
        epsilon: Standard normal noise, with shape :math:`(B, N, D)`, or :math:`(K, 1, B, N, D)`.
        kl_weight: What the divergence counts.
        rows: The arriving node that stands for all of its graph, with shape :math:`(B,)`; a staged model's only.
        log_orders: :math:`\log n! + \log q(\sigma | A)` of the order, with shape :math:`(B,)`.
        schedule: Which pairs are decided at once.
        counted: How many of the graphs count; None for all.
    """

    batch: GraphBatch
    noise: Tensor
    epsilon: Tensor
    kl_weight: float = 1.0
    rows: Tensor | None = None
    log_orders: Tensor | None = None
    schedule: Schedule = FINEST
    counted: int | None = None

    def share(self, crew: Crew) -> Step:
        """The part of a process: every so-manieth graph.

        With fewer graphs than processes some have none. They take the first, which does not count, to be there when
        gradients are summed.
        """
        if crew.size == 1:
            return self
        graphs = len(self.batch.mask)
        own = range(crew.rank, graphs, crew.size)
        chosen = slice(own.start, None, own.step) if own else slice(1)

        return replace(
            self,
            batch=GraphBatch(self.batch.adj[chosen], self.batch.mask[chosen], self.batch.x[chosen]),
            noise=self.noise[..., chosen, :, :],
            epsilon=self.epsilon[..., chosen, :, :],
            rows=None if self.rows is None else self.rows[chosen],
            log_orders=None if self.log_orders is None else self.log_orders[chosen],
            counted=len(own),
        )


def draw_step(network: GraphNetwork, batch: GraphBatch, training: TrainConfig, number: int, fraction: float) -> Step:
    """Draw what a step needs.

    Arguments:
        network: The model.
        batch: The graphs.
        training: The settings of the run.
        number: The number of the step, which names its randomness.
        fraction: How much of the run is done.
    """
    config = network.config
    generator = torch.Generator().manual_seed(derive_seed(training.seed, "step", number))
    kl_weight = min(1.0, fraction / training.kl_warmup) if training.kl_warmup else 1.0
    if config.is_staged:
        return _draw_growth(network, batch, training, number, generator, kl_weight)
    samples = training.samples if config.is_variational and fraction >= training.samples_from else 1
    several, one = ((samples,), (samples, 1)) if samples > 1 else ((), ())
    noise = normal_noise(generator, batch, *several, *batch.mask.shape, network.noise_features)
    # An autoencoder decodes the mean.
    latent = config.latent if config.is_variational else 0
    epsilon = normal_noise(generator, batch, *one, *batch.mask.shape, latent)

    return Step(batch, noise, epsilon, kl_weight)


def _draw_growth(
    network: GraphNetwork,
    batch: GraphBatch,
    training: TrainConfig,
    number: int,
    generator: torch.Generator,
    kl_weight: float,
) -> Step:
    """What a staged model needs: one order and one arriving node of each graph stand for all."""
    config: ModelConfig = network.config
    rng = stream(training.seed, "growth", number)
    ordered, log_q = arrange(batch, config.order, rng)
    sizes = batch.sizes.cpu().numpy()
    rows = torch.from_numpy(1 + np.floor(rng.random(len(sizes)) * (sizes - 1)).astype(np.int64)).clamp_max(
        torch.from_numpy(sizes - 1)
    )
    schedule = Schedule(config.stages)
    if rng.random() < training.coarse:
        # Now and then a coarser schedule, so that a model knows what it loses by each.
        most = float(sizes.max() * (sizes.max() - 1) / 2)
        schedule = Schedule(int(max(most, 1) ** rng.random()))
    noise = normal_noise(generator, batch, *batch.mask.shape, network.noise_features)
    epsilon = normal_noise(generator, batch, *batch.mask.shape, config.latent)
    log_orders = torch.lgamma(batch.sizes.to(batch.adj) + 1) + log_q.to(batch.adj)

    return Step(ordered, noise, epsilon, kl_weight, rows.to(batch.adj.device), log_orders, schedule)


def normal_noise(generator: torch.Generator, batch: GraphBatch, *shape: int) -> Tensor:
    """Standard normal noise of a shape, where a batch is."""
    # Drawn on the CPU, so that a run on another device sees the same noise.
    return torch.randn(*shape, generator=generator, dtype=batch.adj.dtype).to(batch.adj.device)


class StepLoss(nn.Module):
    """What a step minimises, and the divergence, each with shape :math:`(B,)`."""

    def __init__(self, network: GraphNetwork, convention: str) -> None:
        super().__init__()

        self.network = network
        self.convention = convention

    def forward(self, step: Step) -> tuple[Tensor, Tensor]:
        loss, kl = self._terms(step)

        return loss[: step.counted], kl[: step.counted]

    def _terms(self, step: Step) -> tuple[Tensor, Tensor]:
        network, batch, noise, epsilon = self.network, step.batch, step.noise, step.epsilon
        if step.rows is not None:
            log_likelihood, kl = growth_bound(network, batch, noise, epsilon, step.rows, step.schedule)
            return step.kl_weight * kl + step.log_orders - log_likelihood, kl
        if not network.config.is_variational:
            return -reconstruction(network, batch, noise, self.convention), batch.adj.new_zeros(len(batch.mask))
        if noise.dim() == 4:
            log_likelihood, log_ratio = weight_terms(network, batch, noise, epsilon, self.convention)
            return math.log(len(noise)) - (log_likelihood - log_ratio).logsumexp(0), log_ratio.mean(0)
        log_likelihood, kl = elbo(network, batch, noise, epsilon, self.convention)

        return step.kl_weight * kl - log_likelihood, kl


def shared_out(loss: StepLoss, crew: Crew) -> nn.Module:
    """The same loss, whose gradients are the mean of all processes' where there are several.

    Raises:
        CrewError: A process was lost.
    """
    if crew.size == 1:
        return loss
    from torch.nn.parallel import DistributedDataParallel

    # Which weights matter may differ between the graphs of one process and those of another.
    with crew.no_one_lost():
        return DistributedDataParallel(loss, find_unused_parameters=True, broadcast_buffers=False)
