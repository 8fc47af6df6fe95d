"""Isomorphism of many graphs: exact tests only between graphs with equal Weisfeiler-Leman hashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True)
class _Coloured:
    """A graph and its invariants: numbers of nodes and edges and a Weisfeiler-Leman hash, and the node colours."""

    graph: SimpleGraph
    signature: tuple[int, int, int]
    colours: NDArray[np.uint64]


def isomorphism_classes(graphs: Sequence[SimpleGraph], *, group: ProcessGroup = SINGLE_PROCESS) -> list[int]:
    """For each graph, the index of the first graph of the list that it is isomorphic to, possibly its own."""
    shapes = [_shape(graph) for graph in graphs]
    counts = Counter(shapes)
    shared = [index for index, shape in enumerate(shapes) if counts[shape] > 1]
    known: dict[tuple[int, int, int], list[tuple[int, _Coloured]]] = {}
    firsts = list(range(len(graphs)))
    for index, graph in zip(shared, _coloured([graphs[index] for index in shared], group), strict=True):
        alike = known.setdefault(graph.signature, [])
        firsts[index] = next((other for other, seen in alike if _same(graph, seen)), index)
        if firsts[index] == index:
            alike.append((index, graph))

    return firsts


def find_isomorphic(
    graphs: Sequence[SimpleGraph], among: Sequence[SimpleGraph], *, group: ProcessGroup = SINGLE_PROCESS
) -> list[int | None]:
    """For each graph, the index of the first graph in ``among`` that is isomorphic to it, or None."""
    shapes, others = ([_shape(graph) for graph in side] for side in (graphs, among))
    present, available = set(shapes), set(others)
    kept = [index for index, shape in enumerate(others) if shape in present]
    candidates = [index for index, shape in enumerate(shapes) if shape in available]
    known: dict[tuple[int, int, int], list[tuple[int, _Coloured]]] = {}
    for index, graph in zip(kept, _coloured([among[index] for index in kept], group), strict=True):
        known.setdefault(graph.signature, []).append((index, graph))
    found: list[int | None] = [None] * len(graphs)
    for index, graph in zip(candidates, _coloured([graphs[index] for index in candidates], group), strict=True):
        found[index] = next((other for other, seen in known.get(graph.signature, []) if _same(graph, seen)), None)

    return found


def _shape(graph: SimpleGraph) -> tuple[int, bytes]:
    """The number of nodes and the sorted degrees, a cheap invariant."""
    return graph.nodes, np.sort(graph.degrees()).tobytes()


def _coloured(graphs: Sequence[SimpleGraph], group: ProcessGroup) -> list[_Coloured]:
    if not graphs:
        return []
    found = arrays_of(graphs, _colours, group)
    rows = np.split(found["colours"], np.cumsum([graph.nodes for graph in graphs])[:-1])

    return [
        _Coloured(graph, (graph.nodes, len(graph.edges), total), row)
        for graph, total, row in zip(graphs, found["totals"].tolist(), rows, strict=True)
    ]


def _colours(graphs: Sequence[SimpleGraph]) -> dict[str, NDArray[np.uint64]]:
    """The refined colours of all nodes, and their sums over each graph.

    Initial colours are orbit counts, which distinguish most regular graphs as well.
    """
    union = Union.of(graphs)
    # Modular 64-bit sums do not depend on the order of the terms.
    a = union.adjacency.astype(np.uint64)
    start, own, near = MULTIPLIERS[:ORBITS], MULTIPLIERS[-2], MULTIPLIERS[-1]
    colours = _mixed(np.concatenate(orbit_counts(graphs)).astype(np.uint64) @ start)
    for _ in range(ROUNDS):
        colours = _mixed(colours * own + (a @ colours) * near)

    return {"colours": colours, "totals": union.totals(_mixed(colours))}


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64, applied before sums to avoid collisions."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)

    return values ^ (values >> np.uint64(31))


def _same(first: _Coloured, second: _Coloured) -> bool:
    """An exact isomorphism test of graphs with equal signatures, with colours to narrow the search."""
    palette = np.unique(np.concatenate([first.colours, second.colours]))
    colours = [np.searchsorted(palette, side.colours).tolist() for side in (first, second)]
    if sorted(colours[0]) != sorted(colours[1]):
        return False
    graphs = [(side.graph.nodes, side.graph.edges.tolist()) for side in (first, second)]
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
