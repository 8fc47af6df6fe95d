"""Summary statistics of graphs: size, density, clustering, path length, components."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from ..data.properties import component_labels
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..graph import SimpleGraph
from .descriptors import clustering_coefficients
from .parallel import arrays_of
from .sparse_union import Union

__all__ = ["SUMMARIES", "component_counts", "mean_path_lengths", "summarise_graphs"]

# The maximum number of source nodes for path lengths, evenly spaced.
MAX_SOURCES = 1000

Values = NDArray[np.float64]


def mean_path_lengths(graphs: Sequence[SimpleGraph]) -> Values:
    """The mean shortest-path length over connected pairs, NaN if there are none, with shape (G,)."""
    return np.array([_mean_path_length(graph) for graph in graphs])


def _mean_path_length(graph: SimpleGraph) -> float:
    if not len(graph.edges):
        return float("nan")
    sources = np.linspace(0, graph.nodes - 1, min(graph.nodes, MAX_SOURCES)).astype(np.int64)
    hops = shortest_path(Union.of([graph]).adjacency, unweighted=True, indices=sources)
    hops = hops[np.isfinite(hops) & (hops > 0)]

    return float(hops.mean()) if len(hops) else float("nan")


def component_counts(graphs: Sequence[SimpleGraph]) -> Values:
    """The number of connected components of each graph, with shape (G,)."""
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
"""Every summary statistic by its name."""


def summarise_graphs(graphs: Sequence[SimpleGraph], *, group: ProcessGroup = SINGLE_PROCESS) -> dict[str, Values]:
    """Each statistic of each graph, with shape (G,), on every process of the group."""
    return dict(arrays_of(graphs, lambda some: {name: summary(some) for name, summary in SUMMARIES.items()}, group))
