"""Random geometric graphs: points in the unit square, joined if they are close."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.properties import is_connected, largest_component
from ..errors import FamilyError
from ..graph import SimpleGraph
from ..rng import stream
from .base import Family, neighbour_masks
from .placements import PlacementVolume

__all__ = ["Geometric"]

Points = NDArray[np.float64]

# Distances from the radius that the search keeps all pairs at, relative to it, one after the other.
MARGINS = (0.02, 0.004, 0.0005)
RESTARTS = 40
OPTIONS = {"maxiter": 200, "gtol": 1.0e-9, "ftol": 1.0e-13}


@dataclass(frozen=True)
class Geometric(Family):
    r"""Uniform points in the unit square, joined up to distance :math:`r`.

    With ``largest_component`` only the largest component of a sample is kept, which may have fewer than ``n`` nodes.
    """

    name: ClassVar[str] = "geometric"
    summary: ClassVar[str] = "uniform points in the unit square, joined up to distance r"
    has_log_prob: ClassVar[bool] = False
    max_checked: ClassVar[int | None] = 30

    r: float = 0.5
    largest_component: bool = False

    def __post_init__(self) -> None:
        if not self.r > 0:
            raise self._value_error("r", self.r, "above 0")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        graph, _ = self.sample_with_points(n, rng)

        return largest_component(graph) if self.largest_component else graph

    def sample_with_points(self, n: int, rng: np.random.Generator) -> tuple[SimpleGraph, Points]:
        """A graph on all ``n`` nodes and its points, with shape :math:`(n, 2)`."""
        self.check_size(n)
        points = rng.random((n, 2))

        return self.graph_of(points), points

    def graph_of(self, points: Points) -> SimpleGraph:
        """The graph of points with shape :math:`(n, 2)`."""
        gaps = points[:, None, :] - points[None, :, :]

        return SimpleGraph.from_adjacency((gaps**2).sum(-1) <= self.r**2)

    def _contains(self, graph: SimpleGraph) -> bool:
        """Whether points in the unit square were found that give exactly this graph.

        False is certain if the graph has a forbidden subgraph; otherwise :meth:`find_points` failed, which is rare for
        geometric graphs of up to 20 nodes.
        """
        if graph.nodes < 1 or (self.largest_component and not is_connected(graph)):
            return False

        return self.find_points(graph, stream(0, "placement")) is not None

    def find_points(self, graph: SimpleGraph, rng: np.random.Generator) -> Points | None:
        """Points that give exactly this graph, with shape :math:`(n, 2)`, or None if none were found.

        L-BFGS-B moves all points until no edge is too long and no other pair too close, from classical scaling of the
        shortest-path distances, rotated at random. Every other restart scatters the worst points of the best attempt.
        """
        search = _Search(graph, self.r)
        for attempt in range(RESTARTS):
            # Most searches succeed at once, so the slow check for forbidden subgraphs comes later.
            if attempt == 2 and _has_forbidden_subgraph(graph):
                return None
            scatter = attempt % 2 == 1
            points = search.improve(search.scattered(rng) if scatter else search.guess(rng, 0.05 + 0.02 * attempt))
            if points is not None and np.array_equal(self.graph_of(points).edges, graph.edges):
                return points

        return None

    def log_prob_bounds(
        self, graph: SimpleGraph, rng: np.random.Generator, particles: int = 1000, points: Points | None = None
    ) -> tuple[float, float]:
        r"""Lower and upper bounds, in expectation, on :math:`\log p(A \mid n)` in nats; see :class:`PlacementVolume`.

        For a single graph they can cross by a few tenths of a nat at 20 nodes; their means enclose the expectation.
        The upper bound is valid for the points that the graph was sampled with, and infinite without points.
        """
        if self.largest_component:
            raise self._intractable_error("and has bounds only with largest_component=false")
        if points is not None and not np.array_equal(self.graph_of(points).edges, graph.edges):
            raise FamilyError("The points do not give this graph; 'sample_with_points' returns both.")
        volume = PlacementVolume(graph, self.r)
        levels = volume.plan(rng)
        lower = volume.estimate(levels, particles, rng)

        return lower, math.inf if points is None else volume.estimate(levels, particles, rng, points)

    @property
    def can_draw_nats(self) -> bool:
        return not self.largest_component

    def _draw_nats(self, n: int, rng: np.random.Generator) -> tuple[float, float]:
        graph, points = self.sample_with_points(n, rng)
        lower, upper = self.log_prob_bounds(graph, rng, points=points)

        return -upper, -lower


class _Search:
    """A search for points of one graph that remembers its best attempt."""

    def __init__(self, graph: SimpleGraph, r: float) -> None:
        self.r = r
        self.i, self.j = np.triu_indices(graph.nodes, 1)
        # +1 where a pair can be too far apart, -1 where it can be too close.
        self.signs = np.where(graph.adjacency()[self.i, self.j], 1.0, -1.0)
        self.layout = _layout(graph)
        self.best = self.layout
        self.best_faults = np.ones(graph.nodes)
        self.best_loss = np.inf

    def guess(self, rng: np.random.Generator, noise: float) -> Points:
        """The layout, rotated at random, with noise, scaled to the square."""
        angle = 2 * np.pi * rng.random()
        rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        points = self.layout @ rotation + rng.normal(0, noise, self.layout.shape)
        low, high = points.min(axis=0), points.max(axis=0)

        return np.asarray((points - low) / np.maximum(high - low, 1.0e-9))

    def scattered(self, rng: np.random.Generator) -> Points:
        """The best attempt with some points, mostly the worst, moved to uniform positions."""
        points = self.best + rng.normal(0, 0.05, self.best.shape)
        moved = rng.random(len(points)) < 3 * self.best_faults / self.best_faults.sum()
        points[moved] = rng.random((int(moved.sum()), 2))

        return np.asarray(points.clip(0, 1))

    def improve(self, points: Points) -> Points | None:
        """Points with all pairs on the right side of the radius, by optimisation from these, or None."""
        from scipy.optimize import minimize

        for margin in MARGINS:
            limits = (self.r * (1 - margin * self.signs)) ** 2
            square = [(0.0, 1.0)] * points.size
            result = minimize(self._loss, points.ravel(), (limits,), "L-BFGS-B", True, bounds=square, options=OPTIONS)
            points = result.x.reshape(-1, 2)
            faults = self._faults(points, self.r**2)
            if not faults.any():
                return points
            if result.fun < self.best_loss:
                self.best, self.best_loss = points, result.fun
                self.best_faults = 1.0e-6 + self._per_node(faults)
            # Too far from a solution for a smaller margin to help.
            if result.fun > 0.08 * self.r**4:
                return None

        return None

    def _loss(self, flat: NDArray[np.float64], limits: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The sum of squared faults and its gradient."""
        points = flat.reshape(-1, 2)
        faults = self._faults(points, limits)
        pulls = (4 * faults * self.signs)[:, None] * (points[self.i] - points[self.j])
        gradient = np.stack([self._per_node(pulls[:, k], -1) for k in range(2)], axis=1)

        return float((faults**2).sum()), gradient.ravel()

    def _faults(self, points: Points, limits: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """The amount by which the squared distance of each pair is on the wrong side of its limit."""
        squares = ((points[self.i] - points[self.j]) ** 2).sum(axis=1)

        return np.maximum(self.signs * (squares - limits), 0.0)

    def _per_node(self, pairs: NDArray[np.float64], sign: int = 1) -> NDArray[np.float64]:
        """Pair values summed over the pairs of each node, those of the second node multiplied by ``sign``."""
        n = len(self.layout)

        return np.asarray(np.bincount(self.i, pairs, n) + sign * np.bincount(self.j, pairs, n))


def _layout(graph: SimpleGraph) -> Points:
    """Classical scaling of shortest-path distances to the plane, scaled to a maximum coordinate of 1."""
    from scipy.sparse.csgraph import shortest_path

    n = graph.nodes
    hops = shortest_path(graph.adjacency(), unweighted=True)
    # Components are one further apart than the most distant nodes of any.
    hops = np.where(np.isfinite(hops), hops, hops[np.isfinite(hops)].max() + 1)
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ hops**2 @ centre)
    points = np.zeros((n, 2))
    points[:, : min(n, 2)] = vectors[:, -2:] * np.sqrt(values[-2:].clip(0))
    size = np.abs(points).max()

    return points / size if size > 0 else points


def _has_forbidden_subgraph(graph: SimpleGraph) -> bool:
    """Whether the graph has an induced K₁,₆ or K₂,₃, which no geometric graph in the plane has."""
    n = graph.nodes
    neighbours = neighbour_masks(graph)

    def has_independent(candidates: int, size: int) -> bool:
        while size and candidates.bit_count() >= size:
            last = candidates.bit_length() - 1
            candidates ^= 1 << last
            if has_independent(candidates & ~neighbours[last], size - 1):
                return True
        return size == 0

    apart = [(i, j) for i in range(n) for j in range(i) if not neighbours[i] >> j & 1]

    return any(has_independent(neighbours[i] & neighbours[j], 3) for i, j in apart) or any(
        has_independent(mask, 6) for mask in neighbours
    )
