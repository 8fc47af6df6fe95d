r"""Mixtures of normal distributions of standardised numbers: densities of real and positive ones, masses of whole ones.

With a location :math:`m` and a scale :math:`s`, ``real`` numbers have :math:`y = (v - m) / s` and ``positive`` ones
:math:`y = (\log v - m) / s`, so they have a mixture of log-normal distributions. A ``count`` c has the probability that
:math:`\log c \le s y + m < \log (c + 1)`, and an ``integer`` k that :math:`k - 1/2 \le s y + m < k + 1/2`.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["Mixture", "draw", "location_and_scale", "mixture", "mixture_log_prob", "sample_mixture", "unscaled"]

# Standard deviations of components, of standardised numbers, stay within e^±MAX_LOG_STD.
MAX_LOG_STD = 5.0
# The scale of numbers that are all alike, up to rounding errors of this size.
SCALE_OF_CONSTANTS = 1e-3
ROUNDING = 1e-12
# The logarithm that stands for that of zero.
LOWEST = -1e4
MOST_LOG = {"count": 30.0, "positive": 700.0}

Mixture = tuple[Tensor, Tensor, Tensor]
"""Log-probabilities, means and standard deviations of components, each with shape :math:`(*, K)`."""


def mixture(logits: Tensor, mean: Tensor, log_std: Tensor) -> Mixture:
    """The mixture of the outputs of a network, in double precision."""
    logits, mean, log_std = logits.double(), mean.double(), log_std.double()

    return logits.log_softmax(-1), mean, (MAX_LOG_STD * torch.tanh(log_std / MAX_LOG_STD)).exp()


def unscaled(kind: str, values: Tensor) -> Tensor:
    """Numbers before they are standardised."""
    if kind in ("real", "integer"):
        return values

    return torch.log(values if kind == "positive" else values + 0.5)


def location_and_scale(values: Tensor) -> tuple[Tensor, Tensor]:
    """The means and standard deviations of columns of unscaled numbers, with shape :math:`(C,)` from (A, C)."""
    mean = values.mean(0)
    spread = values.std(0) if len(values) > 1 else torch.zeros_like(mean)

    return mean, spread.where(spread > ROUNDING * mean.abs(), SCALE_OF_CONSTANTS)


def mixture_log_prob(kind: str, location: Tensor, scale: Tensor, values: Tensor, components: Mixture) -> Tensor:
    """The log-density of numbers, or the log-probability of whole ones, with the shape of the values."""
    log_weight, mean, std = components
    location, scale = location.unsqueeze(-1), scale.unsqueeze(-1)
    values = values.double().unsqueeze(-1)
    if kind in ("count", "integer"):
        # Zero has the lower tail; an infinite end would have no gradient.
        ends = (
            [torch.log(end).clamp_min(LOWEST) for end in (values, values + 1)]
            if kind == "count"
            else [values - 0.5, values + 0.5]
        )
        low, high = (((end - location) / scale - mean) / std for end in ends)
        return (log_weight + _log_interval(low, high)).logsumexp(-1)
    y = (unscaled(kind, values) - location) / scale
    density = -0.5 * ((y - mean) / std).square() - std.log() - 0.5 * math.log(2 * math.pi)
    slope = -scale.log() - (values.log() if kind == "positive" else 0.0)

    return (log_weight + density + slope).logsumexp(-1)


def sample_mixture(
    kind: str, location: Tensor, scale: Tensor, components: Mixture, uniform: Tensor, normal: Tensor
) -> Tensor:
    """Numbers from noise that chooses components and values, with its shape."""
    log_weight, mean, std = components
    component = draw(log_weight, uniform).unsqueeze(-1)
    y = (mean.gather(-1, component) + std.gather(-1, component) * normal.double().unsqueeze(-1)).squeeze(-1)
    value = location + scale * y
    if kind in ("real", "integer"):
        return value if kind == "real" else (value + 0.5).floor()
    # Larger counts are not exact in double precision, and larger numbers are infinite.
    value = value.clamp(max=MOST_LOG[kind]).exp()

    return value.floor() if kind == "count" else value


def draw(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """Draw one of C classes by inversion, given log-probabilities (*, C) and noise (*)."""
    cumulative = log_probs.double().softmax(-1).cumsum(-1)
    chosen = (cumulative <= uniform.double().unsqueeze(-1) * cumulative[..., -1:]).sum(-1)

    return chosen.clamp(max=log_probs.shape[-1] - 1)


def _log_interval(low: Tensor, high: Tensor) -> Tensor:
    """The log-probability of an interval under the standard normal, also far out."""
    # In the upper half the mirrored interval keeps its precision.
    flip = low > 0
    low, high = torch.where(flip, -high, low), torch.where(flip, -low, high)
    first, second = torch.special.log_ndtr(high), torch.special.log_ndtr(low)

    return first + torch.log(-torch.expm1((second - first).clamp(max=-1e-12)))
