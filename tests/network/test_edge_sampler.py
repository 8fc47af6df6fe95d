from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import stats
from tiny import normal

from graphite_gen.network import edge_sampler
from graphite_gen.network.edge_sampler import BlockTree, sample_edges, thinned_edges, visit_every_pair
from graphite_gen.network.pair_logits import PairLogits

from .graphs import dense, pair_logits

Sampler = Callable[[PairLogits, np.random.Generator], NDArray[np.int64]]
SAMPLERS: list[Sampler] = [thinned_edges, visit_every_pair]


def probabilities(logits: PairLogits) -> NDArray[np.float64]:
    """The probability of an edge of every pair, in the order of ``combinations``."""
    return torch.sigmoid(dense(logits)).numpy()[np.triu_indices(logits.nodes, 1)]


def sampled(logits: PairLogits, count: int, seed: int) -> NDArray[np.bool_]:
    """Whether each pair of some sampled graphs has an edge, in the same order, with shape (count, pairs)."""
    rng = np.random.default_rng(seed)
    matrices = np.zeros((count, logits.nodes, logits.nodes), dtype=np.bool_)
    for matrix in matrices:
        matrix[tuple(thinned_edges(logits, rng))] = True

    i, j = np.triu_indices(logits.nodes, 1)

    return matrices[:, i, j]


def sparse_logits(nodes: int, degree: float = 10) -> PairLogits:
    """Nodes around forty centres, hubs among them, of a given mean degree."""
    centres = normal(40, 6, seed=5)
    factor = centres[torch.arange(nodes) % 40] + 0.3 * normal(nodes, 6, seed=6)
    logits = PairLogits(factor, torch.tensor([1.0, 1, 1, 1, -1, -1]), normal(nodes, seed=7), torch.zeros(()))
    some = replace(logits, factor=factor[:400], bias=logits.bias[:400])
    # For rare edges the density is proportional to the odds.
    shift = np.log(degree / nodes) - np.log(np.exp(dense(some).triu(1).numpy()).mean())

    return replace(logits, shift=torch.tensor(shift))


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split blocks down to single nodes, a few at a time."""
    monkeypatch.setattr(edge_sampler, "_SMALLEST_BLOCK", 1)
    monkeypatch.setattr(edge_sampler, "_POINT_COST", 1e3)
    monkeypatch.setattr(edge_sampler, "_CHUNK", 5)


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize("shift", [-1.5, 1.0])
def test_every_graph_on_four_nodes_has_its_probability(shift: float) -> None:
    logits = replace(pair_logits(4), shift=torch.tensor(shift))
    p = probabilities(logits)
    graphs = np.arange(64)[:, None] >> np.arange(6) & 1
    expected = 2000 * np.where(graphs, p, 1 - p).prod(1)

    codes = sampled(logits, 2000, seed=1) @ (1 << np.arange(6))

    # Rare graphs are counted as one.
    rare = expected < 5
    counts = np.bincount(codes, minlength=64)
    wanted = np.append(expected[~rare], expected[rare].sum())
    assert stats.chisquare(np.append(counts[~rare], counts[rare].sum()), wanted).pvalue > 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("blocks", [1, 8])
def test_edge_frequencies_are_those_of_the_dense_matrix(
    blocks: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_default_dtype(dtype)
    monkeypatch.setattr(edge_sampler, "_SMALLEST_BLOCK", blocks)
    logits = sparse_logits(700)
    p = probabilities(logits)
    pairs = np.array(list(combinations(range(700), 2)))

    edges = sampled(logits, 5, seed=3).mean(axis=0)

    # Edges of the graph, of pairs of similar probability, and of each node: within five standard deviations.
    groups = [p >= 0, *(np.digitize(p, 10.0 ** np.arange(-8, 1)) == k for k in range(9))]
    for group in (group for group in groups if p[group].sum() > 1):
        assert abs(edges[group].sum() - p[group].sum()) < 5 * np.sqrt((p * (1 - p))[group].sum() / 5)
    degrees, expected, variance = (
        np.bincount(pairs.ravel(), np.repeat(values, 2), 700) for values in (edges, p, p * (1 - p) / 5)
    )
    assert (np.abs(degrees - expected) < 5 * np.sqrt(variance) + 1).all()


@pytest.mark.parametrize("sample", SAMPLERS)
def test_samples_are_ascending_pairs_that_depend_on_the_seed_alone(sample: Sampler) -> None:
    first, again, other = (sample(sparse_logits(200), np.random.default_rng(seed)) for seed in (1, 1, 2))

    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert (first[0] < first[1]).all()
    assert (np.diff(first[0] * 200 + first[1]) > 0).all()


@pytest.mark.parametrize("sample", SAMPLERS)
@pytest.mark.parametrize(("nodes", "shift", "edges"), [(36, 60.0, 36 * 35 // 2), (36, -60.0, 0), (1, 0.0, 0)])
def test_certain_edges_are_all_present_or_absent(
    sample: Sampler, nodes: int, shift: float, edges: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_sampler, "_TILE", 1)
    logits = replace(pair_logits(nodes), shift=torch.tensor(shift))

    assert sample(logits, np.random.default_rng(0)).shape == (2, edges)
    assert sample_edges(pair_logits(0), np.random.default_rng(0)).shape == (2, 0)


def star_logits(nodes: int) -> PairLogits:
    """Identical nodes, and a hub that is adjacent to all of them."""
    bias = torch.zeros(nodes)
    bias[0] = 20

    return PairLogits(1e-3 * normal(nodes, 2, seed=8), torch.ones(2), bias, torch.tensor(-np.log(nodes / 5)))


def test_a_hub_among_identical_nodes_has_all_its_edges() -> None:
    edges = thinned_edges(star_logits(300), np.random.default_rng(0))

    p = probabilities(star_logits(300))
    assert (edges[0] == 0).sum() == 299
    assert abs(edges.shape[1] - p.sum()) < 5 * np.sqrt((p * (1 - p)).sum())


@pytest.mark.parametrize("graph", [sparse_logits, star_logits])
def test_cost_is_proportional_to_the_edges(graph: Callable[[int], PairLogits], monkeypatch: pytest.MonkeyPatch) -> None:
    visits = 0
    look = BlockTree.logits

    def counting(self: BlockTree, i: NDArray[np.int64], j: NDArray[np.int64]) -> NDArray[np.floating]:
        nonlocal visits
        visits += len(i)
        return look(self, i, j)

    monkeypatch.setattr(BlockTree, "logits", counting)
    rates = []
    for nodes in (500, 8000):
        visits = 0
        edges = thinned_edges(graph(nodes), np.random.default_rng(0)).shape[1]
        assert nodes < edges < 6 * nodes
        rates.append(visits / edges)

    # Sixteen times the nodes have 256 times the pairs.
    assert rates[1] < 1.5 * rates[0]


@pytest.mark.parametrize(
    ("head", "tile", "visited"),
    [("signed", 1, 100), ("signed", 30, 100), ("signed", 1 << 17, 100), ("signed", 30, 0), ("inner", 30, 0)],
)
def test_sampled_edges_have_their_probabilities(
    head: str, tile: int, visited: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_sampler, "_TILE", tile)
    monkeypatch.setattr(edge_sampler, "VISITED_NODES", visited)
    logits = pair_logits(11) if head == "signed" else PairLogits.inner_product(normal(40, 3))
    p, draws, rng = probabilities(logits), 3000, np.random.default_rng(1)
    counts = np.zeros((logits.nodes, logits.nodes))
    for _ in range(draws):
        counts[tuple(sample_edges(logits, rng))] += 1

    assert not np.tril(counts).any()
    z = (counts[np.triu_indices(logits.nodes, 1)] / draws - p) / np.sqrt(p * (1 - p) / draws)
    assert np.abs(z).max() < 4.5
    assert (z**2).sum() == pytest.approx(len(z), abs=5 * np.sqrt(2 * len(z)))


def test_rare_edges_are_not_limited_by_single_precision_noise() -> None:
    # Edges of probability 7.6e-10: a uniform number in single precision is zero, and below it, sixty times as often.
    logits = PairLogits(torch.zeros(3000, 1), torch.ones(1), torch.zeros(3000), torch.tensor(-21.0))
    rng = np.random.default_rng(2)

    assert sum(visit_every_pair(logits, rng).shape[1] for _ in range(30)) <= 2
