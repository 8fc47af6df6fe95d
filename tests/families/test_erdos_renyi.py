from __future__ import annotations

from fractions import Fraction
from math import comb, inf, log

import numpy as np
import pytest
from tiny import path

from graphite_gen.families import family as family_of
from graphite_gen.families.erdos_renyi import log_connected
from graphite_gen.graph import SimpleGraph


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_p_of_0_and_1_give_one_graph(p: float) -> None:
    family = family_of("er", p=p)
    graph = family.sample(6, np.random.default_rng(0))

    assert len(graph.edges) == 15 * p
    assert family.log_prob(graph) == 0
    assert family.log_prob(SimpleGraph.from_pairs(6, [(0, 1)])) == -inf
    assert family.entropy(6) == 0


@pytest.mark.parametrize(("n", "count"), [(1, 1), (4, 38), (6, 26704), (10, 34496488594816)])
def test_the_largest_component_is_uniform_over_connected_graphs(n: int, count: int) -> None:
    family = family_of("er", largest_component=True)

    assert family.log_prob(path(n)) == pytest.approx(-log(count))
    assert family.entropy(n) == pytest.approx(log(count))
    # A sparse connected graph is almost surely a tree, and there are n^(n-2) of them.
    sparse = family_of("er", p=1e-9, largest_component=True)
    assert sparse.log_prob(path(n)) == pytest.approx(-(n - 2) * log(n), abs=1e-6)


def connected(n: int, p: Fraction) -> list[Fraction]:
    """The probabilities that 0 … n nodes are connected: one minus those of smaller components of a given node."""
    probabilities = [Fraction(0)]
    for k in range(1, n + 1):
        smaller = (comb(k - 1, a - 1) * probabilities[a] * (1 - p) ** (a * (k - a)) for a in range(1, k))
        probabilities.append(1 - sum(smaller))

    return probabilities


@pytest.mark.parametrize("p", ["1e-9", "0.001", "0.1", "0.5", "0.97", "1"])
def test_the_probability_of_connectedness_agrees_with_exact_arithmetic(p: str) -> None:
    exact = connected(25, Fraction(p))

    assert log_connected(25, float(p))[0] == -inf
    assert log_connected(25, float(p))[1:] == pytest.approx(
        [log(value.numerator) - log(value.denominator) for value in exact[1:]], rel=1e-12, abs=1e-12
    )
    # Without edges only one node is connected.
    assert log_connected(3, 0.0).tolist() == [-inf, 0, -inf, -inf]
    assert log_connected(0, 0.5).tolist() == [-inf]
