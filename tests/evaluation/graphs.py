"""Small random graphs, and their orbit counts by enumeration."""

import itertools

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from graphite_gen.graph import SimpleGraph

# The connected graphs on two to four nodes by their degrees; nodes of equal degree are in one orbit.
DEGREES = [(1, 1), (1, 1, 2), (2, 2, 2), (1, 1, 2, 2), (1, 1, 1, 3), (2, 2, 2, 2), (1, 2, 2, 3), (2, 2, 3, 3), (3,) * 4]
ORBITS = [(degrees, own) for degrees in DEGREES for own in sorted(set(degrees))]


def enumerated(graph: SimpleGraph) -> np.ndarray:
    """The number of connected subgraphs in which each node is in each orbit."""
    whole = graph.to_networkx()
    counts = np.zeros((graph.nodes, len(ORBITS)), dtype=np.int64)
    for size in (2, 3, 4):
        for nodes in itertools.combinations(range(graph.nodes), size):
            part = whole.subgraph(nodes)
            if nx.is_connected(part):
                degrees = tuple(sorted(degree for _, degree in part.degree()))
                for node in nodes:
                    counts[node, ORBITS.index((degrees, part.degree(node)))] += 1

    return counts


@st.composite
def small_graphs(draw: st.DrawFn, least: int = 1, most: int = 8) -> SimpleGraph:
    """Any graph on a few nodes, dense ones as likely as sparse ones."""
    nodes = draw(st.integers(least, most))
    pairs = list(itertools.combinations(range(nodes), 2))
    chosen = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))

    return SimpleGraph.from_pairs(nodes, [pair for pair, kept in zip(pairs, chosen, strict=True) if kept])


def block_graph(sizes: list[int], inside: float, across: float, rng: np.random.Generator) -> SimpleGraph:
    """A graph whose edges are independent given its blocks, its nodes shuffled."""
    block = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    density = np.where(block[:, None] == block, inside, across)

    return SimpleGraph.from_adjacency(np.triu(rng.random(density.shape) < density, 1))
