"""The distribution of graph sizes, and the Erdős–Rényi baseline of each size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CheckpointError
from ..graph import SimpleGraph

__all__ = ["SizeDistribution"]


@dataclass(frozen=True)
class SizeDistribution:
    """The histogram of sizes of the training graphs: the number of graphs, and of their edges, by size."""

    graphs: Mapping[int, int]
    edges: Mapping[int, int]

    @classmethod
    def of(cls, graphs: Iterable[SimpleGraph]) -> SizeDistribution:
        """The size distribution of graphs."""
        counts: dict[int, int] = {}
        edges: dict[int, int] = {}
        for graph in graphs:
            counts[graph.nodes] = counts.get(graph.nodes, 0) + 1
            edges[graph.nodes] = edges.get(graph.nodes, 0) + len(graph.edges)

        return cls(dict(sorted(counts.items())), dict(sorted(edges.items())))

    @property
    def largest(self) -> int:
        """The largest number of nodes of a training graph."""
        return max(self.graphs)

    def log_prob(self, nodes: int) -> float:
        """log p(n) under the training histogram, in nats."""
        count = self.graphs.get(nodes, 0)

        return math.log(count / sum(self.graphs.values())) if count else -math.inf

    def sample(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Sizes drawn from the training histogram, with shape ``(count,)``."""
        weights = np.array(list(self.graphs.values()), dtype=np.float64)

        return rng.choice(np.array(list(self.graphs)), size=count, p=weights / weights.sum())

    def density(self, nodes: int) -> float:
        """The edge density at a size; over all sizes if that size never occurred.

        Half an edge and half a non-edge are added, so that it is never 0 or 1.
        """
        sizes = [nodes] if nodes in self.graphs else list(self.graphs)
        edges = sum(self.edges[size] for size in sizes)
        pairs = sum(self.graphs[size] * math.comb(size, 2) for size in sizes)

        return (edges + 0.5) / (pairs + 1)

    def baseline(self, graph: SimpleGraph) -> float:
        """The ER baseline: -log p of a graph under the training density of its size, in nats."""
        density = self.density(graph.nodes)
        absent = math.comb(graph.nodes, 2) - len(graph.edges)

        return -len(graph.edges) * math.log(density) - absent * math.log1p(-density)

    def to_json(self) -> dict[str, list[int]]:
        """A JSON object ``size: [graphs, edges]``."""
        return {str(size): [count, self.edges[size]] for size, count in self.graphs.items()}

    @classmethod
    def from_json(cls, value: Any) -> SizeDistribution:
        """The distribution of such a JSON object."""
        try:
            rows = sorted((int(size), graphs, edges) for size, (graphs, edges) in value.items())
        except (AttributeError, TypeError, ValueError) as error:
            raise CheckpointError(f"The sizes {str(value)[:40]!r} are not 'size: [graphs, edges]'.") from error
        if not rows or not all(_are_counts(*row) for row in rows):
            raise CheckpointError("The sizes of the training graphs are empty or out of range.")

        return cls({size: graphs for size, graphs, _ in rows}, {size: edges for size, _, edges in rows})


def _are_counts(size: int, graphs: Any, edges: Any) -> bool:
    """Whether that many graphs of that size can have that many edges."""
    return (
        type(graphs) is type(edges) is int
        and 1 <= size <= 10**6
        and 1 <= graphs < 2**63
        and 0 <= edges <= graphs * math.comb(size, 2)
    )
