"""Plain figures of a graph: how large, how dense, how clustered, how far across, in how many parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..data.properties import component_labels
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..graph import SimpleGraph
from .descriptors import clustering_coefficients
from .parallel import arrays_of
from .sparse_union import Union

__all__ = ["SUMMARIES", "component_counts", "mean_path_lengths", "summarise_graphs"]

# Paths are measured from so many nodes of a graph, evenly chosen where it has more.
MOST_SOURCES = 1000

Values = NDArray[np.float64]


def mean_path_lengths(graphs: Sequence[SimpleGraph]) -> Values:
    """The mean distance in hops of two nodes that a path joins, not a number where none does, with shape (G,)."""
    return np.array([_mean_path_length(graph) for graph in graphs])


def _mean_path_length(graph: SimpleGraph) -> float:
    step = Union.of([graph]).adjacency.astype(np.float32)
    count = min(graph.nodes, MOST_SOURCES)
    sources = np.linspace(0, graph.nodes - 1, count).astype(np.int64)
    frontier = np.zeros((graph.nodes, count), dtype=np.bool_)
    frontier[sources, np.arange(count)] = True
    reached = frontier.copy()
    hops = total = pairs = 0
    while True:
        frontier = (step @ frontier.astype(np.float32) > 0) & ~reached
        found = int(frontier.sum())
        if not found:
            return total / pairs if pairs else float("nan")
        hops += 1
        total += hops * found
        pairs += found
        reached |= frontier


def component_counts(graphs: Sequence[SimpleGraph]) -> Values:
    """The number of connected components of each graph, with shape (G,)."""
    # Every component is named by one of its nodes.
    return np.array([len(np.unique(component_labels(graph.edges, graph.nodes))) for graph in graphs], dtype=np.float64)


def _nodes(graphs: Sequence[SimpleGraph]) -> Values:
    return np.array([graph.nodes for graph in graphs], dtype=np.float64)


def _edges(graphs: Sequence[SimpleGraph]) -> Values:
    return np.array([len(graph.edges) for graph in graphs], dtype=np.float64)


def _mean_degrees(graphs: Sequence[SimpleGraph]) -> Values:
    return 2 * _edges(graphs) / np.maximum(_nodes(graphs), 1)


def _mean_clustering(graphs: Sequence[SimpleGraph]) -> Values:
    return np.array([row.mean() if len(row) else 0.0 for row in clustering_coefficients(graphs)])


SUMMARIES: Mapping[str, Callable[[Sequence[SimpleGraph]], Values]] = MappingProxyType(
    {
        "nodes": _nodes,
        "edges": _edges,
        "mean degree": _mean_degrees,
        "clustering": _mean_clustering,
        "path length": mean_path_lengths,
        "components": component_counts,
    }
)
"""Every figure by its name."""


def summarise_graphs(graphs: Sequence[SimpleGraph], *, group: ProcessGroup = SINGLE_PROCESS) -> dict[str, Values]:
    """Each figure of each graph, with shape (G,); of processes that share them, each gets all."""
    return dict(arrays_of(graphs, lambda some: {name: summary(some) for name, summary in SUMMARIES.items()}, group))
