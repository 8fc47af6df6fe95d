"""Partially known graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DatasetError
from ..graph import SimpleGraph

__all__ = ["MARK", "STATES", "PartialGraph"]

MARK = "state"
"""The edge attribute with the state of a pair."""

SAMPLED = "sampled"
"""The edge attribute of completed graphs that is true for sampled edges."""

ADDED = "added"
"""The node attribute of completed graphs that is true for added nodes."""

STATES = ("present", "absent", "unknown")
UNLISTED = ("absent", "unknown")

# A step of a chain decodes its graph again, at a cost cubic in the nodes: beyond this a step takes minutes.
MAX_NODES = 200


@dataclass(frozen=True, eq=False)
class PartialGraph:
    """A graph with unknown pairs.

    Attributes:
        graph: The nodes and the known edges.
        unknown: The unknown pairs ``i < j`` in lexicographic order, with shape :math:`(U, 2)`; all other pairs are
            known to be non-edges.
    """

    graph: SimpleGraph
    unknown: NDArray[np.int64]

    @classmethod
    def from_marks(cls, graph: SimpleGraph, *, unlisted: str | None = None, add_nodes: int = 0) -> PartialGraph:
        """Read the state of each edge, present, absent or unknown, from its attribute ``state``.

        Arguments:
            graph: The graph; an edge without the attribute is present.
            unlisted: The state of pairs that it does not list: ``absent`` or ``unknown``. None is ``unknown`` if it
                lists absent pairs and no unknown ones, and ``absent`` otherwise.
            add_nodes: The number of nodes to add, with all pairs unknown.

        Raises:
            DatasetError: A state is none of the three, or no pair is unknown.
        """
        states = [_state(graph, edge, mark) for edge, mark in enumerate(graph.edge_attributes.get(MARK, []))]
        states = states or ["present"] * len(graph.edges)
        if unlisted is None:
            unlisted = "unknown" if "absent" in states and "unknown" not in states else "absent"
        if unlisted not in UNLISTED:
            raise DatasetError(f"'unlisted' is '{unlisted}'; it should be {' or '.join(map(repr, UNLISTED))}.")
        unknown = np.zeros((graph.nodes, graph.nodes), dtype=np.bool_)
        if unlisted == "unknown":
            unknown[:] = ~graph.adjacency()
        marked = np.array([state == "unknown" for state in states], dtype=np.bool_)
        unknown[tuple(graph.edges[marked].T)] = True

        return cls._of(
            _kept(graph, np.array([state == "present" for state in states], dtype=np.bool_)), unknown, add_nodes
        )

    @classmethod
    def from_pairs(cls, graph: SimpleGraph, unknown: Iterable[Sequence[Any]], *, add_nodes: int = 0) -> PartialGraph:
        """Make some pairs, given by node names, unknown, whether they are edges or not.

        Raises:
            DatasetError: A pair is not one of two different nodes, or no pair is unknown.
        """
        names = range(graph.nodes) if graph.names is None else graph.names
        index = {name: i for i, name in enumerate(names)}
        cells = np.zeros((graph.nodes, graph.nodes), dtype=np.bool_)
        for pair in unknown:
            ends = tuple(pair)
            if len(ends) != 2 or any(end not in index for end in ends) or ends[0] == ends[1]:
                raise DatasetError(f"The unknown pair {ends!r} does not consist of two different nodes of the graph.")
            i, j = sorted(index[end] for end in ends)
            cells[i, j] = True
        columns = {key: column for key, column in graph.edge_attributes.items() if key != MARK}
        plain = replace(graph, edge_attributes=columns)

        return cls._of(_kept(plain, ~cells[tuple(graph.edges.T)]), cells, add_nodes)

    @classmethod
    def _of(cls, graph: SimpleGraph, unknown: NDArray[np.bool_], add_nodes: int) -> PartialGraph:
        if add_nodes < 0:
            raise DatasetError(f"'add_nodes' is {add_nodes}; it should be at least 0.")
        _check_attributes(graph, add_nodes)
        nodes = graph.nodes + add_nodes
        if nodes > MAX_NODES:
            raise DatasetError(
                f"The graph has {nodes} nodes with those added, and completion takes at most {MAX_NODES}, as its cost "
                f"is cubic in the number of nodes."
            )
        every = np.ones((nodes, nodes), dtype=np.bool_)
        every[: graph.nodes, : graph.nodes] = unknown
        pairs = np.argwhere(np.triu(every, 1))
        if not len(pairs):
            raise DatasetError(
                f"No pair of the graph is unknown, so there is nothing to complete: no edge has '{MARK}' = 'unknown', "
                f"unlisted pairs are absent, and no nodes are added.",
                reason="nothing-unknown",
            )

        return cls(_with_nodes(graph, add_nodes) if add_nodes else graph, pairs)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.graph.nodes

    @property
    def names(self) -> tuple[Any, ...]:
        """The names of the nodes."""
        return tuple(range(self.nodes)) if self.graph.names is None else self.graph.names

    def known(self) -> NDArray[np.bool_]:
        """Return a symmetric mask, True for known pairs and on the diagonal, with shape :math:`(n, n)`."""
        matrix = np.ones((self.nodes, self.nodes), dtype=np.bool_)
        i, j = self.unknown.T
        matrix[i, j] = matrix[j, i] = False

        return matrix

    def completed(self, edges: NDArray[np.bool_]) -> SimpleGraph:
        """Add edges at unknown pairs, with the edge attribute ``sampled``.

        Arguments:
            edges: True for unknown pairs that become edges, with shape :math:`(U,)`.
        """
        new = self.unknown[edges].astype(np.int32)
        joined = np.concatenate([self.graph.edges, new])
        rank = np.lexsort((joined[:, 1], joined[:, 0]))
        columns: dict[str, list[Any]] = {
            key: column + [None] * len(new) for key, column in self.graph.edge_attributes.items()
        }
        columns[SAMPLED] = [False] * len(self.graph.edges) + [True] * len(new)
        # Only unit weights get here: weighted graphs are refused.
        weights = None if self.graph.weights is None else np.concatenate([self.graph.weights, np.ones(len(new))])[rank]

        return replace(
            self.graph,
            edges=joined[rank],
            weights=weights,
            edge_attributes={key: [column[e] for e in rank] for key, column in columns.items()},
        )


def _state(graph: SimpleGraph, edge: int, mark: Any) -> str:
    state = "present" if mark is None else str(mark).strip().lower()
    if state not in STATES:
        i, j = graph.edges[edge].tolist()
        u, v = (i, j) if graph.names is None else (graph.names[i], graph.names[j])
        raise DatasetError(f"The edge {u!r} - {v!r} has '{MARK}' = '{mark}'; it should be one of {', '.join(STATES)}.")

    return state


def _check_attributes(graph: SimpleGraph, add_nodes: int) -> None:
    """Refuse attributes that completed graphs would overwrite."""
    if SAMPLED in graph.edge_attributes:
        raise DatasetError(f"The edge attribute '{SAMPLED}' is reserved for completed graphs. Rename or drop it first.")
    if add_nodes and ADDED in graph.node_attributes:
        raise DatasetError(f"The node attribute '{ADDED}' is reserved for completed graphs. Rename or drop it first.")


def _kept(graph: SimpleGraph, kept: NDArray[np.bool_]) -> SimpleGraph:
    """The graph with some of its edges, without their states."""
    columns = {
        key: [value for value, keep in zip(column, kept, strict=True) if keep]
        for key, column in graph.edge_attributes.items()
        if key != MARK
    }
    weights = None if graph.weights is None else graph.weights[kept]

    return replace(graph, edges=graph.edges[kept], weights=weights, edge_attributes=columns)


def _with_nodes(graph: SimpleGraph, count: int) -> SimpleGraph:
    """The graph with nodes added, marked by the node attribute ``added``."""
    if graph.features is not None:
        raise DatasetError("The graph has node features, and added nodes would have none; 'add_nodes' should be 0.")
    columns: dict[str, list[Any]] = {key: column + [None] * count for key, column in graph.node_attributes.items()}
    columns[ADDED] = [False] * graph.nodes + [True] * count
    names = None if graph.names is None else (*graph.names, *_new_names(graph.names, count))

    return replace(graph, nodes=graph.nodes + count, names=names, node_attributes=columns)


def _new_names(names: tuple[Any, ...], count: int) -> list[Any]:
    """Names that are not in use: further numbers, or ``new1``, ``new2``, …."""
    if all(type(name) is int for name in names):
        first = max(names, default=-1) + 1
        return list(range(first, first + count))
    taken, number = set(map(str, names)), 1
    new: list[Any] = []
    while len(new) < count:
        if f"new{number}" not in taken:
            new.append(f"new{number}")
        number += 1

    return new
