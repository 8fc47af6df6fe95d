r"""Annealed importance sampling (AIS; Neal, 2001) from a proposal to the posterior, by Hamiltonian Monte Carlo."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from ..data.batch import GraphBatch
from ..rng import stream
from ..training.model import GraphNetwork
from .proposal import Joint, Mixture, fit_mixture, standard_normal

__all__ = ["CHAINS", "STEPS", "AnnealedPath", "annealed_log_weights"]

CHAINS = 64
STEPS = 60
LEAPFROGS = 4
PILOT_CHAINS = 16
ACCEPTANCE = 0.75
FIRST_STEP = 0.3
MAX_STEP = 1.0

# Gradients keep the activations of every layer: fewer cells at once than for importance sampling.
BLOCK = 256
BLOCK_CELLS = 1 << 21


@dataclass(frozen=True)
class _State:
    """Latents of :math:`K` chains with the log-densities, of shape :math:`(K,)`, and gradients of both path ends."""

    z: Tensor
    log_q: Tensor
    log_joint: Tensor
    q_gradient: Tensor
    joint_gradient: Tensor

    def energy(self, beta: float) -> Tensor:
        return -(1 - beta) * self.log_q - beta * self.log_joint

    def force(self, beta: float) -> Tensor:
        return (1 - beta) * self.q_gradient + beta * self.joint_gradient

    @property
    def log_ratio(self) -> Tensor:
        """log p(A, Z) - log q(Z), in double precision."""
        return (self.log_joint - self.log_q).double().cpu()

    def moved(self, accepted: Tensor, other: _State) -> _State:
        """The other state for the chains that accept it."""
        pairs = ((getattr(self, field.name), getattr(other, field.name)) for field in fields(self))

        return _State(*(torch.where(accepted.view(-1, *[1] * (own.dim() - 1)), new, own) for own, new in pairs))


@dataclass(frozen=True)
class AnnealedPath:
    r"""The path :math:`f_\beta(Z) = \bar{q}(Z)^{1-\beta} \, p(A, Z)^\beta` from a proposal to the posterior of a graph.

    The proposal and the step sizes are fitted in separate runs and then fixed, so the weights are unbiased.

    Attributes:
        betas: Inverse temperatures from 0 to 1, with length :math:`T + 1`.
        sizes: The leapfrog step size at each temperature above 0, in units of the proposal's scale.
    """

    joint: Joint
    proposal: Mixture
    betas: tuple[float, ...]
    sizes: tuple[float, ...]

    @classmethod
    def prepare(cls, network: GraphNetwork, batch: GraphBatch, steps: int, rng: np.random.Generator) -> AnnealedPath:
        """Fit the proposal to the one graph of a batch, and tune the step sizes of T temperatures in a pilot run."""
        joint = Joint.of(network, batch)
        proposal = fit_mixture(joint, rng, BLOCK_CELLS)
        path = cls(joint, proposal, _betas(steps), ())
        state = path._at(proposal.sample(min(PILOT_CHAINS, path._block), rng))
        size, sizes = FIRST_STEP, []
        for beta in path.betas[1:]:
            state, acceptance = path.transition(state, beta, size, rng)
            size = min(MAX_STEP, size * math.exp(0.3 * (acceptance - ACCEPTANCE)))
            sizes.append(size)

        return replace(path, sizes=tuple(sizes))

    def forward(self, chains: int, rng: np.random.Generator) -> Tensor:
        """Log-weights whose mean weight is p(A), in double precision, with shape :math:`(K,)`."""
        weights = []
        for count in self._blocks(chains):
            state = self._at(self.proposal.sample(count, rng))
            total = torch.zeros(count, dtype=torch.float64)
            for (before, beta), size in zip(pairwise(self.betas), self.sizes, strict=True):
                total += (beta - before) * state.log_ratio
                # No weight is collected after the last temperature.
                if beta < 1:
                    state, _ = self.transition(state, beta, size, rng)
            weights.append(total)

        return torch.cat(weights)

    def reverse(self, z: Tensor, chains: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Log-weights :math:`(J,)` of reverse chains, whose mean inverse weight is 1/p(A), and their final latents.

        They start at the latents that the graph was decoded from, an exact posterior sample with shape :math:`(N, D)`.
        """
        weights, ends = [], []
        for count in self._blocks(chains):
            state = self._at(z.expand(count, *z.shape))
            total = torch.zeros(count, dtype=torch.float64)
            for (before, beta), size in reversed(list(zip(pairwise(self.betas), self.sizes, strict=True))):
                state, _ = self.transition(state, beta, size, rng)
                total += (beta - before) * state.log_ratio
            weights.append(total)
            ends.append(state.z)

        return torch.cat(weights), torch.cat(ends)

    def beside(self, forward: Tensor, ends: Tensor, rng: np.random.Generator) -> Tensor:
        """The weights of the forward chains to combine with each reverse chain, with shape :math:`(J, K - 1)`.

        Forward chains start stratified over components, so they are not independent: a reverse chain replaces a forward
        chain that started in the component where the reverse chain ends.
        """
        chains, rows = len(forward), []
        for component in self.proposal.draw_components(ends, rng):
            slot = int(rng.integers(chains))
            start = slot // self._block * self._block
            seat = start + self.proposal.seat(slot - start, min(self._block, chains - start), component)
            rows.append(torch.cat([forward[:seat], forward[seat + 1 :]]))

        return torch.stack(rows)

    def transition(self, state: _State, beta: float, size: float, rng: np.random.Generator) -> tuple[_State, float]:
        r"""One Hamiltonian transition, which leaves :math:`f_\beta` invariant: new state and mean acceptance."""
        # In units of its scale the proposal is isotropic, so one step size suits all latents; jitter avoids periodic
        # orbits.
        jitter = torch.from_numpy(rng.uniform(0.6, 1.2, (len(state.z), 1, 1))).to(state.z)
        stride = size * jitter * self.proposal.log_sigma.mean(0).exp()
        momentum = standard_normal(rng, state.z, *state.z.shape)
        before = state.energy(beta) + _kinetic(momentum)
        end = state
        for _ in range(LEAPFROGS):
            momentum = momentum + 0.5 * stride * end.force(beta)
            end = self._at(end.z + stride * momentum)
            momentum = momentum + 0.5 * stride * end.force(beta)
        # Divergent trajectories are rejected.
        log_ratio = torch.nan_to_num(before - end.energy(beta) - _kinetic(momentum), nan=-math.inf)
        uniform = torch.from_numpy(rng.random(len(log_ratio))).to(log_ratio)

        return state.moved(uniform.log() < log_ratio, end), float(log_ratio.clamp_max(0).exp().mean())

    def _at(self, z: Tensor) -> _State:
        log_q, q_gradient = self.proposal.log_prob(z)
        log_joint, joint_gradient = self.joint(z)

        return _State(z, log_q, log_joint, q_gradient, joint_gradient)

    @property
    def _block(self) -> int:
        """The maximum number of chains to run at once."""
        return max(1, min(BLOCK, BLOCK_CELLS // self.joint.batch.mask.shape[-1] ** 2))

    def _blocks(self, chains: int) -> list[int]:
        return [min(self._block, chains - first) for first in range(0, chains, self._block)]


def _kinetic(momentum: Tensor) -> Tensor:
    return 0.5 * momentum.square().sum((-2, -1))


def _betas(steps: int) -> tuple[float, ...]:
    """Inverse temperatures from 0 to 1 on a sigmoid schedule, densest at both ends."""
    raw = 1 / (1 + np.exp(-np.linspace(-4, 4, steps + 1)))

    return tuple(((raw - raw[0]) / (raw[-1] - raw[0])).tolist())


def annealed_log_weights(
    network: GraphNetwork, batch: GraphBatch, chains: int, steps: int, seed: int, index: int
) -> Tensor:
    """The log-weights of the one graph of a batch from K chains, in double precision, with shape :math:`(K,)`."""
    rng = stream(seed, "ais", index)

    return AnnealedPath.prepare(network, batch, steps, rng).forward(chains, rng)
