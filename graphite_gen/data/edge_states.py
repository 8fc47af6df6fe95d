r"""States of node pairs with an edge: its label, and in a directed graph its directions, as one number.

In an undirected graph the state is the label. In a directed graph with :math:`T` labels (one if edges have none) it is
:math:`a (T + 1) + b - 1`: :math:`a` is 0 if there is no arc from the first node to the second, else one plus its label,
and :math:`b` the same for the arc back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["arc_codes", "count_states", "directions", "edge_state", "transposed"]

Codes = NDArray[np.int64]


def count_states(labels: int, directed: bool) -> int:
    """The number of states, given the number of edge labels; 0 if edges have but one."""
    kinds = max(labels, 1)
    if directed:
        return (kinds + 1) ** 2 - 1

    return kinds if labels else 0


def edge_state(forward: NDArray[np.integer[Any]], backward: NDArray[np.integer[Any]], labels: int) -> Codes:
    """States of pairs of a directed graph, given one plus the label of the arcs to and fro; 0 for no arc."""
    return np.asarray(forward * (max(labels, 1) + 1) + backward - 1, dtype=np.int64)


def arc_codes(states: Codes, labels: int) -> tuple[Codes, Codes]:
    """One plus the labels of the arcs to and fro in a directed graph, 0 for no arc; the inverse of edge_state."""
    forward, backward = np.divmod(states + 1, max(labels, 1) + 1)

    return forward, backward


def transposed(labels: int, directed: bool) -> Codes:
    """The state seen from the second node, for every state seen from the first."""
    states = np.arange(count_states(labels, directed))
    if not directed:
        return states
    forward, backward = arc_codes(states, labels)

    return edge_state(backward, forward, labels)


def directions(labels: int, directed: bool) -> Codes:
    """The directions of every state: 0 to the second node, 1 to the first, 2 both; all 0 if undirected."""
    states = np.arange(count_states(labels, directed))
    if not directed:
        return np.zeros_like(states)
    forward, backward = arc_codes(states, labels)

    return np.where(backward == 0, 0, np.where(forward == 0, 1, 2))
