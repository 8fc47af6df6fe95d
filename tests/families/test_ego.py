from __future__ import annotations

from collections import Counter
from math import inf, log

import networkx as nx
import numpy as np
import pytest

from graphite_gen.families import family as family_of
from graphite_gen.families.ego import _universal
from graphite_gen.graph import SimpleGraph

from .helpers import ALPHA, agreement, all_graphs, shape


def networkx_ego(n: int, p: float, seed: int) -> SimpleGraph:
    graph = nx.gnp_random_graph(n - 1, p, seed=seed)
    graph.add_edges_from((node, n - 1) for node in range(n - 1))

    return SimpleGraph.from_networkx(graph)


def test_isomorphism_classes_agree_with_networkx_and_a_hub() -> None:
    family, rng = family_of("ego", p=0.4), np.random.default_rng(0)
    ours = Counter(shape(family.sample(6, rng)) for _ in range(3000))
    theirs = Counter(shape(networkx_ego(6, 0.4, seed)) for seed in range(3000))

    assert agreement(ours, theirs) > ALPHA


def test_every_universal_node_may_be_the_ego() -> None:
    complete = SimpleGraph.from_networkx(nx.complete_graph(6))
    star = SimpleGraph.from_networkx(nx.star_graph(5))
    family = family_of("ego")

    assert family.log_prob(complete) == pytest.approx(-10 * log(2))
    assert family.log_prob(star) == pytest.approx(-10 * log(2) - log(6))


def test_a_graph_without_a_universal_node_is_not_an_ego_network() -> None:
    family = family_of("ego")

    assert not family.contains(SimpleGraph.from_networkx(nx.cycle_graph(6)))
    assert family.log_prob(SimpleGraph.from_networkx(nx.path_graph(4))) == -inf


def test_p_of_0_and_1_give_stars_and_complete_graphs() -> None:
    star, complete = SimpleGraph.from_networkx(nx.star_graph(5)), SimpleGraph.from_networkx(nx.complete_graph(6))

    assert family_of("ego", p=0).contains(star)
    assert not family_of("ego", p=0).contains(complete)
    assert family_of("ego", p=1).contains(complete)
    assert not family_of("ego", p=1).contains(star)


@pytest.mark.parametrize("p", [0.05, 0.99])
def test_the_entropy_is_the_mean_over_samples(p: float) -> None:
    family, rng = family_of("ego", p=p), np.random.default_rng(0)
    costs = [-family.log_prob(family.sample(12, rng)) for _ in range(2000)]

    assert family.entropy(12) == pytest.approx(np.mean(costs), abs=4 * np.std(costs) / 2000**0.5)


@pytest.mark.parametrize("p", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_the_number_of_universal_nodes_agrees_with_enumeration(n: int, p: float) -> None:
    expected = np.zeros(n + 1)
    for graph in all_graphs(n):
        missing = n * (n - 1) // 2 - len(graph.edges)
        expected[(graph.degrees() == n - 1).sum()] += p ** len(graph.edges) * (1 - p) ** missing

    assert _universal(n, p) == pytest.approx(expected)


@pytest.mark.parametrize("p", [0.5, 0.99, 0.9999])
def test_universal_nodes_of_large_graphs_keep_their_mean(p: float) -> None:
    probabilities = _universal(700, p)

    assert probabilities.sum() == pytest.approx(1)
    assert probabilities @ np.arange(701) == pytest.approx(700 * p**699)
