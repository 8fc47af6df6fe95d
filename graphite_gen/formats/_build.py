"""From what a parser found to a :class:`SimpleGraph`: the checks every format shares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import FormatError
from ..graph import SimpleGraph

__all__ = ["MAX_NODES", "Context", "Row", "build_graph"]

MAX_NODES = 10_000_000
"""The most nodes a graph may claim: a damaged header must not claim the machine's memory."""

HINT = "pass --simplify to ignore directions and drop self-loops and repeated edges"

Row = Mapping[str, Any] | None
"""The attributes of one node or edge; None is none."""


@dataclass(frozen=True)
class Context:
    """The file being read: its name for messages, and whether to simplify what is not simple."""

    name: str
    simplify: bool = False

    def error(self, where: str, problem: str) -> FormatError:
        """An error that names the file and the place."""
        return FormatError(f"'{self.name}', {where}: {problem}")

    def check_nodes(self, where: str, nodes: int) -> None:
        """Refuse a graph of more nodes than any we hold."""
        if nodes > MAX_NODES:
            raise self.error(where, f"{nodes} nodes in one graph, and at most {MAX_NODES} are read.")


def build_graph(
    context: Context,
    where: str,
    nodes: int,
    pairs: ArrayLike,
    *,
    directed: bool = False,
    names: tuple[Any, ...] | None = None,
    node_rows: Sequence[Row] = (),
    edge_rows: Sequence[Row] = (),
    attributes: Mapping[str, Any] | None = None,
) -> SimpleGraph:
    """The simple graph of the nodes and edges a file lists, in the order it lists them.

    Edges all carrying a number called ``weight`` make it weighted; nodes all carrying ``features`` of one length
    give its features.

    Arguments:
        context: The file.
        where: The graph's place in it.
        nodes: The number of nodes :math:`n`.
        pairs: Node indices, with shape :math:`(E, 2)`.
        directed: Whether the file calls an edge directed.
        names: The nodes' names.
        node_rows: Attributes per node, or none at all.
        edge_rows: Attributes per edge, or none at all.
        attributes: Facts about the graph.

    Raises:
        FormatError: The graph is not simple and the context does not simplify, or an id, a weight or the size is
            out of range.
    """
    context.check_nodes(where, nodes)
    if directed and not context.simplify:
        raise context.error(where, f"the graph is directed; {HINT}.")

    edges, kept = _simple_edges(context, where, nodes, pairs, names)
    node_columns = _columns(node_rows)
    edge_columns = _columns(edge_rows)
    if kept is not None:
        edge_columns = {key: [column[e] for e in kept] for key, column in edge_columns.items()}

    return SimpleGraph(
        nodes,
        edges,
        _take_weights(context, where, edge_columns, edges),
        _take_features(node_columns),
        names,
        node_columns,
        edge_columns,
        {} if attributes is None else attributes,
    )


def _simple_edges(
    context: Context, where: str, nodes: int, pairs: ArrayLike, names: tuple[Any, ...] | None
) -> tuple[NDArray[np.int32], NDArray[np.intp] | None]:
    """Edges in our order and the positions they came from, None if they came in that order."""
    found = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if not len(found):
        return found.astype(np.int32), None

    outside = found[(found < 0) | (found >= nodes)]
    if len(outside):
        raise context.error(where, f"an edge ends at node {outside[0]}, and the nodes are 0 to {nodes - 1}.")

    i, j = found.min(axis=1), found.max(axis=1)
    keys = i * nodes + j
    if (found[:, 0] < found[:, 1]).all() and (keys[1:] > keys[:-1]).all():
        return found.astype(np.int32), None

    order = np.argsort(keys, kind="stable")
    loops, repeats = i == j, np.zeros(len(keys), dtype=np.bool_)
    repeats[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    if not context.simplify and (loops | repeats).any():
        first = int(np.argmax(loops | repeats))
        u, v = (repr(int(node) if names is None else names[node]) for node in found[first])
        problem = f"node {u} is its own neighbour" if loops[first] else f"the edge {u} - {v} is repeated"
        raise context.error(where, f"{problem}; {HINT}.")
    kept = order[~(loops | repeats)[order]]

    return np.stack([i[kept], j[kept]], axis=1).astype(np.int32), kept


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Rows of attributes as columns, None where a row has no value."""
    keys = dict.fromkeys(key for row in rows if row for key in row)

    return {key: [row.get(key) if row else None for row in rows] for key in keys}


def _take_weights(
    context: Context, where: str, columns: dict[str, list[Any]], edges: NDArray[np.int32]
) -> NDArray[np.float64] | None:
    """Take the column ``weight`` out; weights on some edges only stay an edge attribute."""
    column = columns.get("weight")
    if column is None:
        return None
    for edge, value in zip(edges.tolist(), column, strict=True):
        if value is not None and not _is_finite(value):
            raise context.error(where, f"edge {edge[0]} - {edge[1]} has weight {value!r}, not a finite number.")

    return None if None in column or not column else np.array(columns.pop("weight"), dtype=np.float64)


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _take_features(columns: dict[str, list[Any]]) -> NDArray[np.float32] | None:
    """Take the column ``features`` out if it has a row of numbers of one length on every node."""
    column = columns.get("features")
    if column is None or not all(isinstance(row, list) and len(row) == len(column[0]) for row in column):
        return None
    if not all(isinstance(value, int | float) for row in column for value in row):
        return None
    try:
        features = np.array(column, dtype=np.float32)
    except OverflowError:
        return None
    del columns["features"]

    return features.reshape(len(column), -1)
