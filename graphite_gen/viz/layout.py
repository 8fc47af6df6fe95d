"""Node positions, shared by figures, reports and the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ..errors import DatasetError
from ..graph import SimpleGraph

__all__ = ["MAX_NODES", "check_drawable", "place_nodes"]

MAX_NODES = 1000
"""The largest graphs that are drawn: edges of larger ones cover each other."""

# Kamada-Kawai gives better drawings, but takes seconds for larger graphs.
KAMADA_KAWAI_NODES = 150
# Space between components, in mean edge lengths.
GAP = 0.8

Points = NDArray[np.float64]


def check_drawable(graph: SimpleGraph, index: int) -> None:
    """Raise a :class:`DatasetError` if a graph has more than :data:`MAX_NODES` nodes."""
    if graph.nodes > MAX_NODES:
        message = f"Graph {index} has {graph.nodes} nodes; graphs of at most {MAX_NODES} nodes are drawn."
        facts = {"index": index, "nodes": graph.nodes, "most": MAX_NODES}
        raise DatasetError(message, reason="graph-too-large-to-draw", **facts)


def place_nodes(graph: SimpleGraph) -> Points:
    r"""Positions within :math:`[-1, 1]^2`, with shape :math:`(n, 2)`; deterministic.

    Each component is laid out by networkx: Kamada-Kawai, or Fruchterman-Reingold for large components. Components are
    packed in rows, the largest first.
    """
    if not graph.nodes:
        return np.zeros((0, 2))
    whole = nx.empty_graph(graph.nodes)
    whole.add_edges_from(graph.edges.tolist())
    components = sorted(map(sorted, nx.connected_components(whole)), key=len, reverse=True)
    parts = [
        _place_component(nx.convert_node_labels_to_integers(whole.subgraph(nodes), ordering="sorted"))
        for nodes in components
    ]
    points = np.zeros((graph.nodes, 2))
    for nodes, part, corner in zip(components, parts, _pack(parts), strict=True):
        points[nodes] = part - part.min(0) + corner
    points -= (points.max(0) + points.min(0)) / 2

    return points / (np.abs(points).max() or 1.0)


def _place_component(component: nx.Graph) -> Points:
    """Positions of the nodes of a connected graph, scaled to a mean edge length of 1."""
    if len(component) == 1:
        return np.zeros((1, 2))
    small = len(component) <= KAMADA_KAWAI_NODES
    found = nx.kamada_kawai_layout(component) if small else nx.spring_layout(component, seed=0)
    points = np.array([found[node] for node in range(len(component))])
    # Principal axes: the longer side is horizontal.
    points = points @ np.linalg.svd(points - points.mean(0), full_matrices=False)[2].T
    i, j = np.array(component.edges).T

    return np.asarray(points / np.linalg.norm(points[i] - points[j], axis=1).mean())


def _pack(parts: Sequence[Points]) -> list[Points]:
    """The lower left corner of each component, in rows about as long as the packing is high."""
    sizes = [np.ptp(part, axis=0) + GAP for part in parts]
    longest = max([np.sqrt(sum(size.prod() for size in sizes)), *(size[0] for size in sizes)])
    corners, x, y, height = [], 0.0, 0.0, 0.0
    for size in sizes:
        if x and x + size[0] > longest + 1e-9:
            x, y, height = 0.0, y - height, 0.0
        corners.append(np.array([x, y - size[1]]))
        x, height = x + size[0], max(height, size[1])

    return corners
