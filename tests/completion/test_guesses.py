"""Guesses keep what is known and have even orders where they can."""

from __future__ import annotations

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from graphite_gen.completion import PartialGraph
from graphite_gen.completion.mcmc import guess_even_graphs
from graphite_gen.graph import SimpleGraph


def test_guesses_are_taken_apart_more_often_than_completions_at_random() -> None:
    nodes, brought = 14, 3
    graph = SimpleGraph.from_networkx(nx.barabasi_albert_graph(nodes, brought, seed=4))
    rng = np.random.default_rng(0)
    pairs = np.argwhere(np.triu(np.ones((nodes, nodes)), 1))
    partial = PartialGraph.from_pairs(graph, rng.permutation(pairs)[:18].tolist())
    density = brought * (nodes - brought) / len(pairs)

    guesses = guess_even_graphs(partial, density, 200, rng)

    assert guesses.shape == (200, 18)
    assert len(np.unique(guesses, axis=0)) > 20
    assert right_share(partial, guesses, brought) > 3 * right_share(partial, rng.random((200, 18)) < density, brought)


def right_share(partial: PartialGraph, completions: NDArray[np.bool_], brought: int) -> float:
    """The part of completions with about as many edges as an even graph, and no part in which all nodes have more."""
    graphs = [partial.completed(answers).to_networkx() for answers in completions]
    edges = brought * (partial.nodes - brought)

    return float(
        np.mean([abs(len(g.edges) - edges) <= 1 and max(nx.core_number(g).values()) == brought for g in graphs])
    )
