"""What one step of training draws, and what it minimises.

Every process draws for the whole batch, by the step's number. The batch is cut into the same parts whoever computes
them. Their gradients, in single precision, are summed in double precision and the sum is rounded back. The order of the
sum depends on how many processes share the parts; it moves bits that the rounding takes away again, unless a sum is as
good as half-way between two numbers of single precision. So what is learned is mostly the same to the last bit however
many there are, which is tested and not proven, and otherwise the same but for a last bit that later steps build on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..autoregressive.distribution import FINEST, Schedule, row_chunks
from ..autoregressive.ordering import permute_to_ordering
from ..config import ModelConfig, TrainConfig
from ..data.batch import GraphBatch
from ..distributed import ProcessGroup
from ..rng import derive_seed, stream
from .model import GraphNetwork
from .objectives import autoregressive_bound, elbo, reconstruction, weight_terms

__all__ = ["PartLoss", "SharedLoss", "Step", "StepLoss", "draw_step", "normal_noise", "shares"]

# A part of a batch that is decided at once has at least so many cells of matrices, and a batch at most so many parts.
PART_CELLS = 1 << 14
MOST_PARTS = 8
# What the calls of a part cost beside its matrices, in cells.
CALL_CELLS = 1 << 13


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
    """

    batch: GraphBatch
    noise: Tensor
    epsilon: Tensor
    kl_weight: float = 1.0
    rows: Tensor | None = None
    log_orders: Tensor | None = None
    schedule: Schedule = FINEST

    def parts(self) -> list[Step]:
        """The batch in parts, small graphs first; few, as each costs as many calls as all of it would at once."""
        if self.rows is not None:
            chunks = row_chunks(self.rows.cpu().numpy())
            return [self._select(chunk) for chunk in chunks] if len(chunks) > 1 else [self]
        sizes = self.batch.sizes.cpu().numpy()
        order = np.argsort(sizes, kind="stable")
        cells = np.cumsum(np.square(sizes[order], dtype=np.float64)) * (len(self.noise) if self.is_sampled else 1)
        # A power of two goes evenly into processes, which mostly are one.
        count = 2 ** int(np.log2(np.clip(cells[-1] / PART_CELLS, 1, min(MOST_PARTS, len(sizes)))))
        if count == 1:
            return [self]
        ends = np.searchsorted(cells, cells[-1] * np.arange(1, count) / count)

        return [self._select(part) for part in np.split(order, ends) if len(part)]

    @property
    def is_sampled(self) -> bool:
        """Whether several samples of every graph are drawn."""
        return self.noise.dim() == 4

    @property
    def work(self) -> float:
        """About what it costs to compute, in cells of matrices."""
        sizes = self.batch.sizes if self.rows is None else self.rows + 1
        samples = len(self.noise) if self.is_sampled else 1

        return CALL_CELLS + samples * len(sizes) * float(sizes.max()) ** 2

    def _select(self, graphs: NDArray[np.int64]) -> Step:
        at = torch.from_numpy(graphs).to(self.batch.adj.device)

        return replace(
            self,
            batch=GraphBatch(self.batch.adj[at], self.batch.mask[at], self.batch.x[at]),
            noise=self.noise.index_select(-3, at),
            epsilon=self.epsilon.index_select(-3, at),
            rows=None if self.rows is None else self.rows[at],
            log_orders=None if self.log_orders is None else self.log_orders[at],
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
    if config.is_autoregressive:
        return _draw_autoregressive(network, batch, training, number, generator, kl_weight)
    samples = training.samples if config.is_variational and fraction >= training.samples_from else 1
    several, one = ((samples,), (samples, 1)) if samples > 1 else ((), ())
    noise = normal_noise(generator, batch, *several, *batch.mask.shape, network.noise_features)
    # An autoencoder decodes the mean.
    latent = config.latent if config.is_variational else 0
    epsilon = normal_noise(generator, batch, *one, *batch.mask.shape, latent)

    return Step(batch, noise, epsilon, kl_weight)


def _draw_autoregressive(
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
    ordered, log_q = permute_to_ordering(batch, config.ordering, rng)
    sizes = batch.sizes.cpu().numpy()
    rows = torch.from_numpy(1 + np.floor(rng.random(len(sizes)) * (sizes - 1)).astype(np.int64)).clamp_max(
        torch.from_numpy(sizes - 1)
    )
    schedule = Schedule(config.decoding_steps)
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
    """What a step minimises, one part after the other.

    Attributes:
        gathered: Where the gradients of all parts are summed, in double precision: those of the network's weights, one
            after the other, and for each weight how many parts it matters to. Its own value says nothing.
    """

    def __init__(self, network: GraphNetwork, convention: str) -> None:
        super().__init__()

        # Not registered: the network's weights get their gradients from what is gathered.
        self._part = (PartLoss(network, convention),)
        self._sizes = [parameter.numel() for parameter in network.parameters()]
        device = next(network.parameters()).device
        length = sum(self._sizes) + len(self._sizes)
        self.gathered = nn.Parameter(torch.zeros(length, dtype=torch.float64, device=device))

    def forward(self, parts: Sequence[Step], graphs: int) -> tuple[Tensor, Tensor]:
        """A number whose gradient, at ``gathered``, is that of some parts, and the sums of their loss and divergence.

        Arguments:
            parts: Some of a batch, or none.
            graphs: The number of graphs by which gradients are divided, and the sums are not.
        """
        total, sums = torch.zeros_like(self.gathered), self.gathered.new_zeros(2)
        for part in parts:
            gradient, loss, kl = self._gradient(part, graphs)
            total += gradient
            sums += torch.stack([loss.detach().double().sum(), kl.detach().double().sum()])

        return (self.gathered * total).sum(), sums

    def _gradient(self, part: Step, graphs: int) -> tuple[Tensor, Tensor, Tensor]:
        """The gradient of one part, found by itself: what else is summed with it does not change how it is rounded."""
        (part_loss,) = self._part
        parameters = list(part_loss.parameters())
        loss, kl = part_loss(part)
        found = torch.autograd.grad(loss.sum() / graphs, parameters, allow_unused=True)
        matters = loss.new_tensor([gradient is not None for gradient in found])
        flat = [
            (torch.zeros_like(parameter) if gradient is None else gradient).flatten()
            for gradient, parameter in zip(found, parameters, strict=True)
        ]

        return torch.cat([*flat, matters]), loss, kl

    def backward_alone(self, part: Step, graphs: int) -> tuple[float, float]:
        """Write the same gradients to the network, of the only part, with nothing to gather."""
        (part_loss,) = self._part
        part_loss.zero_grad()
        loss, kl = part_loss(part)
        (loss.sum() / graphs).backward()

        return float(loss.detach().double().sum()), float(kl.detach().double().sum())

    def hand_over(self) -> None:
        """Give the network what was gathered."""
        parameters = list(self._part[0].parameters())
        total, self.gathered.grad = self.gathered.grad, None
        assert total is not None, "a step has been taken backward"
        parts = total[-len(parameters) :].tolist()
        gradients = torch.split(total[: -len(parameters)].to(parameters[0].dtype), self._sizes)
        for parameter, gradient, count in zip(parameters, gradients, parts, strict=True):
            # What mattered to none is left alone by the optimiser.
            parameter.grad = gradient.view_as(parameter) if count else None


class PartLoss(nn.Module):
    """What is minimised of a batch or a part of it, and the divergence, each with shape :math:`(B,)`."""

    def __init__(self, network: GraphNetwork, convention: str) -> None:
        super().__init__()

        self.network = network
        self.convention = convention

    def forward(self, step: Step) -> tuple[Tensor, Tensor]:
        network, batch, noise, epsilon = self.network, step.batch, step.noise, step.epsilon
        if step.rows is not None and step.log_orders is not None:
            log_likelihood, kl = autoregressive_bound(network, batch, noise, epsilon, step.rows, step.schedule)
            return step.kl_weight * kl + step.log_orders - log_likelihood, kl
        if not network.config.is_variational:
            return -reconstruction(network, batch, noise, self.convention), batch.adj.new_zeros(len(batch.mask))
        if step.is_sampled:
            log_likelihood, log_ratio = weight_terms(network, batch, noise, epsilon, self.convention)
            return math.log(len(noise)) - (log_likelihood - log_ratio).logsumexp(0), log_ratio.mean(0)
        log_likelihood, kl = elbo(network, batch, noise, epsilon, self.convention)

        return step.kl_weight * kl - log_likelihood, kl


class SharedLoss:
    """A loss that the processes of a crew compute together, each some of the parts of a batch.

    Arguments:
        network: The model, whose gradients it writes.
        convention: ``pairs``, or ``paper`` to score all cells of the padded matrix.
        crew: The processes.

    Raises:
        CrewError: A process was lost.
    """

    def __init__(self, network: GraphNetwork, convention: str, group: ProcessGroup) -> None:
        self._group = group
        self._loss = StepLoss(network, convention)
        self._shared: nn.Module = self._loss
        if group.size == 1:
            return
        from torch.nn.parallel import DistributedDataParallel

        with group.no_one_lost():
            shared = DistributedDataParallel(self._loss)
        # Not the mean, as a third of a sum is rounded, and many a sum is half-way between two numbers.
        shared.register_comm_hook(None, lambda _, bucket: _summed(bucket.buffer()))
        self._shared = shared

    def backward(self, step: Step, graphs: int) -> tuple[float, float]:
        """Write the gradients of a batch, and give the sums of the loss and the divergence over it.

        Arguments:
            step: The batch.
            graphs: The number of graphs by which the gradients, not the sums, are divided.

        Raises:
            CrewError: A process was lost.
        """
        parts = step.parts()
        if self._group.size == len(parts) == 1:
            return self._loss.backward_alone(parts[0], graphs)
        own = shares([part.work for part in parts], self._group.size)[self._group.rank]
        total, sums = self._shared([parts[number] for number in own], graphs)
        with self._group.no_one_lost():
            total.backward()
        self._loss.hand_over()
        loss, kl = self._group.sum(sums.tolist())

        return loss, kl


def _summed(gradients: Tensor) -> Any:
    """The sum of gradients over all processes, to come."""
    from torch import distributed

    work = distributed.all_reduce(gradients, async_op=True)
    assert work is not None, "this process is one of them"

    return work.get_future().then(lambda summed: summed.value()[0])


def shares(work: Sequence[float], processes: int) -> list[list[int]]:
    """Which pieces of work each process takes: the largest first, to the one with the least to do."""
    taken: list[list[int]] = [[] for _ in range(processes)]
    loads = [0.0] * processes
    for number in sorted(range(len(work)), key=lambda number: -work[number]):
        least = loads.index(min(loads))
        taken[least].append(number)
        loads[least] += work[number]

    return [sorted(numbers) for numbers in taken]
