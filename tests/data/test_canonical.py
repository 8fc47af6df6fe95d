from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from tiny import random_graph

from graphite_gen.data.canonical import canonical_ranks
from graphite_gen.graph import SimpleGraph

GRAPHS = {
    "empty": nx.empty_graph(4),
    "star": nx.star_graph(6),
    "cycle": nx.cycle_graph(7),
    "petersen": nx.petersen_graph(),
    "tree": nx.balanced_tree(2, 3),
    "two cycles": nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(4)),
    "regular": nx.random_regular_graph(4, 14, seed=1),
    "random": nx.gnp_random_graph(14, 0.3, seed=1),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_relabelled_copies_become_the_same_graph(name: str) -> None:
    graph = SimpleGraph.from_networkx(GRAPHS[name])
    rng = np.random.default_rng(0)
    copies = [graph.permuted(rng.permutation(graph.nodes)) for _ in range(5)]

    ranks = [canonical_ranks(copy) for copy in copies]

    assert all(sorted(rank) == list(range(graph.nodes)) for rank in ranks)
    assert len({copy.permuted(rank).edges.tobytes() for copy, rank in zip(copies, ranks, strict=True)}) == 1


@pytest.mark.parametrize("kind", [{"weighted": True}, {"features": 2}])
def test_weights_and_features_tell_nodes_apart(kind: dict) -> None:
    graph = random_graph(6, 0, density=1.0, **kind)
    copy = graph.permuted(np.random.default_rng(1).permutation(6))

    first, second = (each.permuted(canonical_ranks(each)) for each in (graph, copy))

    for name in ("weights", "features"):
        if getattr(graph, name) is not None:
            assert np.array_equal(getattr(first, name), getattr(second, name))
