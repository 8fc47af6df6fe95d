"""Properties of graphs: connected components, trees, planarity, reciprocity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph

__all__ = [
    "component_labels",
    "has_planar_embedding",
    "is_acyclic",
    "is_connected",
    "is_dag",
    "is_tree",
    "largest_component",
    "reciprocity",
]


def is_connected(graph: SimpleGraph) -> bool:
    """Whether the graph has one component."""
    return len(graph.edges) >= graph.nodes - 1 and not component_labels(graph.edges, graph.nodes).any()


def is_tree(graph: SimpleGraph) -> bool:
    """Whether the graph is connected and has no cycle."""
    return len(graph.edges) == graph.nodes - 1 and is_connected(graph)


def is_acyclic(graph: SimpleGraph) -> bool:
    """Whether the graph is a forest, or, if directed, a DAG."""
    if graph.directed:
        return is_dag(graph.nodes, graph.edges)
    components = len(np.unique(component_labels(graph.edges, graph.nodes)))

    return len(graph.edges) == graph.nodes - components


def reciprocity(graph: SimpleGraph) -> float:
    """The proportion of the arcs of a directed graph whose reverse is an arc too; 0 without arcs."""
    i, j = graph.edges.T.astype(np.int64)

    return float(np.isin(j * graph.nodes + i, i * graph.nodes + j).mean()) if len(i) else 0.0


def largest_component(graph: SimpleGraph) -> SimpleGraph:
    """The subgraph on the largest component (the first in a tie), with nodes renumbered in order."""
    labels = component_labels(graph.edges, graph.nodes)
    kept = labels == np.argmax(np.bincount(labels)) if graph.nodes else np.zeros(0, dtype=np.bool_)
    number = np.cumsum(kept) - 1
    inside = np.flatnonzero(kept[graph.edges[:, 0]])

    return graph.selected(np.flatnonzero(kept), inside, number[graph.edges[inside]].astype(np.int32))


def is_dag(nodes: int, arcs: NDArray[np.integer[Any]]) -> bool:
    """Whether a directed graph has no cycle: every node is a strong component of its own."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    source, target = arcs.T
    matrix = coo_array((np.ones(len(arcs)), (source, target)), shape=(nodes, nodes))

    return bool(connected_components(matrix, connection="strong", return_labels=False) == nodes)


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
