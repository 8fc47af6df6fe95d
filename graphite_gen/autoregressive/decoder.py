"""The autoregressive decoder: logits of a new node's candidate pairs, given the edges so far (beyond the paper)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.batch import node_mask
from ..nn.conv import ResidualMessages, masked_mean
from ..nn.operators import LowRankGraph, gcn_normalise

__all__ = ["AutoregressiveDecoder", "PairStates", "PartialGraphs", "RowContext"]


class PairStates(nn.Module):
    r"""Hidden states of all node pairs, and their sums per node (beyond the paper).

    .. math:: E' = E + W_3 \, relu(W_1 E + W_2 (W_a E)(W_b E))

    The channel-wise matrix product counts paths of length two; repeated, it encodes distances between nodes, which
    message passing between nodes alone cannot (Maron et al., 2019).
    """

    def __init__(self, channels: int, layers: int, kernels: int, width: int) -> None:
        super().__init__()

        self.first = nn.Linear(5, channels)
        self.layers = nn.ModuleList(_PairLayer(channels) for _ in range(layers))
        self.kernels = nn.Linear(channels, kernels)
        self.nodes = nn.Linear(channels, width, bias=False)

    def forward(self, adj: Tensor, decoded: Tensor) -> tuple[Tensor, Tensor]:
        """Return pair weights, with shape :math:`(B, T, T, k)`, and node states, with shape :math:`(B, T, d)`."""
        mask = node_mask(decoded, adj.shape[-1]).to(adj)
        both = mask.unsqueeze(-1) * mask.unsqueeze(-2)
        scale = (2 / decoded.clamp_min(1).to(adj))[:, None, None]
        # Channels come first: a linear map of all pairs is then one matrix product.
        e = _linear(self.first, _pair_features(adj)) * both
        for layer in self.layers:
            e = layer(e, scale) * both

        sums = (e.sum(-1) * scale[..., 0]).movedim(0, -1)

        return (_linear(self.kernels, e) * both).movedim(0, -1), self.nodes(sums)


class _PairLayer(nn.Module):
    """One residual layer of pair states."""

    def __init__(self, channels: int) -> None:
        super().__init__()

        self.own = nn.Linear(channels, 2 * channels)
        # Without bias, zero states of padded pairs stay zero.
        self.factors = nn.Linear(channels, 2 * channels, bias=False)
        self.ways = nn.Linear(channels, 2 * channels, bias=False)
        self.out = nn.Linear(2 * channels, channels)

    def forward(self, e: Tensor, scale: Tensor) -> Tensor:
        left, right = _linear(self.factors, e).chunk(2)
        hidden = torch.addmm(_linear(self.own, e).flatten(1), self.ways.weight, (left @ right * scale).flatten(1))

        return e + _linear(self.out, torch.relu(hidden).view(-1, *e.shape[1:]))


def _linear(layer: nn.Linear, e: Tensor) -> Tensor:
    """Apply a linear map to the first axis."""
    if layer.bias is None:
        columns = layer.weight @ e.flatten(1)
    else:
        columns = torch.addmm(layer.bias.unsqueeze(-1), layer.weight, e.flatten(1))

    return columns.view(-1, *e.shape[1:])


def _pair_features(adj: Tensor) -> Tensor:
    """Edge, normalised number of common neighbours, identity, and both degrees, with shape :math:`(f, B, T, T)`."""
    degrees = adj.sum(-1)
    scale = degrees.clamp_min(1).rsqrt()
    common = scale.unsqueeze(-1) * (adj @ adj) * scale.unsqueeze(-2)
    same = torch.eye(adj.shape[-1], dtype=adj.dtype, device=adj.device).expand_as(adj)
    own = (degrees / 4).unsqueeze(-1).expand_as(adj)

    return torch.stack([adj, common, same, own, own.mT])


# Counts are encoded as ramps that saturate at these numbers: exact for small counts, smooth for large ones.
RAMPS = (1, 2, 3, 4, 6, 8, 12, 16)
SCORES = 8
# Learned pair weights over which row edges send messages.
KERNELS = 4
# Scales of the messages of non-edges and edges: over all visible pairs, over those of neighbours, by pair weights.
SCALES = ((1 / 8, 1 / 3, *[1.0] * KERNELS), (1 / 2, 1.0, *[1.0] * KERNELS))
MESSAGES = 2 * len(SCALES[0])
PAIR_CHANNELS = 12
# Relative scores are clamped to this range of log-odds.
MAX_LOG_ODDS = 15.0


@dataclass(frozen=True)
class PartialGraphs:
    """Graphs whose first rows are decoded, with their nodes in the node ordering.

    Attributes:
        adj: The known edges, those among decoded nodes; zero elsewhere, with shape :math:`(B, T, T)`.
        decoded: The number of nodes all of whose earlier pairs are known, with shape :math:`(B,)`.
        active: The number of decoded nodes plus those of the current block, with shape :math:`(B,)`.
        sizes: The final number of nodes, with shape :math:`(B,)`.
        z: Latents, with shape :math:`(B, T, D)`.
        x: Node features, with shape :math:`(B, T, F)`.
    """

    adj: Tensor
    decoded: Tensor
    active: Tensor
    sizes: Tensor
    z: Tensor
    x: Tensor

    def select(self, rows: Tensor) -> PartialGraphs:
        """Index the batch."""
        return PartialGraphs(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


class AutoregressiveDecoder(nn.Module):
    r"""Logits of the candidate pairs of new nodes.

    ``states`` passes messages over the known edges and over the low-rank graph :math:`\hat{A}` of the states (eq. 8);
    ``row_context`` prepares the candidate pairs of a new node, and :meth:`RowContext.logits` conditions each pair on
    the edges of earlier pairs of the same row.
    """

    def __init__(
        self, latent: int, node_features: int, width: int, layers: int, pair_layers: int, row_layers: int, rank: int
    ) -> None:
        super().__init__()

        # Attribute names are keys of saved weights. 'evidence' reads node features; 'asked', 'arriving' and 'everyone'
        # read the earlier node of a pair, the new node, and the mean over all nodes.
        self.nodes = nn.Linear(2 * len(RAMPS) + 6, width)
        self.latents = nn.Linear(latent, width, bias=False)
        # Zero-initialised, so that the decoder ignores latents at first.
        nn.init.zeros_(self.latents.weight)
        self.evidence = nn.Linear(node_features, width, bias=False) if node_features else None
        self.graph = nn.Sequential(nn.Linear(2 * len(RAMPS) + 9, width), nn.ReLU(), nn.Linear(width, width))
        self.project = nn.ModuleList(nn.Linear(width, rank) for _ in range(layers))
        self.layers = nn.ModuleList(ResidualMessages(width, graphs=3) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.pairs = PairStates(PAIR_CHANNELS, pair_layers, KERNELS, width)
        self.asked = nn.Linear(width, width)
        self.arriving = nn.Linear(width, width, bias=False)
        self.everyone = nn.Linear(width, width, bias=False)
        self.later = nn.Linear(width, width, bias=False)
        self.scores = nn.Linear(width, SCORES)
        self.rows = nn.ModuleList(_RowLayer(width) for _ in range(row_layers))
        self.out = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        self.direct = nn.Linear(SCORES, 1, bias=False)

    def start_at(self, log_odds: float) -> None:
        """Set all logits to a constant, so that training starts at the ER baseline."""
        last = self.out[-1]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)
        nn.init.constant_(last.bias, log_odds)
        nn.init.zeros_(self.direct.weight)

    def states(self, partial: PartialGraphs) -> Tensor:
        """Return the state of every active node, zero elsewhere, with shape :math:`(B, T, d)`."""
        mask = node_mask(partial.active, partial.adj.shape[-1])
        real = mask.unsqueeze(-1).to(partial.adj)
        graph_state = self.graph(_graph_features(partial)).unsqueeze(-2)
        h = self.nodes(_node_features(partial)) + graph_state + self.latents(partial.z)
        if self.evidence is not None:
            h = h + self.evidence(partial.x)
        h = h * real
        # A third keeps sums over neighbours on the scale of the states they are added to.
        edges = (partial.adj / 3, gcn_normalise(partial.adj, mask))
        for project, layer in zip(self.project, self.layers, strict=True):
            graph = LowRankGraph.from_latents(project(h), mask).normalised()
            h = layer((*edges, graph), h, mask) * real

        return self.norm(h) * real

    def row_context(self, h: Tensor, partial: PartialGraphs, rows: Tensor, prefix: Tensor) -> RowContext:
        """Compute all that does not depend on the row's edges, for one new node per graph.

        Arguments:
            h: The node states of the partial graphs, with shape :math:`(B, T, d)`.
            partial: The graphs.
            rows: The new node, with shape :math:`(B,)`; its candidate pairs are those with earlier nodes.
            prefix: The number of pairs, from the first on, that each pair is conditioned on, with shape :math:`(B, T)`.
        """
        nodes = h.shape[-2]
        positions = torch.arange(nodes, device=h.device)
        candidates = node_mask(rows, nodes)
        own = h[torch.arange(len(h), device=h.device), rows].unsqueeze(-2)
        kernels, pair_sums = self.pairs(partial.adj, partial.decoded)
        r = self.asked(h) + self.arriving(own) + self.everyone(masked_mean(h, node_mask(partial.active, nodes)))
        r = r + pair_sums

        # Later pairs enter without their edges, which no pair may see.
        later = ((positions > positions.unsqueeze(-1)) & candidates.unsqueeze(-2)).to(h)
        scores = self._relative_scores(r, candidates)
        r = r + self.later(later @ r / later.sum(-1, keepdim=True).clamp_min(1))

        visible = ((positions < prefix.unsqueeze(-1)) & candidates.unsqueeze(-2) & candidates.unsqueeze(-1)).to(h)
        graphs = None
        if visible.any():
            weighted = (visible.unsqueeze(-1) * kernels).unbind(-1)
            graphs = torch.stack([visible, visible * partial.adj, *weighted], -1).flatten(-2)
        pending = (positions - prefix).clamp_min(0).to(h).unsqueeze(-1)
        left = _ramps((rows.unsqueeze(-1) - positions).clamp_min(0).to(h))

        counts = torch.cat([left, pending.clamp_max(1), torch.log1p(pending), scores], dim=-1)
        layers = [layer for layer in self.rows if isinstance(layer, _RowLayer)]
        count_terms = tuple(layer.count_term(counts) for layer in layers)
        first = layers[0].precompute(r, count_terms[0], graphs) if layers else None

        return RowContext(layers, self.out, r, visible, graphs, first, count_terms, self.direct(scores))

    def _relative_scores(self, r: Tensor, candidates: Tensor) -> Tensor:
        r"""Scores of pairs relative to all later ones: :math:`u_i - \log \sum_{j > i} e^{u_j}`.

        These are the log-odds of choosing some of many in proportion to a weight, as in preferential attachment.
        """
        u = self.scores(r).masked_fill(~candidates.unsqueeze(-1), -2 * MAX_LOG_ODDS)
        rest = u.flip(-2).logcumsumexp(-2).flip(-2)
        rest = torch.cat([rest[..., 1:, :], torch.full_like(rest[..., :1, :], -2 * MAX_LOG_ODDS)], dim=-2)

        return (u - rest).clamp(-MAX_LOG_ODDS, MAX_LOG_ODDS) / 3


class _Activations(NamedTuple):
    """Activations of one layer that do not depend on the row's edges: of non-edges, the messages over all graphs."""

    hidden: Tensor
    normed: Tensor
    messages: Tensor | None


@dataclass(frozen=True)
class RowContext:
    """The candidate pairs of one new node per graph, with all that does not depend on the row's edges.

    Attributes:
        r: The state of each pair, with shape :math:`(B, T, d)`.
        visible: One where a pair is conditioned on another, with shape :math:`(B, T, T)`.
        graphs: The graphs between pairs over which row edges send messages: all visible pairs, those whose nodes are
            neighbours, and by learned weights, with shape :math:`(B, T, (2 + k) T)`; None where no pair is visible.
        first: Activations of the first layer; None without layers.
        count_terms: Contributions of counts to every layer, each with shape :math:`(B, T, d)`.
        direct: Contributions of relative scores to the logits, with shape :math:`(B, T, 1)`.
    """

    layers: list[_RowLayer]
    out: nn.Module
    r: Tensor
    visible: Tensor
    graphs: Tensor | None
    first: _Activations | None
    count_terms: tuple[Tensor, ...]
    direct: Tensor

    def select(self, rows: Tensor) -> RowContext:
        """Index the rows."""
        graphs = None if self.graphs is None else self.graphs[rows]
        first = None
        if self.first is not None:
            hidden, normed, messages = self.first
            first = _Activations(hidden[rows], normed[rows], None if messages is None else messages[rows])
        r, visible, direct = self.r[rows], self.visible[rows], self.direct[rows]
        count_terms = tuple(term[rows] for term in self.count_terms)

        return RowContext(self.layers, self.out, r, visible, graphs, first, count_terms, direct)

    def logits(self, row_edges: Tensor) -> Tensor:
        """Return the logits given the row's edges, both with shape :math:`(B, T)`; meaningless beyond candidates."""
        r, cached = self.r, self.first
        degrees = _ramps((self.visible @ row_edges.unsqueeze(-1)).squeeze(-1))
        for layer, count_term in zip(self.layers, self.count_terms, strict=True):
            activations, cached = cached or layer.precompute(r, count_term, self.graphs), None
            r = layer(r, activations, self.graphs, row_edges, degrees)

        return (self.out(r) + self.direct).squeeze(-1)


class _RowLayer(nn.Module):
    """One residual layer of message passing from earlier to later pairs of a row.

    ``counts`` reads the edges so far, the pairs left, the visible pairs, the pending ones, and the relative scores.
    """

    def __init__(self, width: int) -> None:
        super().__init__()

        self.norm = nn.LayerNorm(width)
        self.own = nn.Linear(width, (1 + MESSAGES) * width)
        self.counts = nn.Linear(2 * len(RAMPS) + MESSAGES + 2 + SCORES, width, bias=False)
        self.out = nn.Linear(width, width)

    def count_term(self, counts: Tensor) -> Tensor:
        """The contribution of counts that do not depend on the row's edges."""
        return F.linear(counts, torch.cat(self._count_weights()[1::2], dim=-1))

    def precompute(self, r: Tensor, count_term: Tensor, graphs: Tensor | None) -> _Activations:
        normed: Tensor = self.norm(r)
        width = r.shape[-1]
        hidden = count_term + F.linear(normed, self.own.weight[:width], self.own.bias[:width])

        return _Activations(hidden, normed, None if graphs is None else F.linear(normed, *self._message_weights(0)))

    def forward(
        self, r: Tensor, activations: _Activations, graphs: Tensor | None, row_edges: Tensor, degrees: Tensor
    ) -> Tensor:
        hidden = activations.hidden
        if graphs is not None and activations.messages is not None:
            is_edge = row_edges > 0
            of_edges = F.linear(activations.normed[is_edge], *self._message_weights(1))
            messages = activations.messages.index_put((is_edge,), of_edges)
            hidden = hidden + F.linear(degrees, self._count_weights()[0])
            hidden = torch.baddbmm(hidden, graphs, messages.view(len(messages), -1, r.shape[-1]))

        return r + self.out(torch.relu(hidden))

    def _count_weights(self) -> tuple[Tensor, ...]:
        """The columns of ``counts`` for edges so far, pairs left, visible pairs, and the others."""
        return torch.split(self.counts.weight, [len(RAMPS), len(RAMPS), MESSAGES, 2 + SCORES], dim=-1)

    def _message_weights(self, edge: int) -> tuple[Tensor, Tensor]:
        """Weights and biases of the messages of non-edges (0) or edges (1); counts of visible pairs are biases."""
        width = self.own.in_features
        # Saved weights have those of edges first.
        own = self.own.weight[width:].view(-1, 2, width, width)[:, 1 - edge]
        bias = self.own.bias[width:].view(-1, 2, width)[:, 1 - edge]
        counts = self._count_weights()[2].view(width, -1, 2)[..., 1 - edge].mT
        scale = own.new_tensor(SCALES[edge]).unsqueeze(-1)

        return (own * scale.unsqueeze(-1)).flatten(0, 1), ((bias + counts) * scale).flatten()


def _node_features(partial: PartialGraphs) -> Tensor:
    """Degree and position of every node, with shape :math:`(B, T, f)`."""
    adj = partial.adj
    positions = torch.arange(adj.shape[-1], device=adj.device).to(adj).expand(adj.shape[:-1])
    decoded = partial.decoded.to(adj).unsqueeze(-1)
    degrees = adj.sum(-1)
    age = (decoded - positions).clamp_min(0)
    scale = decoded.clamp_min(1)
    plain = [
        torch.log1p(degrees),
        degrees / scale,
        torch.log1p(age),
        positions / scale,
        torch.log1p(positions),
        (positions >= decoded).to(degrees),
    ]

    return torch.cat([_ramps(degrees), _ramps(age), torch.stack(plain, dim=-1)], dim=-1)


def _graph_features(partial: PartialGraphs) -> Tensor:
    """Numbers of nodes and edges so far and in the end, with shape :math:`(B, f)`."""
    sizes, decoded, active = (count.to(partial.adj) for count in (partial.sizes, partial.decoded, partial.active))
    edges = partial.adj.sum((-2, -1)) / 2
    left = sizes - active
    plain = [
        torch.log(sizes.clamp_min(1)),
        torch.log1p(decoded),
        torch.log1p(left),
        decoded / sizes.clamp_min(1),
        edges / sizes.clamp_min(1),
        edges / decoded.clamp_min(1),
        # Linear, so that a number of edges that is a function of the size can be learned exactly.
        sizes / 16,
        decoded / 16,
        edges / 32,
    ]

    return torch.cat([_ramps(left), _ramps(active - decoded), torch.stack(plain, dim=-1)], dim=-1)


def _ramps(counts: Tensor) -> Tensor:
    """Encode counts as ramps from 0 to 1 along a new last axis."""
    return (counts.unsqueeze(-1) / counts.new_tensor(RAMPS)).clamp_max(1)
