"""Isomorphism of many graphs: exact tests only between graphs with equal Weisfeiler-Leman colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..graph import SimpleGraph
from .orbits import ORBITS, orbit_counts
from .parallel import arrays_of
from .sparse_union import Union

__all__ = ["find_isomorphic", "isomorphism_classes"]

# Rounds of colour refinement; more would distinguish few more graphs.
ROUNDS = 6
# Arbitrary odd numbers.
MULTIPLIERS = np.random.SFC64(0).random_raw(ORBITS + 2) | np.uint64(1)

Colours = NDArray[np.uint64]


def isomorphism_classes(graphs: Sequence[SimpleGraph], *, group: ProcessGroup = SINGLE_PROCESS) -> list[int]:
    """For each graph, the index of the first graph of the list that it is isomorphic to, possibly its own.

    Only the structure counts: labels, weights and directions do not.
    """
    graphs = [graph.skeleton() for graph in graphs]
    shapes = list(map(_shape, graphs))
    counts = Counter(shapes)
    shared = [index for index, shape in enumerate(shapes) if counts[shape] > 1]
    known: dict[bytes, list[tuple[int, Colours]]] = {}
    firsts = list(range(len(graphs)))
    for index, own in zip(shared, node_colours([graphs[index] for index in shared], group), strict=True):
        alike = known.setdefault(np.sort(own).tobytes(), [])
        same = (first for first, colours in alike if _same(graphs[index], own, graphs[first], colours))
        firsts[index] = next(same, index)
        if firsts[index] == index:
            alike.append((index, own))

    return firsts


def find_isomorphic(
    graphs: Sequence[SimpleGraph], among: Sequence[SimpleGraph], *, group: ProcessGroup = SINGLE_PROCESS
) -> list[int | None]:
    """For each graph, the index of the first graph in ``among`` that is isomorphic to it, or None.

    Only the structure counts: labels, weights and directions do not.
    """
    graphs, among = ([graph.skeleton() for graph in side] for side in (graphs, among))
    shapes = set(map(_shape, graphs))
    kept = [index for index, graph in enumerate(among) if _shape(graph) in shapes]
    colours = node_colours([*(among[index] for index in kept), *graphs], group)
    known: dict[bytes, list[int]] = {}
    for place in range(len(kept)):
        known.setdefault(np.sort(colours[place]).tobytes(), []).append(place)
    found: list[int | None] = []
    for graph, own in zip(graphs, colours[len(kept) :], strict=True):
        alike = known.get(np.sort(own).tobytes(), [])
        same = (kept[place] for place in alike if _same(graph, own, among[kept[place]], colours[place]))
        found.append(next(same, None))

    return found


def _shape(graph: SimpleGraph) -> tuple[int, bytes]:
    """The number of nodes and the sorted degrees, a cheap invariant."""
    return graph.nodes, np.sort(graph.degrees()).tobytes()


def node_colours(graphs: Sequence[SimpleGraph], group: ProcessGroup = SINGLE_PROCESS) -> list[Colours]:
    """The Weisfeiler-Leman colours of the nodes of each graph, each with shape :math:`(n,)`.

    Initial colours are orbit counts, which distinguish most regular graphs as well.
    """

    def refine(some: Sequence[SimpleGraph]) -> dict[str, Colours]:
        # Modular 64-bit sums do not depend on the order of the terms.
        a = Union.of(some).adjacency.astype(np.uint64)
        start, own, near = MULTIPLIERS[:ORBITS], MULTIPLIERS[-2], MULTIPLIERS[-1]
        colours = _mixed(np.concatenate(orbit_counts(some)).astype(np.uint64) @ start)
        for _ in range(ROUNDS):
            colours = _mixed(colours * own + (a @ colours) * near)
        return {"colours": colours}

    if not graphs:
        return []

    return np.split(arrays_of(graphs, refine, group)["colours"], np.cumsum([graph.nodes for graph in graphs])[:-1])


def _mixed(values: Colours) -> Colours:
    """The finaliser of SplitMix64, applied before sums to avoid collisions."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)

    return values ^ (values >> np.uint64(31))


def _same(first: SimpleGraph, first_colours: Colours, second: SimpleGraph, second_colours: Colours) -> bool:
    """An exact isomorphism test of graphs with the same colours, which narrow the search."""
    palette = np.unique(first_colours)
    colours = [np.searchsorted(palette, side).tolist() for side in (first_colours, second_colours)]
    graphs = [(side.nodes, side.edges.tolist()) for side in (first, second)]
    try:
        import igraph
    except ImportError:
        import networkx as nx

        a, b = (nx.Graph(edges) for _, edges in graphs)
        for graph, own in ((a, colours[0]), (b, colours[1])):
            graph.add_nodes_from((node, {"colour": colour}) for node, colour in enumerate(own))
        return bool(nx.vf2pp_is_isomorphic(a, b, node_label="colour"))
    a, b = (igraph.Graph(n=nodes, edges=edges) for nodes, edges in graphs)

    return bool(a.isomorphic_bliss(b, color1=colours[0], color2=colours[1]))
