"""Summary statistics of graphs: size, density, clustering, path length, components."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

from ..data.properties import component_labels
from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..graph import SimpleGraph
from .descriptors import clustering_coefficients
from .parallel import arrays_of
from .sparse_union import Union

__all__ = ["mean_path_lengths", "summarise_graphs"]

# The maximum number of source nodes for path lengths, evenly spaced.
MAX_SOURCES = 1000

Values = NDArray[np.float64]


def mean_path_lengths(graphs: Sequence[SimpleGraph]) -> Values:
    """The mean shortest-path length over connected pairs, NaN if there are none, with shape (G,)."""
    means = np.full(len(graphs), np.nan)
    for k, graph in enumerate(graphs):
        sources = np.linspace(0, graph.nodes - 1, min(graph.nodes, MAX_SOURCES)).astype(np.int64)
        if len(graph.edges):
            hops = shortest_path(Union.of([graph]).adjacency, unweighted=True, indices=sources)
            hops = hops[np.isfinite(hops) & (hops > 0)]
            means[k] = hops.mean() if len(hops) else np.nan

    return means


def summarise_graphs(graphs: Sequence[SimpleGraph], *, group: ProcessGroup = SINGLE_PROCESS) -> dict[str, Values]:
    """Summary statistics of each graph, or of its skeleton, by name, with shape (G,), on every process of the group."""
    return dict(arrays_of([graph.skeleton() for graph in graphs], _summaries, group))


def _summaries(graphs: Sequence[SimpleGraph]) -> dict[str, Values]:
    nodes = np.array([graph.nodes for graph in graphs], dtype=np.float64)
    edges = np.array([len(graph.edges) for graph in graphs], dtype=np.float64)
    components = [len(np.unique(component_labels(graph.edges, graph.nodes))) for graph in graphs]

    return {
        "nodes": nodes,
        "edges": edges,
        "mean degree": 2 * edges / np.maximum(nodes, 1),
        "clustering": np.array([row.mean() if len(row) else 0.0 for row in clustering_coefficients(graphs)]),
        "path length": mean_path_lengths(graphs),
        "components": np.array(components, dtype=np.float64),
    }
