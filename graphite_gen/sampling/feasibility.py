"""Feasible and forced edges of new rows, so that the rows after them can still satisfy the constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..autoregressive.row_sampling import RowConstraints
from ..data.batch import GraphBatch
from ..data.properties import component_labels
from .constraints import Requirements

__all__ = ["FeasibleEdges", "NodePermutation", "PlanarRow", "RowBounds"]


class FeasibleEdges:
    """The requirements on each graph of a batch, as constraints on nodes that are decoded one at a time.

    The bounds on a row count edges and free degrees (stubs) without matching them to each other, so dead ends are rare
    but possible. Connected graphs are connected from their first node on. Requirements have nodes in decoding order.
    """

    def __init__(self, requirements: Sequence[Requirements], device: torch.device | str = "cpu") -> None:
        tight = [requirement.tightened() for requirement in requirements]
        self._min_degree, self._max_degree = (
            pad_sequence([torch.from_numpy(getattr(part, name)) for part in tight], batch_first=True).to(device)
            for name in ("min_degree", "max_degree")
        )
        self._min_edges, self._max_edges = (
            torch.tensor([getattr(part, name) for part in tight], dtype=torch.int64, device=device)
            for name in ("min_edges", "max_edges")
        )
        self._connected = any(part.connected for part in tight)
        self._acyclic = any(part.acyclic for part in tight)
        # A forest is planar.
        self._planar = any(part.planar for part in tight) and not self._acyclic

    def __call__(self, graphs: Tensor, adj: Tensor, rows: Tensor, sizes: Tensor) -> RowBounds:
        """Return the bounds on new rows; see ``EdgeConstraints``."""
        nodes = adj.shape[-1]
        degrees = adj.sum(-1).long()
        edges, still = degrees.sum(-1) // 2, sizes - 1 - rows
        min_degree, max_degree = self._min_degree[graphs], self._max_degree[graphs]
        positions = torch.arange(min_degree.shape[-1], device=rows.device)
        later = ((positions > rows.unsqueeze(-1)) & (positions < sizes.unsqueeze(-1))).long()
        own_min, own_max = (bound.gather(-1, rows.unsqueeze(-1)).squeeze(-1) for bound in (min_degree, max_degree))
        # What earlier nodes still need, and what they may have.
        low, high = (bound[:, :nodes] - degrees for bound in (min_degree, max_degree))
        needed, free = low.clamp_min(0).sum(-1), high.sum(-1)

        # Edges: bounds on those of later rows.
        pairs = (sizes * (sizes - 1) - (rows + 1) * rows) // 2
        later_max = torch.minimum(pairs, (later * max_degree).sum(-1))
        if self._planar:
            # A node can always be joined to three nodes of one face; counting on more leads into dead ends.
            joined = torch.minimum(torch.maximum(positions.clamp_max(3), min_degree), max_degree)
            later_max = torch.minimum(later_max, (later * joined).sum(-1))
        later_min = ((later * min_degree).sum(-1) + 1) // 2
        if self._connected:
            later_min = torch.maximum(later_min, still)

        # Stubs: an edge of this row uses two, one at each node; later nodes require some and can match some.
        matched = (later * torch.minimum(max_degree, rows.unsqueeze(-1) + 1)).sum(-1)
        required = (later * (min_degree - (still - 1).unsqueeze(-1)).clamp_min(0)).sum(-1)
        if self._connected:
            # A later node uses one stub and adds all of its own but one.
            used = (later * (2 - max_degree)).cumsum(-1) * later
            before_last = later * (positions < (sizes - 1).unsqueeze(-1))
            required = torch.maximum(required, (still > 0).long() + (used * before_last).amax(-1).clamp_min(0))

        least = torch.stack(
            [
                own_min - still,
                self._min_edges[graphs] - edges - later_max,
                -((matched - needed - own_min) // 2),
                torch.full_like(rows, int(self._connected)),
            ]
        )
        most = torch.stack([own_max, self._max_edges[graphs] - edges - later_min, (free + own_max - required) // 2])

        return RowBounds(
            high > 0,
            low > still.unsqueeze(-1),
            least.amax(0).clamp_min(0),
            most.amin(0),
            _components(adj) if self._acyclic else None,
            [PlanarRow(graph > 0) for graph in adj.cpu().numpy()] if self._planar else [],
        )


@dataclass(frozen=True)
class RowBounds(RowConstraints):
    """Bounds on the edges of new rows, known before any of them is sampled.

    Planarity is tested when a row is complete, and edge by edge only in rows that fail. The result is the same as if
    every edge had been tested, because subgraphs of planar graphs are planar.

    Attributes:
        feasible: True where an edge is possible, with shape :math:`(M, t)`.
        forced: True where an edge is required, with shape :math:`(M, t)`.
        min_edges: The lower bound on the number of edges, with shape :math:`(M,)`.
        max_edges: The upper bound on the number of edges, with shape :math:`(M,)`.
        components: Labels of nodes, at most one of each label being a neighbour, with shape :math:`(M, t)`; or None.
        planar: The graphs that have to stay planar, one for each row or none.
    """

    feasible: Tensor
    forced: Tensor
    min_edges: Tensor
    max_edges: Tensor
    components: Tensor | None
    planar: list[PlanarRow]

    def __call__(self, rows: Tensor, sampled: Tensor, row_edges: Tensor) -> Tensor:
        """Return the sampled edges that are feasible, and the forced ones."""
        feasible, forced = self.feasible[rows], self.forced[rows]
        min_edges, max_edges = self.min_edges[rows].unsqueeze(-1), self.max_edges[rows].unsqueeze(-1)
        taken = row_edges.long()
        before = taken.cumsum(-1) - taken

        feasible_later = _count_after(feasible)
        if self.components is not None:
            joined, feasible_later = _joined_components(self.components[rows], feasible, taken)
            feasible = feasible & ~joined
        # Leave room for the forced edges; where too few pairs are left, the rest become edges.
        room = before + _count_after(forced) < max_edges
        short = before + feasible_later < min_edges
        enforced = feasible & (forced | ((sampled | short) & room))

        for place, row in enumerate(rows.tolist() if self.planar else ()):
            # Which edges are needed to reach two or more depends on the order of the tests.
            least = int(min_edges[place])
            if self.planar[row].is_strict or least > 1:
                edges = enforced[place]
                # Later ones are sampled again when the next edge is known.
                most = int(taken[place].sum()) + 1
                kept = self.planar[row].keep(edges.tolist(), feasible[place].tolist(), least, most)
                edges.zero_()
                edges[kept] = True

        return enforced

    def rejected(self, edges: Tensor) -> Tensor:
        """Rows that are not planar; their edges are tested one by one from now on."""
        failed = [
            row
            for row, (planar, chosen) in enumerate(zip(self.planar, edges.cpu().numpy(), strict=False))
            if not (planar.is_strict or planar.is_planar(np.flatnonzero(chosen).tolist()))
        ]
        for row in failed:
            self.planar[row].is_strict = True

        return torch.tensor(failed, dtype=torch.int64, device=edges.device)


def _count_after(flags: Tensor) -> Tensor:
    """The number of flags set after each position, with shape :math:`(M, T)`."""
    counts = flags.long()

    return counts.sum(-1, keepdim=True) - counts.cumsum(-1)


def _joined_components(components: Tensor, feasible: Tensor, taken: Tensor) -> tuple[Tensor, Tensor]:
    """Whether each pair's component is joined by an earlier edge, and how many more can be joined after the pair."""
    nodes = components.shape[-1]
    same = components.unsqueeze(-1) == components.unsqueeze(-2)
    later = torch.ones(nodes, nodes, dtype=torch.bool, device=components.device).triu(1)
    earlier = later.mT & (taken.unsqueeze(-2) > 0)
    is_joined = (earlier.float() @ same.float()) > 0
    # A component is counted at its last feasible pair.
    is_last = feasible & ~(same & later & feasible.unsqueeze(-2)).any(-1)
    feasible_later = (later & is_last.unsqueeze(-2) & ~is_joined).sum(-1)

    return is_joined.diagonal(dim1=-2, dim2=-1), feasible_later


def _components(adj: Tensor) -> Tensor:
    """The component of each node, with shape :math:`(M, T)`; found on the disjoint union of the graphs."""
    graphs, nodes = adj.shape[:2]
    index, i, j = np.nonzero(np.triu(adj.cpu().numpy(), 1))
    labels = component_labels(np.stack([index * nodes + i, index * nodes + j], axis=1), graphs * nodes)

    return torch.from_numpy(labels.reshape(graphs, nodes)).to(adj.device)


class PlanarRow:
    """A planar graph and a new node, whose edges must leave the graph planar.

    Attributes:
        is_strict: Whether edges are tested one by one.
    """

    def __init__(self, adjacency: NDArray[np.bool_]) -> None:
        self.is_strict = False
        self._adjacency, self._new = adjacency, len(adjacency)
        # Sets of neighbours already tested, as bit masks.
        self._planar: list[int] = []
        self._nonplanar: list[int] = []

    def keep(
        self, sampled: Sequence[bool], feasible: Sequence[bool], min_edges: int = 0, most: int | None = None
    ) -> list[int]:
        """Return the neighbours accepted in turn: each sampled one that leaves the graph planar, given those before it.

        Feasible nodes without which fewer than ``min_edges`` neighbours can be found are accepted though not sampled,
        and sampled ones with which too few can be found are rejected. Only the first ``most`` are returned.
        """
        kept: list[int] = []
        # Nodes that can be accepted after those kept, as many as are needed.
        spare = self._spare(kept, 0, feasible, min_edges)
        for node in range(self._new):
            if len(kept) == most:
                break
            if sampled[node] and (node in spare or self.is_planar([*kept, node])):
                rest = [n for n in spare if n != node]
                if node not in spare:
                    rest = self._spare([*kept, node], node + 1, feasible, min_edges)
                if len(kept) + 1 + len(rest) >= min(min_edges, len(kept) + len(spare)):
                    kept, spare = [*kept, node], rest
                    continue
            if node in spare:
                rest = self._spare(kept, node + 1, feasible, min_edges)
                if len(kept) + len(rest) < min_edges:
                    kept, rest = [*kept, node], [n for n in spare if n != node]
                spare = rest

        return kept

    def _spare(self, kept: list[int], start: int, feasible: Sequence[bool], min_edges: int) -> list[int]:
        """Nodes from ``start`` on that can be accepted after those kept, until there are enough."""
        spare: list[int] = []
        for node in range(start, self._new):
            if len(kept) + len(spare) >= min_edges:
                break
            if feasible[node] and self.is_planar([*kept, *spare, node]):
                spare.append(node)

        return spare

    @cached_property
    def _graph(self) -> nx.Graph:
        return nx.Graph(np.argwhere(np.triu(self._adjacency, 1)).tolist())

    def is_planar(self, neighbours: list[int]) -> bool:
        """Whether the graph is planar with the new node and these neighbours."""
        # A node with one neighbour, or two that are adjacent, never causes a crossing.
        if len(neighbours) < 2 or (len(neighbours) == 2 and self._adjacency[tuple(neighbours)]):
            return True
        mask = sum(1 << neighbour for neighbour in neighbours)
        if any(mask & known == mask for known in self._planar):
            return True
        if any(mask & known == known for known in self._nonplanar):
            return False
        self._graph.add_edges_from((self._new, neighbour) for neighbour in neighbours)
        is_planar: bool = nx.check_planarity(self._graph)[0]
        self._graph.remove_node(self._new)
        (self._planar if is_planar else self._nonplanar).append(mask)

        return is_planar


class NodePermutation:
    """Random decoding orders of the nodes of a batch of graphs, padding last, and their inverses.

    Arguments:
        sizes: The number of nodes of each graph, with shape :math:`(B,)`.
        keys: Noise in [0, 1), with shape :math:`(B, N)`.
        device: The device of the permutations.
        requirements: The requirements on each graph; ``constraints`` are those in decoding order. None for no
            constraints.
        by_degree: Whether nodes of higher maximum degree come first: with unequal degrees this usually has fewer dead
            ends than a random order.
    """

    def __init__(
        self,
        sizes: NDArray[np.int64],
        keys: NDArray[np.float64],
        device: torch.device,
        requirements: Sequence[Requirements] | None = None,
        *,
        by_degree: bool = False,
    ) -> None:
        keys = keys + 2 * (np.arange(keys.shape[1]) >= sizes[:, None])
        for row, requirement in zip(keys, requirements or (), strict=False):
            if requirement.connected:
                # Nodes of maximum degree one leave no stub to connect to: they come last.
                row[: requirement.nodes] += requirement.max_degree <= 1
            if by_degree:
                row[: requirement.nodes] -= requirement.max_degree
        order = np.argsort(keys, axis=1)
        index = torch.from_numpy(order).to(device)
        rows = torch.arange(len(order), device=device).unsqueeze(-1)
        self._nodes = rows, index
        self._pairs = rows.unsqueeze(-1), index.unsqueeze(-1), index.unsqueeze(-2)
        self.sizes = torch.from_numpy(sizes).to(device)
        self.constraints = None
        if requirements is not None:
            permuted = [part.permuted(nodes[: part.nodes]) for part, nodes in zip(requirements, order, strict=True)]
            self.constraints = FeasibleEdges(permuted, device)

    def nodes(self, values: Tensor) -> Tensor:
        """Permute node values, with shape :math:`(B, N, *)`."""
        return values[self._nodes]

    def pairs(self, values: Tensor) -> Tensor:
        """Permute pair values, with shape :math:`(B, N, N)`."""
        return values[self._pairs]

    def invert(self, values: Tensor) -> Tensor:
        """Undo the permutation of pair values, with shape :math:`(B, N, N)`."""
        return torch.empty_like(values).index_put(self._pairs, values)

    def inverted(self, graphs: GraphBatch) -> GraphBatch:
        """The graphs in the order before the permutation."""
        return graphs.reordered(torch.argsort(self._nodes[1], -1))
