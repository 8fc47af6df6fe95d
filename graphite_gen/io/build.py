"""From what a parser found to a :class:`SimpleGraph`: the checks every format shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import FormatError
from ..graph import SimpleGraph, columns_of, take_features, take_weights

__all__ = ["FINITE", "MAX_NODES", "MEND", "Context", "Row", "build_graph"]

MAX_NODES = 10_000_000
"""The most nodes a graph may claim: a damaged header must not claim the machine's memory."""

MEND = "Write the file again, or pass --format if its suffix misleads."
SMALLER = "Pass smaller graphs, or write the file again if its graphs are smaller."
FINITE = "Replace it by a finite number, or leave such values out."
HINT = "pass --simplify to ignore directions and drop self-loops and repeated edges"

_MAX_MESSAGE = 1000

Row = Mapping[str, Any] | None
"""The attributes of one node or edge; None is none."""


@dataclass(frozen=True)
class Context:
    """The file being read: its name for messages, and whether to simplify what is not simple."""

    name: str
    simplify: bool = False

    def error(self, where: str, problem: str) -> FormatError:
        """An error that names the file and the place; the problem says what to do."""
        # What the file says stands in the problem, and may be long.
        text = (
            problem
            if len(problem) <= _MAX_MESSAGE
            else f"{problem[: _MAX_MESSAGE // 2]} … {problem[-_MAX_MESSAGE // 2 :]}"
        )

        return FormatError(f"'{self.name}', {where}: {text}")

    def damage(self, where: str, problem: str) -> FormatError:
        """An error about what no file of that format has, which says what to do with such files."""
        return self.error(where, f"{problem} {MEND}")

    def check_nodes(self, where: str, nodes: int) -> None:
        """Refuse a graph of more nodes than any we hold."""
        if nodes > MAX_NODES:
            raise self.error(where, f"{nodes} nodes in one graph, and at most {MAX_NODES} are read. {SMALLER}")


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

    Edges all carrying a number called ``weight`` make it weighted; nodes all carrying a row of numbers of one length
    called ``features`` give its features.

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
        FormatError: The graph is not simple and the context does not simplify, an id or the size is out of range, or
            a weight or a feature is not a finite number.
    """
    context.check_nodes(where, nodes)
    if directed and not context.simplify:
        raise context.error(where, f"the graph is directed; {HINT}.")

    edges, kept = _simple_edges(context, where, nodes, pairs, names)
    node_columns = columns_of(node_rows)
    edge_columns = columns_of(edge_rows)
    if kept is not None:
        edge_columns = {key: [column[e] for e in kept] for key, column in edge_columns.items()}
    try:
        weights, features = take_weights(edge_columns, edges, names), take_features(node_columns, names)
    except ValueError as error:
        raise context.error(where, f"{error} {FINITE}") from None

    return SimpleGraph(
        nodes,
        edges,
        weights,
        features,
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
        raise context.damage(where, f"an edge ends at node {outside[0]}, and the nodes are 0 to {nodes - 1}.")

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
