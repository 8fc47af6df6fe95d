from __future__ import annotations

from collections import Counter
from math import inf, log

import networkx as nx
import numpy as np
import pytest

from graphite_gen.families import family
from graphite_gen.families.ego import _universal
from graphite_gen.graph import SimpleGraph

from .helpers import CHANCE, agreement, all_graphs, shape


def networkx_ego(n: int, p: float, seed: int) -> SimpleGraph:
    graph = nx.gnp_random_graph(n - 1, p, seed=seed)
    graph.add_edges_from((node, n - 1) for node in range(n - 1))

    return SimpleGraph.from_networkx(graph)


def test_shapes_agree_with_a_graph_of_networkx_and_a_hub() -> None:
    law, rng = family("ego", p=0.4), np.random.default_rng(0)
    ours = Counter(shape(law.sample(6, rng)) for _ in range(3000))
    theirs = Counter(shape(networkx_ego(6, 0.4, seed)) for seed in range(3000))

    assert agreement(ours, theirs) > CHANCE


def test_every_universal_node_may_be_the_ego() -> None:
    complete = SimpleGraph.from_networkx(nx.complete_graph(6))
    star = SimpleGraph.from_networkx(nx.star_graph(5))
    law = family("ego")

    assert law.log_prob(complete) == pytest.approx(-10 * log(2))
    assert law.log_prob(star) == pytest.approx(-10 * log(2) - log(6))


def test_a_graph_without_a_universal_node_is_not_an_ego_network() -> None:
    law = family("ego")

    assert not law.contains(SimpleGraph.from_networkx(nx.cycle_graph(6)))
    assert law.log_prob(SimpleGraph.from_networkx(nx.path_graph(4))) == -inf


def test_at_the_ends_of_p_only_stars_or_complete_graphs_are_left() -> None:
    star, complete = SimpleGraph.from_networkx(nx.star_graph(5)), SimpleGraph.from_networkx(nx.complete_graph(6))

    assert family("ego", p=0).contains(star)
    assert not family("ego", p=0).contains(complete)
    assert family("ego", p=1).contains(complete)
    assert not family("ego", p=1).contains(star)


@pytest.mark.parametrize("p", [0.05, 0.99])
def test_the_floor_is_the_mean_over_samples(p: float) -> None:
    law, rng = family("ego", p=p), np.random.default_rng(0)
    costs = [-law.log_prob(law.sample(12, rng)) for _ in range(2000)]

    assert law.entropy(12) == pytest.approx(np.mean(costs), abs=4 * np.std(costs) / 2000**0.5)


@pytest.mark.parametrize("p", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_universal_nodes_are_as_frequent_as_over_all_graphs(n: int, p: float) -> None:
    expected = np.zeros(n + 1)
    for graph in all_graphs(n):
        missing = n * (n - 1) // 2 - len(graph.edges)
        expected[(graph.degrees() == n - 1).sum()] += p ** len(graph.edges) * (1 - p) ** missing

    assert _universal(n, p) == pytest.approx(expected)


@pytest.mark.parametrize("p", [0.5, 0.99, 0.9999])
def test_universal_nodes_of_large_graphs_keep_their_mean(p: float) -> None:
    law = _universal(700, p)

    assert law.sum() == pytest.approx(1)
    assert law @ np.arange(701) == pytest.approx(700 * p**699)
