"""Small random graphs for the tests of this folder."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from graphite_gen.graph import SimpleGraph

__all__ = ["block_graph", "random_graph", "small_graphs"]


@st.composite
def small_graphs(draw: st.DrawFn, least: int = 1, most: int = 8) -> SimpleGraph:
    """Any graph on a few nodes, dense ones as likely as sparse ones."""
    nodes = draw(st.integers(least, most))
    pairs = list(itertools.combinations(range(nodes), 2))
    chosen = draw(st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))

    return SimpleGraph.from_pairs(nodes, [pair for pair, kept in zip(pairs, chosen, strict=True) if kept])


def random_graph(nodes: int, density: float, rng: np.random.Generator) -> SimpleGraph:
    """A graph whose edges are independent."""
    return SimpleGraph.from_adjacency(np.triu(rng.random((nodes, nodes)) < density, 1))


def block_graph(sizes: list[int], inside: float, across: float, rng: np.random.Generator) -> SimpleGraph:
    """A graph whose edges are independent given its blocks, its nodes shuffled."""
    block = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    density = np.where(block[:, None] == block, inside, across)

    return SimpleGraph.from_adjacency(np.triu(rng.random(density.shape) < density, 1))
