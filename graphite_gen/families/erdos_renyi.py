"""Erdős–Rényi graphs: every pair is an edge with the same probability."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..graph import SimpleGraph
from .base import Family, largest_component

__all__ = ["ErdosRenyi", "draw_pairs"]


@dataclass(frozen=True)
class ErdosRenyi(Family):
    r"""Each of the :math:`\binom{n}{2}` pairs is an edge independently with probability :math:`p`.

    Attributes:
        p: The probability of an edge.
        largest_component: Keep the largest component of each draw, which may then have fewer than ``n`` nodes.
            Off by default: the published floors are for the law without it.
    """

    name: ClassVar[str] = "erdos-renyi"
    aliases: ClassVar[tuple[str, ...]] = ("er",)
    summary: ClassVar[str] = "every pair is an edge with probability p"

    p: float = 0.5
    largest_component: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise self._refuse_value("p", "a probability between 0 and 1")

    def check_size(self, n: int) -> None:
        if n < 1:
            raise self._refuse_size(n, "pass at least 1")

    def sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        self.check_size(n)
        graph = draw_pairs(n, self.p, rng)

        return largest_component(graph) if self.largest_component else graph


def draw_pairs(n: int, p: float, rng: np.random.Generator) -> SimpleGraph:
    """A graph whose pairs are edges independently with probability ``p``."""
    chosen = np.flatnonzero(rng.random(math.comb(n, 2)) < p)
    # Pairs i<j are numbered in lexicographic order: row i starts at i(2n-i-1)/2.
    starts = np.arange(n) * (2 * n - np.arange(n) - 1) // 2
    i = np.searchsorted(starts, chosen, side="right") - 1
    j = chosen - starts[i] + i + 1

    return SimpleGraph(n, np.stack([i, j], axis=1).astype(np.int32))
