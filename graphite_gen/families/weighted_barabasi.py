"""Barabási–Albert graphs with log-normal weights that depend on degrees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from .barabasi import Barabasi

__all__ = ["WeightedBarabasi"]

# Within these limits no weight overflows in graphs of 5,000 nodes, and sigma is far above rounding errors.
MAX_EXPONENT, MIN_SIGMA, MAX_SIGMA = 10.0, 0.001, 10.0


@dataclass(frozen=True)
class WeightedBarabasi(Barabasi):
    r"""Preferential attachment with a weight on each edge that depends on the degrees of its ends.

    .. math:: \log w_{uv} \sim \mathcal{N}(\beta \log(d_u d_v), \sigma^2)

    with :math:`\beta` the ``exponent``. Weights have a density, so the entropy is a differential one.
    """

    name: ClassVar[str] = "weighted-barabasi"
    aliases: ClassVar[tuple[str, ...]] = ("weighted-ba",)
    summary: ClassVar[str] = "barabasi with log-normal weights, whose medians are powers of the degrees"
    weighted: ClassVar[bool] = True

    exponent: float = 0.5
    sigma: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not abs(self.exponent) <= MAX_EXPONENT:
            raise self._value_error("exponent", self.exponent, f"between {-MAX_EXPONENT:g} and {MAX_EXPONENT:g}")
        if not MIN_SIGMA <= self.sigma <= MAX_SIGMA:
            raise self._value_error("sigma", self.sigma, f"between {MIN_SIGMA:g} and {MAX_SIGMA:g}")

    def _sample(self, n: int, rng: np.random.Generator) -> SimpleGraph:
        graph = super()._sample(n, rng)
        noise = rng.standard_normal(len(graph.edges))

        return SimpleGraph(n, graph.edges, np.exp(self._log_means(graph) + self.sigma * noise))

    def _contains(self, graph: SimpleGraph) -> bool:
        return _are_positive(graph) and super()._contains(graph)

    def _log_prob(self, graph: SimpleGraph) -> float:
        return sum(self._log_prob_parts(graph).values())

    def _log_prob_parts(self, graph: SimpleGraph) -> dict[str, float]:
        return {"structure": super()._log_prob(graph), "weights": self._log_prob_of_weights(graph)}

    def _log_prob_of_weights(self, graph: SimpleGraph) -> float:
        if not _are_positive(graph):
            return -math.inf
        log_weights = np.log(graph.weights)  # type: ignore[arg-type]
        z = (log_weights - self._log_means(graph)) / self.sigma
        log_scale = math.log(self.sigma) + math.log(2 * math.pi) / 2

        return -float((log_weights + z**2 / 2 + log_scale).sum())

    def _draw_nats(self, n: int, rng: np.random.Generator) -> tuple[float, float]:
        """With the entropy of the weights given the graph, in closed form: its mean has a smaller error."""
        graph = super()._sample(n, rng)
        given_graph = self._log_means(graph) + math.log(2 * math.pi * math.e * self.sigma**2) / 2
        nats = float(given_graph.sum()) - super()._log_prob(graph)

        return nats, nats

    def _log_means(self, graph: SimpleGraph) -> NDArray[np.float64]:
        """The means of the logarithms of weights, with shape :math:`(E,)`."""
        return np.asarray(self.exponent * np.log(graph.degrees()[graph.edges]).sum(axis=1))


def _are_positive(graph: SimpleGraph) -> bool:
    return graph.weights is not None and bool(((graph.weights > 0) & (graph.weights < math.inf)).all())
