from collections import Counter
from collections.abc import Hashable
from math import factorial, log

import networkx as nx
import numpy as np
import pytest

from graphite_gen.errors import FamilyError
from graphite_gen.families import family as family_of
from graphite_gen.families.regular import _draw_by_counting, count_connected_regular, count_regular
from graphite_gen.graph import SimpleGraph

from .helpers import ALPHA, fit, labellings, shape


@pytest.mark.parametrize(
    ("d", "counts"),
    [
        (0, {5: 1}),
        (3, {6: 70, 7: 0, 10: 11180820}),
        (4, {0: 1, 4: 0, 5: 1, 6: 15, 8: 19355, 10: 66462606}),
        (6, {8: 105}),
    ],
)
def test_counts_are_those_of_the_oeis(d: int, counts: dict[int, int]) -> None:
    assert {n: count_regular(n, d) for n in counts} == counts
    assert [count_connected_regular(n, 3) for n in (4, 6, 8, 10)] == [1, 70, 19320, 11166120]


def test_a_size_without_connected_graphs_or_with_too_many_to_count_has_no_entropy() -> None:
    with pytest.raises(FamilyError) as error:
        count_regular(60, 10)
    assert error.value.reason == "intractable"
    assert family_of("regular", d=10).entropy(60) is None
    pairs = family_of("regular", d=1, largest_component=True)
    assert (pairs.entropy(2), pairs.entropy(10)) == (0, None)


@pytest.mark.parametrize("n", [1200, 3000])
def test_many_nodes_are_counted_without_running_out_of_stack(n: int) -> None:
    # Perfect matchings: (n - 1)!! = n! / (2^(n/2) (n/2)!).
    assert count_regular(n, 1) == factorial(n) // (2 ** (n // 2) * factorial(n // 2))
    assert family_of("regular", d=2).entropy(n) is not None


@pytest.mark.parametrize("d", [0, 1, 3, 4, 5, 6, 8, 9])
def test_all_degrees_are_d(d: int) -> None:
    family, rng = family_of("regular", d=d), np.random.default_rng(0)

    assert all((family.sample(10, rng).degrees() == d).all() for _ in range(20))
    # Large ones come from networkx.
    assert (family_of("regular", d=12).sample(80, rng).degrees() == 12).all()


def test_the_largest_component_is_uniform_over_connected_graphs() -> None:
    family = family_of("regular", d=3, largest_component=True)
    pieces = nx.disjoint_union(nx.complete_graph(4), nx.complete_graph(4))

    assert not family.contains(pieces)
    assert family_of("regular", d=3).contains(pieces)
    assert family.log_prob(nx.hypercube_graph(3)) == pytest.approx(-log(19320))


def shapes_by_labellings(graphs: list[SimpleGraph]) -> dict[Hashable, float]:
    """The uniform distribution over labelled graphs as one over isomorphism classes."""
    weights = {shape(graph): labellings(graph) for graph in graphs}
    total = sum(weights.values())

    return {key: value / total for key, value in weights.items()}


@pytest.mark.parametrize("n", [8, 9])
def test_isomorphism_classes_are_uniform_over_labellings(n: int) -> None:
    family, rng = family_of("regular"), np.random.default_rng(n)
    graphs = [family.sample(n, rng) for _ in range(3000)]

    assert fit(Counter(map(shape, graphs)), shapes_by_labellings(graphs)) > ALPHA


@pytest.mark.slow
def test_the_second_exact_sampler_agrees_and_networkx_is_not_quite_uniform() -> None:
    rng = np.random.default_rng(0)
    cubic = [SimpleGraph.from_adjacency(_draw_by_counting(8, 3, rng)) for _ in range(3000)]
    distribution = shapes_by_labellings([family_of("regular").sample(8, rng) for _ in range(500)])
    theirs = [SimpleGraph.from_networkx(nx.random_regular_graph(4, 8, seed=seed)) for seed in range(8000)]

    assert fit(Counter(map(shape, cubic)), shapes_by_labellings(cubic)) > ALPHA
    assert fit(Counter(map(shape, theirs)), distribution) < 1e-3
