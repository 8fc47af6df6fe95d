"""Looking ahead while graphs grow: which pairs of an arriving node may and which must be edges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..data.batch import node_mask
from ..data.properties import component_labels
from .planarity import PlanarRow
from .requirements import Demands

__all__ = ["DemandLimits", "RowBounds"]


class DemandLimits:
    """The demands on each graph of a batch, as limits on nodes that arrive one at a time.

    Each row is bounded so that the rows after it can still do what is asked, as far as counting tells: edges and open
    ends are counted, not matched to each other. Connected graphs are connected from their first node on.
    """

    def __init__(self, demands: Sequence[Demands], device: torch.device | str = "cpu") -> None:
        """Prepare for graphs of given demands, their nodes in order of arrival."""
        tight = [demand.tightened() for demand in demands]
        nodes = max((demand.nodes for demand in tight), default=0)

        def padded(name: str) -> Tensor:
            rows = [np.pad(getattr(demand, name), (0, nodes - demand.nodes)) for demand in tight]
            return torch.from_numpy(np.array(rows, dtype=np.int64).reshape(-1, nodes)).to(device)

        self._lowest, self._highest = padded("lowest"), padded("highest")
        self._least = torch.tensor([demand.least for demand in tight], dtype=torch.int64, device=device)
        self._most = torch.tensor([demand.most for demand in tight], dtype=torch.int64, device=device)
        self._connected = any(demand.connected for demand in tight)
        self._acyclic = any(demand.acyclic for demand in tight)
        # A forest is planar.
        self._planar = any(demand.planar for demand in tight) and not self._acyclic

    def __call__(self, graphs: Tensor, adj: Tensor, rows: Tensor, sizes: Tensor) -> RowBounds:
        nodes = adj.shape[-1]
        asked = node_mask(rows, nodes)
        degrees = adj.sum(-1).long()
        lowest, highest = self._lowest[graphs], self._highest[graphs]
        low, high = ((bound[:, :nodes] - degrees) * asked for bound in (lowest, highest))
        still = sizes - 1 - rows
        least, most = self._count_bounds(graphs, rows, sizes, degrees, low.clamp_min(0).sum(-1), high.sum(-1))

        return RowBounds(
            asked & (high > 0),
            asked & (low > still.unsqueeze(-1)),
            least,
            most,
            _labels(adj, asked) if self._acyclic else None,
            _planar_rows(adj, rows) if self._planar else None,
        )

    def _count_bounds(
        self, graphs: Tensor, rows: Tensor, sizes: Tensor, degrees: Tensor, wanting: Tensor, open_ends: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The least and the largest number of edges of the arriving nodes, each with shape :math:`(M,)`.

        Arguments:
            graphs: The graph of each row, with shape :math:`(M,)`.
            rows: The arriving node, with shape :math:`(M,)`.
            sizes: The number of nodes in the end, with shape :math:`(M,)`.
            degrees: Those of arrived nodes, with shape :math:`(M, T)`.
            wanting: How many edges the arrived nodes still need, with shape :math:`(M,)`.
            open_ends: How many they still may have, with shape :math:`(M,)`.
        """
        lowest, highest = self._lowest[graphs], self._highest[graphs]
        places = torch.arange(lowest.shape[-1], device=rows.device)
        later = ((places > rows.unsqueeze(-1)) & (places < sizes.unsqueeze(-1))).long()
        own_low, own_high = (bound.gather(-1, rows.unsqueeze(-1)).squeeze(-1) for bound in (lowest, highest))
        still = sizes - 1 - rows
        decided = degrees.sum(-1) // 2

        # Edges: the rows to come can take so many, and must take so many.
        pairs = (sizes * (sizes - 1) - (rows + 1) * rows) // 2
        later_most = torch.minimum(pairs, (later * highest).sum(-1))
        if self._planar:
            # A node can always be joined to three that share a face; to count on more leads into dead ends.
            joined = torch.minimum(torch.maximum(places.clamp_max(3), lowest), highest)
            later_most = torch.minimum(later_most, (later * joined).sum(-1))
        later_least = ((later * lowest).sum(-1) + 1) // 2
        if self._connected:
            later_least = torch.maximum(later_least, still)

        # Ends: an edge of this row closes two, one at each node; the nodes to come need some, and can serve some.
        served = (later * torch.minimum(highest, rows.unsqueeze(-1) + 1)).sum(-1)
        needed = (later * (lowest - (still - 1).unsqueeze(-1)).clamp_min(0)).sum(-1)
        if self._connected:
            # A node to come takes one open end and brings all of its own but one.
            spent = (later * (2 - highest)).cumsum(-1) * later
            before_last = later * (places < (sizes - 1).unsqueeze(-1))
            needed = torch.maximum(needed, (still > 0).long() + (spent * before_last).amax(-1).clamp_min(0))

        least = torch.stack(
            [
                own_low - still,
                self._least[graphs] - decided - later_most,
                -((served - wanting - own_low) // 2),
                torch.full_like(rows, int(self._connected)),
            ]
        ).amax(0)
        most = torch.stack([own_high, self._most[graphs] - decided - later_least, (open_ends + own_high - needed) // 2])

        return least.clamp_min(0), most.amin(0)


@dataclass(frozen=True)
class RowBounds:
    """Bounds on the edges of arriving nodes, known before any of their pairs is asked about.

    Attributes:
        may: True where an edge is possible, with shape :math:`(M, T)`.
        must: True where there has to be one, with shape :math:`(M, T)`.
        least: The least number of edges, with shape :math:`(M,)`.
        most: The largest number of edges, with shape :math:`(M,)`.
        groups: Labels of nodes, at most one of each label being a neighbour, with shape :math:`(M, T)`; None for none.
        planar: The graphs that have to stay planar; None for none.
    """

    may: Tensor
    must: Tensor
    least: Tensor
    most: Tensor
    groups: Tensor | None = None
    planar: list[PlanarRow] | None = None

    def settle(self, rows: Tensor, wanted: Tensor, answers: Tensor) -> Tensor:
        """What is wanted where it is possible, and what must be; see :class:`RowLimits`."""
        may, must = self.may[rows], self.must[rows]
        least, most = self.least[rows].unsqueeze(-1), self.most[rows].unsqueeze(-1)
        taken = (answers > 0).long()
        before = taken.cumsum(-1) - taken

        possible_later = _after(may)
        if self.groups is not None:
            used, possible_later = _use_of_groups(self.groups[rows], may, taken)
            may = may & ~used
        # Room is kept for the pairs that must be edges; pairs without which too few are left become edges.
        room = before + _after(must) < most
        short = before + possible_later < least
        settled = may & (must | ((wanted | short) & room))

        if self.planar is not None:
            for row, line, open_, fewest in zip(rows.tolist(), settled, may, least.flatten().tolist(), strict=True):
                kept = self.planar[row].keep(line.tolist(), open_.tolist(), fewest)
                line.zero_()
                line[kept] = True

        return settled


def _after(flags: Tensor) -> Tensor:
    """How many flags are set after each place, with shape :math:`(M, T)`."""
    counts = flags.long()

    return counts.sum(-1, keepdim=True) - counts.cumsum(-1)


def _use_of_groups(groups: Tensor, may: Tensor, taken: Tensor) -> tuple[Tensor, Tensor]:
    """Whether the group of each pair has its edge already, and how many groups can still have one after that pair.

    Arguments:
        groups: The labels, with shape :math:`(M, T)`.
        may: True where an edge is possible, with shape :math:`(M, T)`.
        taken: One where there is an edge, with shape :math:`(M, T)`; pair :math:`i` reads those before it.
    """
    nodes = groups.shape[-1]
    same = groups.unsqueeze(-1) == groups.unsqueeze(-2)
    later = torch.ones(nodes, nodes, dtype=torch.bool, device=groups.device).triu(1)
    earlier = later.mT & (taken.unsqueeze(-2) > 0)
    has_edge = (earlier.float() @ same.float()) > 0
    # A group is counted at its last pair.
    is_last = may & ~(same & later & may.unsqueeze(-2)).any(-1)
    possible_later = (later & is_last.unsqueeze(-2) & ~has_edge).sum(-1)

    return has_edge.diagonal(dim1=-2, dim2=-1), possible_later


def _labels(adj: Tensor, asked: Tensor) -> Tensor:
    """The component of each node, with shape :math:`(M, T)`; found on the disjoint union of the graphs."""
    graphs, nodes = asked.shape
    who, i, j = np.nonzero(np.triu(adj.cpu().numpy(), 1))
    labels = component_labels(np.stack([who * nodes + i, who * nodes + j], axis=1), graphs * nodes)

    return torch.from_numpy(labels.reshape(graphs, nodes)).to(adj.device)


def _planar_rows(adj: Tensor, rows: Tensor) -> list[PlanarRow]:
    matrices = adj.cpu().numpy() > 0

    return [PlanarRow(matrix[:row, :row]) for matrix, row in zip(matrices, rows.tolist(), strict=True)]
