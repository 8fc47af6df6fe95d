"""Whether a graph can be drawn in the plane."""

from __future__ import annotations

from .graph import SimpleGraph

__all__ = ["has_plane_drawing"]


def has_plane_drawing(graph: SimpleGraph) -> bool:
    """Whether the graph can be drawn in the plane without crossings."""
    if graph.nodes >= 3 and len(graph.edges) > 3 * graph.nodes - 6:
        return False
    import networkx as nx

    return bool(nx.check_planarity(nx.Graph(graph.edges.tolist()))[0])
