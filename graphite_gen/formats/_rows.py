"""A graph's columns as the rows that text formats write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..graph import SimpleGraph

__all__ = ["edge_rows", "node_rows"]


def node_rows(graph: SimpleGraph) -> list[dict[str, Any]] | None:
    """What each node carries, features included; None if no node carries anything."""
    features = {} if graph.features is None else {"features": graph.features.tolist()}

    return _rows({**graph.node_attributes, **features}, graph.nodes)


def edge_rows(graph: SimpleGraph) -> list[dict[str, Any]] | None:
    """What each edge carries, its weight included; None if no edge carries anything."""
    weights = {} if graph.weights is None else {"weight": graph.weights.tolist()}

    return _rows({**graph.edge_attributes, **weights}, len(graph.edges))


def _rows(columns: Mapping[str, list[Any]], length: int) -> list[dict[str, Any]] | None:
    if not columns:
        return None

    return [{key: column[row] for key, column in columns.items() if column[row] is not None} for row in range(length)]
