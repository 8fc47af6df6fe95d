"""The attributes that a model generates with its graphs: names and values for users, and numbers for networks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CheckpointError, ConfigError, DatasetError, did_you_mean
from ..graph import SimpleGraph
from ..records import typed
from .conditions import Conditions
from .edge_states import arc_codes, edge_state, transposed
from .feature_columns import FEATURES, LARGEST, FeatureColumns

__all__ = ["AttributeSchema", "CodedGraph", "number_of"]

MOST_LABELS = 100
"""The most values of a node label."""
MOST_EDGE_LABELS = 20
"""The most values of an edge label; states of directed edges are pairs of them."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CodedGraph(SimpleGraph):
    """A graph as models read it: an undirected skeleton, numbers for attributes, and conditions as node features.

    Attributes:
        labels: The numbers of node labels, with shape :math:`(n,)`.
        states: The states of edges as seen from their first node (:mod:`.edge_states`), with shape :math:`(E,)`.
        back_states: The same as seen from their second node.
        arc_weights: Weights of the arcs to and fro, NaN for no arc, with shape :math:`(E, 2)`.
        generated: Node features that are generated, with shape :math:`(n, C)`.
    """

    labels: NDArray[np.int64] | None = None
    states: NDArray[np.int64] | None = None
    back_states: NDArray[np.int64] | None = None
    arc_weights: NDArray[np.float64] | None = None
    generated: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class AttributeSchema:
    """What the graphs of a model carry.

    Attributes:
        node_label: The name of the node attribute that is generated; None for none.
        node_values: Its values.
        edge_label: The name of the edge attribute that is generated; None for none.
        edge_values: Its values.
        directed: Whether the graphs are directed.
        weights: The kind of weights: ``positive``, ``real`` or ``count``; empty for none.
        conditions: What the model is conditioned on.
        frequencies: Numbers of the node labels, of the edge labels, and of edges one way and both ways in the training
            graphs, under ``labels``, ``types`` and ``directions``.
        features: The node features that are generated.
    """

    node_label: str | None = None
    node_values: tuple[Any, ...] = ()
    edge_label: str | None = None
    edge_values: tuple[Any, ...] = ()
    directed: bool = False
    weights: str = ""
    conditions: Conditions = field(default_factory=Conditions)
    frequencies: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    features: FeatureColumns = field(default_factory=FeatureColumns)

    @classmethod
    def of(
        cls,
        graphs: Sequence[SimpleGraph],
        *,
        node_label: str | None = None,
        edge_label: str | None = None,
        condition: Sequence[str] = (),
        weighted: bool = False,
        generate_features: Sequence[str] | bool = False,
    ) -> AttributeSchema:
        """The schema of training graphs, given the names of their labels, conditions and generated node features.

        Raises:
            ConfigError: A name is none of the graphs'.
            DatasetError: Values are missing or too many, or graphs are of different kinds.
        """
        if len({graph.directed for graph in graphs}) > 1:
            raise DatasetError(
                "Some graphs are directed and some are not. Train on one kind at a time.",
                reason="mixed-directions-training",
            )
        nodes = _values("node", node_label, graphs, MOST_LABELS)
        edges = _values("edge", edge_label, graphs, MOST_EDGE_LABELS)
        directed = any(graph.directed for graph in graphs)

        frequencies = {}
        if node_label is not None:
            frequencies["labels"] = _counts((graph.node_attributes.get(node_label, ()) for graph in graphs), nodes)
        if edge_label is not None:
            frequencies["types"] = _counts((graph.edge_attributes.get(edge_label, ()) for graph in graphs), edges)
        if directed:
            arcs, pairs = (sum(len(each.edges) for each in some) for some in (graphs, [g.skeleton() for g in graphs]))
            frequencies["directions"] = (2 * pairs - arcs, arcs - pairs)

        return cls(
            node_label,
            nodes,
            edge_label,
            edges,
            directed,
            _kind(graphs) if weighted else "",
            Conditions.of(condition, graphs),
            frequencies,
            FeatureColumns.of(graphs, generate_features or False, node_label),
        )

    @property
    def is_plain(self) -> bool:
        """Whether graphs carry nothing and depend on nothing but their node features."""
        return self == AttributeSchema()

    @property
    def generates(self) -> bool:
        """Whether graphs carry more than undirected edges."""
        return bool(self.node_label or self.edge_label or self.directed or self.weights or self.features.names)

    def naming(self) -> dict[str, Any]:
        """The names of labels, conditions and generated node features, as settings of a run."""
        conditions = tuple(one.name for one in self.conditions.each)
        labels = {"node_label": self.node_label, "edge_label": self.edge_label}

        return {**labels, "condition": conditions, "generate_features": self.features.names}

    def settings(self) -> dict[str, Any]:
        """The settings of :class:`.ModelConfig` that follow."""
        return {
            "node_labels": len(self.node_values),
            "edge_labels": len(self.edge_values),
            "directed": self.directed,
            "weights": self.weights,
            "conditions": self.conditions.width,
            "feature_kinds": self.features.kinds,
        }

    def encode(self, graph: SimpleGraph, index: int = 0) -> SimpleGraph:
        """A graph as the model reads it; ``index`` names it in messages.

        Raises:
            DatasetError: It lacks an attribute, or has a value that no training graph has.
        """
        if graph.directed != self.directed:
            words = ("undirected", "directed")
            raise DatasetError(
                f"Graph {index} is {words[graph.directed]}, but the model was trained on {words[self.directed]} graphs."
            )
        if self.is_plain:
            return graph
        features, attributes = self.features.without(graph)
        if self.conditions.each:
            given = self.conditions.encode(self.conditions.values(graph, index))
            own = np.zeros((graph.nodes, 0), dtype=np.float32) if features is None else features
            features = np.concatenate([own, np.tile(given, (graph.nodes, 1))], 1)
        labels = self._numbers("node", self.node_label, self.node_values, graph.node_attributes, index)
        kinds = self._numbers("edge", self.edge_label, self.edge_values, graph.edge_attributes, index)
        if self.weights:
            if graph.weights is None and len(graph.edges):
                raise DatasetError(f"Graph {index} is unweighted, but the model was trained on weighted graphs.")
            self.check_weights(np.zeros(0) if graph.weights is None else graph.weights, f"Graph {index}")
        kinds = np.zeros(len(graph.edges), dtype=np.int64) if kinds is None else kinds
        weights = np.ones(len(graph.edges)) if graph.weights is None else graph.weights
        edges, states, both = graph.edges, kinds, np.column_stack([weights, weights])
        if self.directed:
            edges, states, both = self._pairs(graph, kinds, weights)

        has_states = self.directed or self.edge_label is not None

        return CodedGraph(
            graph.nodes,
            edges,
            None,
            features,
            graph.names,
            {key: column for key, column in attributes.items() if key != self.node_label},
            # Those of a directed graph are of its arcs.
            {}
            if self.directed
            else {key: column for key, column in graph.edge_attributes.items() if key != self.edge_label},
            graph.attributes,
            labels=labels,
            states=states if has_states else None,
            back_states=transposed(len(self.edge_values), self.directed)[states] if has_states else None,
            arc_weights=both if self.weights else None,
            generated=self.features.values(graph, index) if self.features.names else None,
        )

    def _numbers(
        self, what: str, name: str | None, values: tuple[Any, ...], columns: Mapping[str, list[Any]], index: int
    ) -> NDArray[np.int64] | None:
        if name is None:
            return None
        place = {value: number for number, value in enumerate(values)}
        column = columns.get(name)
        if column is None:
            if what == "edge" and not columns:
                return np.zeros(0, dtype=np.int64)
            raise DatasetError(f"The {what}s of graph {index} have no attribute '{name}'.", reason="label-missing")
        numbers = []
        for value in map(_plain, column):
            if value is None:
                raise DatasetError(f"A {what} of graph {index} has no '{name}'.", reason="label-missing")
            number = number_of(value, place)
            if number is None:
                raise DatasetError(
                    f"A {what} of graph {index} has {name} {str(value)[:40]!r}, which no training graph has.",
                    reason="label-unknown",
                )

            numbers.append(number)

        return np.array(numbers, dtype=np.int64)

    def check_weights(self, weights: NDArray[np.float64], graph: str) -> None:
        """Refuse weights that the model cannot generate; ``graph`` names theirs."""
        if self.weights == "real" and not (np.abs(weights) < LARGEST).all():
            wrong = weights[np.abs(weights) >= LARGEST][0]
            raise DatasetError(f"{graph} has the weight {wrong:g}; absolute values below {LARGEST:g} can be modelled.")
        if self.weights != "real" and not (weights >= 0).all():
            kind = "positive" if self.weights == "positive" else "counts"
            raise DatasetError(f"{graph} has the weight {weights.min():g}; those of the model are {kind}.")
        if self.weights == "positive" and not (weights > 0).all():
            raise DatasetError(f"{graph} has the weight {weights.min():g}; those of the model are positive.")
        if self.weights == "count" and not (weights == np.round(weights)).all():
            wrong = weights[weights != np.round(weights)][0]
            raise DatasetError(f"{graph} has the weight {wrong:g}; those of the model are counts.")

    def _pairs(
        self, graph: SimpleGraph, kinds: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.float64]]:
        """The skeleton of a directed graph, the states of its edges, and weights to and fro."""
        i, j = graph.edges.astype(np.int64).T
        low, high = np.minimum(i, j), np.maximum(i, j)
        pairs, place = np.unique(low * graph.nodes + high, return_inverse=True)
        codes, both = np.zeros((len(pairs), 2), dtype=np.int64), np.full((len(pairs), 2), np.nan)
        back = (i > j).astype(np.int64)
        codes[place, back], both[place, back] = kinds + 1, weights
        edges = np.stack(np.divmod(pairs, max(graph.nodes, 1)), 1).astype(np.int32)

        return edges, edge_state(codes[:, 0], codes[:, 1], len(self.edge_values)), both

    def decode(
        self,
        graph: SimpleGraph,
        labels: NDArray[np.int64] | None,
        states: NDArray[np.int64] | None,
        weights: NDArray[np.float64] | None,
        generated: NDArray[np.float64] | None = None,
    ) -> SimpleGraph:
        """A graph with attributes, from its skeleton and matrices of numbers as in :class:`.GraphBatch`."""
        nodes: dict[str, Any] = {}
        columns = {}
        edges, features = graph.edges, graph.features
        if generated is not None:
            nodes = self.features.to_columns(generated[: graph.nodes])
            features = nodes.pop(FEATURES, features)
        if labels is not None and self.node_label is not None:
            nodes[self.node_label] = [self.node_values[number] for number in labels[: graph.nodes].tolist()]
        if self.directed and states is not None:
            first, second = edges.T
            forward, backward = arc_codes(states[first, second], len(self.edge_values))
            there, back = edges[forward > 0], edges[backward > 0][:, ::-1]
            numbers = np.concatenate([forward[forward > 0], backward[backward > 0]]) - 1
            edges = np.concatenate([there, back])
            order = np.lexsort((edges[:, 1], edges[:, 0]))
            edges, numbers = edges[order], numbers[order]
        else:
            numbers = np.zeros(0, dtype=np.int64) if states is None else states[edges[:, 0], edges[:, 1]]
        if self.edge_label is not None:
            columns[self.edge_label] = [self.edge_values[number] for number in numbers.tolist()]

        return SimpleGraph(
            graph.nodes,
            edges,
            None if weights is None else weights[edges[:, 0], edges[:, 1]],
            features,
            graph.names,
            {**nodes, **graph.node_attributes},
            columns,
            graph.attributes,
            self.directed,
        )

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        names = ("node_label", "node_values", "edge_label", "edge_values", "directed", "weights", "frequencies")
        own = {name: getattr(self, name) for name in names}

        generated = {"features": self.features.to_json()} if self.features.names else {}

        return {**own, "conditions": self.conditions.to_json(), **generated}

    @classmethod
    def from_json(cls, value: Any) -> AttributeSchema:
        """The schema of such a JSON object."""
        try:
            own = {**value, "conditions": Conditions.from_json(value["conditions"])}
            own |= {name: tuple(own[name]) for name in ("node_values", "edge_values")}
            own["frequencies"] = {name: tuple(map(int, counts)) for name, counts in own["frequencies"].items()}
            own["features"] = FeatureColumns.from_json(own.get("features", {}))
            found = typed(cls, own)
            found._check_values()
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise CheckpointError(f"The attributes {str(value)[:40]!r} of the model are not readable.") from error

        return found

    def _check_values(self) -> None:
        """Check that labels have values, and these have frequencies."""
        named = {"labels": (self.node_label, self.node_values), "types": (self.edge_label, self.edge_values)}
        sizes = {key: len(values) for key, (name, values) in named.items() if name is not None}
        sizes |= {"directions": 2} if self.directed else {}
        if {key: len(counts) for key, counts in self.frequencies.items()} != sizes:
            raise ValueError("frequencies of other attributes")
        if not all(isinstance(value, str | int) for value in (*self.node_values, *self.edge_values)):
            raise ValueError("a label is a text or an integer")
        if any(count < 0 for counts in self.frequencies.values() for count in counts):
            raise ValueError("a frequency is negative")


def _values(what: str, name: str | None, graphs: Sequence[SimpleGraph], most: int) -> tuple[Any, ...]:
    """The values of a label over all graphs, in order."""
    if name is None:
        return ()
    columns = [graph.node_attributes if what == "node" else graph.edge_attributes for graph in graphs]
    if not any(name in own for own in columns):
        known = sorted({key for own in columns[:100] for key in own})
        found = f"; they have {', '.join(known)}" if known else ", nor any other"
        raise ConfigError(f"The {what}s have no attribute '{name}'{did_you_mean(name, known)}{found}.")
    values: set[Any] = set()
    kinds: set[type] = set()
    for index, own in enumerate(columns):
        for value in map(_plain, own.get(name, ())):
            if not isinstance(value, str | int | bool) and value is not None:
                raise DatasetError(
                    f"A {what} of graph {index} has {name} {str(value)[:40]!r}; a label is a text or an integer."
                )
            values.add(value)
            kinds.add(type(value))
        if len(values) > most:
            raise DatasetError(
                f"The {what} attribute '{name}' has more than {most} values: too many for a label.",
                reason="too-many-labels",
            )

    if bool in kinds and int in kinds:
        raise DatasetError(f"The {what} attribute '{name}' has truth values and numbers, which are equal in Python.")

    return tuple(sorted(values - {None}, key=lambda value: (type(value).__name__, value)))


def number_of(value: Any, place: Mapping[Any, int]) -> int | None:
    """The number of a label; None if it is none of those with a number."""
    try:
        return place.get(value)
    except TypeError:
        # Lists and objects, which JSON allows.
        return None


def _plain(value: Any) -> Any:
    """A Python value for one of NumPy."""
    return value.item() if isinstance(value, np.generic) else value


def _counts(columns: Iterable[Sequence[Any]], values: tuple[Any, ...]) -> tuple[int, ...]:
    found = Counter(_plain(value) for column in columns for value in column)

    return tuple(found[value] for value in values)


def _kind(graphs: Sequence[SimpleGraph]) -> str:
    """The kind of the weights of graphs."""
    weights = np.concatenate([graph.weights for graph in graphs if graph.weights is not None] or [np.ones(0)])
    if len(weights) and (weights >= 0).all() and (weights == np.round(weights)).all() and weights.max() < 2**31:
        return "count"

    return "positive" if (weights > 0).all() else "real"
