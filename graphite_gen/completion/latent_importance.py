r"""Importance sampling of the latents of a one-shot model given the known pairs.

Given latents the pairs are independent (eq. 10), so only latents need weights:

.. math:: w_k = p(A_{known} | Z_k)\, p(Z_k) / \bar{q}(Z_k).

The proposal :math:`\bar{q}` is a mixture of the prior and of encoders of the known graph, fitted to the posterior.
"""

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
    r"""The density :math:`p(A_{known}, Z)` of the known pairs and the latents.

    Attributes:
        known: True for pairs that are known, with shape :math:`(N, N)`.
    """

    known: Tensor

    def log_likelihood(self, z: Tensor) -> Tensor:
        """Return the log-probability of the known pairs, with shape :math:`(K,)`."""
        terms = self.batch.adj * (logits := self.logits(z)) - F.softplus(logits)

        return (terms * (pair_mask(self.batch.mask) & self.known)).sum((-2, -1))

    def logits(self, z: Tensor) -> Tensor:
        """Return the logits of all pairs given latents of shape :math:`(K, N, D)`, with shape :math:`(K, N, N)`."""
        edges = self.network.decode(z.unsqueeze(1), self.batch.x, self.batch.mask)
        assert isinstance(edges, EdgeBernoulli)

        return edges.logits[:, 0]

    def log_prior(self, z: Tensor) -> Tensor:
        """Return the prior log-density of the latents, with shape :math:`(K,)`."""
        return self.network.prior(self.batch.mask).log_prob(z.unsqueeze(1))[:, 0]

    def __call__(self, z: Tensor) -> tuple[Tensor, Tensor]:
        z = z.detach().requires_grad_(True)
        with torch.enable_grad():
            values = self.log_likelihood(z) + self.log_prior(z)
            (gradient,) = torch.autograd.grad(values.sum(), z)

        return values.detach(), gradient


@torch.no_grad()
def decode_completions(
    model: TrainedModel, partial: PartialGraph, *, runs: int, particles: int, rng: np.random.Generator
) -> Posterior:
    """Return the posterior of the unknown pairs under a one-shot model; runs share the proposal."""
    like, batch = next(model.network.parameters()), batch_for(model, partial.graph)
    joint = _KnownJoint(model.network, batch, torch.from_numpy(partial.known()).to(like.device))
    mixture = fit_mixture(joint, rng, CELLS)

    i, j = torch.from_numpy(partial.unknown).to(like.device).unbind(1)
    probabilities, weights = [], []
    left = runs * particles
    while left:
        z = mixture.sample(min(left, max(1, CELLS // partial.nodes**2)), rng)
        likelihood = joint.log_likelihood(z)
        weights.append((likelihood + joint.log_prior(z) - mixture.log_prob(z)[0]).double().cpu())
        probabilities.append(torch.sigmoid(joint.logits(z)[:, i, j]).cpu())
        left -= len(z)

    return Posterior.weighted(
        torch.cat(probabilities).float().numpy().reshape(runs, particles, -1),
        torch.cat(weights).numpy().reshape(runs, particles),
    )
