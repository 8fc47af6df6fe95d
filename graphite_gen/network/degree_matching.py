"""A graph with given degrees from one with nearly these degrees."""

from __future__ import annotations

import numpy as np

from .arcs import Arcs, Indices

__all__ = ["match_degrees"]

# Rounds in which free ends of edges are joined: neighbours in the order at first, then random ones.
_NEAR, _RANDOM = 8, 8
# Swaps that are tried for each pair of ends that could not be joined.
_TRIES = 50


def match_degrees(edges: Indices, degrees: Indices, order: Indices, rng: np.random.Generator) -> Indices:
    """Edges i < j of a graph with the given degrees, with shape (2, E).

    Edges are removed at nodes with too many, and free ends are joined between nodes that are near in an order. If a
    pair of free ends cannot be joined, each is joined to one end of another edge, which is removed. If the degrees are
    those of no graph, or nearly so, some nodes keep fewer edges.

    Arguments:
        edges: Edges i < j, with shape (2, E).
        degrees: The degrees, with shape (N,). If their sum is odd, one node has an edge less.
        order: The place of each node in an order in which similar nodes are near, with shape (N,).
    """
    nodes = len(degrees)
    edges = _without_surplus(edges, degrees, rng)
    for turn in range(_NEAR + _RANDOM):
        missing = degrees - Arcs.of(edges, nodes).degrees()
        ends = np.repeat(np.arange(nodes), missing)
        if len(ends) < 2:
            break
        # Neighbours in the order may be one node, or adjacent already: the noise grows until they are not.
        noise = (1 + turn) ** 2 * rng.random(len(ends)) if turn < _NEAR else nodes * rng.random(len(ends))
        ends = ends[np.argsort(order[ends] + noise, kind="stable")]
        start = int(rng.integers(2)) if len(ends) % 2 else 0
        ends = ends[start : start + len(ends) // 2 * 2]
        pairs = np.sort(ends.reshape(-1, 2).T, axis=0)
        keys = np.unique((pairs[0] * nodes + pairs[1])[pairs[0] != pairs[1]])
        pairs = np.stack(np.divmod(keys, nodes))
        edges = np.concatenate([edges, pairs[:, ~Arcs.of(edges, nodes).contain(*pairs)]], axis=1)

    return _by_swaps(edges, degrees, rng)


def _without_surplus(edges: Indices, degrees: Indices, rng: np.random.Generator) -> Indices:
    """Edges such that no node has more than its degree; those between two nodes with too many are removed first."""
    nodes = len(degrees)
    for both in (True, False):
        while True:
            arcs = Arcs.of(edges, nodes)
            surplus = arcs.degrees() - degrees
            if not (surplus > 0).any():
                return edges
            over = (surplus > 0)[edges]
            among = np.flatnonzero(over.all(0) if both else over.any(0))
            if not len(among):
                break
            # One edge per node at a time.
            among = rng.permutation(among)
            ends = np.where(over[:, among], edges[:, among], -1 - np.arange(2 * len(among)).reshape(2, -1))
            numbers = ends.T.ravel()
            first = np.zeros(len(numbers), dtype=np.bool_)
            first[np.unique(numbers, return_index=True)[1]] = True
            edges = np.delete(edges, among[first.reshape(-1, 2).all(1)], axis=1)

    return edges


def _by_swaps(edges: Indices, degrees: Indices, rng: np.random.Generator) -> Indices:
    """Join the remaining free ends u and v: an edge ab is replaced by ua and vb."""
    nodes = len(degrees)
    missing = degrees - Arcs.of(edges, nodes).degrees()
    ends = rng.permutation(np.repeat(np.arange(nodes), missing)).tolist()
    if len(ends) < 2 or not edges.size:
        return edges
    pairs = set(map(tuple, edges.T.tolist()))
    rows = list(pairs)
    rows.sort()
    for u, v in zip(ends[::2], ends[1::2], strict=False):
        for _ in range(_TRIES):
            place = int(rng.integers(len(rows)))
            a, b = rows[place] if rng.random() < 0.5 else rows[place][::-1]
            one, other = (min(u, a), max(u, a)), (min(v, b), max(v, b))
            if u != a and v != b and one != other and one not in pairs and other not in pairs:
                pairs -= {rows[place]}
                pairs |= {one, other}
                rows[place] = one
                rows.append(other)
                break

    return np.array(rows, dtype=np.int64).T
