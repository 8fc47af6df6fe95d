r"""Node labels, edge states and edge weights of an autoregressive decoder (beyond the paper).

A node draws its label when it is added, and an edge its state (its label and direction) when it is chosen. Weights are
drawn last, edge after edge, given the complete graph and its node features, if these are generated
(:mod:`.feature_head`): :math:`p(A, L, S)\, p(X | A, L, S)\, p(W | A, L, S, X)`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.edge_states import arc_codes, count_states
from .densities import Mixture, draw, location_and_scale, mixture, mixture_log_prob, sample_mixture, unscaled

__all__ = ["Arcs", "AttributeNoise", "Attributes", "LabelHead", "StateHead", "WeightHead", "WeightInputs", "draw"]

Indices = NDArray[np.int64]

COMPONENTS = 8
MOST_DEGREE = 24
STATISTICS = 8


class Attributes(NamedTuple):
    """What nodes and edges carry.

    Attributes:
        node_labels: The number of node labels; 0 for none.
        edge_labels: The number of edge labels; 0 for none.
        directed: Whether edges have a direction.
        weights: The kind of weights (:mod:`.densities`); empty for none.
        features: The kind of every column of node features.
    """

    node_labels: int = 0
    edge_labels: int = 0
    directed: bool = False
    weights: str = ""
    features: tuple[str, ...] = ()

    @property
    def states(self) -> int:
        """The number of states of an edge (:mod:`graphite_gen.data.edge_states`); 0 if all are alike."""
        return count_states(self.edge_labels, self.directed)


class AttributeNoise(NamedTuple):
    """The noise that attributes are drawn from, in decoding order; None where graphs do not have them.

    Attributes:
        labels: Uniform noise, with shape :math:`(B, N)`.
        states: Uniform noise, with shape :math:`(B, N, N)`.
        components: Uniform noise that chooses the components of weights, with shape :math:`(B, N, N)`.
        values: Standard normal noise of weights, with shape :math:`(B, N, N)`.
        feature_components: Uniform noise that chooses the components of node features, with shape :math:`(B, N, C)`.
        feature_values: Standard normal noise of node features, with shape :math:`(B, N, C)`.
    """

    labels: Tensor | None = None
    states: Tensor | None = None
    components: Tensor | None = None
    values: Tensor | None = None
    feature_components: Tensor | None = None
    feature_values: Tensor | None = None

    @classmethod
    def sample(cls, attributes: Attributes, shape: tuple[int, int], rng: np.random.Generator) -> AttributeNoise:
        """Sample the noise of the attributes of :math:`(B, N)` nodes."""
        pairs = (*shape, shape[1])
        labels = torch.from_numpy(rng.random(shape)) if attributes.node_labels else None
        states = torch.from_numpy(rng.random(pairs)) if attributes.states else None
        weights = _mixture_noise(pairs, rng) if attributes.weights else (None, None)
        features = _mixture_noise((*shape, len(attributes.features)), rng) if attributes.features else (None, None)

        return cls(labels, states, *weights, *features)

    def to(self, device: torch.device | str) -> AttributeNoise:
        """The same noise on another device."""
        return AttributeNoise(*(part if part is None else part.to(device) for part in self))


def _mixture_noise(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Uniform noise that chooses components, and standard normal noise of values."""
    return torch.from_numpy(rng.random(shape)), torch.from_numpy(rng.standard_normal(shape))


class Arcs(NamedTuple):
    """The arcs of graphs in the order of their weights, each with shape :math:`(A,)`; an undirected edge is one arc.

    Attributes:
        graph: The graph.
        source: The position of the source; of an undirected edge, the later node.
        target: The position of the target.
        kind: The label and, if graphs are directed, whether the source is the earlier node.
    """

    graph: Indices
    source: Indices
    target: Indices
    kind: Indices

    @classmethod
    def of(cls, graph: Indices, new: Indices, old: Indices, states: Indices, attributes: Attributes) -> Arcs:
        """The arcs of edges in decoding order, given their states as seen from the new node."""
        if not attributes.directed:
            return cls(graph, new, old, states)
        forward, backward = arc_codes(states, attributes.edge_labels)
        edge = np.concatenate([np.flatnonzero(forward), np.flatnonzero(backward)])
        is_back = np.arange(len(edge)) >= np.count_nonzero(forward)
        order = np.lexsort((is_back, edge))
        edge, is_back = edge[order], is_back[order]
        label = np.where(is_back, backward[edge] + max(attributes.edge_labels, 1), forward[edge]) - 1

        return cls(graph[edge], np.where(is_back, old[edge], new[edge]), np.where(is_back, new[edge], old[edge]), label)

    def statistics(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums and numbers of the values of earlier arcs: of the graph, the source and the target, (A, 6)."""
        nodes = int(max(self.source.max(initial=0), self.target.max(initial=0))) + 1
        ends = np.concatenate([self.graph * nodes + self.source, self.graph * nodes + self.target])
        both = np.tile(values, 2), np.tile(np.arange(len(values)), 2)
        of_graph = _earlier(values, np.arange(len(values)), self.graph)
        of_ends = _earlier(*both, ends)
        sums, counts = (
            np.stack([whole, *np.split(parts, 2)], 1) for whole, parts in zip(of_graph, of_ends, strict=True)
        )

        return np.concatenate([sums, counts], 1)


def _earlier(
    values: NDArray[np.float64], places: Indices, groups: Indices
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums and numbers of the values at earlier places of the same group."""
    order = np.lexsort((places, groups))
    start = np.searchsorted(groups[order], groups[order])
    total = np.append(0.0, values[order].cumsum())
    sums, counts = np.empty(len(values)), np.empty(len(values))
    sums[order], counts[order] = total[:-1] - total[start], np.arange(len(values)) - start

    return sums, counts


class LabelHead(nn.Module):
    """The distribution of a new node's label given its query, and what a label adds to that query."""

    def __init__(self, labels: int, width: int) -> None:
        super().__init__()

        self.hidden, self.out = nn.Linear(width, width), nn.Linear(width, labels)
        self.embedding = nn.Embedding(labels, width)
        nn.init.normal_(self.embedding.weight, std=0.3)

    def logits(self, query: Tensor) -> Tensor:
        """Logits of labels given queries, with shape :math:`(*, L)`."""
        return self.out(F.silu(self.hidden(query)))


class StateHead(nn.Module):
    """The distribution of a chosen edge's state, and what a state adds to messages and updates."""

    def __init__(self, states: int, width: int) -> None:
        super().__init__()

        self.query, self.old = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.hidden, self.out = nn.Linear(width, width), nn.Linear(width, states)
        self.message, self.update = nn.Embedding(states, width), nn.Embedding(states, width)
        for table in (self.message, self.update):
            nn.init.normal_(table.weight, std=0.3)

    def logits(self, query: Tensor, old: Tensor, context: Tensor) -> Tensor:
        """Logits of states given the new node's query, the neighbour's state and the earlier edges of the row."""
        hidden = F.silu(self.query(query) + self.old(old) + context)

        return self.out(F.silu(self.hidden(hidden)))


class WeightInputs(NamedTuple):
    """What the weights of arcs are given, each with shape (A, ...); an undirected edge is one arc from its later node.

    Attributes:
        source: Final states of the sources.
        target: Final states of the targets.
        degrees: Degrees of source and target in the skeleton, with shape :math:`(A, 2)`.
        kind: The number of the arc's kind: its label, twice as many if the graph is directed.
        statistics: Sums and numbers of standardised weights before it: of the graph, its source and its target, then
            :func:`~.feature_head.pair_features` of the ends, with shape :math:`(A, 6 + 3 C)`.
    """

    source: Tensor
    target: Tensor
    degrees: Tensor
    kind: Tensor
    statistics: Tensor


class WeightHead(nn.Module):
    """The density of a weight, or the probability of a count: a mixture of :mod:`.densities`."""

    location: Tensor
    scale: Tensor

    def __init__(self, attributes: Attributes, width: int) -> None:
        super().__init__()

        self.kind = attributes.weights
        arc_kinds = max(attributes.edge_labels, 1) * (1 + attributes.directed)
        self.source, self.target = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.source_degree, self.target_degree = (nn.Embedding(MOST_DEGREE + 1, width) for _ in range(2))
        self.arc = nn.Embedding(arc_kinds, width)
        self.statistics = nn.Linear(STATISTICS, width)
        self.hidden, self.out = nn.Linear(width, width), nn.Linear(width, 3 * COMPONENTS)
        self.features = nn.Linear(3 * len(attributes.features), width, bias=False) if attributes.features else None
        for table in (self.source_degree, self.target_degree, self.arc):
            nn.init.normal_(table.weight, std=0.1)
        # Components start apart from each other, around the mean of all weights.
        with torch.no_grad():
            self.out.weight.mul_(0.1)
            self.out.bias.zero_()
            self.out.bias[COMPONENTS : 2 * COMPONENTS] = torch.linspace(-1.5, 1.5, COMPONENTS)
        for name, value in (("location", 0.0), ("scale", 1.0)):
            self.register_buffer(name, torch.tensor(value, dtype=torch.float64))

    def standardise_like(self, weights: Tensor) -> None:
        """Set the scale of weights to that of the training graphs."""
        location, scale = location_and_scale(unscaled(self.kind, weights.double()).unsqueeze(-1))
        self.location.copy_(location[0])
        self.scale.copy_(scale[0])

    def standardised(self, weights: Tensor) -> Tensor:
        """Standardised weights, as the statistics of later ones read them."""
        return (unscaled(self.kind, weights.double()) - self.location) / self.scale

    def _mixture(self, inputs: WeightInputs) -> Mixture:
        sums, counts, ends = torch.split(inputs.statistics, [3, 3, inputs.statistics.shape[-1] - 6], -1)
        degrees = inputs.degrees.clamp(max=MOST_DEGREE)
        features = torch.cat([sums / (1 + counts), counts.log1p() / 2, inputs.degrees.to(sums).log1p()], -1)
        hidden = (
            self.source(inputs.source)
            + self.target(inputs.target)
            + self.source_degree(degrees[..., 0])
            + self.target_degree(degrees[..., 1])
            + self.arc(inputs.kind)
            + self.statistics(features.to(inputs.source))
        )
        if self.features is not None:
            hidden = hidden + self.features(ends.to(hidden))

        return mixture(*self.out(F.silu(self.hidden(F.silu(hidden)))).chunk(3, -1))

    def log_prob(self, inputs: WeightInputs, weights: Tensor) -> Tensor:
        """The log-density of weights, or the log-probability of counts, with shape :math:`(A,)`."""
        return mixture_log_prob(self.kind, self.location, self.scale, weights, self._mixture(inputs))

    def baseline(self, weights: Tensor) -> Tensor:
        """The same under one standard normal distribution of standardised weights."""
        zero = torch.zeros(len(weights), 1, dtype=torch.float64, device=weights.device)

        return mixture_log_prob(self.kind, self.location, self.scale, weights, (zero, zero, zero + 1))

    def sample(self, inputs: WeightInputs, uniform: Tensor, normal: Tensor) -> Tensor:
        """Weights from noise that chooses components and values, each with shape :math:`(A,)`."""
        return sample_mixture(self.kind, self.location, self.scale, self._mixture(inputs), uniform, normal)
