from __future__ import annotations

import random
from collections import Counter
from itertools import product
from math import exp, inf, prod

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from graphite_gen.families import family as family_of
from graphite_gen.families.powerlaw_tree import caterpillar, draw_degrees, sorted_spine
from graphite_gen.graph import SimpleGraph

from .helpers import ALPHA, fit, shape


def networkx_tree(n: int, gamma: float, seed: int, tries: int = 100) -> SimpleGraph:
    source = random.Random(seed)
    while True:
        try:
            return SimpleGraph.from_networkx(nx.random_powerlaw_tree(n, gamma, seed=source, tries=tries))
        except nx.NetworkXError:
            continue


def test_the_tree_of_given_degrees_is_that_of_networkx() -> None:
    rng = np.random.default_rng(0)
    for n in range(2, 20):
        degrees = draw_degrees(n, 2.5, rng)
        ours = SimpleGraph.from_pairs(n, caterpillar(degrees))

        assert sum(degrees) == 2 * n - 2
        assert sorted(ours.degrees()) == sorted(degrees)
        assert shape(ours) == shape(SimpleGraph.from_networkx(nx.degree_sequence_tree(degrees)))


@pytest.mark.parametrize("gamma", [1.5, 3.0, 8.0])
def test_degrees_are_rounded_pareto_variables_conditioned_on_their_sum(gamma: float) -> None:
    n, rng = 6, np.random.default_rng(0)
    edges = np.concatenate([np.arange(n) + 0.5, [np.inf]])
    q = dict(enumerate(np.diff(stats.pareto(gamma - 1).cdf(edges)).tolist(), start=1))
    expected: Counter[tuple[int, ...]] = Counter()
    for degrees in product(q, repeat=n):
        if sum(degrees) == 2 * n - 2:
            expected[degrees] = prod(q[degree] for degree in degrees)
    total = sum(expected.values())
    counts = Counter(tuple(draw_degrees(n, gamma, rng)) for _ in range(9000))

    assert fit(counts, {key: value / total for key, value in expected.items()}) > ALPHA


def test_large_trees_do_not_underflow() -> None:
    tree = family_of("tree").sample(600, np.random.default_rng(0))

    assert family_of("tree").contains(tree)
    assert -inf < family_of("tree").log_prob(tree) < 0


@pytest.mark.parametrize(
    ("name", "graph", "contained"),
    [
        ("one edge", nx.path_graph(2), True),
        ("path", nx.path_graph(7), True),
        ("star", nx.star_graph(6), True),
        ("broom", nx.Graph([(0, 1), (1, 2), (2, 3), (2, 4)]), True),
        ("high degree in the middle", nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (2, 5)]), False),
        ("spider", nx.Graph([(0, 1), (1, 2), (0, 3), (3, 4), (0, 5), (5, 6)]), False),
        ("one node", nx.empty_graph(1), False),
        ("cycle", nx.cycle_graph(5), False),
        ("cycle and a node", nx.disjoint_union(nx.cycle_graph(4), nx.empty_graph(1)), False),
    ],
)
def test_only_caterpillars_with_a_sorted_spine_are_contained(name: str, graph: nx.Graph, contained: bool) -> None:
    simple = SimpleGraph.from_networkx(graph)

    assert family_of("tree").contains(simple) == contained, name
    assert (family_of("tree").log_prob(simple) > -inf) == contained


def test_trees_of_networkx_are_contained() -> None:
    assert all(sorted_spine(networkx_tree(n, 3.0, seed)) is not None for n in (5, 12, 20) for seed in range(50))


def test_the_entropy_is_the_mean_over_samples() -> None:
    family, rng = family_of("tree"), np.random.default_rng(0)
    costs = [-family.log_prob(family.sample(14, rng)) for _ in range(2000)]

    assert family.entropy(14) == pytest.approx(np.mean(costs), abs=4 * np.std(costs) / 2000**0.5)
    assert family.entropy(60) is None


@pytest.mark.slow
def test_networkx_is_within_three_percent_of_the_distribution() -> None:
    family = family_of("tree")
    trees = [networkx_tree(8, 3.0, seed) for seed in range(20_000)]
    counts = Counter(map(shape, trees))
    rng = np.random.default_rng(0)
    ours = Counter(shape(family.sample(8, rng)) for _ in range(20_000))
    gap = sum(abs(counts[key] - ours[key]) for key in counts | ours) / 2 / 20_000

    assert gap < 0.03


@pytest.mark.slow
def test_trees_of_networkx_with_many_tries_have_the_published_mean() -> None:
    family = family_of("tree")
    trees = ([networkx_tree(n, 3.0, seed, tries=1000) for n in range(10, 21)] for seed in range(1500))
    costs = np.array([[-family.log_prob(tree) for tree in row] for row in trees])
    error = float(np.sqrt(costs.var(axis=0).sum() / len(costs)) / 11)

    assert costs.mean() == pytest.approx(27.30, abs=3 * error + 0.005)
    assert np.mean([family.entropy(n) for n in range(10, 21)]) == pytest.approx(27.384, abs=0.001)


def test_there_is_one_tree_on_three_nodes_up_to_labels() -> None:
    assert exp(family_of("tree").log_prob(SimpleGraph.from_pairs(3, [(0, 1), (1, 2)]))) == pytest.approx(1 / 3)
