"""The autoregressive distribution over graphs: nodes are added in a node ordering, with edges to earlier ones."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from .decoder import AutoregressiveDecoder, CandidateTerms, Draft
from .structure import FAR, NO_RELATION, PartialGraphs, relation_code

__all__ = ["AutoregressiveGraphs", "Decoding", "EdgeConstraints", "RowCandidates", "RowConstraints", "sample_row"]

# Pairs that are scored together; more than these are scored in chunks, whose activations are computed again for the
# gradient, so that memory follows the edges.
CHUNK_PAIRS = 1 << 17
# Candidates that are evaluated at a time: those after the next neighbour are evaluated again when it is known.
WINDOW = 32


class RowConstraints(ABC):
    """Constraints on the edges of M new nodes."""

    @abstractmethod
    def __call__(self, rows: Tensor, sampled: Tensor, row_edges: Tensor) -> Tensor:
        """The feasible edges closest to sampled ones, given the indices of rows (R,) and the current edges (R, t).

        Pair i may depend on samples up to it and on edges before it only. Pairs after the next new edge are not used.
        """

    def rejected(self, edges: Tensor) -> Tensor:
        """Rows whose edges (M, t) violate a constraint that is not enforced at first; from now on it is."""
        return torch.empty(0, dtype=torch.int64, device=edges.device)


# The constraints on new nodes, given the graph in the batch that each belongs to (M,), the known edges (M, t, t), the
# positions t of the nodes (M,) and the final numbers of nodes (M,).
EdgeConstraints = Callable[[Tensor, Tensor, Tensor, Tensor], RowConstraints]


@dataclass(frozen=True)
class AutoregressiveGraphs:
    r"""Distribution over graphs with ordered nodes, given their latents (beyond the paper).

    .. math:: p(A | Z) = \prod_t \prod_{i < t} p(A_{t i} | A_{t, <i}, A_{<t}, Z)

    Attributes:
        decoder: The decoder.
        z: Latents in the node ordering, with shape :math:`(B, N, D)`.
        x: Node features in the node ordering, with shape :math:`(B, N, F)`.
        sizes: The number of nodes of each graph, with shape :math:`(B,)`.
    """

    decoder: AutoregressiveDecoder
    z: Tensor
    x: Tensor
    sizes: Tensor

    def log_prob(self, adj: Tensor) -> Tensor:
        """The log-probability of graphs in this node ordering, all rows in one pass, in nats, with shape (B,)."""
        order = torch.argsort(self.sizes, descending=True, stable=True)
        sizes = self.sizes[order]
        known = _KnownGraphs((adj[order] > 0).cpu().numpy(), sizes.cpu().numpy())
        draft = self.decoder.draft(self.z[order, : known.nodes], self.x[order, : known.nodes], sizes)
        states, queries = self._states(draft, sizes, known)
        chunks = known.chunks(CHUNK_PAIRS)
        shared = self._pair_tables(states, queries, known)
        if len(chunks) > 1 and torch.is_grad_enabled():
            parts = [checkpoint(self._score, draft, known, shared, part, use_reentrant=False) for part in chunks]
        else:
            parts = [self._score(draft, known, shared, part) for part in chunks]
        # Graphs of one node have no pairs, and still a gradient.
        scores = torch.cat(parts) if parts else states[:0, 0]
        total = scores.new_zeros(len(sizes)).index_add(0, _tensor(known.pair_graph, scores), scores)

        return torch.empty_like(total).index_copy(0, order, total)

    def _states(self, draft: Draft, sizes: Tensor, known: _KnownGraphs) -> tuple[Tensor, Tensor]:
        """All versions of node states, in the order they are computed, and the queries of all nodes."""
        decoder, nodes = self.decoder, known.nodes
        times = torch.arange(nodes, device=sizes.device)
        prior = decoder.prior_query(sizes.unsqueeze(-1), times, _tensor(known.edges_before, sizes)) + draft.states
        counts, degrees = _tensor(known.counts, sizes), _tensor(known.edge_degrees, sizes)
        current = prior.new_zeros(prior.shape)
        sums = prior.new_zeros(len(sizes), draft.factor.shape[-1], decoder.width)
        versions, queries = [], []
        for t in range(nodes):
            live, edges = int(known.live[t]), slice(known.first_edge[t], known.first_edge[t + 1])
            current, sums, factor = current[:live], sums[:live], draft.factor[:live]
            owner, node = (_tensor(values[edges], sizes) for values in (known.edge_graph, known.edge_node))
            query = decoder.complete_query(prior[:live, t], factor[:, t], sums, t)
            old = current[owner, node]
            new, updated = decoder.advance(query, old, owner, counts[:live, t], degrees[edges])
            rows = torch.cat([torch.arange(live, device=sizes.device), owner])
            current = current.index_put((rows, torch.cat([node.new_full((live,), t), node])), torch.cat([new, updated]))
            sums = _add_states(sums, factor, t, new, owner, node, updated - old)
            versions += [new, updated]
            queries.append(query)

        return torch.cat(versions), torch.cat(queries)

    def _pair_tables(self, states: Tensor, queries: Tensor, known: _KnownGraphs) -> tuple[Tensor, ...]:
        """Projections of states, queries and sums of chosen neighbours, from which pairs are gathered."""
        chosen = states[_tensor(known.edge_version, states)]
        # Prefix sums within rows, as differences of those over all rows; in double precision nothing is lost.
        sums = torch.cat([chosen.new_zeros(1, chosen.shape[1], dtype=torch.float64), chosen.double().cumsum(0)])
        within = sums[1:] - sums[_tensor(known.edge_row_start, states)]
        chosen = torch.cat([chosen.new_zeros(1, chosen.shape[1]), within.to(chosen)])
        hidden, key = self.decoder.context(chosen, _tensor(np.append(0, known.edge_rank + 1), states))

        return self.decoder.key(states), self.decoder.query(queries), hidden, key

    def _score(self, draft: Draft, known: _KnownGraphs, tables: tuple[Tensor, ...], part: slice) -> Tensor:
        """The log-probabilities of a part of all pairs, which consists of whole rows."""
        decoder, like = self.decoder, tables[0]
        graph, t, i = (_tensor(values[part], like) for values in (known.pair_graph, known.pair_row, known.pair_node))
        version, row, last = (
            _tensor(values[part], like) for values in (known.pair_version, known.pair_query, known.pair_last_edge)
        )
        keys, queries, context_hidden, context_key = tables
        key, query = F.embedding(version, keys), F.embedding(row, queries)
        degrees, triangles = _tensor(known.pair_degrees[part], like), _tensor(known.pair_triangles[part], like)
        hidden, scores = decoder.candidate_base(query, key, degrees, triangles)

        # Rows as a matrix, for sums over their later candidates.
        local = torch.unique_consecutive(row, return_inverse=True)[1]
        weights = scores.exp()
        matrix = weights.new_zeros(int(local[-1]) + 1, int(t.max()), weights.shape[-1])
        matrix = matrix.index_put((local, i), weights)
        later = _sum_after(matrix, 1)[local, i]

        # Positions are the same in all graphs, if there are several.
        nodes = int(t.max()) + 1
        if nodes**2 < len(t):
            places = torch.tril_indices(nodes, nodes, -1, device=t.device)
            positions = F.embedding(t * (t - 1) // 2 + i, decoder.position_terms(places[0], places[1]))
        else:
            positions = decoder.position_terms(t, i)
        inner = (draft.latents[graph, t] * draft.latents[graph, i]).sum(-1)
        terms = decoder.candidate_terms(hidden, scores, later, query, key, positions, inner)
        relations = F.embedding(_tensor(known.pair_codes[part], like), decoder.relation_table())
        gaps = _tensor(known.pair_gaps[part], like)
        context = F.embedding(last, context_hidden), F.embedding(last, context_key)
        logits = decoder.logits(terms, context, relations, gaps)

        return -F.softplus(torch.where(_tensor(known.pair_edges[part], like), -logits, logits))

    def sample(self, uniform: Tensor, constraints: EdgeConstraints | None = None) -> Tensor:
        """Sample graphs from uniform noise, read below the diagonal, both with shape :math:`(B, N, N)`."""
        order = torch.argsort(self.sizes, descending=True, stable=True)
        uniform = uniform[order].to(self.z)
        decoding = Decoding(self.decoder, self.z[order], self.x[order], self.sizes[order])
        for t in range(uniform.shape[-1]):
            live = decoding.start_row()
            if not live:
                break
            enforce = None
            if constraints is not None and t:
                known = decoding.adj[:live, :t, :t]
                enforce = constraints(order[:live], known, torch.full_like(order[:live], t), decoding.sizes[:live])
            edges, _ = decoding.sample_row(uniform[:live, t, :t], enforce)
            decoding.add_node(edges)

        return torch.empty_like(uniform).index_copy(0, order, decoding.adj.to(uniform))


class _KnownGraphs:
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
        triangles = np.zeros(lower.shape, dtype=np.int32)
        before = lower.cumsum(-1) - lower
        partial = PartialGraphs(graphs, self.nodes)
        for t in range(self.nodes):
            live, edges = self.live[t], slice(self.first_edge[t], self.first_edge[t + 1])
            counts = self.counts[:live, t]
            neighbours = np.zeros((live, counts.max(initial=0)), dtype=np.int64)
            neighbours[self.edge_graph[edges], self.edge_rank[edges]] = self.edge_node[edges]
            codes[:live, t, :t] = partial.row_codes(t, neighbours, counts, before[:live, t, :t])
            triangles[:live, t, :t] = partial.triangles[:live, :t]
            partial.add(t, neighbours, counts)
        at = self.pair_graph, self.pair_row, self.pair_node
        self.pair_codes, self.pair_triangles = codes[at].astype(np.int64), triangles[at].astype(np.int64)

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


class RowCandidates(Protocol):
    """The candidate pairs of one new node per graph, and the neighbours chosen among them so far."""

    def logits(self, rows: Tensor, nodes: Tensor | None) -> Tensor:
        """Logits of some rows (A,), of given candidates (A, W) or of all of them."""
        ...

    def choose(self, rows: Tensor, nodes: Tensor) -> None:
        """Add a neighbour to each of some rows, both with shape (A,)."""
        ...

    def restart(self, rows: Tensor) -> None:
        """Remove the chosen neighbours of some rows (A,)."""
        ...


def sample_row(row: RowCandidates, noise: Tensor, enforce: RowConstraints | None = None) -> tuple[Tensor, Tensor]:
    """Sample the edges of new nodes; return them and the logits of all pairs, with shape :math:`(L, t)`.

    The next neighbour is the first candidate whose noise is below its probability. Candidates after it are evaluated
    again when it is chosen, so a row takes one evaluation for each of its edges and one more.
    """
    edges, logits = torch.zeros_like(noise, dtype=torch.bool), torch.zeros_like(noise)
    rows = torch.arange(len(noise), device=noise.device)
    while len(rows):
        _sample_edges(row, noise, enforce, rows, edges, logits)
        # With the same noise a row changes only after the first edge that its constraints do not allow.
        rows = rows[:0] if enforce is None else enforce.rejected(edges)
        row.restart(rows)
        edges[rows] = False

    return edges, logits


def _sample_edges(
    row: RowCandidates, noise: Tensor, enforce: RowConstraints | None, rows: Tensor, edges: Tensor, logits: Tensor
) -> None:
    """Set the edges and logits of some rows, which have no edges yet."""
    graphs, candidates = noise.shape
    start = torch.zeros(graphs, dtype=torch.int64, device=noise.device)
    is_whole = enforce is not None or candidates <= WINDOW
    offsets = torch.arange(candidates if is_whole else WINDOW, device=noise.device)
    while len(rows) and candidates:
        first = start[rows].unsqueeze(-1)
        if is_whole:
            at = offsets.expand(len(rows), -1)
            found, hits = row.logits(rows, None), noise[rows]
        else:
            at = (first + offsets).clamp(max=candidates - 1)
            found, hits = row.logits(rows, at), noise[rows.unsqueeze(-1), at]
        hits = hits < torch.sigmoid(found)
        if enforce is not None:
            # Pairs before the first one left are decided.
            chosen_edges = edges[rows]
            hits = enforce(rows, torch.where(at < first, chosen_edges, hits), chosen_edges)
        hits = hits & (at >= first)
        is_found, place = hits.any(-1), hits.int().argmax(-1, keepdim=True)
        chosen = torch.where(is_found, at.gather(-1, place).squeeze(-1), at[:, -1])
        is_decided = (at >= first) & (at <= chosen.unsqueeze(-1))
        logits[rows.unsqueeze(-1).expand_as(at)[is_decided], at[is_decided]] = found[is_decided]
        start[rows] = chosen + 1
        edges[rows[is_found], chosen[is_found]] = True
        row.choose(rows[is_found], chosen[is_found])
        rows = rows[start[rows] < candidates]


class Decoding:
    """Graphs that are sampled node by node; sizes are in descending order, so that unfinished graphs come first."""

    def __init__(self, decoder: AutoregressiveDecoder, z: Tensor, x: Tensor, sizes: Tensor) -> None:
        graphs, nodes = z.shape[:2]
        self.decoder, self.sizes, self.t = decoder, sizes, 0
        self.adj = torch.zeros(graphs, nodes, nodes, dtype=torch.bool, device=z.device)
        self._draft = decoder.draft(z, x, sizes)
        self._partial = PartialGraphs(graphs, nodes)
        self._states = z.new_zeros(graphs, nodes, decoder.width)
        self._keys = z.new_zeros(graphs, nodes, decoder.key.out_features)
        self._sums = z.new_zeros(graphs, self._draft.factor.shape[-1], decoder.width)
        self._relations = decoder.relation_table()
        self._query = z.new_zeros(0)

    def start_row(self) -> int:
        """Prepare the next row; return the number of graphs that have one."""
        live = int((self.sizes > self.t).sum())
        edges = torch.from_numpy(self._partial.edges[:live]).to(self.sizes.device)
        prior = self.decoder.prior_query(self.sizes[:live], torch.full_like(edges, self.t), edges)
        prior = prior + self._draft.states[:live, self.t]
        self._query = self.decoder.complete_query(prior, self._draft.factor[:live, self.t], self._sums[:live], self.t)

        return live

    def sample_row(self, noise: Tensor, enforce: RowConstraints | None = None) -> tuple[Tensor, Tensor]:
        """Sample the edges of the new nodes; see :func:`sample_row`."""
        return sample_row(_Candidates(self), noise, enforce)

    def add_node(self, edges: Tensor) -> None:
        """Add the new nodes with their edges to the earlier ones, with shape :math:`(L, t)`."""
        live, t = edges.shape
        counts = edges.sum(-1)
        owner, node = edges.nonzero(as_tuple=True)
        numbers = counts.cpu().numpy()
        neighbours = np.zeros((live, numbers.max(initial=0)), dtype=np.int64)
        ranks = np.arange(len(owner)) - np.repeat(numbers.cumsum() - numbers, numbers)
        neighbours[owner.cpu().numpy(), ranks] = node.cpu().numpy()
        self._partial.add(t, neighbours, numbers)
        degrees = torch.from_numpy(self._partial.degrees).to(edges.device)[owner, node]

        old = self._states[owner, node]
        new, updated = self.decoder.advance(self._query, old, owner, counts, degrees)
        factor = self._draft.factor[:live]
        self._sums[:live] = _add_states(self._sums[:live], factor, t, new, owner, node, updated - old)
        self._states[:live, t], self._keys[:live, t] = new, self.decoder.key(new)
        self._states[owner, node], self._keys[owner, node] = updated, self.decoder.key(updated)
        self.adj[:live, t, :t] = self.adj[:live, :t, t] = edges
        self.t += 1

    def select(self, graphs: NDArray[np.int64]) -> None:
        """Replace the graphs by some of them, of the same sizes."""
        at = torch.from_numpy(graphs).to(self.adj.device)
        self._partial.select(graphs)
        for name in ("adj", "_states", "_keys", "_sums"):
            setattr(self, name, getattr(self, name)[at])
        draft = self._draft
        self._draft = Draft(draft.latents[at], draft.states[at], draft.factor[at])


class _Candidates:
    """The candidate pairs of the next node of each graph (see :class:`RowCandidates`)."""

    def __init__(self, decoding: Decoding) -> None:
        decoder, partial, draft, t = decoding.decoder, decoding._partial, decoding._draft, decoding.t
        live, device = len(decoding._query), decoding.adj.device
        self._decoder, self._partial, self._table = decoder, partial, decoding._relations
        self._states = decoding._states[:live, :t]
        keys, query = decoding._keys[:live, :t], decoder.query(decoding._query).unsqueeze(1)
        degrees, triangles = (
            torch.from_numpy(values[:live, :t]).to(device) for values in (partial.degrees, partial.triangles)
        )
        hidden, scores = decoder.candidate_base(query, keys, degrees, triangles)
        self._nodes = torch.arange(t, device=device)
        positions = decoder.position_terms(torch.full_like(self._nodes, t), self._nodes)
        inner = (draft.latents[:live, :t] @ draft.latents[:live, t].unsqueeze(-1)).squeeze(-1)
        later = _sum_after(scores.exp(), 1)
        self._terms = decoder.candidate_terms(hidden, scores, later, query, keys, positions, inner)
        self._total = hidden.new_zeros(live, decoder.width)
        self._count = torch.zeros(live, dtype=torch.int64, device=device)
        self._last = torch.full((live,), -1, device=device)
        self._nearest = np.full((live, t), FAR, dtype=np.int8)
        self._adjacent = np.zeros((live, t), dtype=np.int8)
        self._codes = np.full((live, t), NO_RELATION, dtype=np.int16)

    def logits(self, rows: Tensor, nodes: Tensor | None) -> Tensor:
        at, codes = rows.cpu().numpy(), self._codes
        context = self._decoder.context(self._total[rows], self._count[rows])
        if nodes is None:
            nodes = self._nodes
            codes = codes[at]
            terms = (
                self._terms
                if len(rows) == len(codes) == len(self._codes)
                else CandidateTerms(*(part[rows] for part in self._terms))
            )
        else:
            codes = codes[at[:, None], nodes.cpu().numpy()]
            terms = CandidateTerms(*(part[rows.unsqueeze(-1), nodes] for part in self._terms))
        relations = F.embedding(torch.from_numpy(codes.astype(np.int64)).to(rows.device), self._table)
        gaps = nodes - self._last[rows].unsqueeze(-1)

        return self._decoder.logits(terms, (context[0].unsqueeze(1), context[1].unsqueeze(1)), relations, gaps)

    def choose(self, rows: Tensor, nodes: Tensor) -> None:
        self._total[rows] += self._states[rows, nodes]
        self._count[rows] += 1
        self._last[rows] = nodes
        at, node, t = rows.cpu().numpy(), nodes.cpu().numpy(), self._codes.shape[1]
        distance, common = self._partial.distance[at, node, :t], self._partial.common[at, node, :t]
        self._nearest[at] = nearest = np.minimum(self._nearest[at], np.maximum(distance, 1))
        self._adjacent[at] = adjacent = np.minimum(self._adjacent[at], 100) + (distance == 1)
        self._codes[at] = relation_code(distance, common, nearest, adjacent)

    def restart(self, rows: Tensor) -> None:
        self._total[rows], self._count[rows], self._last[rows] = 0, 0, -1
        at = rows.cpu().numpy()
        self._nearest[at], self._adjacent[at], self._codes[at] = FAR, 0, NO_RELATION


def _tensor(values: NDArray[np.generic], like: Tensor) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(like.device)


def _sum_after(values: Tensor, dim: int) -> Tensor:
    """The sums of later values along a dimension."""
    return values.flip(dim).cumsum(dim).flip(dim) - values


def _add_states(
    sums: Tensor, factor: Tensor, t: int, new: Tensor, owner: Tensor, node: Tensor, change: Tensor
) -> Tensor:
    r"""The sums :math:`\sum_i f_i h_i^T` with the states of new nodes and the changes of their neighbours."""
    added = factor[:, t].unsqueeze(-1) * new.unsqueeze(-2)

    return sums + added.index_add(0, owner, factor[owner, node].unsqueeze(-1) * change.unsqueeze(-2))
