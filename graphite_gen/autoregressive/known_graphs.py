"""Indices into the states, queries and edges of complete graphs, for scoring all their rows at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .decoder import Kind
from .structure import CODES, PartialGraphs, Relations, block_sizes, block_starts, is_long

__all__ = ["Candidates", "KnownGraphs"]

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Candidates:
    """Candidates of all rows of graphs, nodes and blocks of them, row after row, each with shape :math:`(C,)`.

    Attributes:
        graph: The graph.
        new: The position of the new node.
        old: The position of the candidate, or of the first node of a block.
        row: The number of the row of candidates; those of a block are a row of their own.
        place: The place in that row.
        kind: The :class:`.Kind` of candidate.
        code: That and the relation to the neighbours chosen before it.
        query: The index of the query.
        version: The index of the state; those of blocks follow those of nodes.
        latent: The index of the latents; those of blocks follow those of nodes.
        last_edge: One plus the index of the edge to the last neighbour chosen before; 0 for none.
        is_edge: Whether the node is a neighbour, or the block has one.
        is_certain: Whether that is certain: a block with a neighbour has no other candidate left.
    """

    graph: Indices
    new: Indices
    old: Indices
    row: Indices
    place: Indices
    kind: Indices
    query: Indices
    version: Indices
    latent: Indices
    last_edge: Indices
    degrees: Indices
    triangles: Indices
    count: Indices
    gap: Indices
    code: Indices
    adjacent: Indices
    paths: Indices
    earlier: Indices
    earlier_paths: Indices
    is_edge: NDArray[np.bool_]
    is_certain: NDArray[np.bool_]


class KnownGraphs:
    """Complete graphs in decoding order, as the indices that scoring all their rows at once needs.

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
        self.edge_graph, self.edge_new, self.edge_node = b, t, i
        self.first_edge = np.searchsorted(t, np.arange(self.nodes + 1))
        row_start = np.searchsorted(t * graphs + b, t * graphs + b)
        self.edge_row_start, self.edge_rank = row_start, edges - row_start
        self.edge_degrees, self.edge_version = np.zeros(len(t), dtype=np.int64), np.zeros(len(t), dtype=np.int64)
        # The queries are numbered by step and graph.
        self.query_graph = np.concatenate([np.arange(live) for live in self.live] or [np.zeros(0, dtype=np.int64)])
        self.query_node = np.repeat(np.arange(self.nodes), self.live)
        self.edge_query = (self.live.cumsum() - self.live)[t] + b
        self.last_version = np.zeros((graphs, self.nodes), dtype=np.int64)
        self.degrees = adj.sum(-1)
        self.candidates = self._follow(lower)

    def _follow(self, lower: NDArray[np.bool_]) -> Candidates:
        """Add node after node, and collect the candidates of each."""
        graphs, states = len(lower), int(self.live.sum() + len(self.edge_node))
        partial = PartialGraphs(graphs, self.nodes)
        latest = np.zeros((graphs, self.nodes), dtype=np.int64)
        found: dict[str, list[NDArray[Any]]] = defaultdict(list)
        queries = state = rows = blocks = 0
        for t in range(self.nodes):
            live, edges = int(self.live[t]), slice(self.first_edge[t], self.first_edge[t + 1])
            owner, node = self.edge_graph[edges], self.edge_node[edges]
            row = _KnownRow(t, partial, lower[:live, t, :t], self.counts[:live, t], latest[:live, :t])
            parts = row.by_block(states + blocks, self.nodes) if is_long(t) else [row.all_nodes()]
            for part in parts if t else ():
                part["last_edge"] = np.where(
                    part["count"] > 0, edges.start + row.first[part["graph"]] + part["count"], 0
                )
                part["code"] += CODES * part["kind"]
                part["query"] = queries + part["graph"]
                part["row"] = part["row"] + rows
                rows = int(part["row"].max(initial=rows - 1)) + 1
                for name, values in part.items():
                    found[name].append(values)
            blocks += live * len(block_starts(t)) if is_long(t) else 0

            self.edge_version[edges] = latest[owner, node]
            partial.add(t, row.neighbours, row.counts)
            self.edge_degrees[edges] = partial.degrees[owner, node]
            latest[:live, t] = state + np.arange(live)
            latest[owner, node] = state + live + np.arange(len(owner))
            state += live + len(owner)
            queries += live

        self.last_version = latest
        empty: list[NDArray[Any]] = [np.zeros(0, dtype=np.int64)]

        return Candidates(*(np.concatenate(found.get(field.name, empty)) for field in fields(Candidates)))

    def chunks(self, most: int) -> list[slice]:
        """Split the candidates into parts of whole rows, of at most some number of them if rows allow it."""
        total = len(self.candidates.row)
        starts = np.flatnonzero(np.diff(self.candidates.row, prepend=-1))
        ends = np.append(starts, total)[1:]
        parts, start = [], 0
        for low, high in zip(starts.tolist(), ends.tolist(), strict=True):
            if high - start > most and low > start:
                parts.append(slice(start, low))
                start = low
        if start < total:
            parts.append(slice(start, total))

        return parts


class _KnownRow:
    """The rows of the graphs that have a node t, with the number of the latest state of each earlier node, (L, t)."""

    def __init__(
        self, t: int, partial: PartialGraphs, edges: NDArray[np.bool_], counts: Indices, latest: Indices
    ) -> None:
        self.t, self.partial, self.edges, self.counts, self.latest = t, partial, edges, counts, latest
        # The number of edges of this step before those of each graph.
        self.first = counts.cumsum() - counts
        owner, node = np.nonzero(edges)
        self.neighbours = np.zeros((len(counts), counts.max(initial=0)), dtype=np.int64)
        self.neighbours[owner, np.arange(len(owner)) - self.first[owner]] = node

    def all_nodes(self) -> dict[str, NDArray[Any]]:
        """All earlier nodes as candidates."""
        owner, node = np.divmod(np.arange(len(self.counts) * self.t), max(self.t, 1))

        return self._nodes(owner, node) | {
            "row": owner,
            "place": node,
            "kind": np.full(len(node), Kind.NODE),
            "is_certain": np.zeros(len(node), dtype=np.bool_),
        }

    def by_block(self, first_state: int, first_latent: int) -> list[dict[str, NDArray[Any]]]:
        """Blocks as candidates, and the nodes of those that have a neighbour."""
        starts, sizes = block_starts(self.t), block_sizes(self.t)
        has_edge = np.logical_or.reduceat(self.edges, starts, axis=1)
        relations = self._relations(np.repeat(starts, sizes)).of_blocks()
        owner, block = np.divmod(np.arange(has_edge.size), len(starts))
        blocks = self._candidates(owner, starts[block], (owner, block), relations, self.partial.block_means(self.t)) | {
            "row": owner,
            "place": block,
            "kind": np.full(len(block), Kind.BLOCK),
            "version": first_state + np.arange(len(block)),
            "latent": first_latent + block,
            "is_edge": has_edge.ravel(),
            "is_certain": np.zeros(len(block), dtype=np.bool_),
        }

        owner, block = np.nonzero(has_edge)
        row = np.repeat(np.arange(len(block)), sizes[block])
        owner, block = owner[row], block[row]
        place = np.arange(len(row)) - np.searchsorted(row, row)
        nodes = self._nodes(owner, starts[block] + place)
        is_first = nodes["count"] == relations.before[owner, block]
        nodes |= {
            "row": row,
            "place": place,
            "kind": np.where(is_first, Kind.FIRST, Kind.NEXT),
            "is_certain": is_first & (place + 1 == sizes[block]),
        }

        return [blocks, nodes]

    def _relations(self, limit: Indices) -> Relations:
        return self.partial.relations(self.t, self.neighbours, self.counts, limit)

    def _nodes(self, owner: Indices, node: Indices) -> dict[str, NDArray[Any]]:
        at = owner, node

        return self._candidates(owner, node, at, self._relations(np.arange(self.t)), self.partial.node_counts) | {
            "version": self.latest[at],
            "latent": node,
            "is_edge": self.edges[at],
        }

    def _candidates(
        self,
        owner: Indices,
        old: Indices,
        at: tuple[Indices, Indices],
        relations: Relations,
        counts: Mapping[str, Indices],
    ) -> dict[str, NDArray[Any]]:
        """The fields that nodes and blocks have in common, from matrices of graphs and candidates."""
        before = relations.before[at]
        last = np.full(len(old), -1)
        last[before > 0] = self.neighbours[owner[before > 0], before[before > 0] - 1]

        return {name: values[at] for name, values in counts.items()} | {
            "graph": owner,
            "new": np.full(len(old), self.t),
            "old": old,
            "count": before,
            "gap": old - last,
            "code": relations.codes[at].astype(np.int64),
            "adjacent": relations.adjacent[at],
            "paths": relations.paths[at],
        }
