from __future__ import annotations

from math import inf, log

import networkx as nx
import numpy as np
import pytest
from tiny import all_graphs

from graphite_gen.families import family as family_of
from graphite_gen.families.ego import _universal

STAR, COMPLETE = nx.star_graph(5), nx.complete_graph(6)


def test_every_universal_node_may_be_the_ego_and_there_is_one() -> None:
    family = family_of("ego")

    assert family.log_prob(COMPLETE) == pytest.approx(-10 * log(2))
    assert family.log_prob(STAR) == pytest.approx(-10 * log(2) - log(6))
    assert not family.contains(nx.cycle_graph(6))
    assert family.log_prob(nx.path_graph(4)) == -inf


def test_p_of_0_and_1_give_stars_and_complete_graphs() -> None:
    for p, contained in ((0, [True, False]), (1, [False, True])):
        assert [family_of("ego", p=p).contains(graph) for graph in (STAR, COMPLETE)] == contained


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
