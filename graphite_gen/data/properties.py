"""Properties of graphs: connected components, trees, planarity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph

__all__ = ["component_labels", "has_planar_embedding", "is_acyclic", "is_connected", "is_tree", "largest_component"]


def is_connected(graph: SimpleGraph) -> bool:
    """Whether the graph has one component."""
    return len(graph.edges) >= graph.nodes - 1 and not component_labels(graph.edges, graph.nodes).any()


def is_tree(graph: SimpleGraph) -> bool:
    """Whether the graph is connected and has no cycle."""
    return len(graph.edges) == graph.nodes - 1 and is_connected(graph)


def is_acyclic(graph: SimpleGraph) -> bool:
    """Whether the graph is a forest; whether it has no directed cycle if it is directed."""
    if graph.directed:
        return _strong_components(graph) == graph.nodes
    components = len(np.unique(component_labels(graph.edges, graph.nodes)))

    return len(graph.edges) == graph.nodes - components


def _strong_components(graph: SimpleGraph) -> int:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    arcs = csr_array((np.ones(len(graph.edges)), graph.edges.T), shape=(graph.nodes, graph.nodes))

    return int(connected_components(arcs, connection="strong")[0])


def largest_component(graph: SimpleGraph) -> SimpleGraph:
    """The subgraph on the largest component (the first in a tie), with nodes renumbered in order."""
    labels = component_labels(graph.edges, graph.nodes)
    kept = labels == np.argmax(np.bincount(labels)) if graph.nodes else np.zeros(0, dtype=np.bool_)
    number = np.cumsum(kept) - 1
    inside = np.flatnonzero(kept[graph.edges[:, 0]])

    return graph.selected(np.flatnonzero(kept), inside, number[graph.edges[inside]].astype(np.int32))


def component_labels(edges: NDArray[np.integer[Any]], nodes: int) -> NDArray[np.int64]:
    """The smallest node of each node's component, with shape :math:`(n,)`.

    Union-find on arrays: every node starts as its own root, the larger of two roots joined by an edge is attached to
    the smaller one, and paths are compressed, until all edges are within one root.
    """
    roots = np.arange(nodes)
    i, j = edges.T
    while len(i):
        a, b = roots[i], roots[j]
        np.minimum.at(roots, np.maximum(a, b), np.minimum(a, b))
        while (roots != roots[roots]).any():
            roots = roots[roots]
        apart = roots[i] != roots[j]
        i, j = i[apart], j[apart]

    return roots


def has_planar_embedding(graph: SimpleGraph) -> bool:
    """Whether the graph is planar, connected or not."""
    if graph.nodes >= 3 and len(graph.edges) > 3 * graph.nodes - 6:
        return False
    import networkx as nx

    return bool(nx.check_planarity(nx.Graph(graph.edges.tolist()))[0])
