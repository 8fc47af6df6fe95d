"""Which graphs are the same but for the numbering of their nodes.

Graphs get a signature that isomorphic ones share; only those with equal signatures are compared exactly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..graph import SimpleGraph
from .orbits import ORBITS, orbit_counts
from .parallel import arrays_of
from .sparse_union import Union

__all__ = ["are_isomorphic", "find_isomorphic", "isomorphism_classes", "signatures"]

# Colours travel so many edges. More tell few graphs apart that are not told apart exactly anyway.
ROUNDS = 6
# Odd numbers without pattern: any would do, as long as they stay.
MULTIPLIERS = np.random.SFC64(0).random_raw(ORBITS + 2) | np.uint64(1)


@dataclass(frozen=True)
class _Coloured:
    """A graph, its signature and the colours of its nodes, which isomorphisms keep."""

    graph: SimpleGraph
    signature: tuple[int, int, int]
    colours: NDArray[np.uint64]


def signatures(graphs: Sequence[SimpleGraph]) -> list[tuple[int, int, int]]:
    """The numbers of nodes and edges of each graph and a hash, equal for isomorphic graphs and for few others.

    The hash is that of Weisfeiler and Leman: the colour of a node is refined by those of its neighbours, a few times,
    and then all colours of a graph are added up. Nodes begin with their orbit counts for a colour instead of all
    alike, so that most regular graphs are told apart as well.
    """
    return [coloured.signature for coloured in _coloured(graphs)]


def are_isomorphic(first: SimpleGraph, second: SimpleGraph) -> bool:
    """Whether one graph is the other with its nodes renumbered."""
    a, b = _coloured([first, second])

    return _same(a, b)


def isomorphism_classes(graphs: Sequence[SimpleGraph], *, group: ProcessGroup = SINGLE_PROCESS) -> list[int]:
    """The first graph of the list that each graph is isomorphic to, which may be itself.

    Arguments:
        graphs: The graphs.
        group: The processes that divide the work; each gets all classes.
    """
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
    """For each graph, the first of the others that is isomorphic to it, or None.

    Arguments:
        graphs: The graphs.
        among: The others.
        group: The processes that divide the work; each gets the whole result.
    """
    shapes, others = ([_shape(graph) for graph in side] for side in (graphs, among))
    wanted, offered = set(shapes), set(others)
    kept = [index for index, shape in enumerate(others) if shape in wanted]
    asked = [index for index, shape in enumerate(shapes) if shape in offered]
    known: dict[tuple[int, int, int], list[tuple[int, _Coloured]]] = {}
    for index, graph in zip(kept, _coloured([among[index] for index in kept], group), strict=True):
        known.setdefault(graph.signature, []).append((index, graph))
    found: list[int | None] = [None] * len(graphs)
    for index, graph in zip(asked, _coloured([graphs[index] for index in asked], group), strict=True):
        found[index] = next((other for other, seen in known.get(graph.signature, []) if _same(graph, seen)), None)

    return found


def _shape(graph: SimpleGraph) -> tuple[int, bytes]:
    """The number of nodes and their degrees in order: what most graphs are told apart by at once."""
    return graph.nodes, np.sort(graph.degrees()).tobytes()


def _coloured(graphs: Sequence[SimpleGraph], group: ProcessGroup = SINGLE_PROCESS) -> list[_Coloured]:
    if not graphs:
        return []
    found = arrays_of(graphs, _colours, group)
    ends = np.cumsum([graph.nodes for graph in graphs])

    return [
        _Coloured(graph, (graph.nodes, len(graph.edges), total), row)
        for graph, total, row in zip(
            graphs, found["totals"].tolist(), np.split(found["colours"], ends[:-1]), strict=True
        )
    ]


def _colours(graphs: Sequence[SimpleGraph]) -> dict[str, NDArray[np.uint64]]:
    """The colours of all nodes, and their sums over each graph."""
    union = Union.of(graphs)
    # Sums of 64-bit numbers that wrap around do not depend on their order.
    a = union.adjacency.astype(np.uint64)
    start, own, near = MULTIPLIERS[:ORBITS], MULTIPLIERS[-2], MULTIPLIERS[-1]
    colours = _mixed(np.concatenate(orbit_counts(graphs)).astype(np.uint64) @ start)
    for _ in range(ROUNDS):
        colours = _mixed(colours * own + (a @ colours) * near)

    return {"colours": colours, "totals": union.totals(_mixed(colours))}


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Every bit of a number spread over all of it (the finaliser of SplitMix64), so that sums keep numbers apart."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)

    return values ^ (values >> np.uint64(31))


def _same(first: _Coloured, second: _Coloured) -> bool:
    """Whether two graphs are isomorphic, found exactly; their colours only narrow the search."""
    if first.signature != second.signature:
        return False
    palette = np.unique(np.concatenate([first.colours, second.colours]))
    colours = [np.searchsorted(palette, side.colours).tolist() for side in (first, second)]
    if sorted(colours[0]) != sorted(colours[1]):
        return False
    try:
        import igraph
    except ImportError:
        return _same_by_networkx(first.graph, second.graph, colours)
    a, b = (igraph.Graph(n=side.graph.nodes, edges=side.graph.edges.tolist()) for side in (first, second))

    return bool(a.isomorphic_bliss(b, color1=colours[0], color2=colours[1]))


def _same_by_networkx(first: SimpleGraph, second: SimpleGraph, colours: Sequence[Sequence[int]]) -> bool:
    import networkx as nx

    made: list[Any] = []
    for graph, own in zip((first, second), colours, strict=True):
        made.append(nx.Graph(graph.edges.tolist()))
        made[-1].add_nodes_from((node, {"colour": colour}) for node, colour in enumerate(own))

    return bool(nx.vf2pp_is_isomorphic(*made, node_label="colour"))
