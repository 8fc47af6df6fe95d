"""Partially known graphs."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DatasetError
from ..graph import SimpleGraph

__all__ = ["MARK", "STATES", "PartialGraph"]

# The edge attribute with the state of a pair, and the edge and node attributes that mark what is new in a completion.
MARK, SAMPLED, ADDED = "state", "sampled", "added"
STATES = ("present", "absent", "unknown")
# A step of a chain decodes its graph again, at a cost cubic in the nodes: beyond this a step takes minutes.
MAX_NODES = 200


@dataclass(frozen=True, eq=False)
class PartialGraph:
    """A graph with unknown pairs.

    Attributes:
        graph: The nodes and the known edges.
        unknown: The unknown pairs ``i < j`` in lexicographic order, with shape :math:`(U, 2)`; all other pairs are
            known to be non-edges. Those of a directed graph are unknown arcs from i to j.
    """

    graph: SimpleGraph
    unknown: NDArray[np.int64]

    @classmethod
    def from_marks(cls, graph: SimpleGraph, *, unlisted: str | None = None, add_nodes: int = 0) -> PartialGraph:
        """Read the state of each edge from its attribute ``state``: present (the default), absent or unknown.

        Arguments:
            unlisted: The state of pairs that it does not list: ``absent`` or ``unknown``. None is ``unknown`` if it
                lists absent pairs and no unknown ones, and ``absent`` otherwise.
            add_nodes: The number of nodes to add, with all pairs unknown.

        An unknown arc of a directed graph makes the arc back unknown too, unless this is listed itself.
        """
        marks = graph.edge_attributes.get(MARK, [None] * len(graph.edges))
        states = np.array([_state(graph, edge, mark) for edge, mark in enumerate(marks)], dtype=object)
        if unlisted is None:
            unlisted = "unknown" if "absent" in states and "unknown" not in states else "absent"
        if unlisted not in ("absent", "unknown"):
            raise DatasetError(f"'unlisted' is '{unlisted}'; it should be 'absent' or 'unknown'.")
        listed = graph.adjacency()
        unknown = ~listed & (unlisted == "unknown")
        i, j = graph.edges[states == "unknown"].T
        unknown[i, j] = True
        if graph.directed:
            unknown[j, i] |= ~listed[j, i]

        return cls._of(_kept(graph, states == "present"), unknown, add_nodes)

    @classmethod
    def from_pairs(cls, graph: SimpleGraph, unknown: Iterable[Sequence[Any]], *, add_nodes: int = 0) -> PartialGraph:
        """Make some pairs, given by node names, unknown, whether they are edges or not; both ways if directed."""
        names = range(graph.nodes) if graph.names is None else graph.names
        index = {name: i for i, name in enumerate(names)}
        cells = np.zeros((graph.nodes, graph.nodes), dtype=np.bool_)
        for pair in unknown:
            ends = tuple(pair)
            if len(ends) != 2 or any(end not in index for end in ends) or ends[0] == ends[1]:
                raise DatasetError(f"The unknown pair {ends!r} does not consist of two different nodes of the graph.")
            i, j = sorted(index[end] for end in ends)
            cells[i, j] = True
        cells |= cells.T & graph.directed

        return cls._of(_kept(graph, ~cells[tuple(graph.edges.T)]), cells, add_nodes)

    @classmethod
    def _of(cls, graph: SimpleGraph, unknown: NDArray[np.bool_], add_nodes: int) -> PartialGraph:
        if add_nodes < 0:
            raise DatasetError(f"'add_nodes' is {add_nodes}; it should be at least 0.")
        if SAMPLED in graph.edge_attributes or (add_nodes and ADDED in graph.node_attributes):
            name = SAMPLED if SAMPLED in graph.edge_attributes else ADDED
            raise DatasetError(f"The attribute '{name}' is reserved for completed graphs. Rename or drop it first.")
        nodes = graph.nodes + add_nodes
        if nodes > MAX_NODES:
            raise DatasetError(
                f"The graph has {nodes} nodes with those added, and completion takes at most {MAX_NODES}, as its cost "
                f"is cubic in the number of nodes."
            )
        every = np.ones((nodes, nodes), dtype=np.bool_)
        every[: graph.nodes, : graph.nodes] = unknown
        pairs = np.argwhere(every & ~np.eye(nodes, dtype=np.bool_) if graph.directed else np.triu(every, 1))

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
        """Return a mask, True for known pairs, or arcs, and on the diagonal, with shape :math:`(n, n)`."""
        matrix = np.ones((self.nodes, self.nodes), dtype=np.bool_)
        i, j = self.unknown.T
        matrix[i, j] = False

        return matrix if self.graph.directed else matrix & matrix.T

    def completions(self, edges: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return adjacency matrices with given edges at unknown pairs, :math:`(G, n, n)` from :math:`(G, U)`."""
        graphs = np.repeat(self.graph.adjacency()[None], len(edges), 0)
        i, j = self.unknown.T
        graphs[:, i, j] = edges
        if not self.graph.directed:
            graphs[:, j, i] = edges

        return graphs

    def completed(self, edges: NDArray[np.bool_]) -> SimpleGraph:
        """Return the graph with edges at some unknown pairs, with shape :math:`(U,)`, which ``sampled`` marks."""
        graph, new = self.graph, self.unknown[edges].astype(np.int32)
        joined = np.concatenate([graph.edges, new])
        rank = np.lexsort((joined[:, 1], joined[:, 0]))
        columns = _extended(graph.edge_attributes, SAMPLED, len(graph.edges), len(new))
        columns = {key: [column[e] for e in rank] for key, column in columns.items()}
        # Only unit weights get here: weighted graphs are refused.
        weights = None if graph.weights is None else np.concatenate([graph.weights, np.ones(len(new))])[rank]

        return replace(graph, edges=joined[rank], weights=weights, edge_attributes=columns)


def _state(graph: SimpleGraph, edge: int, mark: Any) -> str:
    state = "present" if mark is None else str(mark).strip().lower()
    if state not in STATES:
        i, j = graph.edges[edge].tolist()
        u, v = (i, j) if graph.names is None else (graph.names[i], graph.names[j])
        raise DatasetError(f"The edge {u!r} - {v!r} has '{MARK}' = '{mark}'; it should be one of {', '.join(STATES)}.")

    return state


def _extended(columns: Mapping[str, list[Any]], flag: str, old: int, new: int) -> dict[str, list[Any]]:
    """Attributes of old and new nodes or edges, with a flag that is True for new ones."""
    return {key: column + [None] * new for key, column in columns.items()} | {flag: [False] * old + [True] * new}


def _kept(graph: SimpleGraph, kept: NDArray[np.bool_]) -> SimpleGraph:
    """The graph with some of its edges, without their states."""
    chosen = graph.selected(np.arange(graph.nodes), np.flatnonzero(kept), graph.edges[kept])
    columns = {key: column for key, column in chosen.edge_attributes.items() if key != MARK}

    return replace(chosen, edge_attributes=columns)


def _with_nodes(graph: SimpleGraph, count: int) -> SimpleGraph:
    """The graph with nodes added, marked by the node attribute ``added``."""
    if graph.features is not None:
        raise DatasetError("The graph has node features, and added nodes would have none; 'add_nodes' should be 0.")
    columns = _extended(graph.node_attributes, ADDED, graph.nodes, count)
    names = None if graph.names is None else (*graph.names, *_new_names(graph.names, count))

    return replace(graph, nodes=graph.nodes + count, names=names, node_attributes=columns)


def _new_names(names: tuple[Any, ...], count: int) -> list[Any]:
    """Names that are not in use: further numbers, or ``new1``, ``new2``, …."""
    if all(type(name) is int for name in names):
        first = max(names, default=-1) + 1
        return list(range(first, first + count))
    taken = set(map(str, names))

    return list(
        itertools.islice((name for name in map("new{}".format, itertools.count(1)) if name not in taken), count)
    )
