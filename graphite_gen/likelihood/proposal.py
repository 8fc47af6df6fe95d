"""A proposal distribution for one graph: a mixture of encoder posteriors, fitted to the true posterior.

A few gradient steps close most of the amortisation gap of an encoder, which is optimal for no single graph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..data.batch import GraphBatch
from ..nn.distributions import EdgeDistribution
from ..training.model import GraphNetwork

__all__ = ["Joint", "Mixture", "fit_mixture", "standard_normal"]

COMPONENTS = 32
DRAWS = 2
FIT_STEPS = 100
FIT_RATE = 0.1
FIT_DAMPING = 0.3

_LOG_2PI = math.log(2 * math.pi)


def standard_normal(rng: np.random.Generator, like: Tensor, *shape: int) -> Tensor:
    """Standard normal noise with the device and dtype of another tensor."""
    return torch.from_numpy(rng.standard_normal(shape, dtype=np.float32)).to(like)


@dataclass(frozen=True)
class Joint:
    r"""The density :math:`p(A, Z)` of one graph, a batch without padding, and its latents."""

    network: GraphNetwork
    batch: GraphBatch

    @classmethod
    def of(cls, network: GraphNetwork, batch: GraphBatch) -> Joint:
        """The density of the one graph of a batch, whose padding is removed."""
        assert len(batch.mask) == 1
        nodes = int(batch.sizes)

        return cls(network, GraphBatch(batch.adj[:, :nodes, :nodes], batch.mask[:, :nodes], batch.x[:, :nodes]))

    def __call__(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Log-densities at latents of shape :math:`(K, N, D)`, with shape :math:`(K,)`, and their gradients."""
        z = z.detach().requires_grad_(True)
        with torch.enable_grad():
            values, _ = self.log_density(z)
            (gradient,) = torch.autograd.grad(values.sum(), z)

        return values.detach(), gradient

    def log_density(self, z: Tensor) -> tuple[Tensor, EdgeDistribution]:
        """Log-densities at latents of shape :math:`(K, N, D)`, with shape :math:`(K,)`, and the edges given them."""
        latents, mask = z.unsqueeze(1), self.batch.mask
        edges = self.network.decode(latents, self.batch.x, mask)

        return (self._log_prob(edges) + self.network.prior(mask).log_prob(latents))[:, 0], edges

    def _log_prob(self, edges: EdgeDistribution) -> Tensor:
        return edges.log_prob(self.batch.adj)


@dataclass(frozen=True)
class Mixture:
    r"""A proposal :math:`\bar{q}(Z)`: a uniform mixture of normals with parameters of shape :math:`(M, N, D)`."""

    mu: Tensor
    log_sigma: Tensor

    def sample(self, count: int, rng: np.random.Generator) -> Tensor:
        """Sample latents, stratified over components except for the remainder; with shape :math:`(K, N, D)`."""
        rest = count % len(self.mu)
        which = torch.arange(count) % len(self.mu)
        which[count - rest :] = torch.from_numpy(rng.integers(len(self.mu), size=rest))
        noise = standard_normal(rng, self.mu, count, *self.mu.shape[1:])

        return self.mu[which] + self.log_sigma[which].exp() * noise

    def seat(self, slot: int, count: int, component: int) -> int:
        """The position of a component in the stratum of a slot of a sample; the remainder has no strata."""
        components = len(self.mu)

        return slot // components * components + component if slot < count - count % components else slot

    def draw_components(self, z: Tensor, rng: np.random.Generator) -> list[int]:
        """Sample the component of each of :math:`(K, N, D)` latents from its posterior."""
        steps = self._terms(z)[0].softmax(1).cumsum(1).cpu()
        uniform = torch.from_numpy(rng.random((len(z), 1)))

        return (steps < uniform * steps[:, -1:]).sum(1).tolist()

    def log_prob(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Log-densities at latents of shape :math:`(K, N, D)`, with shape :math:`(K,)`, and their gradients."""
        terms, flat, precision, pull = self._terms(z)
        posterior = terms.softmax(1)
        gradient = (posterior @ pull - (posterior @ precision) * flat).view_as(z)

        return (terms.logsumexp(1) - math.log(len(self.mu))).to(z), gradient.to(z)

    def _terms(self, z: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Log-densities of the components, with shape :math:`(K, M)`, and the terms of their gradients."""
        # Expanded squares, so that matrix products do the work; cancellation needs double precision.
        flat, mu, log_sigma = (part.flatten(1).double() for part in (z, self.mu, self.log_sigma))
        precision = (-2 * log_sigma).exp()
        pull = precision * mu
        squares = flat.square() @ precision.mT - 2 * flat @ pull.mT + (pull * mu).sum(1)

        return -0.5 * squares - log_sigma.sum(1) - 0.5 * _LOG_2PI * flat.shape[1], flat, precision, pull

    def with_prior(self) -> Mixture:
        """The same mixture with the prior as one more component, so that every posterior mode has support."""
        zero = torch.zeros_like(self.mu[:1])

        return Mixture(torch.cat([self.mu, zero]), torch.cat([self.log_sigma, zero]))


@torch.no_grad()
def fit_mixture(joint: Joint, rng: np.random.Generator, cells: int) -> Mixture:
    r"""Fit a proposal to one graph: encoders with different random features, moved to the posterior, and the prior.

    Stochastic ascent of the ELBO of the mixture, with the gradient that vanishes where proposal and posterior agree
    (Roeder et al., 2017):

    .. math:: \nabla = \frac{\partial Z}{\partial (\mu, \sigma)} \nabla_Z \left[\log p(A, Z) - \log \bar{q}(Z)\right]

    ``cells`` bounds the adjacency matrix cells in memory.
    """
    network, batch = joint.network, joint.batch
    nodes = batch.mask.shape[-1]
    components = max(1, min(COMPONENTS, cells // (DRAWS * nodes**2)))
    encoders = network.encode(batch, standard_normal(rng, batch.adj, components, 1, nodes, network.noise_features))
    mu, log_sigma = encoders.mu[:, 0].clone(), encoders.log_sigma[:, 0].clone()
    # A large epsilon keeps a perfect fit in place instead of amplifying rounding errors.
    optimizer = torch.optim.Adam([mu, log_sigma], betas=(0.9, 0.99), eps=FIT_DAMPING, maximize=True)
    for step in range(FIT_STEPS):
        noise = standard_normal(rng, mu, DRAWS, *mu.shape)
        sigma = log_sigma.exp()
        z = (mu + sigma * noise).flatten(0, 1)
        pull = (joint(z)[1] - Mixture(mu, log_sigma).with_prior().log_prob(z)[1]).view_as(noise)
        mu.grad, log_sigma.grad = pull.mean(0), (pull * noise * sigma).mean(0)
        optimizer.param_groups[0]["lr"] = FIT_RATE * (1 - step / FIT_STEPS)
        optimizer.step()

    return Mixture(mu, log_sigma).with_prior()
