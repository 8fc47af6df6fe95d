r"""The autoregressive decoder: states of the nodes so far, and logits of a new node's edges to them (beyond the paper).

Latents of all nodes are known before the first node is added. They are refined over the low-rank graph of eq. 8, and an
affine map of them gives the low-rank graph that decoding reads, a draft of the graph (eqs. 8-9). Latents have no other
way to edges. Adding a node then changes the states of its neighbours, and all other nodes receive it through the
low-rank graph only: the cost of the states follows the edges, that of the logits the pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.batch import node_mask
from ..nn.one_shot import GCNRefinement, Skip, refine_iteratively
from ..nn.operators import LowRankGraph
from ..nn.path_lengths import STRUCTURAL_FEATURES
from . import structure
from .feature_head import FeatureHead
from .heads import Attributes, LabelHead, StateHead, WeightHead
from .structure import FAR, MOST_ADJACENT, RELATIONS, is_long

__all__ = [
    "AutoregressiveDecoder",
    "CandidatePairs",
    "CandidateTerms",
    "Draft",
    "DraftHead",
    "Kind",
    "Rows",
    "RowsSoFar",
]

# Counts are embedded up to these numbers.
MOST = 24
MOST_LEFT = 40
# Triangles minus degree are embedded in this range: in a planar graph they tell inner nodes from those on the boundary.
CORNERS = 8
SCORES = 8
KEYS = 16
# Heads of the attention of a candidate to the earlier ones, and their width.
HEADS, HEAD_WIDTH = 8, 4
ATTENTION = HEADS * HEAD_WIDTH
# Scores are bounded, so that the sum of their exponentials is too.
MAX_SCORE = 15.0
GRAPH_FEATURES = 10
# The scale of the initial weights of entries of the low-rank graph.
PRODUCT_SCALE = 0.5
PROXIMITIES = 8
# The inverse of the scale that free bits allow posterior means, and the least spread of a structural feature.
MEANS_SCALE, LEAST_SPREAD = 10.0, 0.08


class Kind(IntEnum):
    """Kinds of candidates: a node of a short row, or of a long one a block, and the nodes of a chosen block.

    A chosen block has at least one neighbour: FIRST is a node before it has one, and NEXT one after.
    """

    NODE = 0
    BLOCK = 1
    FIRST = 2
    NEXT = 3


@dataclass(frozen=True)
class Draft:
    """What latents and node features tell before any edge is known.

    Attributes:
        factor: The factor of the low-rank graph (eq. 8), with shape :math:`(B, N, D + 1)`.
        states: The contribution of node features to the states, with shape :math:`(B, N, d)`.
    """

    factor: Tensor
    states: Tensor

    def of_blocks(self) -> Tensor:
        """The mean factors of blocks of nodes, with shape :math:`(B, K, D + 1)`; none if no row is long."""
        nodes = self.factor.shape[1]
        if not is_long(nodes - 1):
            return self.factor[:, :0]
        # The last column of the factor is the mask.
        mask, block = self.factor[..., -1:], structure.BLOCK
        sums, sizes = (
            F.pad(values, (0, 0, 0, -nodes % block)).view(len(mask), -1, block, values.shape[-1]).sum(2)
            for values in (self.factor, mask)
        )

        return sums / sizes.clamp_min(1)


class Rows(Protocol):
    """The arrangement of pairs in rows, one for each new node."""

    def spread(self, values: Tensor) -> Tensor:
        """Values of pairs as a matrix of rows and earlier nodes, zero where there is no pair, with shape (R, T, *)."""
        ...

    def collect(self, matrix: Tensor) -> Tensor:
        """The values of pairs in such a matrix."""
        ...


class CandidatePairs(NamedTuple):
    """Pairs of new nodes and earlier ones; leading dimensions are those of the arrangement in rows.

    Attributes:
        query: Projected queries of the new nodes.
        state: Projected states of the earlier nodes.
        degrees: Degrees of the earlier nodes.
        triangles: Triangles of the earlier nodes.
        new: Positions of the new nodes.
        old: Positions of the earlier nodes.
        draft: Entries of the low-rank graph (eq. 8), one for each column of its factor but the constant one.
    """

    query: Tensor
    state: Tensor
    degrees: Tensor
    triangles: Tensor
    new: Tensor
    old: Tensor
    draft: Tensor


class CandidateTerms(NamedTuple):
    """All of candidate pairs that does not depend on the edges of their row.

    Attributes:
        hidden: Pre-activations of the first layer, with shape :math:`(*, d)`.
        logit: A contribution to the logit, with shape :math:`(*,)`.
        attention: The vectors that attend to chosen neighbours, with shape :math:`(*, a)`.
    """

    hidden: Tensor
    logit: Tensor
    attention: Tensor


@dataclass(frozen=True)
class RowsSoFar:
    """What a candidate is conditioned on: the neighbours chosen before it.

    Attributes:
        context: Terms of :meth:`.AutoregressiveDecoder.context`, with shape :math:`(*, d)`.
        values: The sum of their attention values, with shape :math:`(*, a)`.
        count: Their number.
        gap: The distance in the ordering from the last of them.
        code: The kind of candidate and its relation to them (:func:`.relation_code`).
        adjacent: The number of them that are adjacent to the candidate.
        paths: The number of paths of length two to them.
        earlier: The number of earlier nodes adjacent to the candidate.
        earlier_paths: The number of paths of length two to earlier nodes.
    """

    context: Tensor
    values: Tensor
    count: Tensor
    gap: Tensor
    code: Tensor
    adjacent: Tensor
    paths: Tensor
    earlier: Tensor
    earlier_paths: Tensor


class DraftHead(nn.Module):
    r"""Log-odds of edges that are independent given latents, which only training reads (eq. 10).

    .. math:: l_{ij} = a z_i^T z_j + b_i + b_j, \quad b_i = c \|z_i\|^2 + u^T z_i + d

    With :math:`c = -a / 2` and :math:`u = 0` it is a squared distance, while u gives degrees a direction that is the
    same in all graphs. One more direction tells the places of nodes in the node ordering, others their structural
    features.
    """

    def __init__(self, latent: int) -> None:
        super().__init__()

        self.products = nn.Parameter(torch.tensor([1.0, -0.5]))
        self.bias = nn.Linear(latent, 1)
        self.place = nn.Linear(latent, 1, bias=False)
        self.structure = nn.Linear(latent, STRUCTURAL_FEATURES)
        for name, value in (("mean", 0.0), ("scale", 1.0)):
            self.register_buffer(name, torch.full((STRUCTURAL_FEATURES,), value))
        self.mean: Tensor
        self.scale: Tensor

    def forward(self, z: Tensor) -> Tensor:
        """Log-odds of all edges given latents :math:`(B, N, D)`, with shape :math:`(B, N, N)`."""
        product, norm = self.products
        bias = norm * z.square().sum(-1) + self.bias(z).squeeze(-1)

        return product * (z @ z.mT) + bias.unsqueeze(-1) + bias.unsqueeze(-2)

    def order_logits(self, z: Tensor) -> Tensor:
        """Log-odds that the second node of a pair is added after the first, with shape :math:`(B, N, N)`."""
        places = self.place(z)

        return places.mT - places

    def standardise_like(self, features: Tensor) -> None:
        """Set the mean and the scale of structural features to those given, with shape (M, 4)."""
        self.mean.copy_(features.mean(0))
        self.scale.copy_(features.std(0, unbiased=False).clamp_min(LEAST_SPREAD))

    def structure_errors(self, mu: Tensor, features: Tensor) -> Tensor:
        """Half the squared errors of standardised structural features given posterior means, with shape (*,)."""
        errors = self.structure(MEANS_SCALE * mu) - (features - self.mean) / self.scale

        return errors.square().sum(-1) / 2


class AutoregressiveDecoder(nn.Module):
    r"""States of the nodes so far, and the log-odds that a new node's next neighbour is a given one of them.

    The neighbours of a new node are chosen in decoding order. The logit of candidate :math:`i` given the neighbours
    chosen before it is a two-layer network of the state of :math:`i`, the new node's query, the mean state of the
    chosen neighbours, and relations between nodes in the partial graph.
    """

    def __init__(
        self,
        latent: int,
        node_features: int,
        width: int,
        rounds: int,
        skip_weight: float,
        dropout: float = 0.0,
        reads_latents: bool = True,
        attributes: Attributes = Attributes(),  # noqa: B008
    ) -> None:
        """Unless the decoder reads latents, their weights start with zero."""
        super().__init__()

        self.dropout = nn.Dropout(dropout)
        # The draft (eqs. 8-9).
        self.rounds = nn.ModuleList(GCNRefinement(latent, width, node_features) for _ in range(rounds))
        self.skip = Skip("convex", skip_weight)
        self.factor = nn.Linear(latent, latent)
        self.features = nn.Linear(node_features, width, bias=False) if node_features else None
        self.products = nn.Linear(latent, width, bias=False)
        self.draft_weight = nn.Parameter(torch.zeros(latent))
        # The query of a new node.
        self.graph = nn.Sequential(nn.Linear(GRAPH_FEATURES, width), nn.SiLU(), nn.Linear(width, width))
        self.left = _table(MOST_LEFT, width)
        self.others = nn.Linear(2 * width, width)
        # States.
        self.new_in, self.new_out = nn.Linear(2 * width, width), nn.Linear(width, width)
        self.new_degree = _table(MOST + 1, width)
        self.new_norm = nn.LayerNorm(width)
        self.update_in, self.update_out = nn.Linear(2 * width, width), nn.Linear(width, width)
        self.update_degree = _table(MOST + 1, width)
        self.update_norm = nn.LayerNorm(width)
        # Candidate pairs.
        self.query = nn.Linear(width, width + SCORES + KEYS)
        self.state = nn.Linear(width, width + SCORES + KEYS + 2 * ATTENTION, bias=False)
        self.attention_chosen = nn.Linear(HEADS, width, bias=False)
        self.attention_earlier = nn.Linear(HEADS, width, bias=False)
        self.degree = _table(MOST + 1, width + SCORES)
        self.corners = _table(2 * CORNERS + 1, width + SCORES)
        self.age = _table(MOST + 1, width)
        self.place = _table(MOST + 1, width)
        self.position = nn.Linear(4, width)
        self.scores = nn.Linear(2 * SCORES, width)
        self.direct = nn.Linear(SCORES, 1, bias=False)
        # The row so far.
        self.chosen = nn.Linear(width, width, bias=False)
        self.count = _table(MOST + 1, width)
        self.gap = _table(MOST + 1, width)
        self.kind = _table(len(Kind), width)
        self.relation = _table(RELATIONS, width)
        self.nearest = _table(FAR, width)
        self.adjacent = _table(MOST_ADJACENT + 1, width)
        self.proximity = nn.Linear(PROXIMITIES, width, bias=False)
        self.hidden, self.out = nn.Linear(width, width), nn.Linear(width, 1)
        # With a constant, products of two nodes depend on either of them too, and not only on how they agree.
        nn.init.ones_(self.factor.bias)
        nn.init.normal_(self.factor.weight, std=float(reads_latents))
        nn.init.normal_(self.products.weight, std=PRODUCT_SCALE * reads_latents)
        # Updates start as the identity.
        for layer in (self.direct, self.update_out):
            nn.init.zeros_(layer.weight)
        nn.init.zeros_(self.update_out.bias)
        # The first logits are close to their mean.
        with torch.no_grad():
            self.out.weight.mul_(0.1)
        # Attributes of nodes and edges.
        self.attributes = attributes
        self.node_label = LabelHead(attributes.node_labels, width) if attributes.node_labels else None
        self.edge_state = StateHead(attributes.states, width) if attributes.states else None
        self.edge_weight = WeightHead(attributes, width) if attributes.weights else None
        self.node_feature = FeatureHead(attributes.features, width) if attributes.features else None
        self.draft_head = DraftHead(latent)

    @property
    def width(self) -> int:
        """The width d of the states."""
        return self.hidden.in_features

    def start_at(self, log_odds: float) -> None:
        """Set the mean logit, so that training starts near the ER baseline."""
        nn.init.constant_(self.out.bias, log_odds)

    def draft(self, z: Tensor, x: Tensor, sizes: Tensor) -> Draft:
        """Refine the latents :math:`(B, N, D)`, given node features :math:`(B, N, F)` (eqs. 8-9)."""
        mask = node_mask(sizes, z.shape[-2])
        z = self.factor(refine_iteratively(self.rounds, self.skip, z, x, mask))
        # Without the factor n the first term of eq. 8 would vanish beside the second in large graphs.
        factor = LowRankGraph.from_latents(z, mask).factor
        scale = (sizes.to(z) * z.shape[-1] / 2).sqrt()[:, None, None]
        factor = torch.cat([scale * factor[..., :-1], factor[..., -1:]], -1)
        states = factor.new_zeros(1).expand(*factor.shape[:-1], self.width)

        return Draft(factor, states if self.features is None else self.features(x))

    def prior_query(self, sizes: Tensor, t: Tensor, edges: Tensor) -> Tensor:
        """The part of a query that depends on counts only: sizes, nodes and edges so far, each with shape (*,)."""
        n, nodes, e = (count.to(self.left.weight).expand(edges.shape) for count in (sizes, t, edges))
        left = (n - nodes).clamp_min(0)
        some = nodes.clamp_min(1)
        features = [
            n / 16, nodes / 16, left / 16, n.log1p(), nodes.log1p(), left.log1p(), nodes / n.clamp_min(1),
            e / n.clamp_min(1), e / some, e / (some * (some - 1) / 2).clamp_min(1),
        ]  # fmt: skip

        return self.graph(torch.stack(features, -1).clamp(max=12)) + self.left((sizes - t).clamp(0, MOST_LEFT - 1))

    def complete_query(self, prior: Tensor, factor: Tensor, sums: Tensor, t: int) -> Tensor:
        r"""Add the mean state and the message over the low-rank graph to queries, all with shape :math:`(B, d)`.

        .. math:: \frac{1}{t} \sum_{i < t} \hat{A}_{t i} h_i = f_t^T \frac{1}{t} \sum_{i < t} f_i h_i^T

        Arguments:
            prior: The queries without them.
            factor: The row :math:`f_t` of the low-rank graph's factor, with shape :math:`(B, k)`.
            sums: The sums :math:`\sum_i f_i h_i^T`, with shape :math:`(B, k, d)`.
            t: The number of nodes so far.
        """
        sums = sums / max(t, 1)
        message = (factor.unsqueeze(-2) @ sums).squeeze(-2)

        # The last column of the factor is constant, so the last sum is the mean state.
        return prior + self.others(torch.cat([message, sums[:, -1]], -1))

    def degree_terms(self, counts: Tensor, degrees: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The scale of sums over the neighbours of new nodes, and contributions of degrees to :meth:`advance`.

        Arguments:
            counts: The number of neighbours of new nodes, with shape :math:`(*,)`.
            degrees: The degrees of neighbours with the new edge, with shape :math:`(E,)`.
        """
        scale = (1 + counts).to(self.left.weight).rsqrt().unsqueeze(-1)

        return scale, self.new_degree(counts.clamp(max=MOST)), self.update_degree(degrees.clamp(max=MOST))

    def advance(
        self,
        query: Tensor,
        old: Tensor,
        owner: Tensor,
        degree_terms: tuple[Tensor, Tensor, Tensor],
        states: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The states of new nodes, with shape :math:`(B, d)`, and the new states of their neighbours, :math:`(E, d)`.

        Arguments:
            query: The queries of the new nodes, with shape :math:`(B, d)`.
            old: The states of their neighbours, with shape :math:`(E, d)`.
            owner: The graph of each neighbour, with shape :math:`(E,)`.
            degree_terms: Those of :meth:`degree_terms`.
            states: The states of the new edges, with shape :math:`(E,)`, if edges have any.
        """
        scale, new_degree, update_degree = degree_terms
        total = torch.zeros_like(query).index_add(0, owner, self.message(old, states)) * scale
        new = self.new_in(torch.cat([query, total], -1)) + new_degree
        new = self.new_norm(self.new_out(self.dropout(F.silu(new))))
        hidden = self.update_in(torch.cat([old, new[owner]], -1)) + update_degree
        if self.edge_state is not None:
            hidden = hidden + self.edge_state.update(states)

        return new, self.update_norm(old + self.update_out(self.dropout(F.silu(hidden))))

    def message(self, old: Tensor, states: Tensor | None) -> Tensor:
        """The states of neighbours, with what the states of their edges add."""
        return old if self.edge_state is None else old + self.edge_state.message(states)

    def candidate_terms(self, pairs: CandidatePairs, rows: Rows) -> CandidateTerms:
        r"""The terms of candidate pairs.

        A score :math:`u_i` is compared with those of the later candidates of the row: the difference
        :math:`u_i - \log \sum_{j > i} e^{u_j}` is the log-odds of choosing one of many in proportion to a weight, as in
        preferential attachment.
        """
        query, state = pairs.query, pairs.state
        corners = (pairs.triangles - pairs.degrees).clamp(-CORNERS, CORNERS) + CORNERS
        counts = self.degree(pairs.degrees.clamp(max=MOST)) + self.corners(corners)
        own = [self.width, SCORES, KEYS]
        query_hidden, query_score, query_key = torch.split(query, own, -1)
        hidden, score, key, attention, values = torch.split(state, [*own, ATTENTION, ATTENTION], -1)

        score = MAX_SCORE * torch.tanh((query_score + score + counts[..., self.width :]) / MAX_SCORE)
        weights = rows.spread(score.exp())
        # Sums over later or earlier candidates are shifted instead of subtracting the own value, which would cancel.
        later = F.pad(weights.flip(1).cumsum(1).flip(1), (0, 0, 0, 1))[:, 1:]
        rest = torch.log(rows.collect(later) + 1e-6)
        odds = (score - rest) / 3
        values = rows.spread(values)
        earlier = rows.collect(F.pad(values.cumsum(1), (0, 0, 1, 0))[:, :-1])

        hidden = hidden + query_hidden + counts[..., : self.width] + self._position_terms(pairs.new, pairs.old)
        hidden = hidden + self.scores(torch.cat([odds, rest / 3], -1)) + self.products(pairs.draft)
        hidden = hidden + self.attention_earlier(_attend(attention, earlier, pairs.old))
        logit = self.direct(odds).squeeze(-1) + (query_key * key).sum(-1) / 4 + pairs.draft @ self.draft_weight

        return CandidateTerms(hidden, logit, attention)

    def _position_terms(self, new: Tensor, old: Tensor) -> Tensor:
        """The contribution of the positions of new nodes and candidates, with shape :math:`(*, d)`."""
        t, i = new.to(self.left.weight), old.to(self.left.weight)
        features = [(t - i).log1p(), i / t.clamp_min(1), i.log1p() / 2, t.log1p() / 2]

        return (
            self.age((new - old).clamp(max=MOST))
            + self.place(old.clamp(max=MOST))
            + self.position(torch.stack(features, -1))
        )

    def values(self, state: Tensor) -> Tensor:
        """The attention values in projected states."""
        return state[..., -ATTENTION:]

    def context(self, chosen: Tensor, counts: Tensor) -> Tensor:
        """Terms of the chosen neighbours, given the sum of their states and their number."""
        mean = chosen * (1 + counts).to(chosen).rsqrt().unsqueeze(-1)

        return self.chosen(mean) + self.count(counts.clamp(max=MOST))

    def relation_table(self) -> Tensor:
        """The contribution of every kind of candidate and code of :func:`.relation_code`."""
        table = self.relation.weight[:, None, None] + self.nearest.weight[:, None] + self.adjacent.weight

        return (self.kind.weight[:, None] + table.flatten(0, 2)).flatten(0, 1)

    def logits(self, terms: CandidateTerms, so_far: RowsSoFar, relation_table: Tensor) -> Tensor:
        """The logits of candidate pairs given the rows so far, with shape :math:`(*,)`."""
        hidden = terms.hidden + so_far.context + F.embedding(so_far.code, relation_table)
        hidden = hidden + self.gap(so_far.gap.clamp(0, MOST)) + self._proximity_terms(so_far)
        hidden = hidden + self.attention_chosen(_attend(terms.attention, so_far.values, so_far.count))
        hidden = self.dropout(F.silu(self.hidden(self.dropout(F.silu(hidden)))))

        return self.out(hidden).squeeze(-1) + terms.logit

    def _proximity_terms(self, so_far: RowsSoFar) -> Tensor:
        """The contribution of how many of the nodes close to a candidate are chosen."""
        counts = (so_far.count, so_far.adjacent, so_far.paths, so_far.earlier, so_far.earlier_paths)
        k, adjacent, paths, earlier, earlier_paths = (
            count.to(self.left.weight).expand(so_far.adjacent.shape) for count in counts
        )
        features = [
            adjacent.log1p(), paths.log1p() / 2, adjacent / earlier.clamp_min(1), paths / earlier_paths.clamp_min(1),
            adjacent / k.clamp_min(1), earlier.log1p(), earlier_paths.log1p() / 2, (k - adjacent).log1p(),
        ]  # fmt: skip

        return self.proximity(torch.stack(features, -1))


def _attend(attention: Tensor, values: Tensor, counts: Tensor) -> Tensor:
    """Linear attention: products with a sum of values, for each head, with shape :math:`(*, h)`."""
    products = attention * values
    products = products.view(*products.shape[:-1], HEADS, HEAD_WIDTH).sum(-1)

    return products * (1 + counts).to(products).rsqrt().unsqueeze(-1)


def _table(rows: int, width: int) -> nn.Embedding:
    table = nn.Embedding(rows, width)
    nn.init.normal_(table.weight, std=0.1)

    return table
