"""Ego networks: an Erdős–Rényi graph and one node that knows everyone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..graph import SimpleGraph
from .base import Family, shuffled
from .erdos_renyi import draw_pairs

__all__ = ["Ego"]


@dataclass(frozen=True)
class Ego(Family):
    r"""A universal node joined to an Erdős–Rényi graph on the other :math:`n - 1`.

    Attributes:
        p: The probability of an edge between two of the others.
    """

    name: ClassVar[str] = "ego"
    summary: ClassVar[str] = "one node is joined to all, other pairs are edges with probability p"

    p: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.p <= 1:
            raise self._refuse_value("p", "a probability between 0 and 1")

    def check_size(self, n: int) -> None:
        if n < 1:
            raise self._refuse_size(n, "pass at least 1")

    def sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        self.check_size(n)
        spokes = np.stack([np.arange(n - 1), np.full(n - 1, n - 1)], axis=1)

        return shuffled(n, np.concatenate([draw_pairs(n - 1, self.p, rng).edges, spokes]), rng)
