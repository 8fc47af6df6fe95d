"""The autoregressive distribution over graphs: nodes are added in a node ordering, with edges to earlier ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from .decoder import ATTENTION, AutoregressiveDecoder, CandidatePairs, Draft, RowsSoFar
from .decoding import BlockSums, Decoding, add_states
from .known_graphs import Candidates, KnownGraphs
from .row_sampling import EdgeConstraints
from .structure import block_starts, is_long

__all__ = ["AutoregressiveGraphs"]

# Candidates that are scored together. More than these are scored in chunks, whose activations are computed again for
# the gradient.
CHUNK_PAIRS = 1 << 16


@dataclass(frozen=True)
class AutoregressiveGraphs:
    r"""Distribution over graphs with ordered nodes, given their latents (beyond the paper).

    .. math:: p(A | Z) = \prod_t \prod_{i < t} p(A_{t i} | A_{t, <i}, A_{<t}, Z)

    In long rows the product over candidates is one over blocks of them, and over the nodes of blocks with a neighbour.

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
        tables = self._tables(draft, states, queries, known)
        if len(chunks) > 1 and torch.is_grad_enabled():
            parts = [checkpoint(self._score, known.candidates, tables, part, use_reentrant=False) for part in chunks]
        else:
            parts = [self._score(known.candidates, tables, part) for part in chunks]
        # Graphs of one node have no candidates, and still a gradient.
        scores = torch.cat(parts) if parts else states[:0, 0]
        # In single precision the many small terms of a sparse graph would be lost beside the sum of the others.
        total = torch.zeros(len(sizes), dtype=torch.float64, device=scores.device)
        total = total.index_add(0, _tensor(known.candidates.graph, scores), scores.double())

        return torch.empty_like(total).index_copy(0, order, total)

    def _states(self, draft: Draft, sizes: Tensor, known: KnownGraphs) -> tuple[Tensor, Tensor]:
        """All versions of node states, then the mean states of blocks in long rows, and the queries of all nodes."""
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
        block_sums = BlockSums(prior[:, :0], nodes)
        versions, queries, means = [], [], []
        for t in range(nodes):
            live, edges = int(known.live[t]), slice(known.first_edge[t], known.first_edge[t + 1])
            current, sums, factor = current[:live], sums[:live], draft.factor[:live]
            owner, node = owners[edges], neighbours[edges]
            if is_long(t):
                means.append(block_sums.means(live, t).flatten(0, 1))
            query = decoder.complete_query(prior[:live, t], factor[:, t], sums, t)
            old = current[owner, node]
            degree_terms = scale[:live, t], new_degrees[:live, t], update_degrees[edges]
            new, updated = decoder.advance(query, old, owner, degree_terms)
            states = torch.cat([new, updated])
            places = torch.cat([graphs[:live], owner]), torch.cat([times[t].expand(live), node])
            current = current.index_put(places, states)
            sums = add_states(sums, factor, t, new, owner, node, updated - old)
            block_sums.add(t, new, owner, node, updated - old)
            versions.append(states)
            queries.append(query)

        return torch.cat([*versions, *means]), torch.cat(queries)

    def _tables(self, draft: Draft, states: Tensor, queries: Tensor, known: KnownGraphs) -> tuple[Tensor, ...]:
        """Projections of states, queries and sums of chosen neighbours, from which candidates are gathered."""
        decoder = self.decoder
        projected, version = decoder.state(states), _tensor(known.edge_version, states)
        chosen = torch.cat([states[version], decoder.values(projected)[version]], -1)
        # Prefix sums within rows, as differences of those over all rows; in double precision nothing is lost.
        sums = torch.cat([chosen.new_zeros(1, chosen.shape[1], dtype=torch.float64), chosen.double().cumsum(0)])
        within = (sums[1:] - sums[_tensor(known.edge_row_start, states)]).to(chosen)
        chosen, values = torch.split(F.pad(within, (0, 0, 1, 0)), [decoder.width, ATTENTION], -1)
        context = decoder.context(chosen, _tensor(np.append(0, known.edge_rank + 1), states))
        latents = torch.cat([draft.latents, draft.block_latents()], 1)

        return latents, projected, decoder.query(queries), context, values, decoder.relation_table()

    def _score(self, candidates: Candidates, tables: tuple[Tensor, ...], part: slice) -> Tensor:
        """The log-probabilities of a part of all candidates, which consists of whole rows."""
        latents, states, queries, context, values, relations = tables

        def get(name: str) -> Tensor:
            return _tensor(getattr(candidates, name)[part], states)

        graph, new, old, last = (get(name) for name in ("graph", "new", "old", "last_edge"))
        pairs = CandidatePairs(
            F.embedding(get("query"), queries),
            F.embedding(get("version"), states),
            get("degrees"),
            get("triangles"),
            new,
            old,
            (latents[graph, new] * latents[graph, get("latent")]).sum(-1),
        )
        terms = self.decoder.candidate_terms(pairs, _FlatRows(get("row"), get("place")))
        names = ("count", "gap", "code", "adjacent", "paths", "earlier", "earlier_paths")
        so_far = RowsSoFar(F.embedding(last, context), F.embedding(last, values), *(get(name) for name in names))
        logits = self.decoder.logits(terms, so_far, relations)
        log_prob = -F.softplus(torch.where(get("is_edge"), -logits, logits))

        return log_prob.masked_fill(get("is_certain"), 0.0)

    def sample(self, uniform: Tensor, constraints: EdgeConstraints | None = None) -> Tensor:
        """Sample graphs from uniform noise, both with shape :math:`(B, N, N)`."""
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
            if enforce is None and is_long(t):
                # The noise of blocks is read above the diagonal.
                edges = decoding.sample_blocks(uniform[:live, t, :t], uniform[:live, : len(block_starts(t)), t])
            else:
                edges, _ = decoding.sample_row(uniform[:live, t, :t], enforce)
            decoding.add_node(edges)

        return torch.empty_like(uniform).index_copy(0, order, decoding.adj.to(uniform))


def _tensor(values: NDArray[np.generic], like: Tensor) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(like.device)


class _FlatRows:
    """A list of candidates, row after row, given their rows and places."""

    def __init__(self, row: Tensor, place: Tensor) -> None:
        number = torch.unique_consecutive(row, return_inverse=True)[1]
        self._places = number, place
        self._shape = int(number[-1]) + 1, int(place.max()) + 1

    def spread(self, values: Tensor) -> Tensor:
        return values.new_zeros(*self._shape, values.shape[-1]).index_put(self._places, values)

    def collect(self, matrix: Tensor) -> Tensor:
        return matrix[self._places]
