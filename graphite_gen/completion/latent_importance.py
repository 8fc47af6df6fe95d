"""Importance sampling of the latents of a one-shot model given the known pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from ..data.batch import pair_mask
from ..likelihood.proposal import Joint, fit_mixture
from ..nn.distributions import EdgeBernoulli, EdgeDistribution
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

    def _log_prob(self, edges: EdgeDistribution) -> Tensor:
        assert isinstance(edges, EdgeBernoulli)
        terms = self.batch.adj * edges.logits - F.softplus(edges.logits)

        return (terms * (pair_mask(self.batch.mask) & self.known)).sum((-2, -1))


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
        log_density, edges = joint.log_density(z)
        assert isinstance(edges, EdgeBernoulli)
        weights.append((log_density - mixture.log_prob(z)[0]).double().cpu())
        probabilities.append(torch.sigmoid(edges.logits[:, 0, i, j]).cpu())
        left -= len(z)

    return Posterior.weighted(
        torch.cat(probabilities).float().numpy().reshape(runs, particles, -1),
        torch.cat(weights).numpy().reshape(runs, particles),
    )
