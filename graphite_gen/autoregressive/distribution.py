"""The distribution of a staged model: graphs whose nodes arrive one after another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ..data.batch import node_mask
from ..errors import ConfigError
from .decoder import PartialGraphs

__all__ = ["FINEST", "AutoregressiveGraphs", "Limits", "Questions", "RowDecoder", "RowLimits", "Schedule", "row_chunks"]


@dataclass(frozen=True)
class Schedule:
    """The stages in which the pairs of a graph are decided.

    Up to as many stages as nodes, nodes arrive in that many blocks and the pairs of a block are decided at once. Beyond
    that nodes arrive one at a time, and the pairs of each are decided in as many groups as the stages allow.

    Attributes:
        stages: How many, at most; 0 decides one pair at a time.
    """

    decoding_steps: int = 0

    def __post_init__(self) -> None:
        if self.decoding_steps < 0:
            raise ConfigError(f"{self.decoding_steps} stages were asked for. Ask for at least 1, or for 'all'.")

    def block(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many nodes arrive together in graphs of these sizes."""
        if not self.decoding_steps:
            return np.ones_like(sizes)
        return np.maximum(1, -(-sizes // self.decoding_steps))

    def reach(self, sizes: NDArray[np.int64], rows: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
        r"""How many pairs of its own row each pair sees decided.

        Arguments:
            sizes: The number of nodes of each graph, with shape :math:`(B,)`.
            rows: The arriving node of each graph, which has that many pairs, with shape :math:`(B,)`.
            nodes: The number of places :math:`T`.

        Returns:
            For pair :math:`i` of a row the number of pairs, from the first on, that came in earlier stages, with shape
            :math:`(B, T)`.
        """
        places = np.arange(nodes)[None]
        if not self.decoding_steps:
            return np.broadcast_to(places, (len(sizes), nodes))
        groups = np.maximum(1, self.decoding_steps // np.maximum(sizes, 1))
        length = np.maximum(1, -(-rows // groups))[:, None]

        return places // length * length


FINEST = Schedule()


# Rows are scored together while their padding stays small and their matrices within memory.
CHUNK_CELLS = 1 << 20
# The most cells of the matrices of rows that are drawn together, unless one alone has more.
DRAWN_CELLS = 1 << 19
# While more rows than this share are open, all are asked again.
KEPT_ROWS = 0.8


class Questions(Protocol):
    """The pairs of one arriving node per graph; :class:`RowQuestions` are those of a staged model."""

    def select(self, rows: Tensor) -> Questions:
        """Some of the arriving nodes."""
        ...

    def log_odds(self, answers: Tensor) -> Tensor:
        """Log-odds of the pairs given the answers so far, both with shape :math:`(B, T)`."""
        ...


class RowDecoder(Protocol):
    """What knows the odds of an arriving node's pairs; :class:`GrowthDecoder` says what the arguments are."""

    def states(self, seen: PartialGraphs) -> Tensor:
        """The state of every node, with shape :math:`(B, T, d)`."""
        ...

    def ask(self, h: Tensor, seen: PartialGraphs, rows: Tensor, reach: Tensor) -> Questions:
        """What to ask one arriving node per graph about the nodes before it."""
        ...


class RowLimits(Protocol):
    """What must hold of the answers of arriving nodes, one node in each of :math:`M` graphs."""

    def settle(self, rows: Tensor, wanted: Tensor, answers: Tensor) -> Tensor:
        """The answers that come nearest to what the model wants, with shape :math:`(R, T)`.

        Arguments:
            rows: Which of the :math:`M` nodes are asked about, with shape :math:`(R,)`.
            wanted: True where the model wants an edge, with shape :math:`(R, T)`.
            answers: The answers so far, with shape :math:`(R, T)`; what is said of pair :math:`i` may read what is
                wanted up to it and the answers before it only.
        """
        ...


class Limits(Protocol):
    """What must hold of whole graphs, said anew for each node that arrives."""

    def __call__(self, graphs: Tensor, adj: Tensor, rows: Tensor, sizes: Tensor) -> RowLimits:
        """What must hold of the arriving nodes' answers, given the graphs so far.

        Arguments:
            graphs: The graph of the batch that each node belongs to, with shape :math:`(M,)`.
            adj: The edges among arrived nodes, with shape :math:`(M, T, T)`.
            rows: The arriving node, with shape :math:`(M,)`; it is asked about the nodes before it.
            sizes: How many nodes the graphs will have, with shape :math:`(M,)`.
        """
        ...


@dataclass(frozen=True)
class AutoregressiveGraphs:
    r"""Graphs with their nodes in order of arrival, given their latents (beyond the paper).

    .. math:: p(A | Z) = \prod_t p(A_{stage\ t} | A_{decided}, Z)

    Attributes:
        decoder: What knows the odds.
        z: Latents in order of arrival, with shape :math:`(B, N, D)`.
        x: The user's node features in order of arrival, with shape :math:`(B, N, F)`.
        sizes: The number of nodes of each graph, with shape :math:`(B,)`.
        schedule: Which pairs are decided at once.
    """

    decoder: RowDecoder
    z: Tensor
    x: Tensor
    sizes: Tensor
    schedule: Schedule = FINEST

    def log_prob(self, adj: Tensor) -> Tensor:
        """The log-probability of graphs in this order of arrival, in nats, with shape :math:`(B,)`."""
        sizes = self.sizes.cpu().numpy()
        owners = np.repeat(np.arange(len(sizes)), np.maximum(sizes - 1, 0))
        rows = np.concatenate([np.arange(1, size) for size in sizes] or [np.zeros(0, dtype=np.int64)])
        total = adj.new_zeros(len(sizes))

        return total.index_add(0, torch.from_numpy(owners).to(adj.device), self._score(adj, owners, rows))

    def row_log_prob(self, adj: Tensor, rows: Tensor) -> Tensor:
        """The log-probability of the pairs of one arriving node of each graph, with shape :math:`(B,)`.

        Arguments:
            adj: The graphs, with shape :math:`(B, N, N)`.
            rows: The arriving node, with shape :math:`(B,)`.
        """
        return self._score(adj, np.arange(len(adj)), rows.cpu().numpy())

    def _score(self, adj: Tensor, owners: NDArray[np.int64], rows: NDArray[np.int64]) -> Tensor:
        """The log-probability of each (graph, arriving node), in chunks of rows of similar length."""
        chunks = row_chunks(rows)
        scores = [self._score_chunk(adj, owners[part], rows[part]) for part in chunks]
        order = np.concatenate([*chunks, np.zeros(0, dtype=np.int64)])
        back = torch.from_numpy(np.argsort(order)).to(adj.device)

        return torch.cat([*scores, adj.new_zeros(0)])[back]

    def _score_chunk(self, adj: Tensor, owners: NDArray[np.int64], rows: NDArray[np.int64]) -> Tensor:
        seen = self._seen(adj, owners, rows)
        at = torch.from_numpy(rows).to(adj.device)
        nodes = seen.adj.shape[-1]
        asked = node_mask(at, nodes)
        answers = adj[torch.from_numpy(owners).to(adj.device), at, :nodes] * asked

        questions = self.decoder.ask(self.decoder.states(seen), seen, at, self._reach(owners, rows, nodes))
        logits = questions.log_odds(answers)

        return ((answers * logits - F.softplus(logits)) * asked).sum(-1)

    def _seen(self, adj: Tensor, owners: NDArray[np.int64], rows: NDArray[np.int64]) -> PartialGraphs:
        """The graphs as they are when the block of a row arrives."""
        sizes = self.sizes.cpu().numpy()[owners]
        block = self.schedule.block(sizes)
        arrived = rows // block * block
        present = np.minimum(arrived + block, sizes)
        nodes = int(present.max(initial=1))

        device = adj.device
        who = torch.from_numpy(owners).to(device)
        arrived_, present_ = (torch.from_numpy(count).to(device) for count in (arrived, present))
        decided = node_mask(arrived_, nodes).to(adj)

        return PartialGraphs(
            adj[who, :nodes, :nodes] * decided.unsqueeze(-1) * decided.unsqueeze(-2),
            arrived_,
            present_,
            self.sizes[who],
            self.z[who, :nodes],
            self.x[who, :nodes],
        )

    def _reach(self, owners: NDArray[np.int64], rows: NDArray[np.int64], nodes: int) -> Tensor:
        sizes = self.sizes.cpu().numpy()[owners]

        return torch.from_numpy(self.schedule.reach(sizes, rows, nodes).copy()).to(self.z.device)

    def sample(self, uniform: Tensor, limits: Limits | None = None) -> Tensor:
        """Graphs from uniform noise, with shape :math:`(B, N, N)`.

        Arguments:
            uniform: Noise in [0, 1), read below the diagonal, with shape :math:`(B, N, N)`.
            limits: What must hold of the edges; asks for nodes that arrive one at a time.
        """
        sizes = self.sizes.cpu().numpy()
        block = self.schedule.block(sizes)
        assert limits is None or (block == 1).all(), "limits are kept by nodes that arrive one at a time"
        uniform = uniform.to(self.z)
        adj = torch.zeros_like(uniform)
        for start in range(int(np.max(-(-sizes // block), initial=0))):
            first, last = np.maximum(start * block, 1), np.minimum((start + 1) * block, sizes)
            for graphs in _pieces(np.flatnonzero(first < last), int(last.max())):
                self._write_block(adj, graphs, first[graphs], last[graphs], uniform, limits)

        return adj

    def _write_block(
        self,
        adj: Tensor,
        graphs: NDArray[np.int64],
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        uniform: Tensor,
        limits: Limits | None,
    ) -> None:
        """Draw the pairs of the block of nodes that arrives in some graphs, and write them into these."""
        # Nodes of one block see the same graph: its states are found once.
        seen = self._seen(adj, graphs, first)
        h = self.decoder.states(seen)
        which = np.repeat(np.arange(len(graphs)), last - first)
        rows = np.concatenate([np.arange(a, b) for a, b in zip(first, last, strict=True)])
        for part in _pieces(np.arange(len(rows)), h.shape[-2]):
            shared = torch.from_numpy(which[part]).to(adj.device)
            owners = graphs[which[part]]
            who, at = torch.from_numpy(owners).to(adj.device), torch.from_numpy(rows[part]).to(adj.device)
            answers, _ = self._answer(_select(seen, shared), h[shared], owners, rows[part], uniform[who, at], limits)
            nodes = answers.shape[-1]
            # Rows of one block share columns: what another row has written stays.
            adj[who, at, :nodes] += answers
            adj[who, :nodes, at] += answers

    def draw_rows(
        self,
        adj: Tensor,
        owners: NDArray[np.int64],
        rows: NDArray[np.int64],
        uniform: Tensor,
        limits: Limits | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Draw the pairs of arriving nodes.

        All pairs are answered at once from the answers so far, until nothing changes: pair i is right as soon as those
        before it are, so the outcome is that of asking one by one (Song et al., 2021), mostly in a few rounds.

        Arguments:
            adj: The edges decided so far, with shape :math:`(B, N, N)`.
            owners: The graph that each arriving node belongs to, with shape :math:`(M,)`.
            rows: The arriving nodes, with shape :math:`(M,)`.
            uniform: Noise in [0, 1), with shape :math:`(M, N)`.
            limits: What must hold of the edges.

        Returns:
            The answers, and the log-odds that each was drawn with, both with shape :math:`(M, T)`.
        """
        seen = self._seen(adj, owners, rows)

        return self._answer(seen, self.decoder.states(seen), owners, rows, uniform, limits)

    def _answer(
        self,
        seen: PartialGraphs,
        h: Tensor,
        owners: NDArray[np.int64],
        rows: NDArray[np.int64],
        uniform: Tensor,
        limits: Limits | None,
    ) -> tuple[Tensor, Tensor]:
        """The answers of arriving nodes given what they see, and its states."""
        nodes = seen.adj.shape[-1]
        at = torch.from_numpy(rows).to(uniform.device)
        asked = node_mask(at, nodes)
        noise = uniform[:, :nodes]
        reach = self._reach(owners, rows, nodes)
        questions = self.decoder.ask(h, seen, at, reach)
        held = None if limits is None else limits(torch.from_numpy(owners).to(uniform.device), seen.adj, at, seen.sizes)
        # Without limits a pair is right once all pairs within its reach are: as many rounds as there are reaches.
        rounds = nodes + 1 if held else int((reach.diff(dim=-1) != 0).logical_and(asked[:, 1:]).sum(-1).max()) + 1

        # Any guess ends in the same answers, one with as many edges as the graph so far mostly sooner.
        answers, odds = ((noise < _density(seen)) & asked).to(noise), torch.zeros_like(noise)
        open_rows = torch.arange(len(rows), device=uniform.device)
        for _ in range(rounds):
            before = answers[open_rows]
            logits = questions.log_odds(before)
            after = (noise[open_rows] < torch.sigmoid(logits)) & asked[open_rows]
            if held is not None:
                after = held.settle(open_rows, after, before) & asked[open_rows]
            odds[open_rows], answers[open_rows] = logits, after.to(answers)
            changed = (after.to(before) != before).any(-1)
            if not changed.any():
                break
            # Rows that are done stay as they are: leaving them out must save more than copying the others costs.
            if changed.sum() < KEPT_ROWS * len(changed):
                open_rows, questions = open_rows[changed], questions.select(changed.nonzero().squeeze(-1))

        return answers, odds


def _density(seen: PartialGraphs) -> Tensor:
    """The share of pairs of arrived nodes that are edges, with shape :math:`(M, 1)`."""
    pairs = (seen.arrived * (seen.arrived - 1)).clamp_min(1).to(seen.adj)

    return (seen.adj.sum((-2, -1)) / pairs).unsqueeze(-1)


def _select(seen: PartialGraphs, rows: Tensor) -> PartialGraphs:
    return PartialGraphs(*(getattr(seen, name)[rows] for name in seen.__dataclass_fields__))


def _pieces(indices: NDArray[np.int64], nodes: int) -> Iterator[NDArray[np.int64]]:
    """Cut indices of matrices on so many nodes into pieces of bounded memory."""
    size = max(1, DRAWN_CELLS // nodes**2)
    for start in range(0, len(indices), size):
        yield indices[start : start + size]


def row_chunks(rows: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Which arriving nodes are best scored together: from short rows to long ones, cut where padding costs a pass."""
    order = np.argsort(rows, kind="stable")
    chunks, start = [], 0
    while start < len(order):
        shortest = int(rows[order[start]])
        longest = shortest + 2 + shortest // 3
        end = min(
            int(np.searchsorted(rows[order], longest, side="right")), start + max(1, CHUNK_CELLS // (longest + 1) ** 2)
        )
        chunks.append(order[start:end])
        start = end

    return chunks
