import random
from collections import Counter
from itertools import product
from math import inf, prod

import networkx as nx
import numpy as np
import pytest
from scipy import stats

from graphite_gen.families import family as family_of
from graphite_gen.families.powerlaw_tree import caterpillar, draw_degrees
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
    assert family_of("tree").entropy(60) is None


@pytest.mark.parametrize(
    ("graph", "contained"),
    [
        (nx.path_graph(2), True),
        (nx.path_graph(7), True),
        (nx.star_graph(6), True),
        (nx.Graph([(0, 1), (1, 2), (2, 3), (2, 4)]), True),  # a broom
        (nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (2, 5)]), False),  # a high degree in the middle
        (nx.Graph([(0, 1), (1, 2), (0, 3), (3, 4), (0, 5), (5, 6)]), False),  # a spider
        (nx.empty_graph(1), False),
        (nx.cycle_graph(5), False),
        (nx.disjoint_union(nx.cycle_graph(4), nx.empty_graph(1)), False),
    ],
)
def test_only_caterpillars_with_a_sorted_spine_are_contained(graph: nx.Graph, contained: bool) -> None:
    assert family_of("tree").contains(graph) == contained
    assert (family_of("tree").log_prob(graph) > -inf) == contained


@pytest.mark.slow
def test_trees_of_networkx_are_close_to_the_distribution() -> None:
    # With the published number of tries, 1000, their mean -log p is 27.30 nats.
    family, rng, draws = family_of("tree"), np.random.default_rng(0), 5000
    theirs = Counter(shape(networkx_tree(8, 3.0, seed)) for seed in range(draws))
    ours = Counter(shape(family.sample(8, rng)) for _ in range(draws))
    costs = np.array(
        [[-family.log_prob(networkx_tree(n, 3.0, seed, 1000)) for n in range(10, 21)] for seed in range(250)]
    )
    error = float(np.sqrt(costs.var(axis=0).sum() / len(costs)) / 11)

    assert sum(abs(theirs[key] - ours[key]) for key in theirs | ours) / 2 / draws < 0.04
    assert costs.mean() == pytest.approx(27.30, abs=3 * error + 0.005)
