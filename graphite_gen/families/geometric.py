"""Random geometric graphs: points in the unit square, joined when they are close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from .base import Family, largest_component

__all__ = ["Geometric"]


@dataclass(frozen=True)
class Geometric(Family):
    r"""Uniform points in the unit square, an edge wherever two are at distance at most :math:`r`.

    Attributes:
        r: The distance up to which points are joined.
        largest_component: Keep the largest component of each draw, which may then have fewer than ``n`` nodes.
            Off by default: the published floors are for the law without it.
    """

    name: ClassVar[str] = "geometric"
    summary: ClassVar[str] = "uniform points in the unit square, joined up to distance r"
    has_law: ClassVar[bool] = False

    r: float = 0.5
    largest_component: bool = False

    def __post_init__(self) -> None:
        if not self.r > 0:
            raise self._refuse_value("r", "a distance above 0")

    def check_size(self, n: int) -> None:
        if n < 1:
            raise self._refuse_size(n, "pass at least 1")

    def sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        graph, _ = self.sample_with_points(n, rng)

        return largest_component(graph) if self.largest_component else graph

    def sample_with_points(self, n: int, rng: np.random.Generator) -> tuple[SimpleGraph, NDArray[np.float64]]:
        """A graph on all ``n`` nodes and the points it was made from, with shape :math:`(n, 2)`."""
        self.check_size(n)
        points = rng.random((n, 2))

        return self.graph_of(points), points

    def graph_of(self, points: NDArray[np.float64]) -> SimpleGraph:
        """The graph of given points, with shape :math:`(n, 2)`."""
        gaps = points[:, None, :] - points[None, :, :]

        return SimpleGraph.from_adjacency((gaps**2).sum(-1) <= self.r**2)

    def contains(self, graph: SimpleGraph) -> bool:
        raise NotImplementedError
