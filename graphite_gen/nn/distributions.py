"""Distributions over the latents of real nodes, and over their pairs i < j, with values per graph."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ..data.batch import pair_mask
from .operators import masked

__all__ = ["EdgeBernoulli", "EdgeDistribution", "EdgeNormal", "NodeNormal"]

_LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class NodeNormal:
    r"""Independent normal latents of every node: the mean-field family of eq. 6, and the prior.

    Means have shape :math:`(*, N, D)`, to which log standard deviations broadcast, and the mask of real nodes has shape
    :math:`(*, N)`; None if all nodes are real.
    """

    mu: Tensor
    log_sigma: Tensor
    mask: Tensor | None

    @classmethod
    def standard(cls, mask: Tensor, latent: int, dtype: torch.dtype = torch.float32) -> NodeNormal:
        """The prior: a standard normal per real node."""
        zeros = torch.zeros(*mask.shape, latent, dtype=dtype, device=mask.device)

        return cls(zeros, zeros, mask)

    @property
    def sigma(self) -> Tensor:
        """Standard deviations, with shape :math:`(*, N, D)`."""
        return self.log_sigma.exp()

    def sample(self, noise: Tensor) -> Tensor:
        r"""Latents :math:`\mu + \sigma \epsilon` of standard normal noise :math:`\epsilon`, zero at padding nodes."""
        return masked(self.mu + self.sigma * noise, self.mask)

    def log_prob(self, z: Tensor) -> Tensor:
        """Log-density of the latents of real nodes, with shape :math:`(*,)`."""
        terms = -0.5 * ((z - self.mu) * (-self.log_sigma).exp()).square() - self.log_sigma - 0.5 * _LOG_2PI

        return masked(terms.sum(-1, keepdim=True), self.mask).sum((-2, -1))

    def kl_to_standard(self) -> Tensor:
        r"""The divergence :math:`KL(q \| N(0, I))` over real nodes, with shape :math:`(*,)`."""
        return self.kl_by_dimension().sum(-1)

    def kl_by_dimension(self) -> Tensor:
        """The contribution of each dimension to :meth:`kl_to_standard`, with shape :math:`(*, D)`."""
        # log_sigma may be shared by all nodes.
        spread = (2 * self.log_sigma).exp() - 1 - 2 * self.log_sigma

        return 0.5 * masked(self.mu.square() + spread, self.mask).sum(-2)


@dataclass(frozen=True)
class EdgeBernoulli:
    """Independent edges with given log-odds: the factorised observation model of eq. 10, over unordered pairs.

    Logits are symmetric, with shape :math:`(*, N, N)`; the mask of real nodes has shape :math:`(*, N)`.
    """

    logits: Tensor
    mask: Tensor

    def log_prob(self, adj: Tensor) -> Tensor:
        """Log-probability of graphs, in nats, with shape :math:`(*,)`."""
        # log p = a·l - log(1 + e^l), which is exact for both values of a.
        terms = adj * self.logits - F.softplus(self.logits)

        return (terms * pair_mask(self.mask)).sum((-2, -1))

    def log_score_of_cells(self, adj: Tensor) -> Tensor:
        """Sum over all cells of the padded matrix, diagonal and padding included, with shape :math:`(*,)`.

        Table 1 of the paper averages this score, with self-loops as edges. It counts every pair twice and is not a
        normalised distribution over graphs.
        """
        cells = adj + torch.diag_embed(self.mask.to(adj))

        return (cells * self.logits - F.softplus(self.logits)).sum((-2, -1))

    def sample(self, uniform: Tensor) -> Tensor:
        """Adjacency matrices: an edge where uniform noise of shape :math:`(*, N, N)` is below its probability."""
        upper = (uniform < torch.sigmoid(self.logits)) & pair_mask(self.mask)

        return (upper | upper.mT).to(self.logits)


@dataclass(frozen=True)
class EdgeNormal:
    """Independent normal edge weights on all pairs, for weighted graphs: a normalised mean squared error.

    Means are symmetric, with shape :math:`(*, N, N)`; all weights share a scalar log standard deviation.
    """

    mean: Tensor
    log_scale: Tensor
    mask: Tensor

    def log_prob(self, adj: Tensor) -> Tensor:
        """Log-density of weight matrices, in nats, with shape :math:`(*,)`."""
        terms = -0.5 * ((adj - self.mean) * (-self.log_scale).exp()).square() - self.log_scale - 0.5 * _LOG_2PI

        return (terms * pair_mask(self.mask)).sum((-2, -1))

    def sample(self, uniform: Tensor) -> Tensor:
        """Weight matrices: uniform noise of shape :math:`(*, N, N)` through the inverse normal distribution."""
        tiny = torch.finfo(uniform.dtype).eps
        noise = torch.special.ndtri(uniform.clamp(tiny, 1 - tiny))
        upper = (self.mean + self.log_scale.exp() * noise) * pair_mask(self.mask)

        return upper + upper.mT


EdgeDistribution = EdgeBernoulli | EdgeNormal
