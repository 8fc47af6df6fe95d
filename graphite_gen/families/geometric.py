"""Random geometric graphs: points in the unit square, joined when they are close."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data.properties import is_connected, largest_component
from ..errors import FamilyError
from ..graph import SimpleGraph, as_simple_graph
from ..rng import stream
from .base import Family
from .placements import PlacementVolume

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Geometric"]

Points = NDArray[np.float64]

# How far from the radius the search first tries to keep every pair, as a part of it; then closer and closer.
MARGINS = (0.02, 0.004, 0.0005)
RESTARTS = 40


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
    # Points come independently: an arriving node is any node, and all there is to learn is where the others lie.
    ordering: ClassVar[str] = "uniform"
    has_log_prob: ClassVar[bool] = False
    most_judged: ClassVar[int | None] = 30

    r: float = 0.5
    largest_component: bool = False

    def __post_init__(self) -> None:
        if not self.r > 0:
            raise self._refuse_value("r", "a distance above 0")

    def _check_size(self, n: int) -> None:
        if n < 1:
            raise self._refuse_size(n, "pass at least 1")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        graph, _ = self.sample_with_points(n, rng)

        return largest_component(graph) if self.largest_component else graph

    def sample_with_points(self, n: int, rng: np.random.Generator) -> tuple[SimpleGraph, Points]:
        """A graph on all ``n`` nodes and the points it was made from, with shape :math:`(n, 2)`."""
        self.check_size(n)
        points = rng.random((n, 2))

        return self.graph_of(points), points

    def graph_of(self, points: Points) -> SimpleGraph:
        """The graph of given points, with shape :math:`(n, 2)`."""
        gaps = points[:, None, :] - points[None, :, :]

        return SimpleGraph.from_adjacency((gaps**2).sum(-1) <= self.r**2)

    def _contains(self, graph: SimpleGraph) -> bool:
        """Whether points in the unit square were found that give exactly this graph.

        True is certain. False is certain where a forbidden subgraph was found; otherwise it means that the search of
        :meth:`find_points` came to nothing, which is rare for true geometric graphs of 20 nodes or fewer.
        """
        if graph.nodes < 1 or (self.largest_component and not is_connected(graph)):
            return False

        return self.find_points(graph, stream(0, "placement")) is not None

    def find_points(
        self, graph: SimpleGraph | nx.Graph, rng: np.random.Generator, restarts: int = RESTARTS
    ) -> Points | None:
        """Points that give exactly this graph, with shape :math:`(n, 2)`, or None if none were found.

        Distances in hops, drawn in the plane by classical scaling and turned at random, are a first guess. A
        quasi-Newton method then moves all points until no edge is too long and no other pair too close. Later
        guesses also scatter the worst points of the best attempt.
        """
        graph = as_simple_graph(graph)
        search = _Search(graph, self.r)
        for attempt in range(restarts):
            # Most searches succeed at once: look for a reason to give up only when they do not.
            if attempt == 2 and _has_forbidden_subgraph(graph):
                return None
            scatter = attempt % 2 == 1
            points = search.improve(search.scattered(rng) if scatter else search.guess(rng, 0.05 + 0.02 * attempt))
            if points is not None and np.array_equal(self.graph_of(points).edges, graph.edges):
                return points

        return None

    def log_prob_bounds(
        self,
        graph: SimpleGraph | nx.Graph,
        rng: np.random.Generator,
        particles: int = 1000,
        points: Points | None = None,
    ) -> tuple[float, float]:
        r"""A lower and an upper bound of :math:`\log p(A \mid n)` in nats, each in expectation.

        Either is one random estimate: for a single graph they may cross by their noise, a few tenths of a nat at 20
        nodes; averaged over graphs they enclose the floor. See :class:`PlacementVolume` for how they are made.

        Arguments:
            graph: The graph.
            rng: The source of randomness.
            particles: How many placements are carried along; more bring the bounds closer.
            points: The points the graph was made from, as :meth:`sample_with_points` gives them, with shape
                :math:`(n, 2)`. Any other points void the upper bound; without them it is infinite.

        Raises:
            FamilyError: The family keeps largest components, or the points do not give the graph.
        """
        if not self.can_draw_nats:
            raise FamilyError(f"The law of '{self.name}' is bounded only with largest_component=false.")
        graph = as_simple_graph(graph)
        if points is not None and not np.array_equal(self.graph_of(points).edges, graph.edges):
            raise FamilyError("The points give another graph: pass those that 'sample_with_points' gave with it.")
        volume = PlacementVolume(graph, self.r)
        levels = volume.plan(rng)
        lower = volume.estimate(levels, particles, rng)

        return lower, math.inf if points is None else volume.estimate(levels, particles, rng, points)

    @property
    def can_draw_nats(self) -> bool:
        """Whether the law is bounded: not where largest components are kept, whose volumes are not."""
        return not self.largest_component

    def _draw_nats(self, n: int, rng: np.random.Generator) -> tuple[float, float]:
        graph, points = self.sample_with_points(n, rng)
        lower, upper = self.log_prob_bounds(graph, rng, points=points)

        return -upper, -lower


class _Search:
    """The search for points of one graph, and the best attempt so far."""

    def __init__(self, graph: SimpleGraph, r: float) -> None:
        n = graph.nodes
        self.r = r
        self.i, self.j = np.triu_indices(n, 1)
        self.edges = graph.adjacency()[self.i, self.j]
        # +1 where a pair can be too far apart, -1 where it can be too close.
        self.signs = np.where(self.edges, 1.0, -1.0)
        self.layout = _layout(_hops(graph.adjacency()))
        self.best = self.layout
        self.best_faults = np.ones(n)
        self.best_loss = np.inf

    def guess(self, rng: np.random.Generator, noise: float) -> Points:
        """The layout, turned at random and shaken, filling the square."""
        angle = 2 * np.pi * rng.random()
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        points = self.layout @ turn + rng.normal(0, noise, self.layout.shape)
        low, high = points.min(axis=0), points.max(axis=0)

        return np.asarray((points - low) / np.maximum(high - low, 1.0e-9))

    def scattered(self, rng: np.random.Generator) -> Points:
        """The best attempt with some points, the worst more often, put anywhere."""
        points = self.best + rng.normal(0, 0.05, self.best.shape)
        moved = rng.random(len(points)) < 3 * self.best_faults / self.best_faults.sum()
        points[moved] = rng.random((int(moved.sum()), 2))

        return np.asarray(points.clip(0, 1))

    def improve(self, points: Points) -> Points | None:
        """Points with every pair on its side of the radius, found from these, or None."""
        from scipy.optimize import minimize

        for margin in MARGINS:
            limits = (self.r * (1 - margin * self.signs)) ** 2
            result = minimize(
                self._loss,
                points.ravel(),
                args=(limits,),
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, 1.0)] * points.size,
                options={"maxiter": 200, "gtol": 1.0e-9, "ftol": 1.0e-13},
            )
            points = result.x.reshape(-1, 2)
            faults = self._faults(points, self.r**2)
            if not faults.any():
                return points
            if result.fun < self.best_loss:
                self.best, self.best_loss = points, result.fun
                self.best_faults = 1.0e-6 + self._per_node(faults)
            # Too far from any solution for a narrower margin to matter.
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
        """By how much the squared distance of each pair is on the wrong side of its limit."""
        squares = ((points[self.i] - points[self.j]) ** 2).sum(axis=1)

        return np.maximum(self.signs * (squares - limits), 0.0)

    def _per_node(self, pairs: NDArray[np.float64], sign: int = 1) -> NDArray[np.float64]:
        """A value per pair summed over the pairs of each node, with a sign for the pair's second node."""
        n = len(self.layout)

        return np.asarray(np.bincount(self.i, pairs, n) + sign * np.bincount(self.j, pairs, n))


def _hops(adjacency: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The number of steps between any two nodes; one more than the largest where there is no way."""
    steps = np.where(np.eye(len(adjacency), dtype=np.bool_), 0.0, np.inf)
    reached = steps == 0
    for step in range(1, len(adjacency)):
        fresh = (reached.astype(np.float32) @ adjacency > 0) & ~reached
        if not fresh.any():
            break
        steps[fresh] = step
        reached |= fresh

    return np.where(reached, steps, steps[reached].max() + 1)


def _layout(distances: NDArray[np.float64]) -> Points:
    """Points in the plane at about these distances (classical scaling), scaled to length one."""
    n = len(distances)
    centre = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ distances**2 @ centre)
    points = np.zeros((n, 2))
    points[:, : min(n, 2)] = vectors[:, -2:] * np.sqrt(values[-2:].clip(0))
    size = np.abs(points).max()

    return points / size if size > 0 else points


def _has_forbidden_subgraph(graph: SimpleGraph) -> bool:
    """Whether the graph has an induced K₁,₆ or K₂,₃, which no points in the plane have at any radius."""
    n = graph.nodes
    neighbours = [0] * n
    for i, j in graph.edges.tolist():
        neighbours[i] |= 1 << j
        neighbours[j] |= 1 << i

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
