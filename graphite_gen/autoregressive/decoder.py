"""The staged decoder: the pairs of an arriving node, given the graph so far (beyond the paper)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data.batch import node_mask
from ..nn.conv import ResidualMessages, masked_mean
from ..nn.operators import LowRankGraph, gcn_normalise

__all__ = ["AutoregressiveDecoder", "PairStates", "PartialGraphs", "RowQuestions"]

FEATURES = 5


class PairStates(nn.Module):
    r"""States of all pairs of nodes, and what nodes gather from them (beyond the paper).

    .. math:: E' = E + W_3 \, relu(W_1 E + W_2 (W_a E)(W_b E))

    A product of matrices, channel by channel, counts the ways from one node to another over a third: repeated, it tells
    how far apart two nodes are, which messages between nodes cannot (Maron et al., 2019).
    """

    def __init__(self, channels: int, layers: int, kernels: int, width: int) -> None:
        super().__init__()

        self.first = nn.Linear(FEATURES, channels)
        self.layers = nn.ModuleList(_PairLayer(channels) for _ in range(layers))
        self.kernels = nn.Linear(channels, kernels)
        self.nodes = nn.Linear(channels, width, bias=False)

    def forward(self, adj: Tensor, arrived: Tensor) -> tuple[Tensor, Tensor]:
        """Weights of pairs, with shape :math:`(B, T, T, k)`, and states of nodes, with shape :math:`(B, T, d)`.

        Arguments:
            adj: The edges among arrived nodes, with shape :math:`(B, T, T)`.
            arrived: How many nodes have arrived, with shape :math:`(B,)`.
        """
        mask = node_mask(arrived, adj.shape[-1]).to(adj)
        both = mask.unsqueeze(-1) * mask.unsqueeze(-2)
        scale = (2 / arrived.clamp_min(1).to(adj))[:, None, None]
        # Channels come first: a linear map of all pairs is then one product of matrices.
        e = _linear(self.first, _pair_features(adj)) * both
        for layer in self.layers:
            e = layer(e, scale) * both

        gathered = (e.sum(-1) * scale[..., 0]).movedim(0, -1)

        return (_linear(self.kernels, e) * both).movedim(0, -1), self.nodes(gathered)


class _PairLayer(nn.Module):
    """One residual step of the states of pairs."""

    def __init__(self, channels: int) -> None:
        super().__init__()

        self.own = nn.Linear(channels, 2 * channels)
        # No bias: what is zero at pairs that are not there stays zero.
        self.factors = nn.Linear(channels, 2 * channels, bias=False)
        self.ways = nn.Linear(channels, 2 * channels, bias=False)
        self.out = nn.Linear(2 * channels, channels)

    def forward(self, e: Tensor, scale: Tensor) -> Tensor:
        left, right = _linear(self.factors, e).chunk(2)

        hidden = torch.addmm(_columns(self.own, e), self.ways.weight, (left @ right * scale).flatten(1))

        return e + _linear(self.out, torch.relu(hidden).view(-1, *e.shape[1:]))


def _linear(layer: nn.Linear, e: Tensor) -> Tensor:
    """A linear map of the first axis."""
    return _columns(layer, e).view(-1, *e.shape[1:])


def _columns(layer: nn.Linear, e: Tensor) -> Tensor:
    """A linear map of the first axis, with all others as one."""
    if layer.bias is None:
        return layer.weight @ e.flatten(1)

    return torch.addmm(layer.bias.unsqueeze(-1), layer.weight, e.flatten(1))


def _pair_features(adj: Tensor) -> Tensor:
    """What is known of two nodes at first, with shape :math:`(f, B, T, T)`.

    Whether they are neighbours, the part of their neighbours that they share, whether they are one, and both degrees.
    """
    degrees = adj.sum(-1)
    scale = degrees.clamp_min(1).rsqrt()
    alike = scale.unsqueeze(-1) * (adj @ adj) * scale.unsqueeze(-2)
    same = torch.eye(adj.shape[-1], dtype=adj.dtype, device=adj.device).expand_as(adj)
    own = (degrees / 4).unsqueeze(-1).expand_as(adj)

    return torch.stack([adj, alike, same, own, own.mT])


# Counts are read as ramps that end at these numbers: exact for the small ones, smooth for the large.
RAMPS = (1, 2, 3, 4, 6, 8, 12, 16)
SCORES = 8
# Answers are heard over so many learned weights of pairs.
KERNELS = 4
# Over all answers, those of neighbours and those by weights of pairs, in the two cases "no" and "yes".
SCALES = ((1 / 8, 1 / 3, *[1.0] * KERNELS), (1 / 2, 1.0, *[1.0] * KERNELS))
MESSAGES = 2 * len(SCALES[0])
PAIR_CHANNELS = 12
# Log-odds beyond this say nothing more.
LARGEST = 15.0


@dataclass(frozen=True)
class PartialGraphs:
    """Graphs that have been decided in part, their nodes in order of arrival.

    Attributes:
        adj: The edges among arrived nodes; zero elsewhere, with shape :math:`(B, T, T)`.
        arrived: How many nodes have all their pairs decided, with shape :math:`(B,)`.
        present: How many nodes take part: those, and the block that arrives, with shape :math:`(B,)`.
        sizes: How many nodes the graphs will have, with shape :math:`(B,)`.
        z: Latents, with shape :math:`(B, T, D)`.
        x: The user's node features, with shape :math:`(B, T, F)`.
    """

    adj: Tensor
    arrived: Tensor
    present: Tensor
    sizes: Tensor
    z: Tensor
    x: Tensor


class AutoregressiveDecoder(nn.Module):
    r"""Log-odds of the pairs of arriving nodes.

    ``states`` passes messages over what is decided and over the low-rank graph :math:`\hat{A}` of the states (eq. 8);
    ``ask`` then asks an arriving node about the nodes before it, and ``answer`` lets each answer see the earlier ones.
    """

    def __init__(
        self, latent: int, node_features: int, width: int, layers: int, pair_layers: int, row_layers: int, rank: int
    ) -> None:
        super().__init__()

        self.nodes = nn.Linear(2 * len(RAMPS) + 6, width)
        self.latents = nn.Linear(latent, width, bias=False)
        # Latents start unheard: they are noise until training finds a use for them.
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
        """Begin with graphs of a given density, so that training starts at the ER baseline."""
        last = self.out[-1]
        assert isinstance(last, nn.Linear)
        with torch.no_grad():
            last.weight.zero_()
            last.bias.fill_(log_odds)
            self.direct.weight.zero_()

    def states(self, seen: PartialGraphs) -> Tensor:
        """The state of every node that takes part, zero elsewhere, with shape :math:`(B, T, d)`."""
        mask = node_mask(seen.present, seen.adj.shape[-1])
        real = mask.unsqueeze(-1).to(seen.adj)
        h = self.nodes(_node_features(seen)) + self.graph(_graph_features(seen)).unsqueeze(-2) + self.latents(seen.z)
        if self.evidence is not None:
            h = h + self.evidence(seen.x)
        h = h * real
        # A third keeps sums over neighbours on the scale of the states they join.
        edges = (seen.adj / 3, gcn_normalise(seen.adj, mask))
        for project, layer in zip(self.project, self.layers, strict=True):
            graph = LowRankGraph.from_latents(project(h), mask).normalised()
            h = layer((*edges, graph), h, mask) * real

        return self.norm(h) * real

    def ask(self, h: Tensor, seen: PartialGraphs, rows: Tensor, reach: Tensor) -> RowQuestions:
        """What to ask one arriving node per graph about the nodes before it.

        Arguments:
            h: The states of the nodes, with shape :math:`(B, T, d)`.
            seen: What the states were made from.
            rows: The arriving node, with shape :math:`(B,)`; it is asked about the nodes before it.
            reach: How many answers each pair sees, from the first on, with shape :math:`(B, T)`.
        """
        nodes = h.shape[-2]
        places = torch.arange(nodes, device=h.device)
        asked = node_mask(rows, nodes)
        own = h.gather(-2, rows[:, None, None].expand(-1, 1, h.shape[-1]))
        kernels, gathered = self.pairs(seen.adj, seen.arrived)
        r = self.asked(h) + self.arriving(own) + self.everyone(masked_mean(h, node_mask(seen.present, nodes)))
        r = r + gathered

        # What is still to be asked is looked at before there are answers: none of them may see itself.
        later = ((places > places.unsqueeze(-1)) & asked.unsqueeze(-2)).to(h)
        odds = self._odds(r, asked)
        r = r + self.later(later @ r / later.sum(-1, keepdim=True).clamp_min(1))

        sight = ((places < reach.unsqueeze(-1)) & asked.unsqueeze(-2) & asked.unsqueeze(-1)).to(h)
        graphs = None
        if sight.any():
            graphs = torch.stack([sight, sight * seen.adj, *(sight.unsqueeze(-1) * kernels).unbind(-1)], -1).flatten(-2)
        waiting = (places - reach).clamp_min(0).to(h)
        left = _ramps((rows.unsqueeze(-1) - places).clamp_min(0).to(h))
        waits = torch.stack([waiting.clamp_max(1), torch.log1p(waiting)], dim=-1)

        known = torch.cat([left, waits, odds], dim=-1)
        layers = self._row_layers()
        foreseen = tuple(layer.foresee(known) for layer in layers)
        opening = layers[0].listen(r, foreseen[0], graphs) if layers else None

        return RowQuestions(self, r, sight, graphs, opening, foreseen, self.direct(odds))

    def answer(self, questions: RowQuestions, answers: Tensor) -> Tensor:
        """Log-odds of the pairs of arriving nodes, with shape :math:`(B, T)`; those of pairs not asked say nothing.

        Arguments:
            questions: What they are asked.
            answers: One where they have an edge, with shape :math:`(B, T)`; a pair sees those within its reach.
        """
        r, graphs = questions.r, questions.graphs
        edges = _ramps((questions.sight @ answers.unsqueeze(-1)).squeeze(-1))
        opening = questions.opening
        for layer, foreseen in zip(self._row_layers(), questions.foreseen, strict=True):
            # The first layer has listened before there were answers.
            said, opening = opening or layer.listen(r, foreseen, graphs), None
            r = layer(r, said, graphs, answers, edges)

        return (self.out(r) + questions.direct).squeeze(-1)

    def _row_layers(self) -> list[_RowLayer]:
        return [layer for layer in self.rows if isinstance(layer, _RowLayer)]

    def _odds(self, r: Tensor, asked: Tensor) -> Tensor:
        r"""How a pair stands against all pairs after it: :math:`u_i - \log \sum_{j > i} e^{u_j}`.

        Choosing some of many in proportion to a weight, as growing graphs do, has this as its log-odds.
        """
        u = self.scores(r).masked_fill(~asked.unsqueeze(-1), -2 * LARGEST)
        rest = u.flip(-2).logcumsumexp(-2).flip(-2)
        rest = torch.cat([rest[..., 1:, :], torch.full_like(rest[..., :1, :], -2 * LARGEST)], dim=-2)

        return (u - rest).clamp(-LARGEST, LARGEST) / 3


@dataclass(frozen=True)
class _Said:
    """What pairs have to say in one layer, before they are answered.

    Attributes:
        keeps: What each keeps to itself, with shape :math:`(B, T, d)`.
        heard: Its state, of which messages are made, with shape :math:`(B, T, d)`.
        refused: Its messages over all graphs if it is no edge, with shape :math:`(B, T, g d)`; None without graphs.
    """

    keeps: Tensor
    heard: Tensor
    refused: Tensor | None

    def select(self, rows: Tensor) -> _Said:
        """Those of some of the arriving nodes."""
        return _Said(self.keeps[rows], self.heard[rows], None if self.refused is None else self.refused[rows])


@dataclass(frozen=True)
class RowQuestions:
    """The pairs of one arriving node per graph, with all that no answer changes.

    Attributes:
        decoder: What knows the odds.
        r: The state of each pair, with shape :math:`(B, T, d)`.
        sight: One where a pair sees the answer to another, with shape :math:`(B, T, T)`.
        graphs: The answers that a pair sees: all of them, those of neighbours of its node, and all by learned weights,
            with shape :math:`(B, T, (2 + k) T)`; None where no pair sees an answer.
        opening: What pairs say in the first layer; None where there is no layer.
        foreseen: What is known of each pair in every layer, with shape :math:`(B, T, d)`.
        direct: Log-odds from how a pair stands against those after it, with shape :math:`(B, T, 1)`.
    """

    decoder: AutoregressiveDecoder
    r: Tensor
    sight: Tensor
    graphs: Tensor | None
    opening: _Said | None
    foreseen: tuple[Tensor, ...]
    direct: Tensor

    def select(self, rows: Tensor) -> RowQuestions:
        """Some of the arriving nodes."""
        return RowQuestions(
            self.decoder,
            self.r[rows],
            self.sight[rows],
            None if self.graphs is None else self.graphs[rows],
            None if self.opening is None else self.opening.select(rows),
            tuple(part[rows] for part in self.foreseen),
            self.direct[rows],
        )

    def log_odds(self, answers: Tensor) -> Tensor:
        """Log-odds given the answers so far, both with shape :math:`(B, T)`."""
        return self.decoder.answer(self, answers)


class _RowLayer(nn.Module):
    """One residual step of message passing from earlier answers to later questions.

    ``counts`` reads the edges so far, the pairs left, the answers heard, those waited for, and how a pair stands.
    """

    def __init__(self, width: int) -> None:
        super().__init__()

        self.norm = nn.LayerNorm(width)
        self.own = nn.Linear(width, (1 + MESSAGES) * width)
        self.counts = nn.Linear(2 * len(RAMPS) + MESSAGES + 2 + SCORES, width, bias=False)
        self.out = nn.Linear(width, width)

    def foresee(self, known: Tensor) -> Tensor:
        """What the counts that no answer changes come to: pairs left, waited for, and how a pair stands."""
        _, left, _, others = self._counts()

        return F.linear(known, torch.cat([left, others], dim=-1))

    def listen(self, r: Tensor, foreseen: Tensor, graphs: Tensor | None) -> _Said:
        """What pairs in these states have to say."""
        heard: Tensor = self.norm(r)
        width = r.shape[-1]
        keeps = foreseen + F.linear(heard, self.own.weight[:width], self.own.bias[:width])

        return _Said(keeps, heard, None if graphs is None else F.linear(heard, *self._messages(0)))

    def forward(self, r: Tensor, said: _Said, graphs: Tensor | None, answers: Tensor, edges: Tensor) -> Tensor:
        hidden = said.keeps
        if graphs is not None and said.refused is not None:
            yes = answers > 0
            sent = said.refused.index_put((yes,), F.linear(said.heard[yes], *self._messages(1)))
            hidden = hidden + F.linear(edges, self._counts()[0])
            hidden = torch.baddbmm(hidden, graphs, sent.view(len(sent), -1, r.shape[-1]))

        return r + self.out(torch.relu(hidden))

    def _counts(self) -> tuple[Tensor, ...]:
        """The columns of ``counts`` for edges so far, pairs left, answers heard, and the others."""
        return torch.split(self.counts.weight, [len(RAMPS), len(RAMPS), MESSAGES, 2 + SCORES], dim=-1)

    def _messages(self, answer: int) -> tuple[Tensor, Tensor]:
        """Weights and biases of the messages of pairs that were answered so.

        A count of answers heard is a message of one: it joins the biases.
        """
        width = self.own.in_features
        # Those of edges come first.
        own = self.own.weight[width:].view(-1, 2, width, width)[:, 1 - answer]
        bias = self.own.bias[width:].view(-1, 2, width)[:, 1 - answer]
        heard = self._counts()[2].view(width, -1, 2)[..., 1 - answer].mT
        scale = own.new_tensor(SCALES[answer]).unsqueeze(-1)

        return (own * scale.unsqueeze(-1)).flatten(0, 1), ((bias + heard) * scale).flatten()


def _node_features(seen: PartialGraphs) -> Tensor:
    """Degree and age of every node, with shape :math:`(B, T, f)`."""
    places = torch.arange(seen.adj.shape[-1], device=seen.adj.device).to(seen.adj).expand(seen.adj.shape[:-1])
    arrived = seen.arrived.to(seen.adj).unsqueeze(-1)
    degrees = seen.adj.sum(-1)
    age = (arrived - places).clamp_min(0)
    scale = arrived.clamp_min(1)

    return torch.cat(
        [
            _ramps(degrees),
            _ramps(age),
            torch.stack(
                [
                    torch.log1p(degrees),
                    degrees / scale,
                    torch.log1p(age),
                    places / scale,
                    torch.log1p(places),
                    (places >= arrived).to(degrees),
                ],
                dim=-1,
            ),
        ],
        dim=-1,
    )


def _graph_features(seen: PartialGraphs) -> Tensor:
    """How far a graph has grown, with shape :math:`(B, f)`."""
    sizes, arrived, present = (count.to(seen.adj) for count in (seen.sizes, seen.arrived, seen.present))
    edges = seen.adj.sum((-2, -1)) / 2
    left = sizes - present

    return torch.cat(
        [
            _ramps(left),
            _ramps(present - arrived),
            torch.stack(
                [
                    torch.log(sizes.clamp_min(1)),
                    torch.log1p(arrived),
                    torch.log1p(left),
                    arrived / sizes.clamp_min(1),
                    edges / sizes.clamp_min(1),
                    edges / arrived.clamp_min(1),
                    # As they are, so that a count which is fixed by the size can be kept exactly.
                    sizes / 16,
                    arrived / 16,
                    edges / 32,
                ],
                dim=-1,
            ),
        ],
        dim=-1,
    )


def _ramps(counts: Tensor) -> Tensor:
    """Counts as ramps from 0 to 1, with one more axis."""
    return (counts.unsqueeze(-1) / counts.new_tensor(RAMPS)).clamp_max(1)
