"""Many graphs as one: their disjoint union."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import OutputError
from ..graph import SimpleGraph
from .build import MAX_NODES

__all__ = ["disjoint_union"]


def disjoint_union(graphs: Iterable[SimpleGraph]) -> tuple[SimpleGraph, int]:
    """The disjoint union of the graphs, and their number.

    Nodes are numbered through; the node attribute ``graph`` is the number of the graph a node came from and ``name``
    the name it had there. A fact common to all graphs stays one, any other becomes a node attribute.
    """
    parts = list(graphs)
    nodes = [part.nodes for part in parts]
    if sum(nodes) > MAX_NODES:
        raise OutputError(f"The union has {sum(nodes)} nodes, and at most {MAX_NODES} are held in one graph.")

    shifts = np.cumsum([0, *nodes])
    edges = np.concatenate([part.edges + shift for part, shift in zip(parts, shifts[:-1], strict=True)])
    keys = dict.fromkeys(key for part in parts for key in part.attributes)
    facts = {key: [part.attributes.get(key) for part in parts] for key in keys}
    common = {key: values[0] for key, values in facts.items() if all(value == values[0] for value in values)}

    node_columns = {
        **{key: _spread(values, nodes) for key, values in facts.items() if key not in common},
        **_stacked([part.node_attributes for part in parts], nodes),
        **({"name": _names(parts)} if any(part.names for part in parts) else {}),
        "graph": _spread(range(len(parts)), nodes),
    }
    features = _together([part.features for part in parts if part.nodes])
    if features is None and any(part.features is not None for part in parts):
        node_columns["features"] = _listed([part.features for part in parts], nodes)
    counts = [len(part.edges) for part in parts]
    edge_columns = _stacked([part.edge_attributes for part in parts], counts)
    weights = _together([part.weights for part in parts if len(part.edges)])
    if weights is None and any(part.weights is not None for part in parts):
        edge_columns["weight"] = _listed([part.weights for part in parts], counts)
    united = SimpleGraph(
        sum(nodes), edges.astype(np.int32), weights, features, None, node_columns, edge_columns, common
    )

    return united, len(parts)


def _spread(values: Sequence[Any], lengths: Sequence[int]) -> list[Any]:
    """Each value as often as its graph is long."""
    return [value for value, length in zip(values, lengths, strict=True) for _ in range(length)]


def _stacked(tables: Sequence[Mapping[str, list[Any]]], lengths: Sequence[int]) -> dict[str, list[Any]]:
    """The graphs' columns one below the other, None where a graph has no such column."""
    keys = dict.fromkeys(key for table in tables for key in table)

    return {
        key: [
            value
            for table, length in zip(tables, lengths, strict=True)
            for value in (table[key] if key in table else [None] * length)
        ]
        for key in keys
    }


def _names(parts: Sequence[SimpleGraph]) -> list[Any]:
    return [name for part in parts for name in (range(part.nodes) if part.names is None else part.names)]


def _together(arrays: Sequence[Any]) -> Any:
    """The arrays one below the other, or None if one is missing or they are not equally wide."""
    if not arrays or any(array is None for array in arrays) or len({array.shape[1:] for array in arrays}) > 1:
        return None

    return np.concatenate(arrays)


def _listed(arrays: Sequence[Any], lengths: Sequence[int]) -> list[Any]:
    """The arrays' rows as a column, None where an array is missing."""
    return [
        value
        for array, length in zip(arrays, lengths, strict=True)
        for value in ([None] * length if array is None else array.tolist())
    ]
