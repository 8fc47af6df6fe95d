from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
import torch

from graphite_gen.network import baselines
from graphite_gen.network.baselines import BASELINES, baseline_scores, random_walks, spectral_embedding, walk_embedding

from .graphs import MEMBERS, pairs_of, planted

GRAPH = nx.gnm_random_graph(24, 50, seed=4)
EDGES = pairs_of(GRAPH)
PAIRS = np.array(list(combinations(range(24), 2)))


@pytest.mark.parametrize("name", BASELINES)
def test_pairs_and_tiles_have_the_same_scores(name: str) -> None:
    if name in ("deepwalk", "node2vec"):
        pytest.importorskip("gensim")
    scores = baseline_scores(name, 24, EDGES, 0)
    tile = scores.tile(slice(0, 24), slice(0, 24))

    assert torch.allclose(scores.of(torch.tensor(PAIRS.T)), tile[tuple(PAIRS.T)])
    assert torch.allclose(scores.tile(slice(3, 9), slice(5, 24)), tile[3:9, 5:])


@pytest.mark.parametrize("dimensions", [4, 20])
def test_spectral_embedding_is_the_best_approximation_of_the_regularised_matrix(dimensions: int) -> None:
    # Four dimensions go to the sparse solver, twenty to the dense one.
    adjacency = nx.to_numpy_array(GRAPH, nodelist=range(24))
    degrees = adjacency.sum(1)
    tau = degrees.mean()
    scale = (degrees + tau) ** -0.5
    values, vectors = np.linalg.eigh(scale[:, None] * (adjacency + tau / 24) * scale)
    top = np.maximum(values, 0) * (np.arange(24) >= 24 - dimensions)
    z = spectral_embedding(24, EDGES, dimensions)

    assert np.allclose(z @ z.T, (vectors * top) @ vectors.T)


def test_small_components_do_not_fill_the_spectral_embedding() -> None:
    many = nx.disjoint_union_all([nx.path_graph(2)] * 150 + [GRAPH])
    z, again = (spectral_embedding(len(many), pairs_of(many), 16) for _ in range(2))

    assert np.allclose(z, again)
    assert np.linalg.norm(z[300:]) > 0.5 * np.linalg.norm(z)


def test_spectral_embedding_keeps_the_vectors_that_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    # The cliques stand out from the dense spectrum of the path.
    graph = nx.disjoint_union_all([nx.path_graph(3000), *(nx.complete_graph(size) for size in (12, 20, 30))])
    monkeypatch.setattr(baselines, "RESTARTS", 2)
    z = spectral_embedding(len(graph), pairs_of(graph))

    assert z.shape == (3062, 32)
    assert np.isfinite(z).all()
    # The largest clique is a direction of its own.
    assert np.linalg.norm(z[-30:], axis=1).min() > 0.1


@pytest.mark.parametrize(("back", "away"), [(1.0, 1.0), (0.25, 4.0)])
def test_walks_have_the_transition_probabilities_of_node2vec(back: float, away: float) -> None:
    graph = nx.Graph([(0, 1), (1, 2), (0, 2), (1, 3), (3, 4)])
    edges = pairs_of(nx.disjoint_union_all([graph] * 300))
    draw = np.random.default_rng(0)
    walks = np.concatenate([random_walks(1500, edges, draw, 6, back, away) for _ in range(10)]) % 5

    assert all(graph.has_edge(a, b) for walk in walks[:50].tolist() for a, b in pairwise(walk))
    # From 0 over 1: back to 0, to the common neighbour 2, or away to 3.
    after = np.concatenate([walks[:, k + 2][(walks[:, k] == 0) & (walks[:, k + 1] == 1)] for k in range(4)])
    odds = np.array([1 / back, 1, 1 / away])
    found = np.array([(after == node).mean() for node in (0, 2, 3)])
    assert np.allclose(found, odds / odds.sum(), atol=4 * 0.5 / np.sqrt(len(after)))


def test_walks_from_isolated_nodes_stay() -> None:
    walks = random_walks(3, np.array([[0, 1]]), np.random.default_rng(0), 5)

    assert walks.tolist() == [[0, 1, 0, 1, 0], [1, 0, 1, 0, 1], [2] * 5]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["deepwalk", "node2vec"])
def test_walk_embeddings_separate_groups(name: str) -> None:
    pytest.importorskip("gensim")
    edges = planted().edges.astype(np.int64)
    pairs = np.array(list(combinations(range(60), 2)))
    scores = baseline_scores(name, 60, edges, 0).of(torch.tensor(pairs.T)).numpy()
    same = pairs[:, 0] // MEMBERS == pairs[:, 1] // MEMBERS

    assert scores[same].mean() > scores[~same].mean()
    z, again = (walk_embedding(60, edges, np.random.default_rng(0), walks=2, length=10, dimensions=8) for _ in range(2))
    assert z.shape == (60, 8)
    assert (z == again).all()
