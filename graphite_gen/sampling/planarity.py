"""Keeping a planar graph planar while a node arrives."""

from __future__ import annotations

from collections.abc import Sequence

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from ..data.properties import component_labels

__all__ = ["PlanarRow"]


class PlanarRow:
    """A planar graph and a node that arrives, which may not make it non-planar.

    Fewer edges never harm, so a row of edges is tested at once, and only one that fails is searched for the edges to
    leave out.
    """

    def __init__(self, adjacency: NDArray[np.bool_]) -> None:
        """Prepare for the next node of a graph, whose matrix has shape :math:`(r, r)`."""
        self._arriving = len(adjacency)
        pairs = np.argwhere(np.triu(adjacency, 1))
        self._labels = component_labels(pairs, self._arriving)
        self._graph = nx.Graph(pairs.tolist())
        # Sets of neighbours known to fit and known not to, as the bits of numbers.
        self._fit: list[int] = []
        self._cross: list[int] = []

    def keep(self, wanted: Sequence[bool], possible: Sequence[bool], least: int = 0) -> list[int]:
        """The neighbours that asking one by one accepts: each that leaves the graph planar, given those before it.

        Arguments:
            wanted: Whether each node is wanted as a neighbour.
            possible: Whether it may be one.
            least: How many neighbours there have to be. Nodes without which too few can be found are taken though they
                are not wanted, and those with which too few can be found are not taken though they are.
        """
        if least <= 0:
            return self._first_fitting([node for node in range(self._arriving) if wanted[node]])

        kept: list[int] = []
        # Nodes that can be taken after those kept, as many as are needed.
        spare = self._spare(kept, 0, possible, least)
        for node in range(self._arriving):
            if wanted[node] and (node in spare or self._is_planar([*kept, node])):
                rest = [n for n in spare if n != node]
                if node not in spare:
                    rest = self._spare([*kept, node], node + 1, possible, least)
                if len(kept) + 1 + len(rest) >= min(least, len(kept) + len(spare)):
                    kept, spare = [*kept, node], rest
                    continue
            if node in spare:
                rest = self._spare(kept, node + 1, possible, least)
                if len(kept) + len(rest) < least:
                    kept, rest = [*kept, node], [n for n in spare if n != node]
                spare = rest

        return kept

    def _spare(self, kept: list[int], start: int, possible: Sequence[bool], least: int) -> list[int]:
        """Nodes from ``start`` on that fit with those kept, each given the ones before it, until there are enough."""
        spare: list[int] = []
        for node in range(start, self._arriving):
            if len(kept) + len(spare) >= least:
                break
            if possible[node] and self._is_planar([*kept, *spare, node]):
                spare.append(node)

        return spare

    def _first_fitting(self, nodes: list[int]) -> list[int]:
        kept: list[int] = []
        left = nodes
        while left:
            fitting = self._fitting(kept, left)
            kept += left[:fitting]
            # The one after those that fit crosses something.
            left = left[fitting + 1 :]

        return kept

    def _fitting(self, kept: list[int], left: list[int]) -> int:
        """How many of the next neighbours fit, by bisection."""
        if self._is_planar(kept + left):
            return len(left)
        low, high = 0, len(left)
        while high - low > 1:
            middle = (low + high) // 2
            if self._is_planar(kept + left[:middle]):
                low = middle
            else:
                high = middle

        return low

    def _is_planar(self, neighbours: list[int]) -> bool:
        # Into each component a single edge can always be drawn.
        if len(np.unique(self._labels[neighbours])) == len(neighbours):
            return True
        wanted = sum(1 << neighbour for neighbour in neighbours)
        if any(wanted & known == wanted for known in self._fit):
            return True
        if any(wanted & known == known for known in self._cross):
            return False
        self._graph.add_edges_from((self._arriving, neighbour) for neighbour in neighbours)
        fits: bool = nx.check_planarity(self._graph)[0]
        self._graph.remove_node(self._arriving)
        (self._fit if fits else self._cross).append(wanted)

        return fits
