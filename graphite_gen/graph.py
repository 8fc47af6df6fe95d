"""The simple graph, undirected or directed: the data type of families, files and models."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import ConfigError, DatasetError
from .records import count_of

if TYPE_CHECKING:
    import igraph
    import networkx as nx

__all__ = [
    "SimpleGraph",
    "as_simple_graph",
    "columns_of",
    "is_finite",
    "is_igraph",
    "is_number",
    "require_undirected",
    "take_features",
    "take_weights",
]

Columns = dict[str, list[Any]]

DRAWN_NODES = 100
"""The largest graphs that are drawn in notebooks."""

# A comparison with the largest number of a type excludes NaN, infinities and integers that are too large.
_MAX_32, _MAX_64 = float(np.finfo(np.float32).max), float(np.finfo(np.float64).max)


def columns_of(rows: Sequence[Mapping[Any, Any] | None]) -> Columns:
    """Columns from rows of attributes, None where a row has no value."""
    keys = dict.fromkeys(key for row in rows if row for key in row)

    return {str(key): [row.get(key) if row else None for row in rows] for key in keys}


def take_weights(
    columns: Columns, edges: NDArray[np.int32], names: Sequence[Any] | None = None
) -> NDArray[np.float64] | None:
    """Remove the column ``weight`` from edge attributes and return it; None if it is not on every edge.

    A weight that is not a finite number raises a ValueError even if others are missing: otherwise a model would
    silently be trained on an unweighted graph. Its message names the edge.
    """
    column = columns.get("weight")
    if not column:
        return None
    for edge, value in zip(edges.tolist(), column, strict=True):
        if value is not None and not is_finite(value):
            u, v = (repr(node if names is None else names[node]) for node in edge)
            raise ValueError(f"edge {u} - {v} has weight {reprlib.repr(value)}, not a finite number.")

    return None if None in column else np.array(columns.pop("weight"), dtype=np.float64)


def take_features(columns: Columns, names: Sequence[Any] | None = None) -> NDArray[np.float32] | None:
    """Remove the column ``features`` from node attributes and return it; None if it is not an array of numbers.

    A feature that is not a finite number raises a ValueError, whose message names the node.
    """
    column = columns.get("features")
    if not column or not all(_is_row(row) and len(row) == len(column[0]) for row in column):
        return None
    for node, row in enumerate(column):
        wrong = next((value for value in row if not _is_within(_MAX_32, value)), None)
        if wrong is not None:
            name = repr(node if names is None else names[node])
            raise ValueError(f"node {name} has feature {reprlib.repr(wrong)}, not a finite number in 32 bits.")

    return np.array(columns.pop("features"), dtype=np.float32)


def is_number(value: Any) -> bool:
    """Whether a value is a number, and no boolean."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_finite(value: Any) -> bool:
    """Whether a value is a finite number in double precision."""
    return is_number(value) and _is_within(_MAX_64, value)


def _is_within(largest: float, value: Any) -> bool:
    # NumPy would compare in the type of the value, in which the limit may be infinite.
    number = value.item() if isinstance(value, np.generic) else value

    return bool(-largest <= number <= largest)


def _is_row(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.ndim == 1 and value.dtype.kind in "biuf"

    return isinstance(value, list | tuple) and all(
        isinstance(item, int | float | np.integer | np.floating | np.bool_) for item in value
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SimpleGraph:
    """A graph without self-loops or repeated edges, on nodes ``0 … nodes-1``.

    A thin wrapper around arrays, created in about a microsecond: readers, writers, families and samplers all exchange
    streams of it.

    Attributes:
        nodes: The number of nodes :math:`n`.
        edges: Node pairs with ``i < j`` in lexicographic order, with shape :math:`(E, 2)`. In a directed graph they are
            arcs (source, target), of which both (i, j) and (j, i) may occur.
        weights: One number per edge, or None for an unweighted graph, with shape :math:`(E,)`.
        features: Node features :math:`X`, or None, with shape :math:`(n, F)`.
        names: The node names; None means ``0 … n-1``.
        node_attributes: Columns of length :math:`n`; None in a column marks a missing value.
        edge_attributes: Columns of length :math:`E`, in the order of ``edges``.
        attributes: Graph attributes, such as ``family`` or ``split``.
        directed: Whether the graph is directed.
    """

    nodes: int
    edges: NDArray[np.int32]
    weights: NDArray[np.float64] | None = None
    features: NDArray[np.float32] | None = None
    names: tuple[Any, ...] | None = None
    node_attributes: Mapping[str, list[Any]] = field(default_factory=dict)
    edge_attributes: Mapping[str, list[Any]] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict)
    directed: bool = False

    def __repr__(self) -> str:
        features = 0 if self.features is None else self.features.shape[1]
        parts = [(self.nodes, "node"), (len(self.edges), "edge"), *[(features, "feature")] * (features > 0)]
        kinds = ["directed"] * self.directed + ["weighted"] * (self.weights is not None)

        return f"SimpleGraph({', '.join([count_of(*part) for part in parts] + kinds)})"

    def _repr_html_(self) -> str:
        return f"{self.picture()}<div>{self!r}</div>"

    def picture(self, size: int = 120) -> str:
        """A drawing in SVG for notebooks; empty for graphs of more than 100 nodes."""
        import networkx as nx

        if self.nodes > DRAWN_NODES:
            return ""
        graph = nx.empty_graph(self.nodes)
        graph.add_edges_from(self.edges.tolist())
        points = nx.spring_layout(graph, seed=0, center=(size / 2, size / 2), scale=size / 2 - 5)
        lines = (
            f"M{points[i][0]:.1f} {points[i][1]:.1f}L{points[j][0]:.1f} {points[j][1]:.1f}" for i, j in graph.edges
        )
        nodes = (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#4477aa"/>' for x, y in points.values())

        return f'<svg width="{size}" height="{size}"><path d="{"".join(lines)}" stroke="#999"/>{"".join(nodes)}</svg>'

    @classmethod
    def from_adjacency(cls, adjacency: ArrayLike) -> SimpleGraph:
        """The graph of a symmetric 0/1 matrix, read above its diagonal, with shape :math:`(n, n)`."""
        matrix = np.asarray(adjacency)

        return cls(len(matrix), np.argwhere(np.triu(matrix, 1)).astype(np.int32))

    @classmethod
    def from_pairs(cls, nodes: int, pairs: ArrayLike, directed: bool = False) -> SimpleGraph:
        """The graph of distinct node pairs in any order, with shape :math:`(E, 2)`; arcs if it is directed."""
        edges = np.asarray(pairs, dtype=np.int32).reshape(-1, 2)
        edges = edges if directed else np.sort(edges, axis=1)

        return cls(nodes, edges[np.lexsort((edges[:, 1], edges[:, 0]))], directed=directed)

    def adjacency(self) -> NDArray[np.bool_]:
        """The adjacency matrix, with shape :math:`(n, n)`: symmetric, or True at (i, j) for an arc from i to j."""
        matrix = np.zeros((self.nodes, self.nodes), dtype=np.bool_)
        i, j = self.edges.T
        matrix[i, j] = True
        if not self.directed:
            matrix[j, i] = True

        return matrix

    def degrees(self) -> NDArray[np.int64]:
        """The number of edges of each node, in- and outgoing ones if directed, with shape :math:`(n,)`."""
        return np.bincount(self.edges.ravel(), minlength=self.nodes)

    @property
    def is_weighted(self) -> bool:
        """Whether some edge has a weight other than one."""
        return self.weights is not None and bool((self.weights != 1).any())

    def unweighted(self) -> SimpleGraph:
        """The same graph without weights."""
        return self if self.weights is None else replace(self, weights=None)

    def skeleton(self) -> SimpleGraph:
        """The undirected graph of the same nodes: directions, weights and edge attributes are dropped.

        Features, names, node attributes and graph attributes are kept. A graph that has nothing to drop is returned
        itself.
        """
        if not self.directed and self.weights is None and not self.edge_attributes:
            return self
        edges = np.unique(np.sort(self.edges, axis=1), axis=0) if self.directed else self.edges

        return replace(self, edges=edges, weights=None, edge_attributes={}, directed=False)

    def permuted(self, order: ArrayLike) -> SimpleGraph:
        """The same graph, including node and edge data, with node ``i`` renumbered ``order[i]``."""
        order = np.asarray(order)
        edges = order[self.edges].astype(np.int32)
        edges = edges if self.directed else np.sort(edges, axis=1)
        rank = np.lexsort((edges[:, 1], edges[:, 0]))

        return self.selected(np.argsort(order), rank, edges[rank])

    def selected(self, nodes: NDArray[np.intp], rows: NDArray[np.intp], edges: NDArray[np.int32]) -> SimpleGraph:
        """The graph on ``edges``, with the data of these nodes and of these rows of its edges, in this order."""
        return SimpleGraph(
            len(nodes),
            edges,
            None if self.weights is None else self.weights[rows],
            None if self.features is None else self.features[nodes],
            None if self.names is None else tuple(self.names[i] for i in nodes),
            {key: [column[i] for i in nodes] for key, column in self.node_attributes.items()},
            {key: [column[e] for e in rows] for key, column in self.edge_attributes.items()},
            self.attributes,
            self.directed,
        )

    def to_networkx(self) -> nx.Graph:
        """A networkx graph with attributes ``weight`` and ``features``, and names as nodes; a DiGraph if directed."""
        import networkx as nx

        graph = nx.DiGraph() if self.directed else nx.Graph()
        graph.graph.update(self.attributes)
        graph.add_nodes_from(range(self.nodes))
        pairs = self.edges.tolist()
        if self.weights is None:
            graph.add_edges_from(pairs)
        else:
            graph.add_weighted_edges_from((i, j, w) for (i, j), w in zip(pairs, self.weights.tolist(), strict=True))
        for key, column in self.edge_attributes.items():
            values = zip(map(tuple, pairs), column, strict=True)
            nx.set_edge_attributes(graph, {pair: value for pair, value in values if value is not None}, key)
        features = {} if self.features is None else {"features": self.features.tolist()}
        for key, column in {**self.node_attributes, **features}.items():
            nx.set_node_attributes(graph, {i: value for i, value in enumerate(column) if value is not None}, key)

        return graph if self.names is None else nx.relabel_nodes(graph, dict(enumerate(self.names)))

    def to_igraph(self) -> igraph.Graph:
        """An igraph graph; names are the vertex attribute ``name``, weights and features attributes as in networkx."""
        try:
            import igraph
        except ImportError:
            raise ConfigError("igraph is not installed: 'pip install igraph'.") from None
        named = {} if self.names is None else {"name": list(self.names)}
        features = {} if self.features is None else {"features": self.features.tolist()}
        weights = {} if self.weights is None else {"weight": self.weights.tolist()}

        return igraph.Graph(
            self.nodes,
            self.edges.tolist(),
            directed=self.directed,
            graph_attrs=dict(self.attributes),
            vertex_attrs={**named, **self.node_attributes, **features},
            edge_attrs={**self.edge_attributes, **weights},
        )

    @classmethod
    def from_igraph(cls, graph: igraph.Graph) -> SimpleGraph:
        """A graph from igraph, as :meth:`from_networkx`; distinct values of the vertex attribute ``name`` are names."""
        own = graph.to_networkx()
        for _, data in own.nodes(data=True):
            del data["_igraph_index"]
        for *_, data in own.edges(data=True):
            del data["_igraph_index"]
        found = cls.from_networkx(own)
        names = found.node_attributes.get("name", ())
        if found.names is not None or len({*names, None}) <= len(names):
            return found

        columns = {key: column for key, column in found.node_attributes.items() if key != "name"}

        return replace(found, names=tuple(names), node_attributes=columns) if names else found

    @classmethod
    def from_networkx(cls, graph: nx.Graph) -> SimpleGraph:
        """A graph from networkx, with nodes in the same order; directed from a DiGraph.

        The edge attribute ``weight`` becomes the weights if every edge has one, the node attribute ``features`` the
        features if every node has a list of numbers of the same length.

        Raises:
            DatasetError: The graph is not simple, or a weight or feature is not a finite number.
        """
        directed = graph.is_directed()
        if graph.is_multigraph():
            simple = f"networkx.{'DiGraph' if directed else 'Graph'}(graph)"
            raise DatasetError(f"The graph is a multigraph; expected a simple one, such as {simple}.")
        names = list(graph)
        index = {name: i for i, name in enumerate(names)}
        pairs = ((index[u], index[v], data) for u, v, data in graph.edges(data=True))
        ends = pairs if directed else ((min(i, j), max(i, j), data) for i, j, data in pairs)
        rows = sorted(ends, key=lambda row: row[:2])
        loop = next((i for i, j, _ in rows if i == j), None)
        if loop is not None:
            raise DatasetError(f"Node {names[loop]!r} has a self-loop; expected a simple graph.")

        edges = np.array([row[:2] for row in rows], dtype=np.int32).reshape(-1, 2)
        edge_columns = columns_of([row[2] for row in rows])
        node_columns = columns_of([graph.nodes[name] for name in names])
        try:
            weights, features = take_weights(edge_columns, edges, names), take_features(node_columns, names)
        except ValueError as error:
            raise DatasetError(f"The graph's {error}") from None
        own_names = None if names == list(range(len(names))) else tuple(names)

        return cls(
            len(names), edges, weights, features, own_names, node_columns, edge_columns, dict(graph.graph), directed
        )


def is_igraph(graph: object) -> bool:
    """Whether an object is a graph of python-igraph, which need not be installed."""
    return type(graph).__module__.split(".")[0] == "igraph" and hasattr(graph, "to_networkx")


def as_simple_graph(graph: SimpleGraph | nx.Graph | igraph.Graph) -> SimpleGraph:
    """Convert a networkx or igraph graph to a :class:`SimpleGraph`, which is returned as it is.

    Raises:
        DatasetError: It is neither, or not a simple graph.
    """
    if isinstance(graph, SimpleGraph):
        return graph
    if is_igraph(graph):
        return SimpleGraph.from_igraph(graph)
    if not hasattr(graph, "is_multigraph"):
        found = " ".join(repr(graph).split())[:80]
        raise DatasetError(f"Expected networkx graphs, such as a list of them; found {type(graph).__name__} {found}.")

    return SimpleGraph.from_networkx(graph)


def require_undirected(graph: SimpleGraph, name: str = "The graph") -> SimpleGraph:
    """The graph itself, for functions that are not defined on directed graphs.

    Raises:
        DatasetError: The graph is directed.
    """
    if graph.directed:
        raise DatasetError(f"{name} is directed; expected an undirected graph.", reason="directed-graph")

    return graph
