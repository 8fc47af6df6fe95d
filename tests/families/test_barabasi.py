from __future__ import annotations

from collections import Counter
from itertools import combinations, permutations
from math import exp, factorial, inf

import networkx as nx
import numpy as np
import pytest

from graphite_gen.errors import FamilyError
from graphite_gen.families import family
from graphite_gen.families.barabasi import _target_chances
from graphite_gen.graph import SimpleGraph

from .helpers import CHANCE, agreement, all_graphs, shape


def impostor(graph: SimpleGraph, seed: int) -> SimpleGraph:
    """The same degrees, the edges swapped about."""
    other = nx.Graph(graph.to_networkx())
    nx.double_edge_swap(other, 3 * graph.nodes, max_tries=10_000, seed=seed)

    return SimpleGraph.from_networkx(other)


def arrival_probability(graph: SimpleGraph, order: tuple[int, ...], m: int) -> float:
    """The probability of the graph if its nodes came in this order, the star's hub first: draws with repeats."""
    adjacency = graph.adjacency()[np.ix_(order, order)]
    first = np.zeros((m + 1, m + 1), dtype=bool)
    first[0, 1:] = first[1:, 0] = True
    if not np.array_equal(adjacency[: m + 1, : m + 1], first):
        return 0.0
    probability = 1.0
    for node in range(m + 1, graph.nodes):
        targets = np.flatnonzero(adjacency[node, :node])
        if len(targets) != m:
            return 0.0
        degrees = adjacency[:node, :node].sum(axis=1)
        probability *= sum(
            np.prod([degrees[t] / (degrees.sum() - degrees[list(way[:k])].sum()) for k, t in enumerate(way)])
            for way in permutations(targets.tolist())
        )

    return float(probability)


@pytest.mark.parametrize(("n", "m"), [(6, 1), (6, 2), (6, 3), (7, 4)])
def test_the_law_is_the_sum_over_all_orders_of_arrival(n: int, m: int) -> None:
    law, rng = family("barabasi", m=m), np.random.default_rng(0)
    for _ in range(4):
        graph = law.sample(n, rng)
        total = sum(arrival_probability(graph, order, m) for order in permutations(range(n)))

        assert exp(law.log_prob(graph)) == pytest.approx(total / factorial(n))


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_probabilities_of_all_graphs_on_six_nodes_add_up_to_one(m: int) -> None:
    law = family("barabasi", m=m)
    log_probs = [law.log_prob(graph) for graph in all_graphs(6)]

    assert sum(map(exp, log_probs)) == pytest.approx(1)
    assert [law.contains(graph) for graph in all_graphs(6)] == [value > -inf for value in log_probs]


@pytest.mark.parametrize("m", [1, 2, 4])
def test_shapes_agree_with_networkx(m: int) -> None:
    law, rng = family("barabasi", m=m), np.random.default_rng(0)
    ours = Counter(shape(law.sample(8, rng)) for _ in range(3000))
    theirs = Counter(shape(SimpleGraph.from_networkx(nx.barabasi_albert_graph(8, m, seed=s))) for s in range(3000))

    assert agreement(ours, theirs) > CHANCE


def test_chances_of_all_target_sets_add_up_to_one() -> None:
    degrees = np.array([1, 2, 3, 5, 1])
    sets = [[i, j, k] for i in range(5) for j in range(i) for k in range(j)]
    chances = _target_chances(degrees[sets].astype(np.float32), np.full(len(sets), 12, dtype=np.float32))

    assert chances.sum() == pytest.approx(1)


def test_the_first_star_is_contained_and_nothing_else_of_its_size() -> None:
    law = family("barabasi")

    assert [exp(law.log_prob(g)) for g in all_graphs(5) if law.contains(g)] == [pytest.approx(1 / 5)] * 5


@pytest.mark.parametrize("n", [10, 15, 20])
def test_containment_is_positive_probability_for_graphs_with_the_right_degrees(n: int) -> None:
    law, rng = family("barabasi"), np.random.default_rng(n)
    others = [impostor(law.sample(n, rng), seed) for seed in range(10)]

    assert [law.contains(graph) for graph in others] == [law.log_prob(graph) > -inf for graph in others]
    assert not all(law.contains(graph) for graph in others) or n == 10


def test_graphs_that_are_not_peelable_are_refused() -> None:
    law = family("barabasi", m=2)

    assert not law.contains(SimpleGraph.from_networkx(nx.complete_graph(5)))
    # 2(n - 2) edges, but the two leaves, which only the first star has, hang on different nodes.
    clique = list(combinations(range(4), 2))
    assert not law.contains(SimpleGraph.from_pairs(6, [*clique, (0, 4), (1, 5)]))


def test_graphs_too_large_for_the_exact_law_are_refused() -> None:
    law = family("barabasi", m=1)
    graph = law.sample(70, np.random.default_rng(0))

    assert law.contains(graph)
    with pytest.raises(FamilyError, match="up to 63 nodes, and the graph has 70"):
        law.log_prob(graph)


def test_a_triangle_and_a_star_are_refused_at_once() -> None:
    assert not family("barabasi", m=1).contains(nx.disjoint_union(nx.cycle_graph(3), nx.star_graph(60)))


def with_twins(core: SimpleGraph, count: int) -> SimpleGraph:
    """More nodes, each joined to the first four."""
    n = core.nodes

    return SimpleGraph.from_pairs(
        n + count, [*core.edges.tolist(), *((v, n + i) for i in range(count) for v in range(4))]
    )


def test_an_impossible_core_is_refused_however_many_nodes_hang_on_it() -> None:
    # A star has five nodes: of six twins one can go first, so more of them change nothing.
    law, rng = family("barabasi"), np.random.default_rng(0)
    cores = [impostor(law.sample(12, rng), seed) for seed in range(15)]
    possible = [law.log_prob(with_twins(core, 6)) > -inf for core in cores]
    peels = [max(nx.core_number(core.to_networkx()).values()) <= 4 for core in cores]

    assert [law.contains(with_twins(core, 40)) for core in cores] == possible
    # Some of them only a search can refuse.
    assert any(peel and not able for peel, able in zip(peels, possible, strict=True))


@pytest.mark.parametrize("n", [200, 1000])
def test_large_graphs_are_known_as_their_own(n: int) -> None:
    law = family("barabasi")

    assert law.contains(law.sample(n, np.random.default_rng(0)))


def test_too_many_targets_for_the_exact_law_are_refused() -> None:
    law = family("barabasi", m=30)

    with pytest.raises(FamilyError, match="up to m=12, and here m=30"):
        law.log_prob(law.sample(40, np.random.default_rng(0)))


@pytest.mark.slow
def test_the_mean_cost_is_that_of_the_reference() -> None:
    law, rng = family("barabasi"), np.random.default_rng(0)
    costs = np.array([[-law.log_prob(law.sample(n, rng)) for n in range(10, 21)] for _ in range(150)])
    error = float(np.sqrt(costs.var(axis=0).sum() / len(costs)) / 11)

    assert costs.mean() == pytest.approx(63.90, abs=3 * error + 0.04)
