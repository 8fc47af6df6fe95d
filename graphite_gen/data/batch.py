"""Dense batches of graphs, padded to the same number of nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from ..errors import DatasetError
from ..graph import SimpleGraph
from .schema import CodedGraph

__all__ = ["GraphBatch", "bucket", "collate", "consecutive_batches", "node_mask", "pair_mask"]


@dataclass(frozen=True)
class GraphBatch:
    """A batch of graphs, padded to N nodes.

    Attributes:
        adj: Symmetric adjacency or weight matrices, zero on the diagonal and at padding, with shape
            :math:`(B, N, N)`.
        mask: True for real nodes, with shape :math:`(B, N)`.
        x: The user's node features and conditions of the graph, with shape :math:`(B, N, F)`; :math:`F` may be zero.
        labels: The labels of nodes as numbers, with shape :math:`(B, N)`; None for graphs without.
        states: The states of edges as seen from the node of their row (:mod:`.edge_states`), with shape
            :math:`(B, N, N)`; None if all edges are alike.
        weights: The weights of arcs from rows to columns in double precision, with shape :math:`(B, N, N)`; None for
            graphs without, and for those whose weights are in ``adj``.
        features: The node features that are generated, in double precision, with shape :math:`(B, N, C)`; None for
            graphs without.
    """

    adj: Tensor
    mask: Tensor
    x: Tensor
    labels: Tensor | None = None
    states: Tensor | None = None
    weights: Tensor | None = None
    features: Tensor | None = None

    @property
    def sizes(self) -> Tensor:
        """The number of real nodes of each graph, with shape :math:`(B,)`."""
        return self.mask.sum(-1)

    def to(self, device: torch.device | str) -> GraphBatch:
        """The same batch on another device."""
        return self.each(lambda part: part.to(device))

    def each(self, change: Callable[[Tensor], Tensor]) -> GraphBatch:
        """The batch of all its tensors changed in the same way."""
        parts = (self.labels, self.states, self.weights, self.features)
        others = (part if part is None else change(part) for part in parts)

        return GraphBatch(change(self.adj), change(self.mask), change(self.x), *others)

    def reordered(self, orderings: Tensor) -> GraphBatch:
        """The graphs with their nodes in given orderings, padding last, with shape :math:`(B, N)`."""
        rows = torch.arange(len(orderings), device=orderings.device).unsqueeze(-1)
        pairs = rows.unsqueeze(-1), orderings.unsqueeze(-1), orderings.unsqueeze(-2)

        return GraphBatch(
            self.adj[pairs],
            self.mask,
            self.x[rows, orderings],
            None if self.labels is None else self.labels[rows, orderings],
            None if self.states is None else self.states[pairs],
            None if self.weights is None else self.weights[pairs],
            None if self.features is None else self.features[rows, orderings],
        )


def node_mask(sizes: Tensor, nodes: int) -> Tensor:
    """True for the first ``sizes`` of ``nodes`` positions, with shape :math:`(*, N)`."""
    return torch.arange(nodes, device=sizes.device) < sizes.unsqueeze(-1)


def pair_mask(mask: Tensor) -> Tensor:
    """True for the pairs i < j of real nodes, with shape :math:`(*, N, N)`."""
    return (mask.unsqueeze(-1) & mask.unsqueeze(-2)).triu(1)


def collate(graphs: Sequence[SimpleGraph], nodes: int | None = None) -> GraphBatch:
    """A batch of graphs, padded to ``nodes`` nodes or to the largest graph."""
    sizes = np.array([graph.nodes for graph in graphs], dtype=np.int64)
    nodes = int(sizes.max(initial=1)) if nodes is None else nodes
    widths = {0 if graph.features is None else graph.features.shape[1] for graph in graphs}
    if len(widths) > 1:
        raise DatasetError(f"Node features have different widths: {sorted(widths)}. All graphs need the same.")

    edges = np.concatenate([graph.edges for graph in graphs]) if graphs else np.zeros((0, 2), dtype=np.int32)
    owner = np.repeat(np.arange(len(graphs)), [len(graph.edges) for graph in graphs])
    values = np.concatenate(
        [np.ones(len(graph.edges)) if graph.weights is None else graph.weights for graph in graphs] or [np.ones(0)]
    )
    adj = torch.zeros(len(graphs), nodes, nodes)
    i, j = torch.from_numpy(edges.astype(np.int64)).unbind(1)
    b = torch.from_numpy(owner)
    adj[b, i, j] = adj[b, j, i] = torch.from_numpy(values).to(adj)

    x = torch.zeros(len(graphs), nodes, widths.pop() if widths else 0)
    for row, graph in zip(x, graphs, strict=True):
        if graph.features is not None:
            row[: graph.nodes] = torch.from_numpy(graph.features)

    batch = GraphBatch(adj, node_mask(torch.from_numpy(sizes), nodes), x)
    coded = [graph for graph in graphs if isinstance(graph, CodedGraph)]

    return _with_attributes(batch, coded, b, i, j) if coded else batch


def _with_attributes(batch: GraphBatch, graphs: Sequence[CodedGraph], b: Tensor, i: Tensor, j: Tensor) -> GraphBatch:
    """The batch with the attributes of its graphs, given the graph and the ends of every edge."""
    labels = states = weights = features = None
    shape = batch.adj.shape
    if graphs[0].labels is not None:
        labels = torch.zeros(shape[:2], dtype=torch.int64)
        labels[batch.mask] = torch.from_numpy(np.concatenate([graph.labels for graph in graphs]))
    if graphs[0].states is not None:
        numbers = np.concatenate([graph.states for graph in graphs])
        states = torch.zeros(shape, dtype=torch.int64)
        states[b, i, j] = torch.from_numpy(numbers)
        states[b, j, i] = torch.from_numpy(np.concatenate([graph.back_states for graph in graphs]))
    if graphs[0].arc_weights is not None:
        both = torch.from_numpy(np.concatenate([graph.arc_weights for graph in graphs]))
        weights = torch.zeros(shape, dtype=torch.float64)
        weights[b, i, j], weights[b, j, i] = both.unbind(1)
    if graphs[0].generated is not None:
        values = np.concatenate([graph.generated for graph in graphs])
        features = torch.zeros(*shape[:2], values.shape[1], dtype=torch.float64)
        features[batch.mask] = torch.from_numpy(values)

    return replace(batch, labels=labels, states=states, weights=weights, features=features)


def consecutive_batches(sizes: Sequence[int], batch_size: int, cells: float) -> Iterator[int]:
    """Split graphs, in their order, into batches, and yield the number of graphs of each.

    A batch has at most ``batch_size`` graphs, and more than one only if its padded matrices have at most ``cells``
    cells.
    """
    count = largest = 0
    for size in sizes:
        if count and (count == batch_size or (count + 1) * max(largest, size) ** 2 > cells):
            yield count
            count = largest = 0
        count += 1
        largest = max(largest, size)
    if count:
        yield count


def bucket(
    sizes: Sequence[int], batch_size: int, rng: np.random.Generator, cells: float = math.inf
) -> Iterator[list[int]]:
    """Batches of indices for one epoch, each of graphs of similar size, in random order.

    A batch has at most ``batch_size`` graphs, and fewer if they are large: its padded matrices have at most as many
    cells as ``batch_size`` graphs of the median size (times 1.5), so that a large graph does not pad many small ones,
    and in a batch of more than one graph at most ``cells``.
    """
    if not len(sizes):
        return
    array = np.asarray(sizes)
    # Jitter makes batches differ between epochs, also in their mix of sizes.
    order = np.argsort(array * rng.uniform(0.8, 1.25, len(array)), kind="stable")
    budget = min(cells, batch_size * float(np.median(array)) ** 2 * 1.5)

    ends = np.cumsum(list(consecutive_batches(array[order].tolist(), batch_size, budget)))
    batches = np.split(order, ends[:-1])
    for place in rng.permutation(len(batches)):
        yield batches[place].tolist()
