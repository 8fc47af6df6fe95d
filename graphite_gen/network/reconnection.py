"""Stray components joined to the rest of a graph by degree-preserving swaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from .arcs import Flags, Indices

__all__ = ["component_sizes", "reconnect"]

Score = Callable[[Indices, Indices], NDArray[np.float64]]

# Edges of a stray component to choose from, and edges of the rest.
_OWN, _HOSTS = 4, 2000
_ROUNDS = 50
# Log-odds in memory at a time.
_CHUNK = 1 << 18


def component_sizes(edges: Indices, nodes: int) -> Indices:
    """The number of nodes of each component, largest first."""
    return np.sort(np.bincount(_components(edges, nodes)))[::-1]


def reconnect(edges: Indices, nodes: int, sizes: Counter[int], score: Score, rng: np.random.Generator) -> Indices:
    """Edges of a graph with the same degrees, whose stray components are joined to others, with shape (2, E).

    The largest component is not stray, nor are as many components of each size as are expected, nor isolated nodes.
    A swap replaces an edge ab of a stray component and an edge cd elsewhere by ac and bd. That joins both if one of
    them is on a cycle: ab is an edge outside of a spanning tree if there is one, otherwise cd is. Among some edges, the
    pair whose swap has the highest score is chosen.

    Arguments:
        edges: Edges i < j, with shape (2, E).
        sizes: The expected number of components by size, without the largest.
        score: The score of pairs of nodes, in any common shape.
    """
    edges = edges.copy()
    for _ in range(_ROUNDS):
        labels = _components(edges, nodes)
        stray = _stray(labels, sizes, rng)
        of_edge = labels[edges[0]]
        is_stray = stray[of_edge]
        if not is_stray.any():
            break
        is_free = ~_spanning(edges, nodes, rng)
        own, row = _choose(is_stray, is_free, of_edge, rng)
        used = np.zeros(edges.shape[1], dtype=np.bool_)
        changed = False
        for free in (False, True):
            # A component without cycles needs an edge elsewhere that is on one.
            chosen = is_free[own] != free
            hosts = np.flatnonzero(~is_stray & (is_free if free else ~used))
            if not chosen.any() or not len(hosts):
                continue
            hosts = rng.permutation(hosts)[:_HOSTS]
            first, second, turned = _best(edges, own[chosen], row[chosen], hosts, score)
            # Each edge is swapped once.
            kept = np.unique(second, return_index=True)[1]
            kept = kept[~used[second[kept]]]
            first, second, turned = first[kept], second[kept], turned[kept]
            used[second] = True
            (a, b), (c, d) = edges[:, first], np.where(turned, edges[::-1, second], edges[:, second])
            edges[:, first], edges[:, second] = np.sort([a, c], axis=0), np.sort([b, d], axis=0)
            changed |= len(kept) > 0
        if not changed:
            break

    return edges


def _components(edges: Indices, nodes: int) -> NDArray[np.int32]:
    graph = sparse.coo_array((np.ones(edges.shape[1]), tuple(edges)), shape=(nodes, nodes))
    labels: NDArray[np.int32] = csgraph.connected_components(graph, directed=False)[1]

    return labels


def _stray(labels: NDArray[np.int32], sizes: Counter[int], rng: np.random.Generator) -> Flags:
    """Whether each component is stray; which of those of one size are, is random."""
    counts = np.bincount(labels)
    left = sizes.copy()
    stray = np.ones(len(counts), dtype=np.bool_)
    stray[np.argmax(counts)] = False
    for label in rng.permutation(len(counts)):
        size = int(counts[label])
        if stray[label] and left[size] > 0:
            left[size] -= 1
            stray[label] = False

    return stray


def _spanning(edges: Indices, nodes: int, rng: np.random.Generator) -> Flags:
    """The edges of a random spanning forest, with shape (E,)."""
    numbers = 1 + rng.permutation(edges.shape[1])
    graph = sparse.csr_array((numbers.astype(np.float64), tuple(edges)), shape=(nodes, nodes))
    tree = np.zeros(edges.shape[1] + 1, dtype=np.bool_)
    tree[csgraph.minimum_spanning_tree(graph).data.astype(np.int64)] = True

    return tree[numbers]


def _choose(is_stray: Flags, is_free: Flags, of_edge: Indices, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Some edges of each stray component, on cycles if it has any, and the component of each."""
    own = rng.permutation(np.flatnonzero(is_stray))
    cyclic = np.zeros(int(of_edge.max()) + 1, dtype=np.bool_)
    cyclic[of_edge[own[is_free[own]]]] = True
    own = own[is_free[own] | ~cyclic[of_edge[own]]]
    own = own[np.argsort(of_edge[own], kind="stable")]
    labels, first = np.unique(of_edge[own], return_index=True)
    rank = np.arange(len(own)) - np.repeat(first, np.diff(np.append(first, len(own))))
    own = own[rank < _OWN]

    return own, np.searchsorted(labels, of_edge[own])


def _best(edges: Indices, own: Indices, row: Indices, hosts: Indices, score: Score) -> tuple[Indices, Indices, Flags]:
    """The best swap of each component: its edge, the other edge, and whether that is turned around."""
    c, d = edges[:, hosts]
    loss = score(c, d)
    found, best, turned = [], [], []
    height = max(1, _CHUNK // len(hosts))
    for start in range(0, len(own), height):
        a, b = edges[:, own[start : start + height], None]
        straight = score(a, c[None]) + score(b, d[None]) - loss
        crossed = score(a, d[None]) + score(b, c[None]) - loss
        gains = np.maximum(straight, crossed)
        best.append(gains.argmax(1))
        rows = np.arange(len(gains))
        found.append(gains[rows, best[-1]] - score(a, b)[:, 0])
        turned.append((crossed > straight)[rows, best[-1]])
    gain, place, is_turned = np.concatenate(found), np.concatenate(best), np.concatenate(turned)
    order = np.lexsort((-gain, row))
    kept = order[np.unique(row[order], return_index=True)[1]]

    return own[kept], hosts[place[kept]], is_turned[kept]
