"""The autoregressive distribution over graphs: nodes are added in a node ordering, with edges to earlier ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from .decoder import ATTENTION, AutoregressiveDecoder, CandidatePairs, CandidateTerms, Draft, RowsSoFar
from .known_graphs import KnownGraphs
from .row_sampling import EdgeConstraints, RowConstraints, sample_row
from .structure import FAR, NO_RELATION, PartialGraphs, relation_code

__all__ = ["AutoregressiveGraphs", "Decoding"]

# Pairs that are scored together; more than these are scored in chunks, whose activations are computed again for the
# gradient.
CHUNK_PAIRS = 1 << 17


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
        known = KnownGraphs((adj[order] > 0).cpu().numpy(), sizes.cpu().numpy())
        draft = self.decoder.draft(self.z[order, : known.nodes], self.x[order, : known.nodes], sizes)
        states, queries = self._states(draft, sizes, known)
        chunks = known.chunks(CHUNK_PAIRS)
        tables = self._tables(states, queries, known)
        if len(chunks) > 1 and torch.is_grad_enabled():
            parts = [checkpoint(self._score, draft, known, tables, part, use_reentrant=False) for part in chunks]
        else:
            parts = [self._score(draft, known, tables, part) for part in chunks]
        # Graphs of one node have no pairs, and still a gradient.
        scores = torch.cat(parts) if parts else states[:0, 0]
        # In single precision the many small terms of a sparse graph would be lost beside the sum of the others.
        total = torch.zeros(len(sizes), dtype=torch.float64, device=scores.device)
        total = total.index_add(0, _tensor(known.pair_graph, scores), scores.double())

        return torch.empty_like(total).index_copy(0, order, total)

    def _states(self, draft: Draft, sizes: Tensor, known: KnownGraphs) -> tuple[Tensor, Tensor]:
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

    def _tables(self, states: Tensor, queries: Tensor, known: KnownGraphs) -> tuple[Tensor, ...]:
        """Projections of states, queries and sums of chosen neighbours, from which pairs are gathered."""
        decoder = self.decoder
        projected, version = decoder.state(states), _tensor(known.edge_version, states)
        chosen = torch.cat([states[version], decoder.values(projected)[version]], -1)
        # Prefix sums within rows, as differences of those over all rows; in double precision nothing is lost.
        sums = torch.cat([chosen.new_zeros(1, chosen.shape[1], dtype=torch.float64), chosen.double().cumsum(0)])
        within = (sums[1:] - sums[_tensor(known.edge_row_start, states)]).to(chosen)
        chosen, values = torch.split(F.pad(within, (0, 0, 1, 0)), [decoder.width, ATTENTION], -1)
        context = decoder.context(chosen, _tensor(np.append(0, known.edge_rank + 1), states))

        return projected, decoder.query(queries), context, values, decoder.relation_table()

    def _score(self, draft: Draft, known: KnownGraphs, tables: tuple[Tensor, ...], part: slice) -> Tensor:
        """The log-probabilities of a part of all pairs, which consists of whole rows."""
        states, queries, context, values, relations = tables

        def pairs(name: str) -> Tensor:
            return _tensor(getattr(known, f"pair_{name}")[part], states)

        graph, new, old, row, last = (pairs(name) for name in ("graph", "row", "node", "query", "last_edge"))
        candidates = CandidatePairs(
            F.embedding(row, queries),
            F.embedding(pairs("version"), states),
            pairs("degrees"),
            pairs("triangles"),
            new,
            old,
            (draft.latents[graph, new] * draft.latents[graph, old]).sum(-1),
        )
        terms = self.decoder.candidate_terms(candidates, _FlatRows(row, old))
        names = ("before", "gaps", "codes", "adjacent", "paths", "earlier", "earlier_paths")
        so_far = RowsSoFar(F.embedding(last, context), F.embedding(last, values), *(pairs(name) for name in names))
        logits = self.decoder.logits(terms, so_far, relations)

        return -F.softplus(torch.where(pairs("edges"), -logits, logits))

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


class Decoding:
    """Graphs that are sampled node by node; sizes are in descending order, so that unfinished graphs come first."""

    def __init__(self, decoder: AutoregressiveDecoder, z: Tensor, x: Tensor, sizes: Tensor) -> None:
        graphs, nodes = z.shape[:2]
        self.decoder, self.sizes, self.t = decoder, sizes, 0
        self.adj = torch.zeros(graphs, nodes, nodes, dtype=torch.bool, device=z.device)
        self._draft = decoder.draft(z, x, sizes)
        self._partial = PartialGraphs(graphs, nodes)
        self._states = z.new_zeros(graphs, nodes, decoder.width)
        self._projected = z.new_zeros(graphs, nodes, decoder.state.out_features)
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
        self._states[:live, t], self._projected[:live, t] = new, self.decoder.state(new)
        self._states[owner, node], self._projected[owner, node] = updated, self.decoder.state(updated)
        self.adj[:live, t, :t] = self.adj[:live, :t, t] = edges
        self.t += 1

    def select(self, graphs: NDArray[np.int64]) -> None:
        """Replace the graphs by some of them, of the same sizes."""
        at = torch.from_numpy(graphs).to(self.adj.device)
        self._partial.select(graphs)
        for name in ("adj", "_states", "_projected", "_sums"):
            setattr(self, name, getattr(self, name)[at])
        draft = self._draft
        self._draft = Draft(draft.latents[at], draft.states[at], draft.factor[at])


class _Candidates:
    """The candidate pairs of the next node of each graph (see :class:`RowCandidates`)."""

    def __init__(self, decoding: Decoding) -> None:
        decoder, partial, draft, t = decoding.decoder, decoding._partial, decoding._draft, decoding.t
        live, device = len(decoding._query), decoding.adj.device
        self._decoder, self._partial, self._relations = decoder, partial, decoding._relations
        self._states, state = decoding._states[:live, :t], decoding._projected[:live, :t]
        self._values = decoder.values(state)
        self._nodes = torch.arange(t, device=device)
        pairs = CandidatePairs(
            decoder.query(decoding._query).unsqueeze(1),
            state,
            _tensor(partial.degrees[:live, :t], state),
            _tensor(partial.triangles[:live, :t], state),
            torch.full_like(self._nodes, t),
            self._nodes,
            (draft.latents[:live, :t] @ draft.latents[:live, t].unsqueeze(-1)).squeeze(-1),
        )
        self._terms = decoder.candidate_terms(pairs, _MatrixRows())
        # The neighbours chosen so far: sums of their states and values, their number, and the last of them.
        self._total, self._chosen_values = self._states.new_zeros(live, decoder.width), state.new_zeros(live, ATTENTION)
        self._count = torch.zeros(live, dtype=torch.int64, device=device)
        self._last = torch.full((live,), -1, device=device)
        self._nearest = np.full((live, t), FAR, dtype=np.int8)
        self._codes = np.full((live, t), NO_RELATION, dtype=np.int64)
        self._adjacent, self._paths = np.zeros((live, t), dtype=np.int32), np.zeros((live, t), dtype=np.int32)

    def logits(self, rows: Tensor, nodes: Tensor | None) -> Tensor:
        at = rows.cpu().numpy()
        terms, numbers = self._terms, (at,) if nodes is None else (at[:, None], nodes.cpu().numpy())
        live, t = self._codes.shape
        if nodes is not None:
            terms = CandidateTerms(*(part[rows.unsqueeze(-1), nodes] for part in terms))
        elif len(rows) < live:
            terms = CandidateTerms(*(part[rows] for part in terms))
        partial, count = self._partial, self._count[rows]
        counts = (self._codes, self._adjacent, self._paths, partial.earlier[:live, :t], partial.paths[:live, :t])
        so_far = RowsSoFar(
            self._decoder.context(self._total[rows], count).unsqueeze(1),
            self._chosen_values[rows].unsqueeze(1),
            count.unsqueeze(1),
            (self._nodes if nodes is None else nodes) - self._last[rows].unsqueeze(1),
            *(_tensor(values[numbers], rows) for values in counts),
        )

        return self._decoder.logits(terms, so_far, self._relations)

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


class _MatrixRows:
    """Pairs that are a matrix of rows already."""

    def spread(self, values: Tensor) -> Tensor:
        return values

    def collect(self, matrix: Tensor) -> Tensor:
        return matrix


class _FlatRows:
    """A list of pairs, row after row."""

    def __init__(self, row: Tensor, old: Tensor) -> None:
        number = torch.unique_consecutive(row, return_inverse=True)[1]
        self._places = number, old
        self._shape = int(number[-1]) + 1, int(old.max()) + 1

    def spread(self, values: Tensor) -> Tensor:
        return values.new_zeros(*self._shape, values.shape[-1]).index_put(self._places, values)

    def collect(self, matrix: Tensor) -> Tensor:
        return matrix[self._places]


def _add_states(
    sums: Tensor, factor: Tensor, t: int, new: Tensor, owner: Tensor, node: Tensor, change: Tensor
) -> Tensor:
    r"""The sums :math:`\sum_i f_i h_i^T` with the states of new nodes and the changes of their neighbours."""
    added = factor[:, t].unsqueeze(-1) * new.unsqueeze(-2)

    return sums + added.index_add(0, owner, factor[owner, node].unsqueeze(-1) * change.unsqueeze(-2))
