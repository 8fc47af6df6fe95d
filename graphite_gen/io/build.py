"""Checks that every format shares, between what a parser found and the resulting :class:`SimpleGraph`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import FormatError, OutputError
from ..graph import SimpleGraph, columns_of, take_features, take_weights

__all__ = ["MAX_NODES", "Context", "Row", "build_graph", "pairs_of", "several_graphs"]

MAX_NODES = 10_000_000
"""Most nodes of a graph: a damaged header must not exhaust the memory."""

_MAX_MESSAGE = 1000

Row = Mapping[str, Any] | None
"""Attributes of one node or edge; None for none."""


@dataclass(frozen=True)
class Context:
    """The file being read: its name for messages, and how its graphs are read.

    Attributes:
        name: The name of the file.
        simplify: Whether graphs that are not simple are simplified.
        directed: Whether graphs have to be directed, and are where the file does not say; None for either.
    """

    name: str
    simplify: bool = False
    directed: bool | None = None

    def error(self, where: str, problem: str, reason: str = "") -> FormatError:
        """An error that names the file and the position in it."""
        # The problem may quote the file at any length.
        if len(problem) > _MAX_MESSAGE:
            problem = f"{problem[: _MAX_MESSAGE // 2]} … {problem[-_MAX_MESSAGE // 2 :]}"

        return FormatError(f"'{self.name}', {where}: {problem}", reason=reason, path=self.name, where=where)

    def damage(self, where: str, problem: str) -> FormatError:
        """An error about content that the format does not allow (``file-damaged``)."""
        return self.error(where, problem, "file-damaged")

    def check_nodes(self, where: str, nodes: int) -> None:
        """Refuse a graph with too many nodes."""
        if nodes > MAX_NODES:
            raise self.error(where, f"the graph has {nodes} nodes; at most {MAX_NODES} are supported.")

    def is_directed(self, where: str, stated: bool | None) -> bool:
        """Whether a graph is read as a directed one, given what the file says, if anything; refuse the wrong kind."""
        directed = bool(self.directed) if stated is None else stated
        if directed and self.simplify and not self.directed:
            return False
        if self.directed is not None and directed != self.directed:
            found, expected = ("directed", "an undirected") if directed else ("undirected", "a directed")
            reason = "directed-graph" if directed else ""
            raise self.error(where, f"the graph is {found}; expected {expected} graph.", reason)

        return directed

    def mixed_edges(self, where: str) -> bool:
        """False for a graph of directed and undirected edges whose directions are dropped; otherwise it is refused."""
        if self.simplify and not self.directed:
            return False
        raise self.error(where, "some edges are directed and others are not; expected one kind.", "directed-graph")


def several_graphs(format: str) -> OutputError:
    """The error for several graphs in a format that stores one."""
    remedy = f"write another format, or one file per graph with '{{index:04d}}.{format}'."
    problem = f"The format '{format}' stores one graph, and there are several: {remedy}"

    return OutputError(problem, reason="one-graph-per-file", format=format)


def pairs_of(context: Context, where: str, ids: Sequence[Any], ends: Sequence[Sequence[Any]]) -> list[tuple[int, int]]:
    """Edges between node ids as pairs of node indices."""
    try:
        index = {name: i for i, name in enumerate(ids)}
        if len(index) < len(ids):
            twice = next(name for i, name in enumerate(ids) if index[name] != i)
            raise context.damage(where, f"two nodes have the id {twice!r}.")
        return [(index[u], index[v]) for u, v in ends]
    except KeyError as error:
        raise context.damage(where, f"an edge ends at an unknown node, {error}.") from None
    except TypeError:
        raise context.damage(where, "a node id is an object; expected a number or a string.") from None


def build_graph(
    context: Context,
    where: str,
    nodes: int,
    pairs: ArrayLike,
    *,
    directed: bool | None = False,
    names: tuple[Any, ...] | None = None,
    node_rows: Sequence[Row] = (),
    edge_rows: Sequence[Row] = (),
    attributes: Mapping[str, Any] | None = None,
) -> SimpleGraph:
    """The simple graph with the nodes and edges listed in a file.

    The edge attribute ``weight`` becomes the weights if every edge has a number, the node attribute ``features`` the
    features if every node has a list of numbers of the same length.

    Arguments:
        pairs: Node indices, with shape :math:`(E, 2)`.
        directed: Whether the file says that the graph is directed; None if it does not say.
        node_rows: Attributes of each node, or an empty sequence.
        edge_rows: Attributes of each edge, or an empty sequence.
    """
    context.check_nodes(where, nodes)
    directed = context.is_directed(where, directed)
    edges, kept = _simple_edges(context, where, nodes, pairs, names, directed)
    node_columns, edge_columns = columns_of(node_rows), columns_of(edge_rows)
    if kept is not None:
        edge_columns = {key: [column[e] for e in kept] for key, column in edge_columns.items()}
    try:
        weights, features = take_weights(edge_columns, edges, names), take_features(node_columns, names)
    except ValueError as error:
        raise context.error(where, str(error)) from None

    return SimpleGraph(nodes, edges, weights, features, names, node_columns, edge_columns, attributes or {}, directed)


def _simple_edges(
    context: Context, where: str, nodes: int, pairs: ArrayLike, names: tuple[Any, ...] | None, directed: bool
) -> tuple[NDArray[np.int32], NDArray[np.intp] | None]:
    """Edges in lexicographic order, and their positions in the file; None if they are in order there."""
    found = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
    if not len(found):
        return found.astype(np.int32), None

    outside = found[(found < 0) | (found >= nodes)]
    if len(outside):
        raise context.damage(where, f"an edge ends at node {outside[0]}; nodes are numbered 0 to {nodes - 1}.")

    i, j = found.T if directed else (found.min(axis=1), found.max(axis=1))
    keys = i * nodes + j
    sound = i != j if directed else found[:, 0] < found[:, 1]
    if sound.all() and (keys[1:] > keys[:-1]).all():
        return found.astype(np.int32), None

    order = np.argsort(keys, kind="stable")
    loops, repeats = i == j, np.zeros(len(keys), dtype=np.bool_)
    repeats[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    if not context.simplify and (loops | repeats).any():
        first = int(np.argmax(loops | repeats))
        u, v = (repr(int(node) if names is None else names[node]) for node in found[first])
        edge = f"{u} {'->' if directed else '-'} {v}"
        problem = f"node {u} has a self-loop" if loops[first] else f"the edge {edge} is repeated"
        raise context.error(where, f"{problem}; expected a simple graph.", "needs-simplify")
    kept = order[~(loops | repeats)[order]]

    return np.stack([i[kept], j[kept]], axis=1).astype(np.int32), kept
