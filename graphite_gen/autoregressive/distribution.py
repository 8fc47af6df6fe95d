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

        Pair i may depend on samples up to it and on edges before it only.
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
        scores = torch.cat(parts) if parts else states.new_zeros(0)
        total = scores.new_zeros(len(sizes)).index_add(0, _tensor(known.pair_graph, scores), scores)

        return torch.empty_like(total).index_copy(0, order, total)

    def _states(self, draft: Draft, sizes: Tensor, known: _KnownGraphs) -> tuple[Tensor, Tensor]:
        """All versions of node states, in the order they are computed, and the queries of all nodes."""
        decoder, nodes = self.decoder, known.nodes
        times = torch.arange(nodes, device=sizes.device)
        prior = decoder.prior_query(sizes.unsqueeze(-1), times, _tensor(known.edges_before, sizes)) + draft.states
        scale, new_degrees, update_degrees = decoder.degree_terms(
            _tensor(known.counts, sizes), _tensor(known.edge_degrees, sizes)
        )
        owners, neighbours = _tensor(known.edge_graph, sizes), _tensor(known.edge_node, sizes)
        graphs = torch.arange(len(sizes), device=sizes.device)
        current = prior.new_zeros(prior.shape)
        sums = prior.new_zeros(len(sizes), draft.factor.shape[-1], decoder.width)
        versions, queries = [], []
        for t in range(nodes):
            live, edges = int(known.live[t]), slice(known.first_edge[t], known.first_edge[t + 1])
            current, sums, factor = current[:live], sums[:live], draft.factor[:live]
            owner, node = owners[edges], neighbours[edges]
            query = decoder.complete_query(prior[:live, t], factor[:, t], sums, t)
            old = current[owner, node]
            degree_terms = scale[:live, t], new_degrees[:live, t], update_degrees[edges]
            new, updated = decoder.advance(query, old, owner, degree_terms)
            states = torch.cat([new, updated])
            places = torch.cat([graphs[:live], owner]), torch.cat([times[t].expand(live), node])
            current = current.index_put(places, states)
            sums = _add_states(sums, factor, t, new, owner, node, updated - old)
            versions.append(states)
            queries.append(query)

        return torch.cat(versions), torch.cat(queries)

    def _pair_tables(self, states: Tensor, queries: Tensor, known: _KnownGraphs) -> tuple[Tensor, ...]:
        """Projections of states, queries and sums of chosen neighbours, from which pairs are gathered."""
        attend, values = self.decoder.attend(states).chunk(2, -1)
        version = _tensor(known.edge_version, states)
        chosen = torch.cat([states[version], values[version]], -1)
        # Prefix sums within rows, as differences of those over all rows; in double precision nothing is lost.
        sums = torch.cat([chosen.new_zeros(1, chosen.shape[1], dtype=torch.float64), chosen.double().cumsum(0)])
        within = sums[1:] - sums[_tensor(known.edge_row_start, states)]
        chosen = torch.cat([chosen.new_zeros(1, chosen.shape[1]), within.to(chosen)])
        chosen, chosen_values = chosen.split([states.shape[1], values.shape[1]], -1)
        context = self.decoder.context(chosen, _tensor(np.append(0, known.edge_rank + 1), states))

        return self.decoder.key(states), self.decoder.query(queries), context, chosen_values, attend, values

    def _score(self, draft: Draft, known: _KnownGraphs, tables: tuple[Tensor, ...], part: slice) -> Tensor:
        """The log-probabilities of a part of all pairs, which consists of whole rows."""
        decoder, like = self.decoder, tables[0]
        graph, t, i = (_tensor(values[part], like) for values in (known.pair_graph, known.pair_row, known.pair_node))
        version, row, last = (
            _tensor(values[part], like) for values in (known.pair_version, known.pair_query, known.pair_last_edge)
        )
        keys, queries, context, chosen_values, attend, values = tables
        key, query = F.embedding(version, keys), F.embedding(row, queries)
        degrees, triangles = _tensor(known.pair_degrees[part], like), _tensor(known.pair_triangles[part], like)
        hidden, scores = decoder.candidate_base(query, key, degrees, triangles)

        # Rows as a matrix, for sums over their later candidates.
        local = torch.unique_consecutive(row, return_inverse=True)[1]
        weights = scores.exp()
        matrix = weights.new_zeros(int(local[-1]) + 1, int(t.max()), weights.shape[-1])
        matrix = matrix.index_put((local, i), weights)
        later = _sum_after(matrix, 1)[local, i]
        value = F.embedding(version, values)
        matrix = value.new_zeros(int(local[-1]) + 1, int(t.max()), value.shape[-1])
        earlier = matrix.index_put((local, i), value).cumsum(1)[local, i] - value

        # Positions are the same in all graphs, if there are several.
        nodes = int(t.max()) + 1
        if nodes**2 < len(t):
            places = torch.tril_indices(nodes, nodes, -1, device=t.device)
            positions = F.embedding(t * (t - 1) // 2 + i, decoder.position_terms(places[0], places[1]))
        else:
            positions = decoder.position_terms(t, i)
        inner = (draft.latents[graph, t] * draft.latents[graph, i]).sum(-1)
        terms = decoder.candidate_terms(
            hidden, scores, later, query, key, positions, inner, F.embedding(version, attend), earlier, i
        )
        relations = F.embedding(_tensor(known.pair_codes[part], like), decoder.relation_table())
        gaps = _tensor(known.pair_gaps[part], like)
        votes = (known.pair_adjacent, known.pair_paths, known.pair_earlier, known.pair_most_paths, known.pair_before)
        relations = relations + decoder.vote_terms(*(_tensor(values[part], like) for values in votes))
        counts = _tensor(known.pair_before[part], like)
        logits = decoder.logits(
            terms, F.embedding(last, context), F.embedding(last, chosen_values), counts, relations, gaps
        )

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
        triangles, adjacent, paths, most_paths = (np.zeros(lower.shape, dtype=np.int32) for _ in range(4))
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
            most_paths[:live, t, :t] = partial.paths[:live, :t]
            partial.add(t, neighbours, counts)
        at = self.pair_graph, self.pair_row, self.pair_node
        self.pair_codes, self.pair_triangles = codes[at].astype(np.int64), triangles[at].astype(np.int64)
        self.pair_adjacent, self.pair_paths, self.pair_most_paths = adjacent[at], paths[at], most_paths[at]
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
        new, updated = self.decoder.advance(self._query, old, owner, self.decoder.degree_terms(counts, degrees))
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
        attend, self._values = decoder.attend(self._states).chunk(2, -1)
        earlier = self._values.cumsum(1) - self._values
        self._terms = decoder.candidate_terms(
            hidden, scores, later, query, keys, positions, inner, attend, earlier, self._nodes
        )
        self._chosen_values = self._values.new_zeros(live, self._values.shape[-1])
        self._total = hidden.new_zeros(live, decoder.width)
        self._count = torch.zeros(live, dtype=torch.int64, device=device)
        self._last = torch.full((live,), -1, device=device)
        self._nearest = np.full((live, t), FAR, dtype=np.int8)
        self._adjacent, self._paths = np.zeros((live, t), dtype=np.int32), np.zeros((live, t), dtype=np.int32)
        self._earlier, self._most_paths = partial.earlier[:live, :t], partial.paths[:live, :t]
        self._codes = np.full((live, t), NO_RELATION, dtype=np.int16)

    def logits(self, rows: Tensor, nodes: Tensor | None) -> Tensor:
        at = rows.cpu().numpy()
        pick = (at,) if nodes is None else (at[:, None], nodes.cpu().numpy())
        codes = self._codes[pick]
        votes = (self._adjacent, self._paths, self._earlier, self._most_paths)
        context = self._decoder.context(self._total[rows], self._count[rows])
        if nodes is None:
            nodes = self._nodes
            is_all = len(rows) == len(self._codes)
            terms = self._terms if is_all else CandidateTerms(*(part[rows] for part in self._terms))
        else:
            terms = CandidateTerms(*(part[rows.unsqueeze(-1), nodes] for part in self._terms))
        relations = F.embedding(torch.from_numpy(codes.astype(np.int64)).to(rows.device), self._table)
        counts = self._count[rows].unsqueeze(-1)
        relations = relations + self._decoder.vote_terms(
            *(_tensor(values[pick], rows) for values in votes), counts.expand(relations.shape[:-1])
        )
        gaps = nodes - self._last[rows].unsqueeze(-1)

        values = self._chosen_values[rows].unsqueeze(1)

        return self._decoder.logits(terms, context.unsqueeze(1), values, counts, relations, gaps)

    def choose(self, rows: Tensor, nodes: Tensor) -> None:
        self._total[rows] += self._states[rows, nodes]
        self._chosen_values[rows] += self._values[rows, nodes]
        self._count[rows] += 1
        self._last[rows] = nodes
        at, node, t = rows.cpu().numpy(), nodes.cpu().numpy(), self._codes.shape[1]
        distance, common = self._partial.distance[at, node, :t], self._partial.common[at, node, :t]
        self._nearest[at] = nearest = np.minimum(self._nearest[at], np.maximum(distance, 1))
        self._adjacent[at] = adjacent = self._adjacent[at] + (distance == 1)
        self._paths[at] += common
        self._codes[at] = relation_code(distance, common, nearest, adjacent)

    def restart(self, rows: Tensor) -> None:
        self._total[rows], self._chosen_values[rows], self._count[rows], self._last[rows] = 0, 0, 0, -1
        at = rows.cpu().numpy()
        self._nearest[at], self._codes[at] = FAR, NO_RELATION
        self._adjacent[at] = self._paths[at] = 0


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
