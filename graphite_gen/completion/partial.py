"""Graphs that are known in part."""

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
"""The edge attribute that says what is known of a pair."""

SAMPLED = "sampled"
"""The edge attribute of completed graphs that says whether a pair was unknown."""

ADDED = "added"
"""The node attribute of completed graphs that says whether a node is new."""

STATES = ("present", "absent", "unknown")
UNLISTED = ("absent", "unknown")

# Every particle holds a whole matrix, and a step of a chain grows its graph anew, at the cost of the cube of its nodes:
# beyond this a step takes minutes.
MOST_NODES = 200


@dataclass(frozen=True, eq=False)
class PartialGraph:
    """A graph some of whose pairs are not known.

    Attributes:
        graph: Its nodes, and the edges that are known to be there.
        unknown: The pairs ``i < j`` of which nothing is known, in lexicographic order, with shape :math:`(U, 2)`; every
            pair that is neither an edge nor unknown is known to be absent.
    """

    graph: SimpleGraph
    unknown: NDArray[np.int64]

    @classmethod
    def from_marks(cls, graph: SimpleGraph, *, unlisted: str | None = None, add_nodes: int = 0) -> PartialGraph:
        """A graph whose edges say in an attribute ``state`` whether they are present, absent or unknown.

        Arguments:
            graph: The graph; an edge without the attribute is present.
            unlisted: What pairs are that it does not list: ``absent`` or ``unknown``. None is ``unknown`` where it
                lists absent pairs and no unknown ones, as they need no listing otherwise, and ``absent`` elsewhere.
            add_nodes: How many nodes to add, of whose pairs nothing is known.

        Raises:
            DatasetError: A mark is none of the three, or nothing is unknown.
        """
        states = [_state(graph, edge, mark) for edge, mark in enumerate(graph.edge_attributes.get(MARK, []))]
        states = states or ["present"] * len(graph.edges)
        if unlisted is None:
            unlisted = "unknown" if "absent" in states and "unknown" not in states else "absent"
        if unlisted not in UNLISTED:
            raise DatasetError(f"Unlisted pairs cannot be '{unlisted}'. Pass {' or '.join(map(repr, UNLISTED))}.")
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
        """A graph of which some pairs of nodes, by their names, are unknown, whether it has them as edges or not.

        Raises:
            DatasetError: A pair is not one of two of its nodes, or nothing is unknown.
        """
        names = range(graph.nodes) if graph.names is None else graph.names
        index = {name: i for i, name in enumerate(names)}
        cells = np.zeros((graph.nodes, graph.nodes), dtype=np.bool_)
        for pair in unknown:
            ends = tuple(pair)
            if len(ends) != 2 or any(end not in index for end in ends) or ends[0] == ends[1]:
                raise DatasetError(f"The unknown pair {ends!r} is not one of two different nodes of the graph.")
            i, j = sorted(index[end] for end in ends)
            cells[i, j] = True
        columns = {key: column for key, column in graph.edge_attributes.items() if key != MARK}
        plain = replace(graph, edge_attributes=columns)

        return cls._of(_kept(plain, ~cells[tuple(graph.edges.T)]), cells, add_nodes)

    @classmethod
    def _of(cls, graph: SimpleGraph, unknown: NDArray[np.bool_], add_nodes: int) -> PartialGraph:
        if add_nodes < 0:
            raise DatasetError(f"{add_nodes} nodes cannot be added. Pass at least 0.")
        _refuse_marks_of_ours(graph, add_nodes)
        nodes = graph.nodes + add_nodes
        if nodes > MOST_NODES:
            raise DatasetError(
                f"The graph would have {nodes} nodes, and completion takes at most {MOST_NODES}: its work grows with "
                f"their cube. Pass a part of the graph, or add fewer nodes."
            )
        every = np.ones((nodes, nodes), dtype=np.bool_)
        every[: graph.nodes, : graph.nodes] = unknown
        pairs = np.argwhere(np.triu(every, 1))
        if not len(pairs):
            raise DatasetError(
                "No pair of the graph is unknown, so there is nothing to complete. Mark edges with "
                f"'{MARK}' = 'unknown', say that unlisted pairs are unknown ('--unlisted unknown'), or add nodes."
            )

        return cls(_with_nodes(graph, add_nodes) if add_nodes else graph, pairs)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.graph.nodes

    @property
    def names(self) -> tuple[Any, ...]:
        """What the nodes are called."""
        return tuple(range(self.nodes)) if self.graph.names is None else self.graph.names

    def known(self) -> NDArray[np.bool_]:
        """True for pairs that are known, symmetric and True on the diagonal, with shape :math:`(n, n)`."""
        matrix = np.ones((self.nodes, self.nodes), dtype=np.bool_)
        i, j = self.unknown.T
        matrix[i, j] = matrix[j, i] = False

        return matrix

    def completed(self, answers: NDArray[np.bool_]) -> SimpleGraph:
        """The graph with some of the unknown pairs as edges; all its edges say whether they were ``sampled``.

        Arguments:
            answers: True for an edge, with shape :math:`(U,)`.
        """
        new = self.unknown[answers].astype(np.int32)
        edges = np.concatenate([self.graph.edges, new])
        rank = np.lexsort((edges[:, 1], edges[:, 0]))
        columns: dict[str, list[Any]] = {
            key: column + [None] * len(new) for key, column in self.graph.edge_attributes.items()
        }
        columns[SAMPLED] = [False] * len(self.graph.edges) + [True] * len(new)
        # Weights that are all one say nothing, and new edges have none that would.
        weights = None if self.graph.weights is None else np.concatenate([self.graph.weights, np.ones(len(new))])[rank]

        return replace(
            self.graph,
            edges=edges[rank],
            weights=weights,
            edge_attributes={key: [column[e] for e in rank] for key, column in columns.items()},
        )


def _state(graph: SimpleGraph, edge: int, mark: Any) -> str:
    state = "present" if mark is None else str(mark).strip().lower()
    if state not in STATES:
        i, j = graph.edges[edge].tolist()
        u, v = (i, j) if graph.names is None else (graph.names[i], graph.names[j])
        raise DatasetError(f"The edge {u!r} - {v!r} is marked '{mark}'. '{MARK}' may be {', '.join(STATES)}.")

    return state


def _refuse_marks_of_ours(graph: SimpleGraph, add_nodes: int) -> None:
    """Refuse attributes that completed graphs would lose to ours of the same name."""
    if SAMPLED in graph.edge_attributes:
        what = f"edges have an attribute '{SAMPLED}', by which completed graphs tell new edges"
    elif add_nodes and ADDED in graph.node_attributes:
        what = f"nodes have an attribute '{ADDED}', by which completed graphs tell new nodes"
    else:
        return

    raise DatasetError(f"The graph's {what}. Rename or drop it first.")


def _kept(graph: SimpleGraph, kept: NDArray[np.bool_]) -> SimpleGraph:
    """The graph with some of its edges, without their marks."""
    columns = {
        key: [value for value, keep in zip(column, kept, strict=True) if keep]
        for key, column in graph.edge_attributes.items()
        if key != MARK
    }
    weights = None if graph.weights is None else graph.weights[kept]

    return replace(graph, edges=graph.edges[kept], weights=weights, edge_attributes=columns)


def _with_nodes(graph: SimpleGraph, count: int) -> SimpleGraph:
    """The graph with nodes added, which say so in an attribute ``added``."""
    if graph.features is not None:
        raise DatasetError("The graph has node features, and nodes that are added have none. Add no nodes.")
    columns: dict[str, list[Any]] = {key: column + [None] * count for key, column in graph.node_attributes.items()}
    columns[ADDED] = [False] * graph.nodes + [True] * count
    names = None if graph.names is None else (*graph.names, *_new_names(graph.names, count))

    return replace(graph, nodes=graph.nodes + count, names=names, node_attributes=columns)


def _new_names(names: tuple[Any, ...], count: int) -> list[Any]:
    """Names that none of the nodes has: further numbers, or ``new1``, ``new2``, …."""
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
