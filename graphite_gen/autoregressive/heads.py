r"""Node labels, edge states and edge weights of an autoregressive decoder (beyond the paper).

A node draws its label when it is added, and an edge its state (its label and direction) when it is chosen. Weights are
drawn last, edge after edge, given the complete graph: :math:`p(A, L, S)\, p(W | A, L, S)`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.edge_states import arc_codes, count_states

__all__ = ["Arcs", "AttributeNoise", "Attributes", "LabelHead", "StateHead", "WeightHead", "WeightInputs", "draw"]

Indices = NDArray[np.int64]

COMPONENTS = 8
MOST_DEGREE = 24
STATISTICS = 8
# Standard deviations of components, of standardised weights, stay within e^±MAX_LOG_STD.
MAX_LOG_STD = 5.0
# The logarithm that stands for that of zero.
LOWEST = -1e4
MOST_LOG = {"count": 30.0, "positive": 700.0}


class Attributes(NamedTuple):
    """What nodes and edges carry.

    Attributes:
        node_labels: The number of node labels; 0 for none.
        edge_labels: The number of edge labels; 0 for none.
        directed: Whether edges have a direction.
        weights: The kind of weights (:class:`WeightHead`); empty for none.
    """

    node_labels: int = 0
    edge_labels: int = 0
    directed: bool = False
    weights: str = ""

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
    """

    labels: Tensor | None = None
    states: Tensor | None = None
    components: Tensor | None = None
    values: Tensor | None = None

    @classmethod
    def sample(cls, attributes: Attributes, shape: tuple[int, int], rng: np.random.Generator) -> AttributeNoise:
        """Sample the noise of the attributes of :math:`(B, N)` nodes."""
        pairs = (*shape, shape[1])
        labels = torch.from_numpy(rng.random(shape)) if attributes.node_labels else None
        states = torch.from_numpy(rng.random(pairs)) if attributes.states else None
        if not attributes.weights:
            return cls(labels, states)

        return cls(labels, states, *map(torch.from_numpy, (rng.random(pairs), rng.standard_normal(pairs))))

    def to(self, device: torch.device | str) -> AttributeNoise:
        """The same noise on another device."""
        return AttributeNoise(*(part if part is None else part.to(device) for part in self))


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
        statistics: Sums and numbers of standardised weights before it: of the graph, its source and its target, with
            shape :math:`(A, 6)`.
    """

    source: Tensor
    target: Tensor
    degrees: Tensor
    kind: Tensor
    statistics: Tensor


class WeightHead(nn.Module):
    r"""The density of a weight: a mixture of normal distributions of the standardised weight :math:`y`.

    For ``positive`` weights :math:`y = (\log w - m) / s`, so they have a mixture of log-normal distributions, and for
    ``real`` ones :math:`y = (w - m) / s`. A ``count`` c has the probability that
    :math:`\log c \le s y + m < \log (c + 1)`.
    """

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
        values = self._unscaled(weights)
        self.location.fill_(float(values.mean()))
        self.scale.fill_(max(float(values.std()) if len(values) > 1 else 0.0, 1e-3))

    def _unscaled(self, weights: Tensor) -> Tensor:
        if self.kind == "real":
            return weights

        return torch.log(weights if self.kind == "positive" else weights + 0.5)

    def standardised(self, weights: Tensor) -> Tensor:
        """Standardised weights, as the statistics of later ones read them."""
        return (self._unscaled(weights.double()) - self.location) / self.scale

    def _mixture(self, inputs: WeightInputs) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probabilities, means and standard deviations of the components, each with shape :math:`(A, K)`."""
        sums, counts = inputs.statistics[..., :3], inputs.statistics[..., 3:]
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
        logits, mean, log_std = self.out(F.silu(self.hidden(F.silu(hidden)))).double().chunk(3, -1)

        return logits.log_softmax(-1), mean, (MAX_LOG_STD * torch.tanh(log_std / MAX_LOG_STD)).exp()

    def log_prob(self, inputs: WeightInputs, weights: Tensor) -> Tensor:
        """The log-density of weights, or the log-probability of counts, with shape :math:`(A,)`."""
        return self._log_prob(weights, *self._mixture(inputs))

    def baseline(self, weights: Tensor) -> Tensor:
        """The same under one standard normal distribution of standardised weights."""
        zero = torch.zeros(len(weights), 1, dtype=torch.float64, device=weights.device)

        return self._log_prob(weights, zero, zero, zero + 1)

    def _log_prob(self, weights: Tensor, log_weight: Tensor, mean: Tensor, std: Tensor) -> Tensor:
        weights = weights.double().unsqueeze(-1)
        if self.kind == "count":
            # Zero has the lower tail; an infinite end would have no gradient.
            ends = [(torch.log(end).clamp_min(LOWEST) - self.location) / self.scale for end in (weights, weights + 1)]
            low, high = ((end - mean) / std for end in ends)
            return (log_weight + _log_interval(low, high)).logsumexp(-1)
        y = (self._unscaled(weights) - self.location) / self.scale
        density = -0.5 * ((y - mean) / std).square() - std.log() - 0.5 * math.log(2 * math.pi)
        slope = -self.scale.log() - (weights.log() if self.kind == "positive" else 0.0)

        return (log_weight + density + slope).logsumexp(-1)

    def sample(self, inputs: WeightInputs, uniform: Tensor, normal: Tensor) -> Tensor:
        """Weights from noise that chooses components and values, each with shape :math:`(A,)`."""
        log_weight, mean, std = self._mixture(inputs)
        component = draw(log_weight, uniform).unsqueeze(-1)
        y = (mean.gather(-1, component) + std.gather(-1, component) * normal.double().unsqueeze(-1)).squeeze(-1)
        value = self.location + self.scale * y
        if self.kind == "real":
            return value
        # Larger counts are not exact in double precision, and larger numbers are infinite.
        value = value.clamp(max=MOST_LOG[self.kind]).exp()

        return value.floor() if self.kind == "count" else value


def draw(log_probs: Tensor, uniform: Tensor) -> Tensor:
    """Draw one of C classes by inversion, given log-probabilities (*, C) and noise (*)."""
    cumulative = log_probs.double().softmax(-1).cumsum(-1)
    chosen = (cumulative <= uniform.double().unsqueeze(-1) * cumulative[..., -1:]).sum(-1)

    return chosen.clamp(max=log_probs.shape[-1] - 1)


def _log_interval(low: Tensor, high: Tensor) -> Tensor:
    """The log-probability of an interval under the standard normal, also far out."""
    # In the upper half the mirrored interval keeps its precision.
    flip = low > 0
    low, high = torch.where(flip, -high, low), torch.where(flip, -low, high)
    first, second = torch.special.log_ndtr(high), torch.special.log_ndtr(low)

    return first + torch.log(-torch.expm1((second - first).clamp(max=-1e-12)))
