"""Importance sampling of the latents of a one-shot model given the known pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..data.batch import pair_mask
from ..likelihood.proposal import Joint, fit_mixture
from ..nn.distributions import EdgeBernoulli
from ..training.checkpoint import TrainedModel
from .partial import PartialGraph
from .posterior import Posterior, batch_for

__all__ = ["decode_completions"]

# Adjacency matrices held at once.
CELLS = 1 << 21


@dataclass(frozen=True)
class _KnownJoint(Joint):
    r"""The density :math:`p(A_{known}, Z)`, with a mask of known pairs of shape :math:`(N, N)`."""

    known: Tensor

    def log_density(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The log-density at latents, with shape :math:`(K,)`, and the logits of all pairs, :math:`(K, N, N)`."""
        latents, mask = z.unsqueeze(1), self.batch.mask
        edges = self.network.decode(latents, self.batch.x, mask)
        assert isinstance(edges, EdgeBernoulli)
        logits = edges.logits[:, 0]
        terms = (self.batch.adj * logits - F.softplus(logits)) * (pair_mask(mask) & self.known)

        return terms.sum((-2, -1)) + self.network.prior(mask).log_prob(latents)[:, 0], logits

    def __call__(self, z: Tensor) -> tuple[Tensor, Tensor]:
        z = z.detach().requires_grad_(True)
        with torch.enable_grad():
            values, _ = self.log_density(z)
            (gradient,) = torch.autograd.grad(values.sum(), z)

        return values.detach(), gradient


@torch.no_grad()
def decode_completions(
    model: TrainedModel, partial: PartialGraph, *, runs: int, particles: int, rng: np.random.Generator
) -> Posterior:
    r"""Return the posterior of the unknown pairs under a one-shot model; runs share the proposal.

    Given latents the pairs are independent (eq. 10), so only latents need weights,
    :math:`w_k = p(A_{known} | Z_k)\, p(Z_k) / \bar{q}(Z_k)`. The proposal :math:`\bar{q}` is a mixture of the prior and
    of encoders of the known graph, fitted to the posterior.
    """
    batch = batch_for(model, partial.graph)
    joint = _KnownJoint(model.network, batch, torch.from_numpy(partial.known()).to(batch.adj.device))
    mixture = fit_mixture(joint, rng, CELLS)

    i, j = torch.from_numpy(partial.unknown).to(batch.adj.device).unbind(1)
    probabilities, weights = [], []
    left = runs * particles
    while left:
        z = mixture.sample(min(left, max(1, CELLS // partial.nodes**2)), rng)
        log_density, logits = joint.log_density(z)
        weights.append((log_density - mixture.log_prob(z)[0]).double().cpu())
        probabilities.append(torch.sigmoid(logits[:, i, j]).cpu())
        left -= len(z)

    return Posterior.weighted(
        torch.cat(probabilities).float().numpy().reshape(runs, particles, -1),
        torch.cat(weights).numpy().reshape(runs, particles),
    )
