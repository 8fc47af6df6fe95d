"""Disjoint union of graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import OutputError
from ..graph import SimpleGraph
from .build import MAX_NODES

__all__ = ["disjoint_union", "joined"]


def disjoint_union(graphs: Iterable[SimpleGraph]) -> SimpleGraph:
    """The disjoint union of graphs.

    The node attribute ``graph`` is the index of the graph of a node, ``name`` its name in that graph. Graph attributes
    on which all graphs agree stay graph attributes, the others become node attributes.
    """
    parts = list(graphs)
    nodes, counts = [part.nodes for part in parts], [len(part.edges) for part in parts]
    if sum(nodes) > MAX_NODES:
        raise OutputError(f"The union has {sum(nodes)} nodes; at most {MAX_NODES} are supported.")

    shifts = np.cumsum([0, *nodes])
    edges = np.concatenate([part.edges + shift for part, shift in zip(parts, shifts[:-1], strict=True)])
    keys = dict.fromkeys(key for part in parts for key in part.attributes)
    first = parts[0].attributes
    common = {key: first.get(key) for key in keys if all(part.attributes.get(key) == first.get(key) for part in parts)}
    own = [{key: [part.attributes.get(key)] * part.nodes for key in keys if key not in common} for part in parts]
    names = [name for part in parts for name in (range(part.nodes) if part.names is None else part.names)]

    node_columns = {
        **_stacked(own, nodes),
        **_stacked([part.node_attributes for part in parts], nodes),
        **({"name": names} if any(part.names for part in parts) else {}),
        "graph": np.repeat(np.arange(len(parts)), nodes).tolist(),
    }
    features = _concatenated([part.features for part in parts if part.nodes])
    if features is None and any(part.features is not None for part in parts):
        node_columns["features"] = _listed([part.features for part in parts], nodes)
    edge_columns = _stacked([part.edge_attributes for part in parts], counts)
    weights = _concatenated([part.weights for part in parts if len(part.edges)])
    if weights is None and any(part.weights is not None for part in parts):
        edge_columns["weight"] = _listed([part.weights for part in parts], counts)
    edges = edges.astype(np.int32)

    return SimpleGraph(sum(nodes), edges, weights, features, None, node_columns, edge_columns, common)


def _stacked(tables: Sequence[Mapping[str, list[Any]]], lengths: Sequence[int]) -> dict[str, list[Any]]:
    """The columns of all graphs, None where a graph has no such column."""
    keys = dict.fromkeys(key for table in tables for key in table)

    return {key: joined([table.get(key) for table in tables], lengths) for key in keys}


def _concatenated(arrays: Sequence[Any]) -> Any:
    """The arrays as one, or None if one is missing or they differ in width."""
    if not arrays or any(array is None for array in arrays) or len({array.shape[1:] for array in arrays}) > 1:
        return None

    return np.concatenate(arrays)


def _listed(arrays: Sequence[Any], lengths: Sequence[int]) -> list[Any]:
    return joined([None if array is None else array.tolist() for array in arrays], lengths)


def joined(columns: Sequence[Sequence[Any] | None], lengths: Sequence[int]) -> list[Any]:
    """The values of all columns, None where a column is missing."""
    return [
        value
        for column, length in zip(columns, lengths, strict=True)
        for value in ([None] * length if column is None else column)
    ]
