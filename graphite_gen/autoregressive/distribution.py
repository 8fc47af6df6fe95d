"""The autoregressive distribution over graphs: nodes are added in a node ordering, with edges to earlier ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from ..data.batch import GraphBatch, node_mask
from ..data.edge_states import directions
from .arc_weights import draw_weights
from .decoder import ATTENTION, AutoregressiveDecoder, CandidatePairs, Draft, RowsSoFar
from .decoding import BlockSums, Decoding, add_states
from .feature_head import FeatureInputs, feature_statistics, pair_features
from .heads import Arcs, AttributeNoise, WeightInputs
from .known_graphs import Candidates, KnownGraphs
from .row_sampling import EdgeConstraints
from .structure import block_starts, is_long

__all__ = ["AutoregressiveGraphs"]

# Candidates that are scored together. More than these are scored in chunks, whose activations are computed again for
# the gradient.
CHUNK_PAIRS = 1 << 16


class Tables(NamedTuple):
    """Projections and sums from which the terms of candidates are gathered.

    Attributes:
        factors: Factors of the low-rank graph, of nodes and blocks.
        states: Projected versions of states.
        queries: Projected queries.
        context: Terms of the neighbours chosen in a row: for none, then up to each edge of all rows.
        values: Sums of their attention values.
        relations: Contributions of all relations.
    """

    factors: Tensor
    states: Tensor
    queries: Tensor
    context: Tensor
    values: Tensor
    relations: Tensor


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
        """The log-probability of graphs without attributes in this node ordering, in nats, with shape (B,)."""
        return self.log_prob_of(GraphBatch(adj, node_mask(self.sizes, adj.shape[-1]), self.x))

    def log_prob_of(self, graphs: GraphBatch) -> Tensor:
        """The log-probability of graphs in this node ordering, all rows in one pass, in nats, with shape (B,)."""
        return torch.stack(list(self.log_probs(graphs).values())).sum(0)

    def log_probs(self, graphs: GraphBatch) -> dict[str, Tensor]:
        """The terms of the log-probability, each with shape (B,).

        They are ``structure``, ``labels``, ``types``, ``features`` and ``weights``, as far as graphs have them. The
        directions of edges belong to the structure, their labels are the types.
        """
        order = torch.argsort(self.sizes, descending=True, stable=True)
        found, _ = self._terms(graphs, order, None)

        return {name: torch.empty_like(total).index_copy(0, order, total) for name, total in found.items()}

    @torch.no_grad()
    def complete_weights(self, graphs: GraphBatch, noise: AttributeNoise) -> tuple[Tensor, Tensor, Tensor]:
        """Draw the weights of arcs that are NaN, given all else, for graphs of the same size.

        Returns:
            The log-probability of the graphs without their weights, with shape :math:`(B,)`, all weights, and the
            log-densities of those from each source to its target, both with shape :math:`(B, N, N)`.
        """
        found, weights = self._terms(graphs, torch.arange(len(self.sizes), device=self.sizes.device), noise)
        assert weights is not None

        return torch.stack(list(found.values())).sum(0), *weights

    def _terms(
        self, graphs: GraphBatch, order: Tensor, noise: AttributeNoise | None
    ) -> tuple[dict[str, Tensor], tuple[Tensor, Tensor] | None]:
        """The terms of graphs in an order of descending sizes, and weights drawn from noise with their densities."""
        sizes = self.sizes[order]
        ordered = graphs.each(lambda part: part[order])
        known = KnownGraphs((ordered.adj > 0).cpu().numpy(), sizes.cpu().numpy())
        draft = self.decoder.draft(self.z[order, : known.nodes], self.x[order, : known.nodes], sizes)
        edges = (_tensor(at, sizes) for at in (known.edge_graph, known.edge_new, known.edge_node))
        edge_states = None if ordered.states is None else ordered.states[tuple(edges)]
        states, queries, plain = self._states(draft, sizes, known, ordered.labels, edge_states)
        tables = self._tables(draft, states, queries, known, edge_states)
        found = {"structure": self._structure(tables, states, known)}
        if self.decoder.node_label is not None:
            found["labels"] = self._labels(plain, known, ordered)
        if edge_states is not None:
            of_directions, types = self._edge_states(tables, states, queries, known, edge_states)
            found["structure"] = found["structure"] + of_directions
            if self.decoder.attributes.edge_labels:
                found["types"] = types
        if self.decoder.node_feature is not None:
            found["features"] = self._features(states, known, ordered)
        if self.decoder.edge_weight is None:
            return found, None
        assert ordered.weights is not None
        arcs = self._arcs(known, edge_states)
        features = None if self.decoder.node_feature is None else self._standardised(ordered)
        if noise is None:
            found["weights"] = self._totals(arcs.graph, self._weights(states, known, arcs, ordered.weights, features))
            return found, None
        final = states[_tensor(known.last_version, states)]
        degrees = _tensor(known.degrees, states)
        drawn = draw_weights(self.decoder.edge_weight, arcs, final, degrees, noise, ordered.weights, features)
        at = tuple(_tensor(part, states) for part in arcs[:3])
        densities = torch.zeros_like(drawn).index_put(at, self._weights(states, known, arcs, drawn, features))

        return found, (drawn if self.decoder.attributes.directed else drawn + drawn.mT, densities)

    def _structure(self, tables: Tables, states: Tensor, known: KnownGraphs) -> Tensor:
        """The log-probability that exactly these pairs have edges, with shape (B,)."""
        chunks = known.chunks(CHUNK_PAIRS)
        if len(chunks) > 1 and torch.is_grad_enabled():
            parts = [checkpoint(self._score, known.candidates, tables, part, use_reentrant=False) for part in chunks]
        else:
            parts = [self._score(known.candidates, tables, part) for part in chunks]
        # Graphs of one node have no candidates, and still a gradient.
        scores = torch.cat(parts) if parts else states[:0, 0]
        # In single precision the many small terms of a sparse graph would be lost beside the sum of the others.
        return self._totals(known.candidates.graph, scores)

    def _totals(self, graph: NDArray[np.int64], terms: Tensor) -> Tensor:
        """The sums of terms over each graph, in double precision, with shape (B,)."""
        total = torch.zeros(len(self.sizes), dtype=torch.float64, device=terms.device)

        return total.index_add(0, _tensor(graph, terms), terms.double())

    def _labels(self, queries: Tensor, known: KnownGraphs, graphs: GraphBatch) -> Tensor:
        assert self.decoder.node_label is not None
        assert graphs.labels is not None
        at = _tensor(known.query_graph, queries), _tensor(known.query_node, queries)
        terms = -F.cross_entropy(self.decoder.node_label.logits(queries), graphs.labels[at], reduction="none")

        return self._totals(known.query_graph, terms)

    def _edge_states(
        self, tables: Tables, states: Tensor, queries: Tensor, known: KnownGraphs, edge_states: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The log-probabilities of directions, and of labels given these."""
        decoder = self.decoder
        assert decoder.edge_state is not None
        # That of the edges before each one of its row.
        before = np.where(known.edge_rank > 0, np.arange(len(known.edge_rank)), 0)
        logits = decoder.edge_state.logits(
            queries[_tensor(known.edge_query, queries)],
            states[_tensor(known.edge_version, states)],
            tables.context[_tensor(before, states)],
        )
        log_probs = logits.double().log_softmax(-1)
        attributes = decoder.attributes
        direction = _tensor(directions(attributes.edge_labels, attributes.directed), states)
        is_same = direction == direction[edge_states].unsqueeze(-1)
        of_direction = log_probs.masked_fill(~is_same, -torch.inf).logsumexp(-1)
        of_state = log_probs.gather(-1, edge_states.unsqueeze(-1)).squeeze(-1)

        return self._totals(known.edge_graph, of_direction), self._totals(known.edge_graph, of_state - of_direction)

    def _features(self, states: Tensor, known: KnownGraphs, graphs: GraphBatch) -> Tensor:
        head = self.decoder.node_feature
        assert head is not None
        assert graphs.features is not None
        graph, node = node_mask(graphs.sizes, known.nodes).nonzero(as_tuple=True)
        own = self._standardised(graphs)[:, : known.nodes]
        before = graphs.mask[:, : known.nodes, None].expand(-1, -1, known.nodes).tril(-1)
        near = (graphs.adj[:, : known.nodes, : known.nodes] > 0).tril(-1)
        statistics = torch.cat([feature_statistics(own, near), feature_statistics(own, before)], -1)
        last, degrees = _tensor(known.last_version, states), _tensor(known.degrees, states)
        inputs = FeatureInputs(
            states[last[graph, node]], degrees[graph, node], statistics[graph, node], own[graph, node]
        )
        terms = head.log_prob(inputs, graphs.features[graph, node]).sum(-1)

        return self._totals(graph.cpu().numpy(), terms)

    def _standardised(self, graphs: GraphBatch) -> Tensor:
        """Standardised node features, zero at padding, with shape :math:`(B, N, C)`."""
        assert self.decoder.node_feature is not None
        assert graphs.features is not None
        # Those of padding may have no logarithm.
        return self.decoder.node_feature.standardised(graphs.features).where(graphs.mask.unsqueeze(-1), 0.0)

    def _arcs(self, known: KnownGraphs, edge_states: Tensor | None) -> Arcs:
        own = np.zeros_like(known.edge_node) if edge_states is None else edge_states.cpu().numpy()

        return Arcs.of(known.edge_graph, known.edge_new, known.edge_node, own, self.decoder.attributes)

    def _weights(
        self, states: Tensor, known: KnownGraphs, arcs: Arcs, weights: Tensor, features: Tensor | None
    ) -> Tensor:
        """The log-densities of the weights of arcs, with shape (A,)."""
        head = self.decoder.edge_weight
        assert head is not None
        graph, source, target, kind = (_tensor(part, states) for part in arcs)
        values = weights[graph, source, target]
        statistics = arcs.statistics(head.standardised(values).cpu().numpy())
        last, degrees = _tensor(known.last_version, states), _tensor(known.degrees, states)
        read = _tensor(statistics, states)
        if features is not None:
            read = torch.cat([read, pair_features(features[graph, source], features[graph, target])], -1)
        inputs = WeightInputs(
            states[last[graph, source]],
            states[last[graph, target]],
            torch.stack([degrees[graph, source], degrees[graph, target]], -1),
            kind,
            read,
        )

        return head.log_prob(inputs, values)

    def _states(
        self, draft: Draft, sizes: Tensor, known: KnownGraphs, labels: Tensor | None, edge_states: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """All versions of node states, then the mean states of blocks in long rows, and the queries of all nodes.

        The last are also returned without the labels of their nodes.
        """
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
        own_labels = None if decoder.node_label is None else decoder.node_label.embedding(labels)
        versions, queries, plain, means = [], [], [], []
        # Views that are taken at once: the gradient of a slice would be a tensor of zeros as large as the whole.
        counts = np.diff(known.first_edge).tolist()
        priors, factors, scales, degrees = (part.unbind(1) for part in (prior, draft.factor, scale, new_degrees))
        edge_factors, edge_degrees, edge_owners, edge_nodes = (
            torch.split(part, counts) for part in (draft.factor[owners, neighbours], update_degrees, owners, neighbours)
        )
        for t in range(nodes):
            live, edges = int(known.live[t]), slice(known.first_edge[t], known.first_edge[t + 1])
            owner, node = edge_owners[t], edge_nodes[t]
            if is_long(t):
                means.append(block_sums.means(live, t).flatten(0, 1))
            current, sums, own, factor = _first(live, current, sums, priors[t], factors[t])
            query = decoder.complete_query(own, factor, sums, t)
            if own_labels is not None:
                plain.append(query)
                query = query + own_labels[:live, t]
            old = current[owner, node]
            scale_of, degree = _first(live, scales[t], degrees[t])
            new_states = None if edge_states is None else edge_states[edges]
            new, updated = decoder.advance(query, old, owner, (scale_of, degree, edge_degrees[t]), new_states)
            states = torch.cat([new, updated])
            places = torch.cat([graphs[:live], owner]), torch.cat([times[t].expand(live), node])
            current = current.index_put(places, states)
            sums = add_states(sums, factor, new, owner, edge_factors[t], updated - old)
            block_sums.add(t, new, owner, node, updated - old)
            versions.append(states)
            queries.append(query)

        return torch.cat([*versions, *means]), torch.cat(queries), torch.cat(plain or queries)

    def _tables(
        self, draft: Draft, states: Tensor, queries: Tensor, known: KnownGraphs, edge_states: Tensor | None
    ) -> Tables:
        decoder = self.decoder
        projected, version = decoder.state(states), _tensor(known.edge_version, states)
        chosen = torch.cat([decoder.message(states[version], edge_states), decoder.values(projected)[version]], -1)
        # Prefix sums within rows, as differences of those over all rows; in double precision nothing is lost.
        sums = torch.cat([chosen.new_zeros(1, chosen.shape[1], dtype=torch.float64), chosen.double().cumsum(0)])
        within = (sums[1:] - sums[_tensor(known.edge_row_start, states)]).to(chosen)
        chosen, values = torch.split(F.pad(within, (0, 0, 1, 0)), [decoder.width, ATTENTION], -1)
        context = decoder.context(chosen, _tensor(np.append(0, known.edge_rank + 1), states))
        factors = torch.cat([draft.factor, draft.of_blocks()], 1)

        return Tables(factors, projected, decoder.query(queries), context, values, decoder.relation_table())

    def _score(self, candidates: Candidates, tables: Tables, part: slice) -> Tensor:
        """The log-probabilities of a part of all candidates, which consists of whole rows."""
        factors, states, queries, context, values, relations = tables

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
            (factors[graph, new] * factors[graph, get("latent")])[..., :-1],
        )
        terms = self.decoder.candidate_terms(pairs, _FlatRows(get("row"), get("place")))
        names = ("count", "gap", "code", "adjacent", "paths", "earlier", "earlier_paths")
        so_far = RowsSoFar(F.embedding(last, context), F.embedding(last, values), *(get(name) for name in names))
        logits = self.decoder.logits(terms, so_far, relations)
        log_prob = -F.softplus(torch.where(get("is_edge"), -logits, logits))

        return log_prob.masked_fill(get("is_certain"), 0.0)

    def sample(self, uniform: Tensor, constraints: EdgeConstraints | None = None) -> Tensor:
        """Sample graphs without attributes from uniform noise, both with shape :math:`(B, N, N)`."""
        return self.sample_graphs(uniform, constraints).adj

    def sample_graphs(
        self,
        uniform: Tensor,
        constraints: EdgeConstraints | None = None,
        noise: AttributeNoise | None = None,
        acyclic: bool = False,
    ) -> GraphBatch:
        """Sample graphs from uniform noise of shape :math:`(B, N, N)`, and from that of their attributes, if any.

        Directed graphs may be required to be acyclic.
        """
        order = torch.argsort(self.sizes, descending=True, stable=True)
        uniform = uniform[order].to(self.z)
        noise = None if noise is None else AttributeNoise(*(part if part is None else part[order] for part in noise))
        decoding = Decoding(self.decoder, self.z[order], self.x[order], self.sizes[order], noise, acyclic)
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

        sampled = GraphBatch(
            decoding.adj.to(uniform),
            node_mask(decoding.sizes, uniform.shape[-1]),
            self.x[order],
            decoding.labels,
            decoding.states,
            features=decoding.sample_features(),
            weights=decoding.sample_weights(),
        )

        return sampled.each(lambda part: torch.empty_like(part).index_copy(0, order, part))


def _first(count: int, *parts: Tensor) -> tuple[Tensor, ...]:
    """The first entries of all parts, which are not slices if they have no others."""
    return tuple(part if len(part) == count else part[:count] for part in parts)


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
