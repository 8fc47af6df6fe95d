import tracemalloc
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from graphite_gen.network import pair_scores
from graphite_gen.network.pair_scores import STEPS, CommonNeighbours, katz, pagerank

from .graphs import adjacency, dense_gcn, pairs_of

GRAPH = nx.gnm_random_graph(24, 50, seed=4)
EDGES = pairs_of(GRAPH)
PAIRS = np.array(list(combinations(range(24), 2)))
EVERY = torch.tensor(PAIRS.T)


@pytest.mark.parametrize("pairs", [7, 10**6])
def test_indices_of_common_neighbours_are_those_of_networkx(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_scores, "PAIRS", pairs)
    wanted = {
        "common-neighbours": [len(list(nx.common_neighbors(GRAPH, *pair))) for pair in PAIRS.tolist()],
        "adamic-adar": [score for _, _, score in nx.adamic_adar_index(GRAPH, PAIRS.tolist())],
        "resource-allocation": [score for _, _, score in nx.resource_allocation_index(GRAPH, PAIRS.tolist())],
    }
    together = CommonNeighbours.from_edges(24, EDGES, *wanted)

    for name, scores, tile in zip(wanted, together.of(EVERY), together.tile(slice(0, 24), slice(0, 24)), strict=True):
        assert np.allclose(scores, wanted[name])
        assert np.allclose(CommonNeighbours.from_edges(24, EDGES, name).of(EVERY), wanted[name])
        assert np.allclose(tile[tuple(EVERY)], wanted[name])


@pytest.mark.parametrize("numbers", [1, 100, 10**6])
def test_pagerank_is_the_power_series(numbers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_scores, "NUMBERS", numbers)
    walk = dense_gcn(torch.tensor(EDGES.T), 24).numpy()
    wanted = {
        alpha: sum(alpha * np.linalg.matrix_power((1 - alpha) * walk, k) for k in range(STEPS + 1))
        for alpha in (0.1, 0.3)
    }
    shuffled = torch.tensor(np.random.default_rng(0).permutation(PAIRS).T)

    for scores, alpha in zip(pagerank(24, EDGES, *wanted).of(shuffled), wanted, strict=True):
        assert np.allclose(scores, wanted[alpha][tuple(shuffled)])
        assert np.allclose(pagerank(24, EDGES, alpha).of(EVERY), wanted[alpha][tuple(PAIRS.T)])


def test_pagerank_converges_to_the_resolvent() -> None:
    walk = dense_gcn(torch.tensor(EDGES.T), 24).numpy()
    wanted = 0.5 * np.linalg.inv(np.eye(24) - 0.5 * walk)

    assert np.allclose(pagerank(24, EDGES, 0.5).of(EVERY), wanted[tuple(PAIRS.T)], atol=1e-8)


def test_katz_index_is_the_resolvent_of_the_adjacency_matrix() -> None:
    matrix = adjacency(torch.tensor(EDGES.T), 24).numpy()
    beta = 0.5 / np.linalg.eigvalsh(matrix).max()
    wanted = np.linalg.inv(np.eye(24) - beta * matrix) - np.eye(24)

    assert np.allclose(katz(24, EDGES).of(EVERY), wanted[tuple(PAIRS.T)], atol=1e-7)
    # The sum over all other nodes, and over the closed walks of the node, is the Katz centrality of networkx minus one.
    tile = katz(24, EDGES).tile(slice(0, 24), slice(0, 24)).numpy()
    centrality = nx.katz_centrality_numpy(GRAPH, beta, 1.0, normalized=False)
    assert np.allclose(tile.sum(0) + 1, [centrality[node] for node in range(24)], atol=1e-6)


def test_walks_start_at_the_ends_that_many_pairs_share(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    product = pair_scores.csr_product

    def counted(matrix: Any, states: torch.Tensor) -> torch.Tensor:
        widths.append(states.shape[1])
        return product(matrix, states)

    # Hard non-edges of one node, which is the first or the second of a pair.
    pairs = torch.tensor([[min(9, node), max(9, node)] for node in range(24) if node != 9]).T
    wanted = pagerank(24, EDGES, 0.2).tile(slice(0, 24), slice(0, 24))[tuple(pairs)]
    monkeypatch.setattr(pair_scores, "csr_product", counted)

    assert torch.allclose(pagerank(24, EDGES, 0.2).of(pairs), wanted)
    assert widths == [1] * STEPS


def test_pairs_of_a_hub_take_little_memory() -> None:
    hub = np.stack([np.zeros(3000, dtype=np.int64), np.arange(1, 3001)], axis=1)
    scores = CommonNeighbours.from_edges(3001, np.concatenate([hub, [[1, 2]]]), "common-neighbours")
    pairs = torch.tensor(hub).T.repeat(1, 5)
    tracemalloc.start()
    found = scores.of(pairs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert found[:4].tolist() == [1, 1, 0, 0]
    # A row of the hub for each pair has 45 million entries.
    assert peak < 2e7


def test_katz_index_of_a_road_takes_few_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    # The largest eigenvalues of a path are so close that they take hundreds of restarts to tell apart.
    solve = pair_scores.eigsh
    monkeypatch.setattr(pair_scores, "eigsh", lambda *args, **rest: solve(*args, **rest, maxiter=200))
    scores = katz(3000, pairs_of(nx.path_graph(3000)))

    assert scores.walk.values().max() == pytest.approx(0.25, rel=1e-5)
