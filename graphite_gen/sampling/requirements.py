"""What constraints ask of a graph on a given number of nodes, in one form that they share.

Bounds on degrees and on the number of edges, and whether the graph is connected, acyclic, planar: that is enough to
say a tree, a regular graph, a degree sequence. In this form constraints are joined, found impossible, and looked ahead
to while a graph grows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["Demands", "is_graphical"]


@dataclass(frozen=True)
class Demands:
    """What is asked of a graph.

    Attributes:
        lowest: The least degree of each node, with shape :math:`(n,)`.
        highest: The largest degree of each node, with shape :math:`(n,)`.
        least: The least number of edges.
        most: The largest number of edges.
        connected: Whether the graph has one component.
        acyclic: Whether it has no cycle.
        planar: Whether it can be drawn without crossings.
    """

    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]
    least: int
    most: int
    connected: bool = False
    acyclic: bool = False
    planar: bool = False

    @classmethod
    def nothing(cls, nodes: int) -> Demands:
        """What holds of every graph on so many nodes."""
        return cls(np.zeros(nodes, dtype=np.int64), np.full(nodes, max(nodes - 1, 0)), 0, math.comb(nodes, 2))

    @property
    def nodes(self) -> int:
        """The number of nodes :math:`n`."""
        return len(self.lowest)

    def __and__(self, other: Demands) -> Demands:
        """What both ask."""
        return Demands(
            np.maximum(self.lowest, other.lowest),
            np.minimum(self.highest, other.highest),
            max(self.least, other.least),
            min(self.most, other.most),
            self.connected or other.connected,
            self.acyclic or other.acyclic,
            self.planar or other.planar,
        )

    def tightened(self) -> Demands:
        """The same demands with what follows from them for degrees and edges said as well."""
        nodes = self.nodes
        lowest = np.maximum(self.lowest, 1) if self.connected and nodes > 1 else self.lowest
        least = max(self.least, -(-int(lowest.sum()) // 2), nodes - 1 if self.connected else 0)
        most = min(self.most, int(self.highest.sum()) // 2)
        if self.acyclic:
            # A forest has an edge less than it has nodes, and nodes without edges give it none.
            most = min(most, max(int((self.highest > 0).sum()) - 1, 0))
        if self.planar and nodes >= 3:
            most = min(most, 3 * nodes - 6)

        return replace(self, lowest=lowest, least=least, most=most)

    def obstacle(self) -> str | None:
        """Why no graph does what is asked, or None where nothing speaks against it.

        For degrees, edges, trees and forests that is exact; for planar graphs of given degrees nothing simple is known.
        """
        if self.nodes and self.lowest.max() > self.nodes - 1:
            return f"a node has at most {self.nodes - 1} neighbours, and {self.lowest.max()} are wanted"
        tight = self.tightened()
        clash = np.flatnonzero(tight.lowest > tight.highest)
        if len(clash):
            low, high = tight.lowest[clash[0]], tight.highest[clash[0]]
            return f"a node would have at least {low} and at most {high} neighbours"
        if (self.lowest == self.highest).all():
            total = int(self.lowest.sum())
            if total % 2:
                return f"the degrees sum to {total}, which is odd"
            if not is_graphical(self.lowest):
                return "no graph has these degrees"
        if tight.least > tight.most:
            return f"at least {tight.least} edges are wanted, and at most {tight.most} are possible"

        return None

    def ordered(self, order: NDArray[np.int64]) -> Demands:
        """The same demands with node ``order[i]`` at place ``i``."""
        return replace(self, lowest=self.lowest[order], highest=self.highest[order])


def is_graphical(degrees: NDArray[np.int64]) -> bool:
    r"""Whether some graph has these degrees (Erdős and Gallai, 1960).

    With :math:`d_1 \ge d_2 \ge \dots`, the sum is even and
    :math:`\sum_{i \le k} d_i \le k (k - 1) + \sum_{i > k} \min(d_i, k)` for every :math:`k`.
    """
    d = np.sort(degrees)[::-1]
    k = np.arange(1, len(d) + 1)
    rest = np.minimum(d, k[:, None]) * (np.arange(len(d)) >= k[:, None])

    return int(d.sum()) % 2 == 0 and bool((np.cumsum(d) <= k * (k - 1) + rest.sum(1)).all())
