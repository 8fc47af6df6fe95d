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
    directed = {part.directed for part in parts}
    if len(directed) > 1:
        raise OutputError("There is no union of directed and undirected graphs.")
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
    edge_columns = _stacked([part.edge_attributes for part in parts], counts)
    features = _concatenated([part.features for part in parts], nodes, node_columns, "features")
    weights = _concatenated([part.weights for part in parts], counts, edge_columns, "weight")
    edges = edges.astype(np.int32)

    return SimpleGraph(sum(nodes), edges, weights, features, None, node_columns, edge_columns, common, *directed)


def _stacked(tables: Sequence[Mapping[str, list[Any]]], lengths: Sequence[int]) -> dict[str, list[Any]]:
    """The columns of all graphs, None where a graph has no such column."""
    keys = dict.fromkeys(key for table in tables for key in table)

    return {key: joined([table.get(key) for table in tables], lengths) for key in keys}


def _concatenated(arrays: Sequence[Any], lengths: Sequence[int], columns: dict[str, list[Any]], name: str) -> Any:
    """The arrays as one; None, and their rows as a column, if one is missing or they differ in width."""
    filled = [array for array, length in zip(arrays, lengths, strict=True) if length]
    widths = {None if array is None else array.shape[1:] for array in filled}
    if len(widths) == 1 and None not in widths:
        return np.concatenate(filled)
    if any(array is not None for array in arrays):
        columns[name] = joined([None if array is None else array.tolist() for array in arrays], lengths)

    return None


def joined(columns: Sequence[Sequence[Any] | None], lengths: Sequence[int]) -> list[Any]:
    """The values of all columns, None where a column is missing."""
    return [
        value
        for column, length in zip(columns, lengths, strict=True)
        for value in ([None] * length if column is None else column)
    ]
