"""The autoregressive distribution over graphs: rows of candidate pairs, one node at a time in a node ordering."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ..data.batch import node_mask
from ..errors import ConfigError
from .decoder import PartialGraphs

__all__ = ["FINEST", "AutoregressiveGraphs", "EdgeConstraints", "RowDecoder", "Schedule", "row_chunks"]


@dataclass(frozen=True)
class Schedule:
    """Which pairs are decoded in parallel, by the largest number of decoding steps; 0 decodes one pair at a time.

    With at most as many steps as nodes, nodes are decoded in that many blocks, all pairs of a block in parallel. With
    more, nodes are decoded one at a time, and the pairs of each in as many groups as the number of steps allows.
    """

    decoding_steps: int = 0

    def __post_init__(self) -> None:
        if self.decoding_steps < 0:
            raise ConfigError(f"'decoding_steps' is {self.decoding_steps}; it should be at least 1, or 0 for all.")

    def block(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of nodes per block, for graphs of these sizes."""
        if not self.decoding_steps:
            return np.ones_like(sizes)
        return np.maximum(1, -(-sizes // self.decoding_steps))

    def prefix(self, sizes: NDArray[np.int64], rows: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
        """Return the number of pairs of its row, from the first on, that each pair is conditioned on, :math:`(B, T)`.

        Sizes and new nodes have shape :math:`(B,)`; new node r has r candidate pairs, padded to T = ``nodes``.
        """
        groups = self.decoding_steps // np.maximum(sizes, 1) if self.decoding_steps else rows
        length = np.maximum(1, -(-rows // np.maximum(1, groups)))[:, None]

        return np.arange(nodes) // length * length


FINEST = Schedule()

# Rows are scored together while their padding stays small and their matrices within this many cells.
CHUNK_CELLS = 1 << 20
# The most cells of the matrices of rows that are sampled together, unless a single one has more.
DRAWN_CELLS = 1 << 19
# Converged rows are dropped from the iteration once fewer than this fraction are still changing.
OPEN_FRACTION = 0.8


class RowLogits(Protocol):
    """The interface of :class:`RowContext`: the candidate pairs of one new node per graph."""

    def select(self, rows: Tensor) -> RowLogits: ...

    def logits(self, row_edges: Tensor) -> Tensor: ...


class RowDecoder(Protocol):
    """The interface of :class:`AutoregressiveDecoder`."""

    def states(self, partial: PartialGraphs) -> Tensor: ...

    def row_context(self, h: Tensor, partial: PartialGraphs, rows: Tensor, prefix: Tensor) -> RowLogits: ...


# The feasible row edges closest to sampled ones, given the indices of rows (R,), the edges sampled from the decoder
# (R, T) and the current row edges (R, T). Pair i may depend on samples up to it and on edges before it only.
RowConstraints = Callable[[Tensor, Tensor, Tensor], Tensor]
# The constraints on the rows of M new nodes, given the graph in the batch that each row belongs to (M,), the known
# edges (M, T, T), the new nodes (M,) and the final numbers of nodes (M,).
EdgeConstraints = Callable[[Tensor, Tensor, Tensor, Tensor], RowConstraints]


@dataclass(frozen=True)
class AutoregressiveGraphs:
    r"""Distribution over graphs with ordered nodes, given their latents (beyond the paper).

    .. math:: p(A | Z) = \prod_t p(A_t | A_{<t}, Z)

    Here :math:`A_t` are the pairs of decoding step :math:`t`.

    Attributes:
        decoder: The decoder of rows.
        z: Latents in the node ordering, with shape :math:`(B, N, D)`.
        x: Node features in the node ordering, with shape :math:`(B, N, F)`.
        sizes: The number of nodes of each graph, with shape :math:`(B,)`.
        schedule: Which pairs are decoded in parallel.
    """

    decoder: RowDecoder
    z: Tensor
    x: Tensor
    sizes: Tensor
    schedule: Schedule = FINEST

    def log_prob(self, adj: Tensor) -> Tensor:
        """Return the log-probability of graphs in this node ordering, in nats, with shape :math:`(B,)`."""
        sizes = self.sizes.cpu().numpy()
        rows, graphs = np.nonzero(np.arange(1, sizes.max(initial=1))[:, None] < sizes)
        total = adj.new_zeros(len(sizes))

        return total.index_add(0, torch.from_numpy(graphs).to(adj.device), self._score(adj, graphs, rows + 1))

    def row_log_prob(self, adj: Tensor, rows: Tensor) -> Tensor:
        """Return the log-probability of one row of each graph, both with shape :math:`(B,)`."""
        return self._score(adj, np.arange(len(adj)), rows.cpu().numpy())

    def _score(self, adj: Tensor, graphs: NDArray[np.int64], rows: NDArray[np.int64]) -> Tensor:
        """The log-probability of each row, computed in chunks of rows of similar length."""
        if not len(rows):
            return adj.new_zeros(0)
        chunks = row_chunks(rows)
        scores = torch.cat([self._score_chunk(adj, graphs[part], rows[part]) for part in chunks])

        return scores[torch.from_numpy(np.argsort(np.concatenate(chunks))).to(adj.device)]

    def _score_chunk(self, adj: Tensor, graphs: NDArray[np.int64], rows: NDArray[np.int64]) -> Tensor:
        partial = self.partial_graphs(adj, graphs, rows)
        at, nodes = torch.from_numpy(rows).to(adj.device), partial.adj.shape[-1]
        candidates = node_mask(at, nodes)
        row_edges = adj[torch.from_numpy(graphs).to(adj.device), at, :nodes] * candidates

        h = self.decoder.states(partial)
        logits = self.decoder.row_context(h, partial, at, self._prefix(graphs, rows, nodes)).logits(row_edges)

        return ((row_edges * logits - F.softplus(logits)) * candidates).sum(-1)

    def partial_graphs(self, adj: Tensor, graphs: NDArray[np.int64], rows: NDArray[np.int64]) -> PartialGraphs:
        """Return the graphs that rows belong to as they are before the block of the row is decoded."""
        index = torch.from_numpy(graphs).to(adj.device)
        sizes = self.sizes[index]
        block = torch.from_numpy(self.schedule.block(sizes.cpu().numpy())).to(adj.device)
        decoded = torch.from_numpy(rows).to(adj.device) // block * block
        active = torch.minimum(decoded + block, sizes)
        nodes = int(active.max()) if len(rows) else 1
        known = node_mask(decoded, nodes).to(adj)
        known_edges = adj[index, :nodes, :nodes] * known.unsqueeze(-1) * known.unsqueeze(-2)

        return PartialGraphs(known_edges, decoded, active, sizes, self.z[index, :nodes], self.x[index, :nodes])

    def _prefix(self, graphs: NDArray[np.int64], rows: NDArray[np.int64], nodes: int) -> Tensor:
        return torch.from_numpy(self.schedule.prefix(self.sizes.cpu().numpy()[graphs], rows, nodes)).to(self.z.device)

    def sample(self, uniform: Tensor, constraints: EdgeConstraints | None = None) -> Tensor:
        """Sample graphs from uniform noise, read below the diagonal, both with shape :math:`(B, N, N)`."""
        sizes = self.sizes.cpu().numpy()
        block = self.schedule.block(sizes)
        assert constraints is None or (block == 1).all(), "constraints need blocks of one node"
        uniform = uniform.to(self.z)
        adj = torch.zeros_like(uniform)
        for start in range(int(np.max(-(-sizes // block), initial=0))):
            first, last = np.maximum(start * block, 1), np.minimum((start + 1) * block, sizes)
            for graphs in _pieces(np.flatnonzero(first < last), int(last.max())):
                self._sample_block(adj, graphs, first[graphs], last[graphs], uniform, constraints)

        return adj

    def _sample_block(
        self,
        adj: Tensor,
        graphs: NDArray[np.int64],
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        uniform: Tensor,
        constraints: EdgeConstraints | None,
    ) -> None:
        """Sample the rows of one block of nodes in some graphs, and write them into ``adj``."""
        # All rows of a block are conditioned on the same graph: its states are computed once.
        partial = self.partial_graphs(adj, graphs, first)
        h = self.decoder.states(partial)
        owners = np.repeat(np.arange(len(graphs)), last - first)
        rows = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
        for part in _pieces(np.arange(len(rows)), h.shape[-2]):
            chosen = graphs[owners[part]]
            shared, index, at = (torch.from_numpy(a).to(adj.device) for a in (owners[part], chosen, rows[part]))
            row_edges, _ = self.sample_rows(
                partial.select(shared), h[shared], chosen, rows[part], uniform[index, at], constraints
            )
            nodes = row_edges.shape[-1]
            # Rows of one block share columns, hence the addition.
            adj[index, at, :nodes] += row_edges
            adj[index, :nodes, at] += row_edges

    def sample_rows(
        self,
        partial: PartialGraphs,
        h: Tensor,
        graphs: NDArray[np.int64],
        rows: NDArray[np.int64],
        uniform: Tensor,
        constraints: EdgeConstraints | None,
    ) -> tuple[Tensor, Tensor]:
        """Sample the rows of new nodes; return their edges and the logits of these, both with shape :math:`(M, T)`.

        All pairs of a row are sampled in parallel given its current edges, until nothing changes. Pair i is right as
        soon as those before it are, so the fixed point is the sequential sample (Song et al., 2021), and it is usually
        reached in a few iterations.

        Arguments:
            partial: The graphs before the rows are decoded.
            h: Their node states, with shape :math:`(M, T, d)`.
            graphs: The graph in the batch that each row belongs to, with shape :math:`(M,)`.
            rows: The new nodes, with shape :math:`(M,)`.
            uniform: Noise in [0, 1), with shape :math:`(M, N)`.
            constraints: Constraints on the edges.
        """
        nodes, device = partial.adj.shape[-1], uniform.device
        at = torch.from_numpy(rows).to(device)
        candidates = node_mask(at, nodes)
        noise = uniform[:, :nodes]
        prefix = self._prefix(graphs, rows, nodes)
        context = self.decoder.row_context(h, partial, at, prefix)
        enforce, iterations = None, nodes + 1
        if constraints is not None:
            enforce = constraints(torch.from_numpy(graphs).to(device), partial.adj, at, partial.sizes)
        else:
            # One iteration per group of pairs is enough.
            iterations = int((prefix.diff(dim=-1) != 0).logical_and(candidates[:, 1:]).sum(-1).max()) + 1

        # Every start leads to the same fixed point; one with the density of the graph so far usually converges sooner.
        pairs = (partial.decoded * (partial.decoded - 1)).clamp_min(1)
        density = (partial.adj.sum((-2, -1)) / pairs.to(noise)).unsqueeze(-1)
        row_edges, logits = ((noise < density) & candidates).to(noise), torch.zeros_like(noise)
        open_rows = torch.arange(len(rows), device=device)
        for _ in range(iterations):
            before = row_edges[open_rows]
            found = context.logits(before)
            after = (noise[open_rows] < torch.sigmoid(found)) & candidates[open_rows]
            if enforce is not None:
                after = enforce(open_rows, after, before) & candidates[open_rows]
            logits[open_rows], row_edges[open_rows] = found, after.to(row_edges)
            changed = (after.to(before) != before).any(-1)
            if not changed.any():
                break
            # Dropping converged rows must save more than copying the others costs.
            if changed.sum() < OPEN_FRACTION * len(changed):
                open_rows, context = open_rows[changed], context.select(changed.nonzero().squeeze(-1))

        return row_edges, logits


def _pieces(indices: NDArray[np.int64], nodes: int) -> list[NDArray[np.int64]]:
    """Split indices of matrices of a given size into pieces of bounded memory."""
    size = max(1, DRAWN_CELLS // nodes**2)

    return [indices[start : start + size] for start in range(0, len(indices), size)]


def row_chunks(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Group rows of similar length to be scored together, cut where padding would cost more than another pass."""
    order = np.argsort(rows, kind="stable")
    chunks, start = [], 0
    while start < len(order):
        shortest = int(rows[order[start]])
        longest = shortest + 2 + shortest // 3
        similar = int(np.searchsorted(rows[order], longest, side="right"))
        end = min(similar, start + max(1, CHUNK_CELLS // (longest + 1) ** 2))
        chunks.append(order[start:end])
        start = end

    return chunks
