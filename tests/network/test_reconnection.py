from collections import Counter

import networkx as nx
import numpy as np
import pytest

from graphite_gen.network.reconnection import component_sizes, reconnect

from .graphs import pairs_of


def constant(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    return np.zeros(np.broadcast_shapes(i.shape, j.shape))


def joined(graph: nx.Graph, sizes: Counter[int] | None = None, score=constant, seed: int = 0) -> nx.Graph:
    nodes = len(graph)
    edges = reconnect(pairs_of(graph).T, nodes, sizes or Counter(), score, np.random.default_rng(seed))
    after = nx.empty_graph(nodes)
    after.add_edges_from(edges.T.tolist())
    assert (edges[0] < edges[1]).all()
    assert after.number_of_edges() == graph.number_of_edges()
    assert dict(after.degree) == dict(graph.degree)

    return after


@pytest.mark.parametrize("seed", range(5))
def test_stray_components_are_joined_and_degrees_kept(seed: int) -> None:
    # Trees and cycles, and a largest component with cycles.
    parts = [nx.gnm_random_graph(30, 60, seed=seed), nx.path_graph(2), nx.path_graph(4), nx.cycle_graph(5)]
    graph = nx.disjoint_union_all([*parts, nx.path_graph(2), nx.complete_graph(4)])

    after = joined(graph, seed=seed)

    isolated = len(list(nx.isolates(graph)))
    assert nx.number_connected_components(after) == 1 + isolated


def test_a_cycle_is_joined_to_a_tree() -> None:
    assert nx.is_connected(joined(nx.disjoint_union(nx.path_graph(9), nx.cycle_graph(3))))


def test_forests_and_isolated_nodes_stay() -> None:
    graph = nx.disjoint_union_all([nx.path_graph(5), nx.path_graph(3), nx.empty_graph(2)])

    assert nx.utils.edges_equal(joined(graph).edges, graph.edges)


def test_expected_components_stay() -> None:
    parts = [nx.complete_graph(20), *[nx.path_graph(3)] * 4, *[nx.cycle_graph(4)] * 3]
    after = joined(nx.disjoint_union_all(parts), Counter({3: 2, 4: 3}))

    sizes = component_sizes(pairs_of(after).T, len(after))
    assert sizes.tolist() == [26, 4, 4, 4, 3, 3]


def test_the_swap_with_the_highest_score_is_chosen() -> None:
    graph = nx.disjoint_union(nx.complete_graph(30), nx.path_graph(2))

    def score(i: np.ndarray, j: np.ndarray) -> np.ndarray:
        # Node 30 belongs to node 3.
        return np.where(np.maximum(i, j) == 30, -np.abs(np.minimum(i, j) - 3.0), 0.0)

    for seed in range(5):
        assert list(joined(graph, score=score, seed=seed)[30]) == [3]
