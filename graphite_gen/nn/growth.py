"""The staged decoder: the pairs of an arriving node, given the graph so far (beyond the paper)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..batch import node_mask
from ..operators import LowRankGraph, gcn_normalise
from .conv import ResidualMessages, masked_mean

__all__ = ["GrowthDecoder", "PartialGraphs"]

# Counts are read as ramps that end at these numbers: exact for the small ones, smooth for the large.
RAMPS = (1, 2, 3, 4, 6, 8, 12, 16)
SCORES = 8
MESSAGES = 6
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


class GrowthDecoder(nn.Module):
    r"""Log-odds of the pairs of arriving nodes.

    ``states`` passes messages over what is decided and over the low-rank graph :math:`\hat{A}` of the states (eq. 8);
    ``row`` then asks an arriving node about the nodes before it, each answer seeing the earlier ones.
    """

    def __init__(self, latent: int, node_features: int, width: int, layers: int, row_layers: int, rank: int) -> None:
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

    def row(self, h: Tensor, seen: PartialGraphs, rows: Tensor, answers: Tensor, reach: Tensor) -> Tensor:
        """Log-odds of the pairs of one arriving node per graph, with shape :math:`(B, T)`.

        Arguments:
            h: The states of the nodes, with shape :math:`(B, T, d)`.
            seen: What the states were made from.
            rows: The arriving node, with shape :math:`(B,)`; it is asked about the nodes before it.
            answers: One where it has an edge, with shape :math:`(B, T)`; pair :math:`i` sees those before its reach.
            reach: How many answers each pair sees, with shape :math:`(B, T)`.
        """
        nodes = h.shape[-2]
        places = torch.arange(nodes, device=h.device)
        asked = node_mask(rows, nodes)
        own = h.gather(-2, rows[:, None, None].expand(-1, 1, h.shape[-1]))
        r = self.asked(h) + self.arriving(own) + self.everyone(masked_mean(h, node_mask(seen.present, nodes)))

        known = (places < reach.unsqueeze(-1)) & asked.unsqueeze(-2)
        accepted = known.to(h) * answers.unsqueeze(-2)
        rejected = known.to(h) - accepted
        alike = _alike(seen.adj)
        graphs = (
            accepted / 2,
            rejected / 8,
            accepted * seen.adj,
            rejected * seen.adj / 3,
            accepted * alike,
            rejected * alike,
        )

        # What is still to be asked is looked at before there are answers: none of them may see itself.
        later = ((places > places.unsqueeze(-1)) & asked.unsqueeze(-2)).to(h)
        odds = self._odds(r, asked)
        r = r + self.later(later @ r / later.sum(-1, keepdim=True).clamp_min(1))
        sums = [graph.sum(-1) for graph in graphs]
        edges = accepted.sum(-1)
        waiting = (places - reach).to(h)
        left = (rows.unsqueeze(-1) - places).clamp_min(0).to(h)
        counts = torch.cat(
            [
                _ramps(edges),
                _ramps(left),
                torch.stack([*sums, waiting.clamp_max(1), torch.log1p(waiting)], dim=-1),
                odds,
            ],
            dim=-1,
        )
        for layer in self.rows:
            r = layer(graphs, r, counts)

        return (self.out(r) + self.direct(odds)).squeeze(-1)

    def _odds(self, r: Tensor, asked: Tensor) -> Tensor:
        r"""How a pair stands against all pairs after it: :math:`u_i - \log \sum_{j > i} e^{u_j}`.

        Choosing some of many in proportion to a weight, as growing graphs do, has this as its log-odds.
        """
        u = self.scores(r).masked_fill(~asked.unsqueeze(-1), -2 * LARGEST)
        rest = u.flip(-2).logcumsumexp(-2).flip(-2)
        rest = torch.cat([rest[..., 1:, :], torch.full_like(rest[..., :1, :], -2 * LARGEST)], dim=-2)

        return (u - rest).clamp(-LARGEST, LARGEST) / 3


class _RowLayer(nn.Module):
    """One residual step of message passing from earlier answers to later questions."""

    def __init__(self, width: int) -> None:
        super().__init__()

        self.norm = nn.LayerNorm(width)
        self.own = nn.Linear(width, (1 + MESSAGES) * width)
        self.counts = nn.Linear(2 * len(RAMPS) + MESSAGES + 2 + SCORES, width, bias=False)
        self.out = nn.Linear(width, width)

    def forward(self, graphs: tuple[Tensor, ...], r: Tensor, counts: Tensor) -> Tensor:
        hidden, *messages = self.own(self.norm(r)).chunk(1 + MESSAGES, dim=-1)
        hidden = hidden + self.counts(counts)
        for graph, message in zip(graphs, messages, strict=True):
            hidden = hidden + graph @ message

        return r + self.out(torch.relu(hidden))


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


def _alike(adj: Tensor) -> Tensor:
    """The part of their neighbours that two nodes share, which tells how far apart they are, with shape of ``adj``."""
    scale = adj.sum(-1).clamp_min(1).rsqrt()

    return scale.unsqueeze(-1) * (adj @ adj) * scale.unsqueeze(-2)


def _ramps(counts: Tensor) -> Tensor:
    """Counts as ramps from 0 to 1, with one more axis."""
    return torch.stack([counts.clamp_max(end) / end for end in RAMPS], dim=-1)
