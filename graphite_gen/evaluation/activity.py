"""Whether latents carry information about their graphs: KL divergence, active units and mutual information."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from ..data.encoded import EncodedGraph
from ..records import Record
from ..rng import stream

__all__ = ["LatentActivity", "latent_activity"]

ACTIVE_VARIANCE = 0.01
# Nodes whose posteriors stand for the aggregate posterior.
NODES = 1000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LatentActivity(Record):
    """What the latents of some graphs carry.

    Attributes:
        kl: The mean KL divergence of posterior and prior, in nats per graph.
        active_units: The number of latent dimensions whose posterior mean has a variance above 0.01 over all nodes
            (Burda et al., 2016).
        mutual_information: An estimate of an upper bound on the mutual information of graphs and latents, in nats per
            graph (:func:`latent_activity`).
    """

    kl: float
    active_units: int
    mutual_information: float


def latent_activity(encoded: Sequence[EncodedGraph], seed: int = 0) -> LatentActivity:
    r"""The activity of the latents of graphs, whose standard deviations are positive.

    The KL divergence from the prior is the mutual information plus the divergence of the aggregate posterior (Hoffman &
    Johnson, 2016). As graphs differ in size and their nodes have no order, the aggregate is taken over single nodes,
    :math:`\bar{q}(z) = E_{A,i}[q(z_i | A)]`:

    .. math:: I(A; Z) \le E_A[KL(q(Z | A) \| p(Z))] - E[n] \, KL(\bar{q}(z) \| p(z))

    This is an equality if latents of different nodes are independent in the aggregate and the encoder has no random
    features; otherwise the bound also counts the information about these. The last term is estimated from
    one draw for each of up to 1000 nodes and the mixture of their posteriors, so that the information about a node is
    at most the logarithm of their number: where latents tell more, the estimate is too low and no bound.
    """
    mean = np.concatenate([one.mean for one in encoded]).astype(np.float64)
    std = np.concatenate([one.std for one in encoded]).astype(np.float64)
    divergences = 0.5 * (mean**2 + std**2 - 1 - 2 * np.log(std)).sum(1)
    rng = stream(seed, "activity")
    chosen = rng.permutation(len(mean))[:NODES]
    aggregate = _aggregate_divergence(mean[chosen], std[chosen], rng.standard_normal((len(chosen), mean.shape[1])))
    kl = float(divergences.sum() / len(encoded))

    return LatentActivity(
        kl=kl,
        active_units=int((mean.var(0) > ACTIVE_VARIANCE).sum()),
        # A divergence is not negative, but its estimate may be.
        mutual_information=max(0.0, kl - max(0.0, aggregate) * len(mean) / len(encoded)),
    )


def _aggregate_divergence(mean: Floats, std: Floats, noise: Floats) -> float:
    """The KL divergence of a mixture of normal distributions from the standard normal, from a draw of each."""
    z = mean + std * noise
    log_density = np.zeros((len(z), len(z)))
    for own, mu, sigma in zip(z.T, mean.T, std.T, strict=True):
        log_density -= 0.5 * ((own[:, None] - mu) / sigma) ** 2 + np.log(sigma)

    return float((logsumexp(log_density, axis=1) - math.log(len(z)) + 0.5 * (z**2).sum(1)).mean())
