"""Directed graphs that grow by one node at a time without a cycle."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..data.edge_states import arc_codes, count_states

__all__ = ["Reachability"]

Indices = NDArray[np.int64]


class Reachability:
    """Which nodes of graphs reach which, and which states a new edge may have."""

    def __init__(self, graphs: int, nodes: int, labels: int) -> None:
        # Every node reaches itself.
        self._reaches = np.tile(np.eye(nodes, dtype=np.bool_), (graphs, 1, 1))
        self._labels = labels
        forward, backward = arc_codes(np.arange(count_states(labels, True)), labels)
        self._is_out, self._is_in = forward > 0, backward > 0

    def allowed(self, t: int, graphs: Indices, nodes: Indices, states: Indices) -> NDArray[np.bool_]:
        """The states that close no cycle, for an edge from the new node t to one earlier node of each of some graphs.

        Arguments:
            t: The new node.
            graphs: The graphs, with shape :math:`(A,)`.
            nodes: The earlier nodes, with shape :math:`(A,)`.
            states: One plus the states of the edges of the new node so far, 0 for none, with shape :math:`(A, t)`.

        Returns:
            A mask with shape :math:`(A, S)`.
        """
        reaches = self._reaches[graphs, :t, :t]
        above, below = self._ends(reaches, states)
        rows = np.arange(len(graphs))
        # An arc to an ancestor of the new node, or from a descendant, would close a cycle.
        may_go, may_come = ~above[rows, nodes], ~below[rows, nodes]
        single = (self._is_out ^ self._is_in)[None]

        return single & np.where(self._is_out, may_go[:, None], may_come[:, None])

    def _ends(self, reaches: NDArray[np.bool_], states: Indices) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The nodes that reach the new ones and those they reach, given the states of their edges plus one."""
        is_edge = states > 0
        at = np.maximum(states - 1, 0)
        out, into = is_edge & self._is_out[at], is_edge & self._is_in[at]

        return np.any(reaches & into[:, None], axis=2), np.any(reaches & out[:, :, None], axis=1)

    def add(self, t: int, graphs: Indices, nodes: Indices, states: Indices) -> None:
        """Add a node to every graph, with the states of its edges, each with shape :math:`(E,)`."""
        own = np.zeros((len(self._reaches), t), dtype=np.int64)
        own[graphs, nodes] = states + 1
        above, below = self._ends(self._reaches[:, :t, :t], own)
        self._reaches[:, :t, :t] |= above[:, :, None] & below[:, None]
        self._reaches[:, :t, t], self._reaches[:, t, :t] = above, below
