import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import chi2
from tiny import random_graph

from graphite_gen.evaluation.validity import (
    VALIDITY,
    find_blocks,
    is_grid,
    is_lobster,
    is_planar,
    is_sbm,
    is_tree,
    sbm_agreement,
)
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph

from .graphs import block_graph, small_graphs


@given(small_graphs(most=7))
@settings(max_examples=100, deadline=None)
def test_trees_and_planar_graphs_are_those_of_networkx(graph: SimpleGraph) -> None:
    whole = graph.to_networkx()

    assert is_tree(graph) == nx.is_tree(whole)
    assert VALIDITY["connected"](graph) == nx.is_connected(whole)
    assert VALIDITY["acyclic"](graph) == nx.is_forest(whole)
    assert VALIDITY["bipartite"](graph) == nx.is_bipartite(whole)
    assert is_planar(graph) == (nx.is_connected(whole) and nx.check_planarity(whole)[0])


@given(small_graphs(most=9))
@settings(max_examples=150, deadline=None)
def test_small_grids_and_lobsters_are_those_of_networkx(graph: SimpleGraph) -> None:
    whole = graph.to_networkx()
    n = graph.nodes
    grids = [nx.grid_2d_graph(a, n // a) for a in range(1, n + 1) if n % a == 0]

    assert is_grid(graph) == any(nx.is_isomorphic(whole, grid) for grid in grids)
    assert is_lobster(graph) == _is_lobster(whole)


def _is_lobster(graph: nx.Graph) -> bool:
    if not nx.is_tree(graph):
        return False
    for _ in range(2):
        graph = graph.subgraph([node for node, degree in graph.degree if degree > 1])

    return all(degree <= 2 for _, degree in graph.degree)


def test_grids_with_another_numbering_are_valid_and_changed_ones_are_not() -> None:
    rng = np.random.default_rng(5)
    for a, b in [(1, 1), (1, 9), (2, 2), (2, 7), (10, 10), (10, 19), (3, 4)]:
        whole = nx.convert_node_labels_to_integers(nx.grid_2d_graph(a, b))
        order = rng.permutation(a * b).tolist()
        graph = SimpleGraph.from_networkx(nx.relabel_nodes(whole, dict(enumerate(order))))

        assert is_grid(graph)
        if min(a, b) > 1:
            # An edge moved, so that the numbers of nodes and edges stay.
            whole.remove_edge(0, 1)
            whole.add_edge(0, a * b - 1)
            assert nx.is_isomorphic(whole, nx.grid_2d_graph(a, b)) == is_grid(SimpleGraph.from_networkx(whole))


def test_other_polyominoes_with_as_many_nodes_and_edges_are_not_grids() -> None:
    # A 3 x 4 grid without two corners has as many nodes and edges as a 2 x 5 grid.
    graph = nx.grid_2d_graph(3, 4)
    graph.remove_nodes_from([(0, 0), (2, 3)])
    assert len(graph.edges) == len(nx.grid_2d_graph(2, 5).edges)

    assert not is_grid(SimpleGraph.from_networkx(nx.convert_node_labels_to_integers(graph)))


def test_lobsters_of_networkx_are_valid_and_longer_legs_are_not() -> None:
    # Renamed in later versions of networkx.
    random_lobster = getattr(nx, "random_lobster_graph", None) or nx.random_lobster
    for seed in range(20):
        graph = random_lobster(20, 0.7, 0.7, seed=seed)
        assert is_lobster(SimpleGraph.from_networkx(graph))
    spider = nx.Graph([(0, 10 * leg + 1) for leg in range(3)])
    spider.add_edges_from((10 * leg + k, 10 * leg + k + 1) for leg in range(3) for k in (1, 2))
    assert not is_lobster(SimpleGraph.from_networkx(nx.convert_node_labels_to_integers(spider)))


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
