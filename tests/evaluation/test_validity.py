from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import chi2
from tiny import random_graph

from graphite_gen.evaluation.validity import find_blocks, is_planar, is_sbm, is_tree, sbm_agreement
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph

from .graphs import block_graph, small_graphs


@given(small_graphs(most=7))
@settings(max_examples=100, deadline=None)
def test_trees_and_planar_graphs_are_those_of_networkx(graph: SimpleGraph) -> None:
    whole = graph.to_networkx()

    assert is_tree(graph) == nx.is_tree(whole)
    assert is_planar(graph) == (nx.is_connected(whole) and nx.check_planarity(whole)[0])


def test_blocks_are_recovered_where_there_are_any() -> None:
    rng = np.random.default_rng(0)
    for sizes in ([22, 38], [20, 30, 40], [25, 25, 30, 35, 40]):
        found = np.sort(np.bincount(find_blocks(block_graph(sizes, 0.3, 0.005, rng))))

        assert len(found) == len(sizes)
        assert abs(found - sizes).max() <= 1
    assert find_blocks(random_graph(60, 0, 0.3)).max() == 0
    assert find_blocks(SimpleGraph.from_pairs(2, [(0, 1)])).tolist() == [0, 0]


def test_most_graphs_of_the_block_model_are_valid() -> None:
    rng = np.random.default_rng(2)
    graphs = [block_graph(rng.integers(23, 38, rng.integers(2, 6)).tolist(), 0.3, 0.005, rng) for _ in range(30)]

    # The published test rejects a part of its own training set too, most for a pair of blocks without an edge.
    assert np.mean([is_sbm(graph) for graph in graphs]) > 0.75
    assert not any(map(is_sbm, generate("barabasi", 5, nodes=(60, 100), seed=0).graphs))


@pytest.mark.parametrize(
    ("sizes", "inside", "across"),
    [
        ([80], 0.3, 0.0),
        ([30, 30, 30], 0.9, 0.005),
        ([30, 30, 30], 0.3, 0.06),
        ([12, 12, 12, 12], 0.5, 0.005),
        ([25] * 7, 0.3, 0.005),
        ([30, 30, 60], 0.3, 0.005),
    ],
)
def test_graphs_of_other_block_models_are_not_valid(sizes: list[int], inside: float, across: float) -> None:
    rng = np.random.default_rng(3)

    assert not any(is_sbm(block_graph(sizes, inside, across, rng)) for _ in range(5))


def test_agreement_is_the_mean_tail_of_the_published_statistic() -> None:
    graph = block_graph([20, 30], 0.35, 0.01, np.random.default_rng(4))
    labels = find_blocks(graph)
    tails = []
    for r in range(2):
        for s in range(2):
            pairs = [(i, j) for i in range(50) for j in range(50) if i != j and (labels[i], labels[j]) == (r, s)]
            density = sum(graph.adjacency()[i, j] for i, j in pairs) / len(pairs)
            wanted = 0.3 if r == s else 0.005
            tails.append(1 - chi2.cdf((density - wanted) ** 2 / (density * (1 - density) + 1e-6), 1))

    assert sbm_agreement(graph, labels) == pytest.approx(np.mean(tails), abs=1e-6)
