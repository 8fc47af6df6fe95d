from collections import Counter

import networkx as nx
import numpy as np
import pytest

from graphite_gen.network.lift import LEAST_CROSSING, in_triangles, lift

from .graphs import pairs_of

NODES = 30


def clustered(seed: int) -> np.ndarray:
    """Edges of a graph with triangles, with shape (2, E)."""
    return pairs_of(nx.powerlaw_cluster_graph(NODES, 2, 0.4, seed=seed)).T


def whole(nodes: int, edges: np.ndarray) -> nx.Graph:
    graph = nx.empty_graph(nodes)
    graph.add_edges_from(edges.T.tolist())

    return graph


def triangles(graph: nx.Graph) -> set[frozenset[int]]:
    return {frozenset(clique) for clique in nx.enumerate_all_cliques(graph) if len(clique) == 3}


def test_edges_in_triangles_are_those_with_a_common_neighbour() -> None:
    edges = clustered(3)
    wanted = [bool(list(nx.common_neighbors(whole(NODES, edges), *edge))) for edge in edges.T]

    assert in_triangles(NODES, edges).tolist() == wanted
    assert 0 < sum(wanted) < len(wanted)


def test_triangles_at_hubs_take_linear_time() -> None:
    leaves = 50_000
    star = np.stack([np.zeros(leaves, dtype=np.int64), np.arange(1, leaves + 1)])
    closed = np.concatenate([star, [[1], [2]]], axis=1)

    assert in_triangles(leaves + 1, closed).nonzero()[0].tolist() == [0, 1, leaves]
    assert not in_triangles(3, np.empty((2, 0), dtype=np.int64)).any()


def test_one_copy_is_unchanged() -> None:
    assert np.array_equal(lift([np.arange(NODES)], [clustered(1)], np.random.default_rng(0)), clustered(1))


def test_degrees_triangles_and_adjacent_originals_are_preserved_and_other_edges_cross() -> None:
    originals = [np.random.default_rng(seed).permutation(NODES) for seed in range(40)]
    copies = [clustered(seed) for seed in range(40)]
    before = nx.disjoint_union_all([whole(NODES, each) for each in copies])
    edges = lift(originals, copies, np.random.default_rng(5))
    after = whole(40 * NODES, edges)
    like = np.concatenate(originals)
    kinds, kinds_after = (Counter(tuple(sorted(like[list(edge)])) for edge in graph.edges) for graph in (before, after))

    assert (edges[0] < edges[1]).all()
    assert triangles(before) <= triangles(after)
    # Two edges may fall on one pair.
    change = np.array([before.degree[node] - after.degree[node] for node in before])
    assert (change >= 0).all()
    assert change.sum() < 0.01 * 2 * before.number_of_edges()
    assert kinds_after <= kinds
    crossing = edges[0] // NODES != edges[1] // NODES
    outside = ~np.concatenate([in_triangles(NODES, each) for each in copies])
    # Of forty copies one is the edge's own.
    assert crossing.sum() == pytest.approx(39 / 40 * outside.sum(), rel=0.1)


def test_copies_of_cliques_are_connected() -> None:
    clique = pairs_of(nx.complete_graph(NODES)).T
    edges = lift([np.arange(NODES)] * 8, [clique] * 8, np.random.default_rng(7))

    crossing = np.mean(edges[0] // NODES != edges[1] // NODES)
    assert 0.5 * LEAST_CROSSING < crossing <= LEAST_CROSSING
    assert nx.is_connected(whole(8 * NODES, edges))


def test_repeated_originals_in_a_copy_give_no_self_loops() -> None:
    path = np.array([[0, 1, 2], [1, 2, 3]])
    originals = [np.array([0, 0, 1, 1])] * 3

    for seed in range(20):
        edges = lift(originals, [path] * 3, np.random.default_rng(seed))
        assert (edges[0] < edges[1]).all()
        assert len({tuple(edge) for edge in edges.T.tolist()}) == edges.shape[1]
