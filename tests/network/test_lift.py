from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest

from graphite_gen.network.lift import LEAST_CROSSING, Copy, in_triangles, lift

NODES = 30


def copy(seed: int, like: np.ndarray | None = None) -> Copy:
    graph = nx.powerlaw_cluster_graph(NODES, 2, 0.4, seed=seed)
    edges = np.sort(np.array(graph.edges), axis=1)

    return Copy(np.arange(NODES) if like is None else like, edges.T.astype(np.int64))


def union(copies: list[Copy]) -> nx.Graph:
    return nx.disjoint_union_all([whole(NODES, each.edges) for each in copies])


def whole(nodes: int, edges: np.ndarray) -> nx.Graph:
    graph = nx.empty_graph(nodes)
    graph.add_edges_from(edges.T.tolist())

    return graph


def triangles(graph: nx.Graph) -> set[frozenset[int]]:
    return {frozenset(clique) for clique in nx.enumerate_all_cliques(graph) if len(clique) == 3}


def test_edges_in_triangles_are_those_with_a_common_neighbour() -> None:
    graph = nx.powerlaw_cluster_graph(NODES, 2, 0.4, seed=3)
    edges = np.array(graph.edges).T
    wanted = [bool(list(nx.common_neighbors(graph, *edge))) for edge in graph.edges]

    assert in_triangles(NODES, edges).tolist() == wanted
    assert 0 < sum(wanted) < len(wanted)


def test_triangles_at_hubs_take_linear_time() -> None:
    leaves = 50_000
    star = np.stack([np.zeros(leaves, dtype=np.int64), np.arange(1, leaves + 1)])
    closed = np.concatenate([star, [[1], [2]]], axis=1)

    assert in_triangles(leaves + 1, closed).nonzero()[0].tolist() == [0, 1, leaves]
    assert not in_triangles(3, np.empty((2, 0), dtype=np.int64)).any()


def test_one_copy_is_unchanged() -> None:
    assert np.array_equal(lift([copy(1)], np.random.default_rng(0)), copy(1).edges)


def test_degrees_and_triangles_are_preserved_and_other_edges_cross() -> None:
    copies = [copy(seed, np.random.default_rng(seed).permutation(NODES)) for seed in range(40)]
    before = union(copies)
    edges = lift(copies, np.random.default_rng(5))
    after = whole(40 * NODES, edges)

    assert (edges[0] < edges[1]).all()
    assert triangles(before) <= triangles(after)
    # Two edges may fall on one pair.
    change = np.array([before.degree[node] - after.degree[node] for node in before])
    assert (change >= 0).all()
    assert change.sum() < 0.01 * 2 * before.number_of_edges()
    crossing = edges[0] // NODES != edges[1] // NODES
    outside = ~np.concatenate([in_triangles(NODES, each.edges) for each in copies])
    # Of forty copies one is the edge's own.
    assert crossing.sum() == pytest.approx(39 / 40 * outside.sum(), rel=0.1)


def test_adjacent_originals_are_preserved() -> None:
    copies = [copy(seed, np.random.default_rng(seed).permutation(NODES)) for seed in range(10)]
    like = np.concatenate([each.like for each in copies])

    def kinds(edges: np.ndarray) -> Counter[tuple[int, ...]]:
        return Counter(map(tuple, np.sort(like[edges], axis=0).T.tolist()))

    before, after = kinds(np.array(union(copies).edges).T), kinds(lift(copies, np.random.default_rng(6)))
    assert sum((after - before).values()) == 0
    assert sum((before - after).values()) < 0.03 * before.total()


def test_copies_of_cliques_are_connected() -> None:
    complete = np.array(nx.complete_graph(NODES).edges).T
    edges = lift([Copy(np.arange(NODES), complete)] * 8, np.random.default_rng(7))

    crossing = np.mean(edges[0] // NODES != edges[1] // NODES)
    assert 0.5 * LEAST_CROSSING < crossing <= LEAST_CROSSING
    assert nx.is_connected(whole(8 * NODES, edges))


def test_repeated_originals_in_a_copy_give_no_self_loops() -> None:
    path = np.array([[0, 1, 2], [1, 2, 3]])
    twice = [Copy(np.array([0, 0, 1, 1]), path)] * 3

    for seed in range(20):
        edges = lift(twice, np.random.default_rng(seed))
        assert (edges[0] < edges[1]).all()
        assert len({tuple(edge) for edge in edges.T.tolist()}) == edges.shape[1]
