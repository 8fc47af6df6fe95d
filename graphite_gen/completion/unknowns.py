"""What is known about a graph with attributes: the values that pairs, labels and weights may have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..autoregressive.decoder import AutoregressiveDecoder
from ..data.batch import GraphBatch
from ..data.conditions import PROPERTIES
from ..data.edge_states import arc_codes, directions, transposed
from ..data.schema import AttributeSchema, number_of
from ..errors import DatasetError, SamplingError
from ..graph import SimpleGraph
from ..training.checkpoint import TrainedModel
from .partial import SAMPLED, PartialGraph

__all__ = ["Unknowns", "known_nats"]

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

WEIGHT = "weight"
# A change of a pair proposes a non-edge with this probability.
NO_EDGE = 0.5


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The unknown values of a partial graph under a model: codes of pairs and numbers of labels.

    The code of a pair is 0 for no edge, otherwise one plus the state of the edge as seen from its first node.

    Attributes:
        allowed: The codes that each pair may have, with shape :math:`(n, n, S + 1)`.
        allowed_labels: The labels that each node may have, with shape :math:`(n, L)`; None if the model has none.
        weights: The weights of arcs from rows to columns, NaN where unknown, with shape :math:`(n, n)`.
        features: Node features and conditions, with shape :math:`(n, F)`.
        pairs: The pairs ``i < j`` with more than one allowed code, with shape :math:`(U, 2)`.
        unlabelled: The nodes with more than one allowed label, with shape :math:`(V,)`.
    """

    partial: PartialGraph
    schema: AttributeSchema
    allowed: Mask
    allowed_labels: Mask | None
    weights: NDArray[np.float64]
    features: NDArray[np.float32]
    pairs: Codes
    unlabelled: Codes

    @classmethod
    def of(cls, model: TrainedModel, partial: PartialGraph) -> Unknowns:
        """What is unknown about a graph under a model.

        Raises:
            DatasetError: It has a value that no training graph has.
            SamplingError: A condition of the model depends on what is unknown, or the model generates node features.
        """
        schema, graph = model.schema, partial.graph
        if schema.features.names:
            raise SamplingError(f"'{model.name}' generates node features; graphs cannot be completed by such a model.")
        if graph.directed != schema.directed:
            words = ("undirected", "directed")
            raise DatasetError(
                f"The graph is {words[graph.directed]}, and '{model.name}' is a model of {words[schema.directed]} "
                f"graphs.",
                reason="directed-graph" if graph.directed else "",
            )
        kinds = _numbers("edge", schema.edge_label, schema.edge_values, graph.edge_attributes, graph)
        kinds = np.zeros(len(graph.edges), dtype=np.int64) if kinds is None else kinds
        allowed = _allowed_codes(partial, kinds, schema)
        labels = _numbers("node", schema.node_label, schema.node_values, graph.node_attributes, graph)
        allowed_labels = None
        if labels is not None:
            allowed_labels = (labels[:, None] == np.arange(len(schema.node_values))) | (labels < 0)[:, None]
        pairs = np.argwhere(np.triu(allowed.sum(-1) > 1, 1))
        unlabelled = np.zeros(0, dtype=np.int64) if labels is None else np.flatnonzero(labels < 0)

        return cls(
            partial,
            schema,
            allowed,
            allowed_labels,
            _weights(graph, schema),
            _features(model, partial),
            pairs,
            unlabelled,
        )

    @property
    def nodes(self) -> int:
        """The number of nodes n."""
        return self.partial.nodes

    @property
    def has_weights(self) -> bool:
        """Whether edges have weights."""
        return bool(self.schema.weights)

    @property
    def unweighted(self) -> Mask:
        """The arcs whose weight is unknown if they exist, with shape :math:`(n, n)`."""
        exists = np.zeros_like(self.allowed[..., 0])
        if self.has_weights:
            codes = np.arange(1, self.allowed.shape[-1])
            forward = arc_codes(codes - 1, len(self.schema.edge_values))[0] if self.schema.directed else codes
            has_arc = forward > 0
            exists = np.asarray((self.allowed[..., 1:] & has_arc).any(-1))

        return np.asarray(exists & np.isnan(self.weights))

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of unknown ``labels`` of nodes, and of ``types`` and ``weights`` of known edges."""
        graph, schema = self.partial.graph, self.schema
        numbers = _numbers("edge", schema.edge_label, schema.edge_values, graph.edge_attributes, graph)
        weights = np.isnan(self.weights[tuple(graph.edges.T)]).sum() if self.has_weights else 0

        return {
            "labels": len(self.unlabelled),
            "types": 0 if numbers is None else int((numbers < 0).sum()),
            "weights": int(weights),
        }

    @property
    def sizes(self) -> Codes:
        """The number of allowed values of each unknown one, with shape :math:`(U + V,)`."""
        i, j = self.pairs.T
        own = self.allowed[i, j].sum(-1)

        return np.concatenate([own, np.full(len(self.unlabelled), len(self.schema.node_values))])

    def proposals(self) -> NDArray[np.float64]:
        """Probabilities of values, with shape :math:`(U + V, C)`: frequencies in the training graphs."""
        schema, codes = self.schema, self.allowed.shape[-1]
        of_codes = np.ones(codes - 1)
        if schema.edge_label is not None:
            types = _frequencies(schema, "types")
            if schema.directed:
                forward, backward = arc_codes(np.arange(codes - 1), len(types))
                padded = np.append(1.0, types)
                of_codes = padded[forward] * padded[backward]
            else:
                of_codes = types.copy()
        if schema.directed:
            one_way, both = _frequencies(schema, "directions")
            of_codes *= np.array([one_way / 2, one_way / 2, both])[directions(len(schema.edge_values), True)]
        of_codes = np.append(NO_EDGE, (1 - NO_EDGE) * of_codes / of_codes.sum())
        i, j = self.pairs.T
        labels = _frequencies(schema, "labels") if schema.node_label is not None else np.zeros(0)
        table = np.zeros((len(self.pairs) + len(self.unlabelled), max(codes, len(labels))))
        table[: len(i), :codes] = of_codes * self.allowed[i, j]
        table[len(i) :, : len(labels)] = labels

        return np.asarray(table / table.sum(1, keepdims=True))

    def batch(self, values: Codes, weights: NDArray[np.float64] | None, like: torch.Tensor) -> GraphBatch:
        """Graphs with given unknown values :math:`(G, U + V)` and weights :math:`(G, n, n)`, in the order of nodes."""
        count, nodes, schema = len(values), self.nodes, self.schema
        codes = np.repeat(self.allowed.argmax(-1)[None], count, 0)
        i, j = self.pairs.T
        own = values[:, : len(i)]
        codes[:, i, j] = own
        codes[:, j, i] = own
        labels = states = None
        if schema.directed or schema.edge_label is not None:
            back = np.append(0, transposed(len(schema.edge_values), schema.directed) + 1)
            codes[:, j, i] = back[own]
            states = torch.from_numpy(np.maximum(codes - 1, 0)).to(like.device)
        if self.allowed_labels is not None:
            numbers = np.repeat(self.allowed_labels.argmax(-1)[None], count, 0)
            numbers[:, self.unlabelled] = values[:, len(i) :]
            labels = torch.from_numpy(numbers).to(like.device)

        return GraphBatch(
            torch.from_numpy(codes > 0).to(like),
            torch.ones(count, nodes, dtype=torch.bool, device=like.device),
            torch.from_numpy(self.features).to(like).expand(count, -1, -1),
            labels,
            states,
            None if weights is None else torch.from_numpy(weights).to(like.device),
        )

    def has_arc(self, values: Codes) -> Mask:
        """Whether a graph with some unknown values (K,) has the arc, or edge, from each row to each column, (n, n)."""
        batch = self.batch(values[None], None, torch.zeros(0))
        adj = batch.adj[0].numpy() > 0
        if not self.schema.directed or batch.states is None:
            return adj

        return np.asarray(adj & (arc_codes(batch.states[0].numpy(), len(self.schema.edge_values))[0] > 0))

    def arcs_at(self, values: Codes) -> Mask:
        """Whether graphs have the edges, or arcs, of the unknown pairs of the partial graph, with shape (*, P)."""
        nodes, unknown = self.nodes, self.partial.unknown
        place = np.zeros(nodes * nodes, dtype=np.int64)
        i, j = self.pairs.T
        place[i * nodes + j] = np.arange(len(i))
        low, high = unknown.min(1), unknown.max(1)
        codes = values[..., place[low * nodes + high]]
        if not self.schema.directed:
            return np.asarray(codes > 0)
        forward, backward = arc_codes(codes - 1, len(self.schema.edge_values))

        return np.asarray(np.where(unknown[:, 0] < unknown[:, 1], forward, backward) > 0)

    def completed(self, values: Codes, weights: NDArray[np.float64] | None) -> SimpleGraph:
        """The graph with some unknown values (U + V,) and weights of its arcs (A,); ``sampled`` marks new edges."""
        graph, schema = self.partial.graph, self.schema
        batch = self.batch(values[None], None, torch.zeros(0))
        skeleton = SimpleGraph.from_adjacency(batch.adj[0].numpy() > 0)
        labels, states = (None if part is None else part[0].numpy() for part in (batch.labels, batch.states))
        matrix = None
        if weights is not None:
            matrix = np.zeros((self.nodes, self.nodes))
            matrix[self.has_arc(values)] = weights
        own = schema.decode(skeleton, labels, states, matrix)
        place = {edge: index for index, edge in enumerate(map(tuple, graph.edges.tolist()))}
        old = [place.get(edge) for edge in map(tuple, own.edges.tolist())]
        columns = {
            key: [None if index is None else column[index] for index in old]
            for key, column in graph.edge_attributes.items()
            if not (key == WEIGHT and schema.weights)
        }
        kept = own.weights
        if not schema.weights and graph.weights is not None:
            kept = np.ones(len(old))

        return replace(
            graph,
            edges=own.edges,
            weights=kept,
            node_attributes={**graph.node_attributes, **own.node_attributes},
            edge_attributes={**columns, **own.edge_attributes, SAMPLED: [index is None for index in old]},
        )


def known_nats(model: TrainedModel, unknowns: Unknowns) -> dict[str, float]:
    """The baseline of each known part of a graph, in nats: of the structure, labels, types and weights."""
    schema, allowed = unknowns.schema, unknowns.allowed
    density = model.sizes.density(unknowns.nodes)
    pairs = np.triu(np.ones(allowed.shape[:2], dtype=np.bool_), 1)
    has_edge, has_none = (pairs & ~part for part in (allowed[..., 0], allowed[..., 1:].any(-1)))
    found = {"structure": -has_edge.sum() * math.log(density) - has_none.sum() * math.log1p(-density)}
    graph = unknowns.partial.graph
    labels = _numbers("node", schema.node_label, schema.node_values, graph.node_attributes, graph)
    if labels is not None:
        found["labels"] = -np.log(_frequencies(schema, "labels"))[labels[labels >= 0]].sum()
    types = _numbers("edge", schema.edge_label, schema.edge_values, graph.edge_attributes, graph)
    if types is not None:
        found["types"] = -np.log(_frequencies(schema, "types"))[types[types >= 0]].sum()
    if schema.directed:
        one_way, both = _frequencies(schema, "directions")
        ways = np.array([one_way / 2, one_way / 2, both])
        is_way = np.stack([directions(len(schema.edge_values), True) == way for way in range(3)])
        possible = (allowed[has_edge][:, None, 1:] & is_way).any(-1)
        found["structure"] -= np.log(possible @ ways).sum()
    decoder = model.network.decoder
    if schema.weights and isinstance(decoder, AutoregressiveDecoder) and decoder.edge_weight is not None:
        values = unknowns.weights[tuple(graph.edges.T)]
        found["weights"] = -decoder.edge_weight.baseline(torch.from_numpy(values[~np.isnan(values)])).sum().item()

    return {name: float(nats) for name, nats in found.items()}


def _frequencies(schema: AttributeSchema, name: str) -> NDArray[np.float64]:
    """The frequencies of values in the training graphs, to each of which a half is added."""
    counts = np.array(schema.frequencies[name], dtype=np.float64) + 0.5

    return np.asarray(counts / counts.sum())


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _numbers(
    what: str, name: str | None, values: tuple[Any, ...], columns: Mapping[str, list[Any]], graph: SimpleGraph
) -> Codes | None:
    """The numbers of labels, -1 where one is missing; None if the model has none."""
    if name is None:
        return None
    count = graph.nodes if what == "node" else len(graph.edges)
    column = columns.get(name, [None] * count)
    place = {value: number for number, value in enumerate(values)}
    numbers = np.full(count, -1)
    for index, value in enumerate(column):
        value = value.item() if isinstance(value, np.generic) else value
        number = number_of(value, place)
        if number is not None:
            numbers[index] = number
        elif not _is_missing(value):
            names = range(graph.nodes) if graph.names is None else graph.names
            ends = [index] if what == "node" else graph.edges[index].tolist()
            which = " - ".join(repr(names[end]) for end in ends)
            raise DatasetError(
                f"The {what} {which} has {name} {str(value)[:40]!r}, which no training graph has.",
                reason="label-unknown",
            )

    return numbers


def _allowed_codes(partial: PartialGraph, kinds: Codes, schema: AttributeSchema) -> Mask:
    """The codes that pairs may have, given the numbers of the labels of known edges, -1 if unknown, (n, n, S + 1)."""
    labels, nodes = max(len(schema.edge_values), 1), partial.nodes
    # Of each arc, or undirected edge: no edge, or one with a label.
    each = np.zeros((nodes, nodes, labels + 1), dtype=np.bool_)
    each[..., 0] = True
    each[~partial.known()] = True
    i, j = partial.graph.edges.T
    one = np.zeros((len(kinds), labels + 1), dtype=np.bool_)
    one[:, 1:] = (kinds[:, None] == np.arange(labels)) | (kinds < 0)[:, None]
    each[i, j] = one
    if not schema.directed:
        each[j, i] = one
        return each
    both = each[:, :, :, None] & each.swapaxes(0, 1)[:, :, None, :]

    return both.reshape(nodes, nodes, -1)


def _weights(graph: SimpleGraph, schema: AttributeSchema) -> NDArray[np.float64]:
    """The weights of known arcs, NaN where unknown, with shape (n, n)."""
    weights = np.full((graph.nodes, graph.nodes), np.nan)
    if not schema.weights:
        return weights
    column = graph.weights
    if column is None:
        given = graph.edge_attributes.get(WEIGHT, [None] * len(graph.edges))
        column = np.array([np.nan if _is_missing(value) else value for value in given], dtype=np.float64)
    known = column[~np.isnan(column)]
    schema.check_weights(known, "The graph")
    i, j = graph.edges.T
    weights[i, j] = column
    if not graph.directed:
        weights[j, i] = column

    return weights


def _features(model: TrainedModel, partial: PartialGraph) -> NDArray[np.float32]:
    """The features that the model reads, and its conditions, with shape (n, F)."""
    graph, nodes = partial.graph, partial.nodes
    features = np.zeros((nodes, 0), dtype=np.float32)
    if model.config.node_features and graph.features is not None:
        features = graph.features
    conditions = model.schema.conditions
    for one in conditions.each:
        if one.name in graph.attributes or one.name == "nodes":
            continue
        if one.name not in PROPERTIES:
            raise SamplingError(f"'{model.name}' is conditioned on '{one.name}', an attribute that the graph lacks.")
        if len(partial.unknown):
            raise SamplingError(
                f"The condition '{one.name}' of '{model.name}' depends on the unknown pairs, so the graph needs an "
                f"attribute '{one.name}'."
            )
    if not conditions.each:
        return features
    given = conditions.encode(conditions.values(graph, 0))

    return np.concatenate([features, np.tile(given, (nodes, 1))], 1)
