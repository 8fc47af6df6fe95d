r"""The volume of the point placements that give a geometric graph, by tempered sequential Monte Carlo (SMC)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph

__all__ = ["PlacementVolume"]

Array = NDArray[np.float64]
# An inverse temperature and the scale of the Metropolis proposals for it.
Level = tuple[float, float]

# Added to the energy of each pair on the wrong side, so that most placements are valid at the last levels.
FAULT = 0.1
SWEEPS = 2
PILOT_PARTICLES = 300
# The relative ESS that a step of the pilot run leaves, and the fraction of valid placements at which it ends.
PILOT_ESS = 0.95
PILOT_VALID = 0.6
MAX_LEVELS = 500
MAX_BETA = 400.0


class PlacementVolume:
    r"""Estimates of :math:`p(A \mid n)`, the volume of the placements in the unit square that give the graph.

    All points move together, from uniform to valid placements, through distributions :math:`π_t(x) ∝ \exp(-β_t E(x))`.
    The energy :math:`E` sums over pairs by how much they are on the wrong side of the radius.
    """

    def __init__(self, graph: SimpleGraph, r: float) -> None:
        self.nodes = graph.nodes
        self.square = r**2
        # Positive for edges (can be too long), negative for other pairs (can be too close), 0 on the diagonal.
        signs = np.where(graph.adjacency(), 1.0, -1.0) + np.eye(graph.nodes)
        self.rates = signs[..., None] / self.square

    def plan(self, rng: np.random.Generator) -> list[Level]:
        """Levels from a pilot run; an estimate that adapted its own levels would be biased."""
        x = rng.random((2, self.nodes, PILOT_PARTICLES))
        energies = self._energies(x)
        levels: list[Level] = []
        beta, scale = 0.0, 0.3
        while (energies < FAULT / 2).mean() <= PILOT_VALID and len(levels) < MAX_LEVELS and beta < MAX_BETA:
            step = _next_step(energies)
            beta += step
            levels.append((beta, scale))
            x = x.take(_draw(np.exp(-step * (energies - energies.min())), rng), axis=-1)
            accepted = self._move(x, levels[-1], rng, range(self.nodes))
            energies = self._energies(x)
            scale = float(np.clip(scale * math.exp(1.5 * (accepted - 0.3)), 0.01, 0.5))

        return levels

    def estimate(
        self, levels: list[Level], particles: int, rng: np.random.Generator, points: Array | None = None
    ) -> float:
        r"""The logarithm of an estimate :math:`\hat{p}`, in nats.

        Without points :math:`E[\hat{p}] = p`, so its logarithm is a lower bound in expectation. With points from the
        posterior given the graph, one particle follows a path that ends in them (conditional SMC, Andrieu et al.,
        2010); then :math:`E[1 / \hat{p}] = 1 / p`, and the logarithm is an upper bound in expectation.
        """
        path = None if points is None else self._path_to(points, levels, rng)
        x = rng.random((2, self.nodes, particles))
        if path is not None:
            x[..., 0] = path[0]
        energies = self._energies(x)

        log_volume, before = 0.0, 0.0
        for t, level in enumerate(levels, start=1):
            log_weights = -(level[0] - before) * energies
            top = log_weights.max()
            weights = np.exp(log_weights - top)
            log_volume += float(top) + math.log(weights.mean())
            chosen = _draw(weights, rng)
            if path is not None:
                chosen[0] = 0
            x = x.take(chosen, axis=-1)
            self._move(x, level, rng, range(self.nodes))
            if path is not None:
                x[..., 0] = path[t]
            energies = self._energies(x)
            before = level[0]

        valid = float((energies < FAULT / 2).mean())

        return log_volume + math.log(valid) if valid > 0 else -math.inf

    def _path_to(self, points: Array, levels: list[Level], rng: np.random.Generator) -> list[Array]:
        """The conditioned path, from before the first level to these points, by moves in reverse order."""
        x = points.T[..., None].copy()
        path = [x[..., 0].copy()]
        for level in reversed(levels):
            self._move(x, level, rng, range(self.nodes - 1, -1, -1))
            path.append(x[..., 0].copy())

        return path[::-1]

    # Placements ``x`` have shape (2, n, K) and energies shape (K,).
    def _energies(self, x: Array) -> Array:
        return np.asarray(
            sum((self._energy_of_node(x, x[:, j], j) for j in range(self.nodes)), np.zeros(x.shape[-1])) / 2
        )

    def _energy_of_node(self, x: Array, place: Array, j: int) -> Array:
        """The energy of the pairs of node ``j`` if it were at ``place``, with shape :math:`(K,)`."""
        # The hot loop: in place, as new arrays would take four times as long.
        faults, other = x[0] - place[0], x[1] - place[1]
        faults *= faults
        other *= other
        faults += other
        faults -= self.square
        faults *= self.rates[j]
        wrong = faults > 0
        faults += FAULT
        faults *= wrong

        return np.asarray(faults.sum(axis=0))

    def _move(self, x: Array, level: Level, rng: np.random.Generator, order: range) -> float:
        """Metropolis sweeps over the nodes, in place; returns the acceptance rate.

        Each move is reversible, so that sweeps in the opposite order reverse the kernel.
        """
        beta, scale = level
        accepted = 0.0
        for _ in range(SWEEPS):
            for j in order:
                place = x[:, j] + scale * rng.standard_normal(x[:, j].shape)
                rise = self._energy_of_node(x, place, j) - self._energy_of_node(x, x[:, j], j)
                inside = ((place >= 0) & (place <= 1)).all(axis=0)
                moves = inside & (rng.standard_exponential(len(rise)) > beta * rise)
                x[:, j] = np.where(moves, place, x[:, j])
                accepted += float(moves.mean())

        return accepted / (SWEEPS * self.nodes)


def _draw(weights: Array, rng: np.random.Generator) -> NDArray[np.int64]:
    """Multinomial resampling."""
    return rng.choice(len(weights), len(weights), p=weights / weights.sum())


def _next_step(energies: Array) -> float:
    """The largest increase of the inverse temperature that keeps the relative ESS, by bisection."""
    low, high = 0.0, MAX_BETA
    for _ in range(40):
        middle = (low + high) / 2
        weights = np.exp(-middle * (energies - energies.min()))
        effective = weights.sum() ** 2 / (weights**2).sum() / len(weights)
        low, high = (middle, high) if effective > PILOT_ESS else (low, middle)

    return high
