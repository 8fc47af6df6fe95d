"""Barabási–Albert graphs: new nodes prefer nodes that already have many neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..graph import SimpleGraph
from .base import Family, shuffled

__all__ = ["Barabasi"]


@dataclass(frozen=True)
class Barabasi(Family):
    r"""Preferential attachment as networkx does it.

    It starts with a star on :math:`m + 1` nodes. Each new node then draws old nodes in proportion to their degree
    until it has :math:`m` different ones, and is joined to them.

    Attributes:
        m: The number of old nodes a new one is joined to.
    """

    name: ClassVar[str] = "barabasi"
    aliases: ClassVar[tuple[str, ...]] = ("ba", "barabasi-albert")
    summary: ClassVar[str] = "each new node is joined to m old ones in proportion to their degree"

    m: int = 4

    def __post_init__(self) -> None:
        if self.m < 1:
            raise self._refuse_value("m", "a whole number of at least 1")

    def check_size(self, n: int) -> None:
        if n <= self.m:
            raise self._refuse_size(n, f"pass at least m + 1 = {self.m + 1}")

    def sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        self.check_size(n)
        m = self.m
        pairs = [(0, leaf) for leaf in range(1, m + 1)]
        ends = [0] * m + list(range(1, m + 1))  # every node as often as it has neighbours

        for node in range(m + 1, n):
            targets: set[int] = set()
            while len(targets) < m:
                targets.update(ends[int(u * len(ends))] for u in rng.random(m - len(targets)).tolist())
            pairs += [(target, node) for target in targets]
            ends += targets
            ends += [node] * m

        return shuffled(n, pairs, rng)
