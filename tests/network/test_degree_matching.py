import networkx as nx
import numpy as np
import pytest

from graphite_gen.network.degree_matching import match_degrees

from .graphs import pairs_of


def degrees_of(edges: np.ndarray, nodes: int) -> np.ndarray:
    assert (edges[0] < edges[1]).all()
    assert len(set(map(tuple, edges.T.tolist()))) == edges.shape[1]

    return np.bincount(edges.ravel(), minlength=nodes)


@pytest.mark.parametrize("seed", range(4))
def test_the_degrees_are_the_given_ones(seed: int) -> None:
    wanted = np.array([degree for _, degree in nx.barabasi_albert_graph(200, 2, seed=seed).degree])
    start = pairs_of(nx.expected_degree_graph(wanted.tolist(), seed=seed, selfloops=False)).T
    rng = np.random.default_rng(seed)

    edges = match_degrees(start, wanted, rng.permutation(200), rng)

    assert (degrees_of(start, 200) != wanted).sum() > 50
    assert (degrees_of(edges, 200) == wanted).all()


def test_most_edges_stay_and_new_ones_are_near_in_the_order() -> None:
    wanted = np.full(1000, 4)
    start = pairs_of(nx.circulant_graph(1000, [1, 2])).T
    kept = start[:, np.random.default_rng(1).random(start.shape[1]) < 0.9]
    edges = match_degrees(kept, wanted, np.arange(1000), np.random.default_rng(2))

    assert (degrees_of(edges, 1000) == wanted).all()
    before, after = (set(map(tuple, each.T.tolist())) for each in (kept, edges))
    assert len(before - after) < 20
    spans = [abs(i - j) for i, j in after - before]
    assert np.median(spans) < 60


def test_an_edge_is_replaced_if_free_ends_cannot_be_joined() -> None:
    # Nodes 0 and 1 are adjacent, and each lacks one edge.
    start = np.array([[0, 2, 4, 6], [1, 3, 5, 7]])
    wanted = np.array([2, 2, 1, 1, 1, 1, 1, 1])
    edges = match_degrees(start, wanted, np.arange(8), np.random.default_rng(0))

    assert (degrees_of(edges, 8) == wanted).all()


def test_impossible_degrees_are_met_as_far_as_possible() -> None:
    edges = match_degrees(
        np.empty((2, 0), dtype=np.int64), np.array([3, 3, 0, 0]), np.arange(4), np.random.default_rng(0)
    )

    assert edges.tolist() == [[0], [1]]
