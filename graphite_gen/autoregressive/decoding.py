"""Sampling graphs node by node: the states so far, and the candidates of the next node of each graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ..data.edge_states import transposed
from . import structure
from .acyclic import Reachability
from .arc_weights import draw_weights
from .decoder import ATTENTION, AutoregressiveDecoder, CandidatePairs, CandidateTerms, Draft, Kind, Rows, RowsSoFar
from .densities import draw
from .feature_head import feature_statistics
from .heads import Arcs, AttributeNoise
from .row_sampling import RowConstraints, sample_row
from .structure import (
    CODES,
    FAR,
    NO_RELATION,
    PartialGraphs,
    Relations,
    block_sizes,
    block_starts,
    is_long,
    relation_code,
)

__all__ = ["BlockSums", "Decoding", "add_states"]

# A logit of an edge that is certain.
CERTAIN = 1e4
# The noise of what is not sampled: no probability is larger.
NEVER = 2.0


class Decoding:
    """Graphs that are sampled node by node; sizes are in descending order, so that unfinished graphs come first."""

    def __init__(
        self,
        decoder: AutoregressiveDecoder,
        z: Tensor,
        x: Tensor,
        sizes: Tensor,
        noise: AttributeNoise | None = None,
        acyclic: bool = False,
    ) -> None:
        graphs, nodes = z.shape[:2]
        self.decoder, self.sizes, self.t = decoder, sizes, 0
        self.adj = torch.zeros(graphs, nodes, nodes, dtype=torch.bool, device=z.device)
        self._draft = decoder.draft(z, x, sizes)
        self._partial = PartialGraphs(graphs, nodes)
        self._states = z.new_zeros(graphs, nodes, decoder.width)
        self._projected = z.new_zeros(graphs, nodes, decoder.state.out_features)
        self._sums = z.new_zeros(graphs, self._draft.factor.shape[-1], decoder.width)
        self._blocks = BlockSums(self._states[:, :0], nodes)
        self._block_factors = self._draft.of_blocks()
        self._relations = decoder.relation_table()
        self._query = z.new_zeros(0)
        # Attributes, and the noise that they are drawn from.
        self._noise = noise or AttributeNoise()
        self.labels = None if decoder.node_label is None else torch.zeros_like(self.adj[:, 0], dtype=torch.int64)
        self.states = None if decoder.edge_state is None else torch.zeros_like(self.adj, dtype=torch.int64)
        # One plus the states of the edges of the row so far.
        self._row_states = torch.zeros_like(self.adj[:, 0], dtype=torch.int64)
        self._allowed: Tensor | None = None
        self.log_allowed = torch.zeros(graphs, dtype=torch.float64, device=z.device)
        self._reachability = Reachability(graphs, nodes, decoder.attributes.edge_labels) if acyclic else None
        # Standardised node features.
        self._features = z.new_zeros(graphs, nodes, len(decoder.attributes.features), dtype=torch.float64)

    def start_row(self, labels: Tensor | None = None, states: Tensor | None = None) -> int:
        """Prepare the next row; return the number of graphs that have one.

        The label of the new node and the states of its edges may be restricted by masks, with shapes :math:`(L, C)` and
        :math:`(L, t, S)`; :attr:`log_allowed` is then the log-probability of what they allow, with shape :math:`(L,)`.
        """
        live = int((self.sizes > self.t).sum())
        self._allowed = states
        self.log_allowed = torch.zeros(live, dtype=torch.float64, device=self.sizes.device)
        edges = torch.from_numpy(self._partial.edges[:live]).to(self.sizes.device)
        prior = self.decoder.prior_query(self.sizes[:live], torch.full_like(edges, self.t), edges)
        prior = prior + self._draft.states[:live, self.t]
        self._query = self.decoder.complete_query(prior, self._draft.factor[:live, self.t], self._sums[:live], self.t)
        if self.decoder.node_label is not None:
            assert self._noise.labels is not None
            assert self.labels is not None
            logits = self.decoder.node_label.logits(self._query)
            if labels is not None:
                logits = self._restricted(slice(None), logits, labels)
            self.labels[:live, self.t] = drawn = draw(logits, self._noise.labels[:live, self.t])
            self._query = self._query + self.decoder.node_label.embedding(drawn)

        return live

    def sample_row(self, noise: Tensor, enforce: RowConstraints | None = None) -> tuple[Tensor, Tensor]:
        """Sample the edges of the new nodes; see :func:`.sample_row`."""
        return sample_row(_LongRow(self) if is_long(self.t) else _Row(self), noise, enforce)

    def sample_blocks(self, noise: Tensor, block_noise: Tensor) -> Tensor:
        """Sample the edges (L, t) of a long row without constraints, given noise of candidates and of blocks (L, K)."""
        return _LongRow(self).sample(noise, block_noise)

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

        old, states = self._states[owner, node], None
        if self.states is not None:
            states = self.states[owner, t, node] = self._row_states[owner, node] - 1
            self.states[owner, node, t] = self._transposed(states)
            if self._reachability is not None:
                self._reachability.add(t, owner.cpu().numpy(), node.cpu().numpy(), states.cpu().numpy())
        degree_terms = self.decoder.degree_terms(counts, degrees)
        new, updated = self.decoder.advance(self._query, old, owner, degree_terms, states)
        factor = self._draft.factor[:live]
        change = updated - old
        self._sums[:live] = add_states(self._sums[:live], factor[:, t], new, owner, factor[owner, node], change)
        self._blocks.add(t, new, owner, node, change)
        self._states[:live, t], self._projected[:live, t] = new, self.decoder.state(new)
        self._states[owner, node], self._projected[owner, node] = updated, self.decoder.state(updated)
        self.adj[:live, t, :t] = self.adj[:live, :t, t] = edges
        self._row_states.zero_()
        self.t += 1

    def _transposed(self, states: Tensor) -> Tensor:
        attributes = self.decoder.attributes

        return _tensor(transposed(attributes.edge_labels, attributes.directed), states)[states]

    def _restricted(self, rows: Tensor | slice, logits: Tensor, allowed: Tensor) -> Tensor:
        """Logits of what is allowed, whose probability is kept for some rows."""
        log_probs = logits.double().log_softmax(-1).masked_fill(~allowed, -torch.inf)
        self.log_allowed[rows] += log_probs.logsumexp(-1)

        return log_probs

    def draw_states(self, rows: Tensor, nodes: Tensor, context: Tensor) -> Tensor | None:
        """Draw the states of edges that are chosen next in some rows, given terms of those before them."""
        head = self.decoder.edge_state
        if head is None:
            return None
        assert self._noise.states is not None
        logits = head.logits(self._query[rows], self._states[rows, nodes], context)
        if self._reachability is not None:
            at = rows.cpu().numpy(), nodes.cpu().numpy()
            allowed = self._reachability.allowed(self.t, *at, self._row_states[rows, : self.t].cpu().numpy())
            logits = logits.masked_fill(~_tensor(allowed, logits), -torch.inf)
        if self._allowed is not None:
            logits = self._restricted(rows, logits, self._allowed[rows, nodes])
        drawn = draw(logits, self._noise.states[rows, self.t, nodes])
        self._row_states[rows, nodes] = drawn + 1

        return drawn

    def sample_features(self) -> Tensor | None:
        """Draw the node features of the complete graphs, node after node, with shape :math:`(B, N, C)`."""
        head, noise = self.decoder.node_feature, self._noise
        if head is None:
            return None
        assert noise.feature_components is not None
        assert noise.feature_values is not None
        values, degrees = torch.zeros_like(self._features), self.adj.sum(-1)
        for t in range(self.t):
            live = int((self.sizes > t).sum())
            earlier, near = self._features[:live, :t], self.adj[:live, t : t + 1, :t]
            statistics = [feature_statistics(earlier, some)[:, 0] for some in (near, torch.ones_like(near))]
            noise_of_node = noise.feature_components[:live, t], noise.feature_values[:live, t]
            values[:live, t], self._features[:live, t] = head.sample(
                self._states[:live, t], degrees[:live, t], torch.cat(statistics, -1), *noise_of_node
            )

        return values

    def sample_weights(self) -> Tensor | None:
        """Draw the weights of the complete graphs, after their node features, with shape :math:`(B, N, N)`."""
        head = self.decoder.edge_weight
        if head is None:
            return None
        new, graph, old = (part.cpu().numpy() for part in self.adj.tril(-1).transpose(0, 1).nonzero(as_tuple=True))
        states = np.zeros_like(new) if self.states is None else self.states.cpu().numpy()[graph, new, old]
        arcs = Arcs.of(graph, new, old, states, self.decoder.attributes)
        features = None if self.decoder.node_feature is None else self._features
        weights = draw_weights(head, arcs, self._states, self.adj.sum(-1), self._noise, features=features)

        return weights if self.decoder.attributes.directed else weights + weights.mT

    def select(self, graphs: NDArray[np.int64]) -> None:
        """Replace the graphs by some of them, of the same sizes; the noise of later rows stays where it is."""
        assert self._reachability is None
        at = torch.from_numpy(graphs).to(self.adj.device)
        self._partial.select(graphs)
        for name in ("adj", "_states", "_projected", "_sums", "_block_factors"):
            setattr(self, name, getattr(self, name)[at])
        self.labels = None if self.labels is None else self.labels[at]
        self.states = None if self.states is None else self.states[at]
        self._blocks.select(at)
        draft = self._draft
        self._draft = Draft(draft.factor[at], draft.states[at])


class _Row:
    """The candidates of the next node of each graph, and the neighbours chosen among them so far.

    This is a short row, all of whose candidates are nodes (see :class:`.RowCandidates`).
    """

    def __init__(self, decoding: Decoding) -> None:
        decoder, partial, t = decoding.decoder, decoding._partial, decoding.t
        live, device = len(decoding._query), decoding.adj.device
        self._decoder, self._relation_table, self._t = decoder, decoding._relations, t
        self._distance, self._common = partial.distance, partial.common
        self._counts = {name: values[:live, :t] for name, values in partial.node_counts.items()}
        self._states, self._projected = decoding._states[:live, :t], decoding._projected[:live, :t]
        self._factors, self._new_factors = decoding._draft.factor[:live, :t], decoding._draft.factor[:live, t]
        self._query = decoder.query(decoding._query).unsqueeze(1)
        self._nodes = torch.arange(t, device=device)
        # The neighbours chosen so far: sums of their states and values, their number, and the last of them.
        self._total, self._values = self._states.new_zeros(live, decoder.width), self._states.new_zeros(live, ATTENTION)
        self._count = torch.zeros(live, dtype=torch.int64, device=device)
        self._last = torch.full((live,), -1, device=device)
        self._context = decoder.context(self._total, self._count)
        self._draw_states, self._row_states = decoding.draw_states, decoding._row_states
        self._prepare(decoding)

    def _prepare(self, decoding: Decoding) -> None:
        """Compute what does not depend on the chosen neighbours."""
        self._terms = self._candidate_terms(
            self._query, self._projected, self._counts, self._nodes, self._factors, self._new_factors, _Matrix()
        )
        self._relations = Relations.empty(*self._states.shape[:2])
        self._codes = self._relations.codes

    def _candidate_terms(
        self,
        query: Tensor,
        state: Tensor,
        counts: Mapping[str, NDArray[np.int64]],
        old: Tensor,
        factors: Tensor,
        new_factors: Tensor,
        rows: Rows,
    ) -> CandidateTerms:
        degrees, triangles = (_tensor(counts[name], state) for name in ("degrees", "triangles"))
        draft = (factors * new_factors.unsqueeze(-2))[..., :-1]

        return self._decoder.candidate_terms(
            CandidatePairs(query, state, degrees, triangles, torch.full_like(old, self._t), old, draft), rows
        )

    def _evaluate(
        self, rows: Tensor, terms: CandidateTerms, old: Tensor, relations: Sequence[NDArray[np.generic]]
    ) -> Tensor:
        """The logits of candidates of some rows (A, W), given codes, chosen close nodes and all close nodes."""
        so_far = RowsSoFar(
            self._context[rows].unsqueeze(1),
            self._values[rows].unsqueeze(1),
            self._count[rows].unsqueeze(1),
            old - self._last[rows].unsqueeze(1),
            *(_tensor(values, rows) for values in relations),
        )

        return self._decoder.logits(terms, so_far, self._relation_table)

    def _close_nodes(self) -> list[NDArray[np.generic]]:
        """Numbers of nodes close to every candidate: chosen ones and all earlier ones."""
        return [self._relations.adjacent, self._relations.paths, self._counts["earlier"], self._counts["earlier_paths"]]

    def logits(self, rows: Tensor, nodes: Tensor | None) -> Tensor:
        at = rows.cpu().numpy()
        terms, numbers = self._terms, (at,) if nodes is None else (at[:, None], nodes.cpu().numpy())
        if nodes is None:
            terms = self._of_rows(rows, terms)
        else:
            terms = CandidateTerms(*(part[rows.unsqueeze(-1), nodes] for part in terms))
        values = [values[numbers] for values in (self._codes, *self._close_nodes())]

        return self._evaluate(rows, terms, self._nodes if nodes is None else nodes, values)

    def _of_rows(self, rows: Tensor, terms: CandidateTerms) -> CandidateTerms:
        """The terms of some rows, which are not copied for all of them."""
        return terms if len(rows) == len(self._count) else CandidateTerms(*(part[rows] for part in terms))

    def choose(self, rows: Tensor, nodes: Tensor) -> None:
        if not len(rows):
            return
        states = None
        if self._decoder.edge_state is not None:
            states = self._draw_states(rows, nodes, self._context[rows])
        self._total[rows] += self._decoder.message(self._states[rows, nodes], states)
        self._values[rows] += self._decoder.values(self._projected)[rows, nodes]
        self._count[rows] += 1
        self._last[rows] = nodes
        self._context[rows] = self._decoder.context(self._total[rows], self._count[rows])
        at, node = rows.cpu().numpy(), nodes.cpu().numpy()
        self._relate(at, self._distance[at, node, : self._t], self._common[at, node, : self._t])

    def _relate(self, at: NDArray[np.int64], distance: NDArray[np.int8], common: NDArray[np.int8]) -> None:
        """Update relations, given those of all candidates (A, t) to the neighbours chosen in some rows (A,)."""
        relations = self._relations
        relations.before[at] += 1
        relations.distance[at], relations.common[at] = distance, common
        relations.nearest[at] = nearest = np.minimum(relations.nearest[at], np.maximum(distance, 1))
        relations.adjacent[at] = adjacent = relations.adjacent[at] + (distance == 1)
        relations.paths[at] += common
        self._codes[at] = relation_code(distance, common, nearest, adjacent)

    def restart(self, rows: Tensor) -> None:
        self._total[rows], self._values[rows], self._count[rows], self._last[rows] = 0, 0, 0, -1
        self._context[rows] = self._decoder.context(self._total[rows], self._count[rows])
        self._row_states[rows] = 0
        self._separate(rows.cpu().numpy())

    def _separate(self, at: NDArray[np.int64]) -> None:
        """Remove the relations of some rows (A,)."""
        relations = self._relations
        relations.before[at], relations.adjacent[at], relations.paths[at] = 0, 0, 0
        relations.nearest[at], self._codes[at] = FAR, NO_RELATION


class _LongRow(_Row):
    """A row that is decoded by blocks: first the next block that has a neighbour, then its nodes."""

    def _prepare(self, decoding: Decoding) -> None:
        live, t = len(self._count), self._t
        self._first_nodes = starts = block_starts(t)
        self._starts, self._ends = (_tensor(at, self._nodes) for at in (starts, starts + block_sizes(t)))
        self._block_counts = decoding._partial.block_means(t)
        self._block_counts = {name: values[:live] for name, values in self._block_counts.items()}
        means = self._decoder.state(decoding._blocks.means(live, t))
        factors = decoding._block_factors[:live, : len(starts)]
        self._block_terms = self._candidate_terms(
            self._query, means, self._block_counts, self._starts, factors, self._new_factors, _Matrix()
        )
        self._node_terms: CandidateTerms | None = None
        # Relations and the numbers of all close nodes, with signs such that larger is closer: the distances to the last
        # chosen neighbour and to the nearest one, common neighbours, chosen adjacent nodes, and paths to chosen nodes.
        self._near = np.zeros((7, live, t), dtype=np.int32)
        self._near[5:] = [self._counts[name] for name in ("earlier", "earlier_paths")]
        self._separate(np.arange(live))

    def _relate(self, at: NDArray[np.int64], distance: NDArray[np.int8], common: NDArray[np.int8]) -> None:
        near = self._near
        near[0, at], near[2, at] = -distance, common
        near[1, at] = np.maximum(near[1, at], -np.maximum(distance, 1))
        near[3, at] += distance == 1
        near[4, at] += common

    def _separate(self, at: NDArray[np.int64]) -> None:
        # One more than the largest distance has the code of no relation.
        self._near[:5, at] = np.array([-FAR - 1, -FAR, 0, 0, 0])[:, None, None]

    @staticmethod
    def _close(near: NDArray[np.int32], kind: NDArray[np.int64] | int) -> list[NDArray[np.generic]]:
        """Codes of candidates of a kind, and the numbers of close nodes, given the first five of ``near`` or more."""
        return [relation_code(-near[0], near[2], -near[1], near[3]) + CODES * kind, *near[3:]]

    def _block_logits(self, rows: Tensor) -> Tensor:
        """The logits that blocks of some rows have a neighbour, given those chosen so far, with shape (A, K)."""
        at = rows.cpu().numpy()
        near = np.maximum.reduceat(self._near[:5, at], self._first_nodes, axis=2)
        counts = [self._block_counts[name][at] for name in ("earlier", "earlier_paths")]
        terms = self._of_rows(rows, self._block_terms)

        return self._evaluate(rows, terms, self._starts, [*self._close(near, Kind.BLOCK), *counts])

    def _nodes_of(self, blocks: Tensor) -> tuple[Tensor, Tensor]:
        """The nodes of blocks (A,), with shape (A, W), and whether they exist."""
        nodes = self._starts[blocks].unsqueeze(-1) + torch.arange(structure.BLOCK, device=blocks.device)

        return nodes.clamp(max=self._t - 1), nodes < self._t

    def _terms_in(self, rows: Tensor, nodes: Tensor, is_real: Tensor) -> CandidateTerms:
        """The terms of the nodes of a block in each of some rows (A,), given those of :meth:`_nodes_of`."""
        at = rows.unsqueeze(-1), nodes
        numbers = rows.cpu().numpy()[:, None], nodes.cpu().numpy()
        counts = {name: self._counts[name][numbers] for name in ("degrees", "triangles")}

        return self._candidate_terms(
            self._query[rows],
            self._projected[at],
            counts,
            nodes,
            self._factors[at],
            self._new_factors[rows],
            _Matrix(is_real),
        )

    def _logits_in(self, rows: Tensor, blocks: Tensor, nodes: Tensor, terms: CandidateTerms, first: Tensor) -> Tensor:
        """The logits of the nodes of a block in each of some rows, with shape (A, W); the last of a block is certain.

        ``first`` marks the rows (A,) that have no neighbour in their block yet.
        """
        near = self._near[:, rows.cpu().numpy()[:, None], nodes.cpu().numpy()]
        kinds = np.where(first.cpu().numpy(), Kind.FIRST, Kind.NEXT)[:, None]
        logits = self._evaluate(rows, terms, nodes, self._close(near, kinds))
        # The nodes after the end of a block are copies of its last one.
        is_last = nodes == self._ends[blocks].unsqueeze(-1) - 1

        return logits.masked_fill(is_last & first.unsqueeze(-1), CERTAIN)

    def sample(self, noise: Tensor, block_noise: Tensor) -> Tensor:
        """Sample the edges, given noise of candidates (L, t) and of blocks (L, K)."""
        edges = torch.zeros_like(noise, dtype=torch.bool)
        rows = torch.arange(len(noise), device=noise.device)
        numbers = torch.arange(block_noise.shape[1], device=noise.device)
        while len(rows):
            hits = block_noise < torch.sigmoid(self._block_logits(rows))
            rows, block_noise, hits = _where(hits.any(-1), rows, block_noise, hits)
            block = hits.int().argmax(-1)
            self._sample_in(rows, block, noise, edges)
            block_noise = block_noise.masked_fill(numbers <= block.unsqueeze(-1), NEVER)
            rows, block_noise = _where(block + 1 < len(numbers), rows, block_noise)

        return edges

    def _sample_in(self, rows: Tensor, block: Tensor, noise: Tensor, edges: Tensor) -> None:
        """Sample the neighbours in a block of each of some rows, at least one."""
        if not len(rows):
            return
        nodes, is_real = self._nodes_of(block)
        terms = self._terms_in(rows, nodes, is_real)
        noise = noise[rows.unsqueeze(-1), nodes].masked_fill(~is_real, NEVER)
        first, places = torch.ones_like(rows, dtype=torch.bool), torch.arange(structure.BLOCK, device=rows.device)
        while True:
            hits = noise < torch.sigmoid(self._logits_in(rows, block, nodes, terms, first))
            rows, block, nodes, noise, hits, *parts = _where(hits.any(-1), rows, block, nodes, noise, hits, *terms)
            if not len(rows):
                return
            place = hits.int().argmax(-1, keepdim=True)
            chosen = nodes.gather(-1, place).squeeze(-1)
            edges[rows, chosen] = True
            self.choose(rows, chosen)
            noise, terms = noise.masked_fill(places <= place, NEVER), CandidateTerms(*parts)
            first = torch.zeros_like(rows, dtype=torch.bool)

    def logits(self, rows: Tensor, nodes: Tensor | None) -> Tensor:
        r"""Logits of nodes, each given the edges before it.

        If its block has no neighbour so far, a node is one with probability :math:`\beta s h / (1 - \beta (1 - s))`:
        :math:`\beta` is the probability that the block has one, and given that, s is the probability of none before the
        node, and h that the node is the first.
        """
        count, blocks = len(rows), len(self._starts)
        every, number = torch.arange(len(self._count), device=rows.device), torch.arange(blocks, device=rows.device)
        if self._node_terms is None:
            self._node_terms = self._terms_in(
                every.repeat_interleave(blocks), *self._nodes_of(number.repeat(len(every)))
            )
        of_rows = rows.repeat_interleave(blocks)
        at = (rows.unsqueeze(-1) * blocks + number).flatten()
        terms = CandidateTerms(*(part[at] for part in self._node_terms))
        last_block = torch.where(self._last[rows] < 0, -1, self._last[rows] // structure.BLOCK)
        is_first = (number != last_block.unsqueeze(-1)).flatten()
        numbers = number.repeat(count)
        found = self._logits_in(of_rows, numbers, self._nodes_of(numbers)[0], terms, is_first).view(count, blocks, -1)

        block = self._block_logits(rows).unsqueeze(-1)
        none = F.pad(-F.softplus(found).cumsum(-1), (1, 0))
        log_edge = F.logsigmoid(block) + none[..., :-1] + F.logsigmoid(found)
        log_rest = torch.logaddexp(F.logsigmoid(-block), F.logsigmoid(block) + none[..., 1:])
        found = torch.where(is_first.view(count, blocks, 1), log_edge - log_rest, found)
        found = found.flatten(1)[:, : self._t]

        return found if nodes is None else found.gather(1, nodes)


class BlockSums:
    """Sums of states over blocks of nodes, for long rows; nothing is computed if there are none."""

    def __init__(self, like: Tensor, nodes: int) -> None:
        """Prepare for graphs with states like those given, with shape :math:`(B, 0, d)`."""
        self._sums = like.new_zeros(len(like), len(block_starts(nodes)) if is_long(nodes - 1) else 0, like.shape[-1])

    def add(self, t: int, new: Tensor, owner: Tensor, node: Tensor, change: Tensor) -> None:
        """Add the states of new nodes (L, d), and changes of those of earlier nodes (E, d)."""
        if not self._sums.shape[1]:
            return
        graphs = torch.cat([torch.arange(len(new), device=new.device), owner])
        block = torch.cat([torch.full_like(graphs[: len(new)], t), node]) // structure.BLOCK
        self._sums = self._sums.index_put((graphs, block), torch.cat([new, change]), accumulate=True)

    def means(self, live: int, t: int) -> Tensor:
        """The mean states of the blocks of the first t nodes of the first graphs, with shape :math:`(L, K, d)`."""
        sizes = torch.from_numpy(block_sizes(t)).to(self._sums)

        return self._sums[:live, : len(sizes)] / sizes.unsqueeze(-1)

    def select(self, graphs: Tensor) -> None:
        """Replace the graphs by some of them."""
        self._sums = self._sums[graphs]


class _Matrix:
    """Candidates that are a matrix of rows already; those that do not exist are left out of sums."""

    def __init__(self, is_real: Tensor | None = None) -> None:
        self._is_real = is_real

    def spread(self, values: Tensor) -> Tensor:
        return values if self._is_real is None else values * self._is_real.unsqueeze(-1)

    def collect(self, matrix: Tensor) -> Tensor:
        return matrix


def add_states(sums: Tensor, factor: Tensor, new: Tensor, owner: Tensor, factors: Tensor, change: Tensor) -> Tensor:
    r"""The sums :math:`\sum_i f_i h_i^T` with the states of new nodes and the changes of their neighbours.

    Arguments:
        sums: The sums so far, with shape :math:`(B, k, d)`.
        factor: The rows :math:`f_t` of the new nodes, with shape :math:`(B, k)`.
        new: Their states, with shape :math:`(B, d)`.
        owner: The graph of each neighbour, with shape :math:`(E,)`.
        factors: The rows of the neighbours, with shape :math:`(E, k)`.
        change: The changes of their states, with shape :math:`(E, d)`.
    """
    added = factor.unsqueeze(-1) * new.unsqueeze(-2)

    return sums + added.index_add(0, owner, factors.unsqueeze(-1) * change.unsqueeze(-2))


def _where(mask: Tensor, *parts: Tensor) -> tuple[Tensor, ...]:
    """The entries of all parts where a mask is true; nothing is copied if that is everywhere."""
    return parts if mask.all() else tuple(part[mask] for part in parts)


def _tensor(values: NDArray[np.generic], like: Tensor) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(like.device)
