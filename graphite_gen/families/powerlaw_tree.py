"""Trees with power-law degrees, as networkx builds them: caterpillars with a sorted spine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from .base import Family, shuffled

__all__ = ["PowerlawTree"]


@dataclass(frozen=True)
class PowerlawTree(Family):
    r"""A caterpillar tree whose degrees follow a power law.

    Degrees are independent with :math:`q(k) = (k - ½)^{1-γ} - (k + ½)^{1-γ}` for :math:`k > 1` and
    :math:`q(1) = 1 - 1.5^{1-γ}` (a Pareto variable, rounded), conditioned on :math:`\sum_i (d_i - 1) = n - 2`,
    without which there is no tree. The inner nodes form a path in the order of their degrees; leaves fill it up.

    Attributes:
        gamma: The exponent of the power law.
    """

    name: ClassVar[str] = "powerlaw-tree"
    aliases: ClassVar[tuple[str, ...]] = ("tree",)
    summary: ClassVar[str] = "a caterpillar tree, degrees from a power law with exponent gamma, spine sorted"

    gamma: float = 3.0

    def __post_init__(self) -> None:
        if not 1 < self.gamma < float("inf"):
            raise self._refuse_value("gamma", "an exponent above 1")

    def check_size(self, n: int) -> None:
        if n < 2:
            raise self._refuse_size(n, "pass at least 2")

    def sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        self.check_size(n)

        return shuffled(n, caterpillar(draw_degrees(n, self.gamma, rng)), rng)


def draw_degrees(n: int, gamma: float, rng: np.random.Generator) -> list[int]:
    """Degrees of a tree on ``n`` nodes, drawn one after the other given what is left to share out."""
    q, sums = _degree_law(n, gamma)
    left = n - 2
    degrees = []

    for others, u in zip(range(n - 1, -1, -1), rng.random(n), strict=True):
        weights = (q[: left + 1] * sums[others, left::-1]).cumsum()
        extra = min(int(weights.searchsorted(u * weights[-1], side="right")), left)
        degrees.append(extra + 1)
        left -= extra

    return degrees


def caterpillar(degrees: list[int]) -> list[tuple[int, int]]:
    """The edges of the tree that networkx builds for these degrees: a path of inner nodes by degree, then leaves."""
    spine = sorted(degree for degree in degrees if degree > 1)
    pairs = [(i, i + 1) for i in range(len(spine) + 1)]
    last = len(spine) + 2

    for node, degree in enumerate(spine, start=1):
        pairs += [(node, leaf) for leaf in range(last, last + degree - 2)]
        last += degree - 2

    return pairs


@lru_cache(maxsize=128)
def _degree_law(n: int, gamma: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    r"""The law of :math:`d - 1` and of sums of independent ones.

    Returns:
        The probabilities :math:`q(k + 1)` for :math:`k = 0 … n - 2`, and those of sums: row :math:`i` is the law of
        a sum of :math:`i` terms on the same range, up to a factor per row that keeps large trees from underflowing.
    """
    tails = np.concatenate([[1.0], (np.arange(1, n) + 0.5) ** (1 - gamma)])
    q = tails[:-1] - tails[1:]
    sums = np.zeros((n, n - 1))
    sums[0, 0] = 1.0
    for i in range(1, n):
        row = np.convolve(sums[i - 1], q)[: n - 1]
        sums[i] = row / row.max()

    return q, sums
