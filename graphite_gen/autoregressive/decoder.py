r"""The autoregressive decoder: states of the nodes so far, and logits of a new node's edges to them (beyond the paper).

Latents of all nodes are known before the first node is added. They are refined over the low-rank graph of eq. 8, which
gives a draft of the graph (eqs. 8-9). Adding a node then changes the states of its neighbours, and all other nodes
receive it through the low-rank graph only, so that the cost follows the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.batch import node_mask
from ..nn.one_shot import GCNRefinement, Skip, refine_iteratively
from ..nn.operators import LowRankGraph
from .structure import FAR, MOST_ADJACENT, RELATIONS

__all__ = ["AutoregressiveDecoder", "CandidateTerms", "Draft"]

# Counts are embedded up to these numbers.
MOST = 24
MOST_LEFT = 40
# Differences between triangles and degree are embedded in this range: in a planar graph they tell inner nodes from
# those on the boundary.
CORNERS = 8
SCORES = 8
KEYS = 16
# Heads of the attention of a candidate over the earlier ones, and their width.
HEADS = 8
HEAD_WIDTH = 4
# Scores are bounded, so that the sum of their exponentials is too.
MAX_SCORE = 15.0
GRAPH_FEATURES = 10
VOTES = 8


@dataclass(frozen=True)
class Draft:
    """What latents and node features tell before any edge is known.

    Attributes:
        latents: The refined latents, with shape :math:`(B, N, D)`.
        states: Their contribution to the states, with shape :math:`(B, N, d)`.
        factor: The factor of the low-rank graph (eq. 8), with shape :math:`(B, N, D + 1)`.
    """

    latents: Tensor
    states: Tensor
    factor: Tensor


class CandidateTerms(NamedTuple):
    """All of a candidate pair that does not depend on the edges of its row.

    Attributes:
        hidden: Pre-activations of the first layer, with shape :math:`(*, d)`.
        logit: A contribution to the logit, with shape :math:`(*,)`.
        attend: The vectors that attend to chosen neighbours, with shape :math:`(*, a)`.
    """

    hidden: Tensor
    logit: Tensor
    attend: Tensor


class AutoregressiveDecoder(nn.Module):
    r"""States of the nodes so far, and the log-odds that a new node's next neighbour is a given one of them.

    The neighbours of a new node are chosen in decoding order. The logit of candidate :math:`i` given the neighbours
    chosen before it is a two-layer network of the state of :math:`i`, the new node's query, the mean state of the
    chosen neighbours, and relations between nodes in the partial graph.
    """

    def __init__(
        self, latent: int, node_features: int, width: int, rounds: int, skip_weight: float, dropout: float = 0.0
    ) -> None:
        super().__init__()

        self.dropout = nn.Dropout(dropout)
        # The draft (eqs. 8-9).
        self.rounds = nn.ModuleList(GCNRefinement(latent, width, node_features) for _ in range(rounds))
        self.skip = Skip("convex", skip_weight)
        self.latents = nn.Linear(latent, width, bias=False)
        self.features = nn.Linear(node_features, width, bias=False) if node_features else None
        self.draft_weight = nn.Parameter(torch.zeros(()))
        # The query of a new node.
        self.graph = nn.Sequential(nn.Linear(GRAPH_FEATURES, width), nn.ReLU(), nn.Linear(width, width))
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
        self.key = nn.Linear(width, width + SCORES + KEYS, bias=False)
        self.attend = nn.Linear(width, 2 * HEADS * HEAD_WIDTH)
        self.attended = nn.Linear(2 * HEADS, width, bias=False)
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
        self.relation = _table(RELATIONS, width)
        self.nearest = _table(FAR, width)
        self.adjacent = _table(MOST_ADJACENT + 1, width)
        self.votes = nn.Linear(VOTES, width, bias=False)
        self.hidden, self.out = nn.Linear(width, width), nn.Linear(width, 1)
        # The decoder ignores latents at first, and updates start as the identity.
        for layer in (self.latents, self.direct, self.update_out):
            nn.init.zeros_(layer.weight)
        nn.init.zeros_(self.update_out.bias)

    @property
    def width(self) -> int:
        """The width d of the states."""
        return self.hidden.in_features

    def start_at(self, log_odds: float) -> None:
        """Set the mean logit, so that training starts near the ER baseline."""
        nn.init.normal_(self.out.weight, std=0.1)
        nn.init.constant_(self.out.bias, log_odds)
        nn.init.zeros_(self.key.weight[-KEYS:])

    def draft(self, z: Tensor, x: Tensor, sizes: Tensor) -> Draft:
        """Refine the latents :math:`(B, N, D)`, given node features :math:`(B, N, F)` (eqs. 8-9)."""
        mask = node_mask(sizes, z.shape[-2])
        z = refine_iteratively(self.rounds, self.skip, z, x, mask)
        states = self.latents(z)
        if self.features is not None:
            states = states + self.features(x)

        return Draft(z, states, LowRankGraph.from_latents(z, mask, per_node=True).factor)

    def prior_query(self, sizes: Tensor, t: Tensor, edges: Tensor) -> Tensor:
        """The part of a query that depends on counts only: sizes, nodes and edges so far, each with shape (*,)."""
        n, nodes, e = torch.broadcast_tensors(*(count.to(self.left.weight) for count in (sizes, t, edges)))
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
        self, query: Tensor, old: Tensor, owner: Tensor, degree_terms: tuple[Tensor, Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The states of new nodes, with shape :math:`(B, d)`, and the new states of their neighbours, :math:`(E, d)`.

        Arguments:
            query: The queries of the new nodes, with shape :math:`(B, d)`.
            old: The states of their neighbours, with shape :math:`(E, d)`.
            owner: The graph of each neighbour, with shape :math:`(E,)`.
            degree_terms: Those of :meth:`degree_terms`.
        """
        scale, new_degree, update_degree = degree_terms
        total = torch.zeros_like(query).index_add(0, owner, old) * scale
        new = self.new_in(torch.cat([query, total], -1)) + new_degree
        new = self.new_norm(self.new_out(self.dropout(torch.relu(new))))
        hidden = self.update_in(torch.cat([old, new[owner]], -1)) + update_degree

        return new, self.update_norm(old + self.update_out(self.dropout(torch.relu(hidden))))

    def candidate_base(self, query: Tensor, key: Tensor, degrees: Tensor, triangles: Tensor) -> tuple[Tensor, Tensor]:
        """Pre-activations and scores of pairs, from the projected queries and keys of their nodes."""
        corners = (triangles - degrees).clamp(-CORNERS, CORNERS) + CORNERS
        counts = self.degree(degrees.clamp(max=MOST)) + self.corners(corners)
        base = (query + key)[..., : counts.shape[-1]] + counts
        hidden, scores = base.split([self.width, SCORES], -1)

        return hidden, MAX_SCORE * torch.tanh(scores / MAX_SCORE)

    def candidate_terms(
        self,
        hidden: Tensor,
        scores: Tensor,
        later: Tensor,
        query: Tensor,
        key: Tensor,
        positions: Tensor,
        draft: Tensor,
        attend: Tensor,
        earlier: Tensor,
        place: Tensor,
    ) -> CandidateTerms:
        r"""The terms of candidate pairs, flat or as a matrix.

        Scores :math:`u_i` are compared with those of the later candidates of the row, :math:`\log \sum_{j > i} e^{u_j}`:
        the difference is the log-odds of choosing one of many in proportion to a weight, as in preferential attachment.

        Arguments:
            hidden: Pre-activations of :meth:`candidate_base`.
            scores: Its scores.
            later: The sum of the exponential scores of later candidates.
            query: Projected queries.
            key: Projected keys.
            positions: The contribution of :meth:`position_terms`.
            draft: The inner products of the refined latents, with shape :math:`(*,)`.
        """
        rest = torch.log(later + 1e-6)
        odds = (scores - rest) / 3
        hidden = hidden + positions + self.scores(torch.cat([odds, rest / 3], -1))
        hidden = hidden + self.heads(attend, earlier, place, 1)
        last = slice(-KEYS, None)
        logit = self.direct(odds).squeeze(-1) + (query[..., last] * key[..., last]).sum(-1) / 4

        return CandidateTerms(hidden, logit + self.draft_weight * draft, attend)

    def position_terms(self, t: Tensor, i: Tensor) -> Tensor:
        """The contribution of the positions of new nodes and candidates, with shape :math:`(*, d)`."""
        new, old = t.to(self.left.weight), i.to(self.left.weight)
        features = [(new - old).log1p(), old / new.clamp_min(1), old.log1p() / 2, new.log1p() / 2]

        return (
            self.age((t - i).clamp(max=MOST)) + self.place(i.clamp(max=MOST)) + self.position(torch.stack(features, -1))
        )

    def heads(self, attend: Tensor, values: Tensor, counts: Tensor, part: int) -> Tensor:
        """Linear attention to chosen neighbours (part 0) or earlier candidates (part 1), given sums of values."""
        products = (attend * values).unflatten(-1, (HEADS, HEAD_WIDTH)).sum(-1)
        products = products * (1 + counts).to(products).rsqrt().unsqueeze(-1)

        return F.linear(products, self.attended.weight[:, part * HEADS : (part + 1) * HEADS])

    def context(self, chosen: Tensor, counts: Tensor) -> Tensor:
        """Terms of the chosen neighbours, given the sum of their states and their number."""
        terms = self.chosen(chosen * (1 + counts).to(chosen).rsqrt().unsqueeze(-1))

        return terms + self.count(counts.clamp(max=MOST))

    def relation_table(self) -> Tensor:
        """The contribution of every code of :func:`.relation_code`."""
        table = self.relation.weight[:, None, None] + self.nearest.weight[:, None] + self.adjacent.weight

        return table.flatten(0, 2)

    def vote_terms(
        self, adjacent: Tensor, paths: Tensor, earlier: Tensor, most_paths: Tensor, counts: Tensor
    ) -> Tensor:
        """The contribution of the chosen among the earlier nodes that are close to a candidate."""
        a, p, e, m, k = (count.to(self.left.weight) for count in (adjacent, paths, earlier, most_paths, counts))
        features = [
            a.log1p(), p.log1p() / 2, a / e.clamp_min(1), p / m.clamp_min(1), a / k.clamp_min(1), e.log1p(),
            m.log1p() / 2, (k - a).log1p(),
        ]  # fmt: skip

        return self.votes(torch.stack(features, -1))

    def logits(
        self, terms: CandidateTerms, context: Tensor, values: Tensor, counts: Tensor, relations: Tensor, gaps: Tensor
    ) -> Tensor:
        """The logits of candidate pairs given the row so far.

        Arguments:
            terms: The terms of the pairs.
            context: Those of the chosen neighbours.
            relations: Rows of :meth:`relation_table`.
            gaps: The distance in the ordering from the last chosen neighbour.
        """
        hidden = terms.hidden + context + relations + self.gap(gaps.clamp(0, MOST))
        hidden = hidden + self.heads(terms.attend, values, counts, 0)
        hidden = self.dropout(torch.relu(self.hidden(self.dropout(torch.relu(hidden)))))

        return self.out(hidden).squeeze(-1) + terms.logit


def _table(rows: int, width: int) -> nn.Embedding:
    table = nn.Embedding(rows, width)
    nn.init.normal_(table.weight, std=0.1)

    return table
