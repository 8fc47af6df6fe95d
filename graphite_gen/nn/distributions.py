"""Distributions over node latents and over graphs; each knows ``log_prob`` and ``sample``.

Everything is per graph: dummy nodes, the diagonal and the lower triangle are not part of any law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from ..data.batch import pair_mask

__all__ = ["EdgeBernoulli", "EdgeDistribution", "EdgeNormal", "NodeNormal"]

_LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class NodeNormal:
    r"""Independent normal latents of every node (eq. 6).

    Attributes:
        mu: Means, with shape :math:`(*, N, D)`.
        log_sigma: Logarithms of the standard deviations, with the same shape or one that broadcasts to it.
        mask: True for real nodes, with shape :math:`(*, N)`.
    """

    mu: Tensor
    log_sigma: Tensor
    mask: Tensor

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
        r"""The latents :math:`\mu + \sigma \epsilon` of standard normal noise; zero at dummy nodes.

        Arguments:
            noise: :math:`\epsilon`, with shape :math:`(*, N, D)`.
        """
        return (self.mu + self.sigma * noise) * self.mask.unsqueeze(-1).to(noise)

    def log_prob(self, z: Tensor) -> Tensor:
        """The log-density of the real nodes' latents, with shape :math:`(*,)`."""
        terms = -0.5 * ((z - self.mu) * (-self.log_sigma).exp()).square() - self.log_sigma - 0.5 * _LOG_2PI

        return (terms.sum(-1) * self.mask.to(terms)).sum(-1)

    def kl_to_standard(self) -> Tensor:
        r"""The divergence :math:`KL(q \| N(0, I))` over real nodes, with shape :math:`(*,)`."""
        # Summed apart: nodes may share their deviations.
        spread = ((2 * self.log_sigma).exp() - 1 - 2 * self.log_sigma).sum(-1)

        return 0.5 * ((self.mu.square().sum(-1) + spread) * self.mask.to(self.mu)).sum(-1)


@dataclass(frozen=True)
class EdgeBernoulli:
    """Independent edges with given odds (eq. 10), one number per unordered pair.

    Attributes:
        logits: Symmetric log-odds, with shape :math:`(*, N, N)`.
        mask: True for real nodes, with shape :math:`(*, N)`.
    """

    logits: Tensor
    mask: Tensor

    def log_prob(self, adj: Tensor) -> Tensor:
        """The log-probability of graphs, in nats, with shape :math:`(*,)`."""
        # log p = a·l - log(1 + e^l), which is exact for both values of a.
        terms = adj * self.logits - F.softplus(self.logits)

        return (terms * pair_mask(self.mask)).sum((-2, -1))

    def log_score_of_cells(self, adj: Tensor) -> Tensor:
        """The sum over all cells of the padded matrix, diagonal and dummy nodes included, with shape :math:`(*,)`.

        This is what Table 1 of the paper averages (self-loops count as edges); it counts every pair twice and is
        not a law over graphs.
        """
        cells = adj + torch.diag_embed(self.mask.to(adj))

        return (cells * self.logits - F.softplus(self.logits)).sum((-2, -1))

    def sample(self, uniform: Tensor) -> Tensor:
        """Graphs from uniform noise: an edge where the noise is below its probability.

        Arguments:
            uniform: Noise in [0, 1), read above the diagonal, with shape :math:`(*, N, N)`.
        """
        upper = (uniform < torch.sigmoid(self.logits)) & pair_mask(self.mask)

        return (upper | upper.mT).to(self.logits)


@dataclass(frozen=True)
class EdgeNormal:
    """Independent normal weights on all pairs, for weighted graphs: mean squared error plus its normaliser.

    Attributes:
        mean: Symmetric means, with shape :math:`(*, N, N)`.
        log_scale: The logarithm of the one standard deviation, a scalar.
        mask: True for real nodes, with shape :math:`(*, N)`.
    """

    mean: Tensor
    log_scale: Tensor
    mask: Tensor

    def log_prob(self, adj: Tensor) -> Tensor:
        """The log-density of weight matrices, in nats, with shape :math:`(*,)`."""
        terms = -0.5 * ((adj - self.mean) * (-self.log_scale).exp()).square() - self.log_scale - 0.5 * _LOG_2PI

        return (terms * pair_mask(self.mask)).sum((-2, -1))

    def sample(self, uniform: Tensor) -> Tensor:
        """Weight matrices from uniform noise, by the inverse of the normal law.

        Arguments:
            uniform: Noise in [0, 1), read above the diagonal, with shape :math:`(*, N, N)`.
        """
        tiny = torch.finfo(uniform.dtype).eps
        noise = torch.special.ndtri(uniform.clamp(tiny, 1 - tiny))
        upper = (self.mean + self.log_scale.exp() * noise) * pair_mask(self.mask)

        return upper + upper.mT


EdgeDistribution = EdgeBernoulli | EdgeNormal
