"""Pareto-smoothed importance sampling (PSIS) and its diagnostic k-hat."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["KHAT_LIMIT", "SmoothedWeights", "fit_pareto", "needs_annealing", "nll_curve", "smooth_weights"]

# Above this shape the mean of the weights converges too slowly to be reliable (Vehtari et al., 2024).
KHAT_LIMIT = 0.7
# The fewest weights in the tail to which a Pareto distribution is fitted.
FEWEST = 5
# Log-weights this close differ by rounding only: the proposal is the posterior.
SAME = 1e-4
# With an effective fraction of samples above this, the weights count as equal whatever the shape of their tail.
EQUAL = 0.99


@dataclass(frozen=True)
class SmoothedWeights:
    r"""Importance weights whose tail is smoothed.

    Attributes:
        log_weights: The smoothed log-weights, in the original order, with shape :math:`(K,)`.
        khat: The Pareto shape :math:`\hat{k}` of the largest weights: 0 if all weights are practically equal, infinite
            if a few dominate, None if there are too few weights to fit.
        ess: The effective sample size :math:`(\sum w)^2 / \sum w^2` of the raw weights.
    """

    log_weights: NDArray[np.float64]
    khat: float | None
    ess: float

    @property
    def log_mean(self) -> float:
        """The logarithm of the mean weight."""
        return float(np.logaddexp.reduce(self.log_weights)) - math.log(len(self.log_weights))


def fit_pareto(excesses: NDArray[np.float64]) -> tuple[float, float]:
    r"""Fit a generalised Pareto distribution to positive excesses in ascending order.

    The empirical Bayes estimate of Zhang & Stephens (2009), with the weak prior on the shape of Vehtari et al. (2024,
    appendix C), which stabilises small samples: shape :math:`\hat{k}` and scale :math:`\hat{\sigma}`.
    """
    count = len(excesses)
    points = 30 + int(math.sqrt(count))
    quartile = excesses[int(count / 4 + 0.5) - 1]
    # Candidates for θ = -k/σ, spaced as in the paper.
    theta = 1 / excesses[-1] + (1 - np.sqrt(points / (np.arange(1, points + 1) - 0.5))) / (3 * quartile)
    shapes = np.log1p(-theta[:, None] * excesses).mean(axis=1)
    profile = count * (np.log(-theta / shapes) - shapes - 1)
    weights = np.exp(profile - np.logaddexp.reduce(profile))
    best = float(weights @ theta)
    shape = float(np.log1p(-best * excesses).mean())
    scale = -shape / best

    return (count * shape + 10 * 0.5) / (count + 10), scale


def smooth_weights(log_weights: NDArray[np.float64]) -> SmoothedWeights:
    r"""Smooth importance weights by PSIS.

    The largest :math:`\min(K/5, 3\sqrt{K})` weights are replaced by the quantiles of the Pareto distribution fitted to
    them, capped at the largest raw weight. If the shape is above 0.7 the weights are left unchanged, and the logarithm
    of their mean is a lower bound in expectation.
    """
    raw = np.asarray(log_weights, dtype=np.float64)
    smoothed = raw.copy()
    tail = math.ceil(min(len(raw) / 5, 3 * math.sqrt(len(raw))))
    ess = math.exp(2 * np.logaddexp.reduce(raw) - np.logaddexp.reduce(2 * raw))
    if tail >= FEWEST and ess > EQUAL * len(raw):
        return SmoothedWeights(raw, 0.0, ess)

    return SmoothedWeights(smoothed, _smooth_tail(smoothed, tail) if tail >= FEWEST else None, ess)


def _smooth_tail(log_weights: NDArray[np.float64], tail: int) -> float:
    """Smooth the largest weights in place and return the Pareto shape."""
    order = np.argsort(log_weights, kind="stable")
    largest, cut = log_weights[order[-1]], log_weights[order[-tail - 1]]
    if largest - cut < SAME:
        return 0.0
    # Ties with the cut, and weights that underflow relative to the largest, are not part of the tail.
    excesses = np.exp(log_weights[order[-tail:]] - largest) - math.exp(cut - largest)
    order, excesses = order[-tail:][excesses > 0], excesses[excesses > 0]
    if len(excesses) < FEWEST:
        return math.inf
    khat, scale = fit_pareto(excesses)
    if khat > KHAT_LIMIT:
        return khat
    quantiles = (np.arange(len(excesses)) + 0.5) / len(excesses)
    spread = np.expm1(-khat * np.log1p(-quantiles)) / khat if khat else -np.log1p(-quantiles)
    log_weights[order] = largest + np.minimum(np.log(math.exp(cut - largest) + scale * spread), 0)

    return khat


def needs_annealing(khat: float | None) -> bool:
    """Whether k-hat is too high, or unknown, for importance sampling to be reliable."""
    return khat is None or khat > KHAT_LIMIT


def nll_curve(log_weights: NDArray[np.float64], rng: np.random.Generator) -> tuple[tuple[int, float], ...]:
    r"""The NLL estimated from :math:`K = 1, 10, 100, …` of the same weights, up to all of them.

    The weights are shuffled, because neighbours share a component of the proposal, and split into groups of :math:`K`;
    the NLLs of the groups are averaged. The curve falls to :math:`-\log p(A)`: if it still falls at its end, more
    samples would help. Nothing is smoothed, so every point is an upper bound in expectation.
    """
    shuffled = rng.permutation(log_weights)
    curve = []
    for size in sorted({*(10**power for power in range(len(str(len(shuffled))))), len(shuffled)}):
        groups = shuffled[: len(shuffled) // size * size].reshape(-1, size)
        curve.append((size, float(math.log(size) - np.logaddexp.reduce(groups, axis=1).mean())))

    return tuple(curve)
