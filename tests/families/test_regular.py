from __future__ import annotations

from collections import Counter
from math import exp, factorial, inf, log

import networkx as nx
import numpy as np
import pytest

from graphite_gen.errors import FamilyError
from graphite_gen.families import family
from graphite_gen.families.regular import _draw_by_counting, count_connected_regular, count_regular
from graphite_gen.graph import SimpleGraph

from .helpers import CHANCE, fit, shape


@pytest.mark.parametrize(
    ("n", "d", "count"),
    [
        (0, 4, 1),
        (4, 4, 0),
        (5, 4, 1),
        (6, 4, 15),
        (8, 4, 19355),
        (10, 4, 66462606),
        (6, 3, 70),
        (10, 3, 11180820),
        (7, 3, 0),
        (8, 6, 105),
        (5, 0, 1),
    ],
)
def test_counts_are_those_of_the_encyclopedia(n: int, d: int, count: int) -> None:
    assert count_regular(n, d) == count


@pytest.mark.parametrize(("n", "count"), [(4, 1), (6, 70), (8, 19320), (10, 11166120)])
def test_connected_cubic_graphs_are_those_of_the_encyclopedia(n: int, count: int) -> None:
    assert count_connected_regular(n, 3) == count


def test_what_is_too_much_to_count_is_refused() -> None:
    with pytest.raises(FamilyError, match="too many 10-regular graphs on 60 nodes"):
        count_regular(60, 10)
    assert family("regular", d=10).entropy(60) is None


@pytest.mark.parametrize("n", [1200, 3000])
def test_many_nodes_are_counted_without_running_out_of_stack(n: int) -> None:
    # Perfect matchings: (n - 1)!! = n! / (2^(n/2) (n/2)!).
    assert count_regular(n, 1) == factorial(n) // (2 ** (n // 2) * factorial(n // 2))
    assert family("regular", d=2).entropy(n) is not None


def test_a_size_without_connected_graphs_has_no_floor() -> None:
    law = family("regular", d=1, largest_component=True)

    assert law.entropy(2) == 0
    assert law.entropy(10) is None


@pytest.mark.parametrize("d", [0, 1, 3, 4, 5, 6, 8, 9])
def test_all_degrees_are_d(d: int) -> None:
    law, rng = family("regular", d=d), np.random.default_rng(0)

    assert all((law.sample(10, rng).degrees() == d).all() for _ in range(20))


def test_large_graphs_of_large_degree_can_be_drawn() -> None:
    graph = family("regular", d=12).sample(80, np.random.default_rng(0))

    assert (graph.degrees() == 12).all()


def test_an_impostor_has_another_degree() -> None:
    law = family("regular")
    graph = law.sample(12, np.random.default_rng(0))

    assert not law.contains(SimpleGraph(12, graph.edges[1:]))
    assert law.log_prob(SimpleGraph(12, graph.edges[1:])) == -inf
    assert not law.contains(SimpleGraph.from_pairs(0, []))


def test_the_largest_component_is_uniform_over_connected_graphs() -> None:
    law = family("regular", d=3, largest_component=True)
    pieces = SimpleGraph.from_networkx(nx.disjoint_union(nx.complete_graph(4), nx.complete_graph(4)))
    cube = SimpleGraph.from_networkx(nx.convert_node_labels_to_integers(nx.hypercube_graph(3)))

    assert not law.contains(pieces)
    assert family("regular", d=3).contains(pieces)
    assert law.log_prob(cube) == pytest.approx(-log(19320))


def shapes_by_labellings(graphs: list[SimpleGraph]) -> dict[tuple[int, bytes], float]:
    """The uniform law over labelled graphs as a law over their shapes: n! / |Aut| each."""
    import igraph

    law = {shape(g): 1 / igraph.Graph(g.nodes, g.edges.tolist()).count_automorphisms() for g in graphs}
    total = sum(law.values())

    return {key: value / total for key, value in law.items()}


@pytest.mark.parametrize("n", [8, 9])
def test_shapes_are_uniform_over_labellings(n: int) -> None:
    law, rng = family("regular"), np.random.default_rng(n)
    graphs = [law.sample(n, rng) for _ in range(3000)]

    assert fit(Counter(map(shape, graphs)), shapes_by_labellings(graphs)) > CHANCE


def test_the_two_exact_samplers_agree() -> None:
    rng = np.random.default_rng(0)
    graphs = [SimpleGraph.from_adjacency(_draw_by_counting(8, 3, rng)) for _ in range(3000)]
    law = shapes_by_labellings(graphs)

    assert sum(law.values()) == pytest.approx(1)
    assert fit(Counter(map(shape, graphs)), law) > CHANCE


@pytest.mark.slow
def test_networkx_is_not_quite_uniform_on_small_graphs() -> None:
    rng = np.random.default_rng(0)
    ours = [family("regular").sample(8, rng) for _ in range(20_000)]
    theirs = [SimpleGraph.from_networkx(nx.random_regular_graph(4, 8, seed=seed)) for seed in range(20_000)]
    law = shapes_by_labellings(ours)

    assert fit(Counter(map(shape, ours)), law) > CHANCE
    assert fit(Counter(map(shape, theirs)), law) < 1e-6


def test_uniform_means_one_over_the_count() -> None:
    graph = family("regular").sample(10, np.random.default_rng(0))

    assert exp(-family("regular").log_prob(graph)) == pytest.approx(66462606)
