"""Indices into the states, queries and edges of complete graphs, for scoring all their pairs at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .structure import NO_RELATION, PartialGraphs

__all__ = ["KnownGraphs"]


class KnownGraphs:
    """Complete graphs in decoding order, as the indices that scoring all their pairs at once needs.

    Graphs are sorted by size, largest first, so that those with a node t are the first ``live[t]``. States are numbered
    in the order they are computed: at step t the new nodes, then their neighbours, both by graph.
    """

    def __init__(self, adj: NDArray[np.bool_], sizes: NDArray[np.int64]) -> None:
        graphs = len(adj)
        self.nodes = int(sizes.max(initial=0))
        adj = adj[:, : self.nodes, : self.nodes]
        lower = np.tril(adj, -1)
        self.live = (sizes[:, None] > np.arange(self.nodes)).sum(0)
        self.counts = lower.sum(-1)
        self.edges_before = self.counts.cumsum(1) - self.counts

        # Edges by step, graph and earlier node.
        t, b, i = np.nonzero(lower.swapaxes(0, 1))
        edges = np.arange(len(t))
        self.edge_graph, self.edge_node = b, i
        self.first_edge = np.searchsorted(t, np.arange(self.nodes + 1))
        row_start = np.searchsorted(t * graphs + b, t * graphs + b)
        self.edge_row_start, self.edge_rank = row_start, edges - row_start
        degrees = adj.cumsum(1, dtype=np.int32) - adj
        self.edge_degrees = degrees[b, t, i].astype(np.int64) + 1

        # The number of the latest state of each node before each step.
        first_state = (self.live.cumsum() - self.live) + self.first_edge[:-1]
        latest = np.zeros(lower.shape, dtype=np.int32)
        latest[b, t, i] = first_state[t] + self.live[t] + edges - self.first_edge[t]
        diagonal = np.arange(self.nodes)
        latest[:, diagonal, diagonal] = first_state + np.arange(graphs)[:, None]
        np.maximum.accumulate(latest, axis=1, out=latest)
        self.edge_version = latest[b, t - 1, i].astype(np.int64)

        # Pairs by graph, row and earlier node.
        t, i = np.tril_indices(self.nodes, -1)
        b, at = np.nonzero(sizes[:, None] > t)
        t, i = t[at], i[at]
        self.pair_graph, self.pair_row, self.pair_node = b, t, i
        self.pair_edges = lower[b, t, i]
        self.pair_version = latest[b, t - 1, i].astype(np.int64)
        self.pair_query = (self.live.cumsum() - self.live)[t] + b
        self.pair_degrees = degrees[b, t, i].astype(np.int64)
        last_edge, last_node = np.zeros(lower.shape, dtype=np.int32), np.full(lower.shape, -1, dtype=np.int32)
        at_edges = self.edge_graph, np.repeat(np.arange(self.nodes), np.diff(self.first_edge)), self.edge_node
        last_edge[at_edges], last_node[at_edges] = edges + 1, self.edge_node
        for values in (last_edge, last_node):
            np.maximum.accumulate(values, axis=2, out=values)
        before = np.maximum(i - 1, 0)
        self.pair_last_edge = np.where(i > 0, last_edge[b, t, before], 0).astype(np.int64)
        self.pair_gaps = i - np.where(i > 0, last_node[b, t, before], -1).astype(np.int64)
        self._add_structure(lower, graphs)

    def _add_structure(self, lower: NDArray[np.bool_], graphs: int) -> None:
        """Set what depends on the partial graph at each step."""
        codes = np.full(lower.shape, NO_RELATION, dtype=np.int16)
        triangles, adjacent, paths, earlier_paths = (np.zeros(lower.shape, dtype=np.int32) for _ in range(4))
        before = lower.cumsum(-1) - lower
        partial = PartialGraphs(graphs, self.nodes)
        for t in range(self.nodes):
            live, edges = self.live[t], slice(self.first_edge[t], self.first_edge[t + 1])
            counts = self.counts[:live, t]
            neighbours = np.zeros((live, counts.max(initial=0)), dtype=np.int64)
            neighbours[self.edge_graph[edges], self.edge_rank[edges]] = self.edge_node[edges]
            codes[:live, t, :t], adjacent[:live, t, :t], paths[:live, t, :t] = partial.row_codes(
                t, neighbours, counts, before[:live, t, :t]
            )
            triangles[:live, t, :t] = partial.triangles[:live, :t]
            earlier_paths[:live, t, :t] = partial.paths[:live, :t]
            partial.add(t, neighbours, counts)
        at = self.pair_graph, self.pair_row, self.pair_node
        self.pair_codes, self.pair_triangles = codes[at].astype(np.int64), triangles[at].astype(np.int64)
        self.pair_adjacent, self.pair_paths, self.pair_earlier_paths = adjacent[at], paths[at], earlier_paths[at]
        self.pair_earlier, self.pair_before = self.counts[at[0], at[2]], before[at]

    def chunks(self, most: int) -> list[slice]:
        """Split the pairs into parts of whole rows, of at most some number of pairs if rows allow it."""
        starts = np.flatnonzero(self.pair_node == 0)
        ends = np.append(starts, len(self.pair_node))[1:]
        parts, start = [], 0
        for low, high in zip(starts.tolist(), ends.tolist(), strict=True):
            if high - start > most and low > start:
                parts.append(slice(start, low))
                start = low
        if start < len(self.pair_node):
            parts.append(slice(start, len(self.pair_node)))

        return parts
