"""Sampling the edges of new nodes to earlier ones, one after the other, with or without constraints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

__all__ = ["EdgeConstraints", "RowCandidates", "RowConstraints", "sample_row"]

# Candidates that are evaluated at a time: those after the next neighbour are evaluated again when it is known.
WINDOW = 32


class RowConstraints(ABC):
    """Constraints on the edges of M new nodes."""

    @abstractmethod
    def __call__(self, rows: Tensor, sampled: Tensor, row_edges: Tensor) -> Tensor:
        """The feasible edges closest to sampled ones, given the indices of rows (R,) and the current edges (R, t).

        Pair i may depend on samples up to it and on edges before it only. Pairs after the next new edge are not used.
        """

    def rejected(self, edges: Tensor) -> Tensor:
        """Rows whose edges (M, t) violate a constraint that is not enforced at first; from now on it is."""
        return torch.empty(0, dtype=torch.int64, device=edges.device)


# The constraints on new nodes, given the graph in the batch that each belongs to (M,), the known edges (M, t, t), the
# positions t of the nodes (M,) and the final numbers of nodes (M,).
EdgeConstraints = Callable[[Tensor, Tensor, Tensor, Tensor], RowConstraints]


class RowCandidates(Protocol):
    """The candidate pairs of one new node per graph, and the neighbours chosen among them so far."""

    def logits(self, rows: Tensor, nodes: Tensor | None) -> Tensor:
        """Logits of some rows (A,), of given candidates (A, W) or of all of them."""
        ...

    def choose(self, rows: Tensor, nodes: Tensor) -> None:
        """Add a neighbour to each of some rows, both with shape (A,)."""
        ...

    def restart(self, rows: Tensor) -> None:
        """Remove the chosen neighbours of some rows (A,)."""
        ...


def sample_row(row: RowCandidates, noise: Tensor, enforce: RowConstraints | None = None) -> tuple[Tensor, Tensor]:
    """Sample the edges of new nodes; return them and the logits of all pairs, with shape :math:`(L, t)`.

    The next neighbour is the first candidate whose noise is below its probability. Candidates after it are evaluated
    again when it is chosen, so a short row takes one evaluation for each of its edges and one more.
    """
    edges, logits = torch.zeros_like(noise, dtype=torch.bool), torch.zeros_like(noise)
    rows = torch.arange(len(noise), device=noise.device)
    while len(rows):
        _sample_edges(row, noise, enforce, rows, edges, logits)
        # With the same noise a row changes only after the first edge that its constraints do not allow.
        rows = rows[:0] if enforce is None else enforce.rejected(edges)
        row.restart(rows)
        edges[rows] = False

    return edges, logits


def _sample_edges(
    row: RowCandidates, noise: Tensor, enforce: RowConstraints | None, rows: Tensor, edges: Tensor, logits: Tensor
) -> None:
    """Set the edges and logits of some rows, which have no edges yet."""
    graphs, candidates = noise.shape
    start = torch.zeros(graphs, dtype=torch.int64, device=noise.device)
    is_whole = enforce is not None or candidates <= WINDOW
    offsets = torch.arange(candidates if is_whole else WINDOW, device=noise.device)
    while len(rows) and candidates:
        first = start[rows].unsqueeze(-1)
        if is_whole:
            at = offsets.expand(len(rows), -1)
            found, hits = row.logits(rows, None), noise[rows]
        else:
            at = (first + offsets).clamp(max=candidates - 1)
            found, hits = row.logits(rows, at), noise[rows.unsqueeze(-1), at]
        hits = hits < torch.sigmoid(found)
        if enforce is not None:
            # Pairs before the first one left are decided.
            chosen_edges = edges[rows]
            hits = enforce(rows, torch.where(at < first, chosen_edges, hits), chosen_edges)
        hits = hits & (at >= first)
        is_found, place = hits.any(-1), hits.int().argmax(-1, keepdim=True)
        chosen = torch.where(is_found, at.gather(-1, place).squeeze(-1), at[:, -1])
        is_decided = (at >= first) & (at <= chosen.unsqueeze(-1))
        logits[rows.unsqueeze(-1).expand_as(at)[is_decided], at[is_decided]] = found[is_decided]
        start[rows] = chosen + 1
        edges[rows[is_found], chosen[is_found]] = True
        row.choose(rows[is_found], chosen[is_found])
        rows = rows[start[rows] < candidates]
