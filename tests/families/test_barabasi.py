from itertools import permutations
from math import exp, factorial, inf

import networkx as nx
import numpy as np
import pytest

from graphite_gen.errors import FamilyError
from graphite_gen.families import family as family_of
from graphite_gen.graph import SimpleGraph

from .helpers import all_shapes, labellings


def rewired(graph: SimpleGraph, seed: int) -> SimpleGraph:
    """A graph with the same degrees, by double edge swaps."""
    other = nx.Graph(graph.to_networkx())
    nx.double_edge_swap(other, 3 * graph.nodes, max_tries=10_000, seed=seed)

    return SimpleGraph.from_networkx(other)


def ordered_probability(graph: SimpleGraph, order: tuple[int, ...], m: int) -> float:
    """The probability of the graph in this attachment order, the hub of the star first."""
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
def test_the_probability_is_the_sum_over_all_attachment_orders(n: int, m: int) -> None:
    family, rng = family_of("barabasi", m=m), np.random.default_rng(0)
    for _ in range(4):
        graph = family.sample(n, rng)
        total = sum(ordered_probability(graph, order, m) for order in permutations(range(n)))

        assert exp(family.log_prob(graph)) == pytest.approx(total / factorial(n))


@pytest.mark.parametrize("n", [6, 7])
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_probabilities_of_all_isomorphism_classes_add_up_to_one(m: int, n: int) -> None:
    family, graphs = family_of("barabasi", m=m), all_shapes(n)
    log_probs = [family.log_prob(graph) for graph in graphs]

    assert np.exp(log_probs) @ [labellings(graph) for graph in graphs] == pytest.approx(1)
    assert [family.contains(graph) for graph in graphs] == [value > -inf for value in log_probs]


@pytest.mark.parametrize("n", [10, 15, 20])
def test_containment_is_positive_probability_for_graphs_with_the_right_degrees(n: int) -> None:
    family, rng = family_of("barabasi"), np.random.default_rng(n)
    others = [rewired(family.sample(n, rng), seed) for seed in range(10)]

    assert [family.contains(graph) for graph in others] == [family.log_prob(graph) > -inf for graph in others]
    assert not all(family.contains(graph) for graph in others) or n == 10


def with_twins(core: SimpleGraph, count: int) -> SimpleGraph:
    """The core and more nodes, each joined to the first four."""
    n = core.nodes

    return SimpleGraph.from_pairs(
        n + count, [*core.edges.tolist(), *((v, n + i) for i in range(count) for v in range(4))]
    )


def test_an_impossible_core_is_rejected_with_many_nodes_attached() -> None:
    # A star has five nodes: one of six twins can be removed first, so more twins change nothing.
    family, rng = family_of("barabasi"), np.random.default_rng(0)
    cores = [rewired(family.sample(12, rng), seed) for seed in range(15)]
    possible = [family.log_prob(with_twins(core, 6)) > -inf for core in cores]
    degenerate = [max(nx.core_number(core.to_networkx()).values()) <= 4 for core in cores]

    assert [family.contains(with_twins(core, 40)) for core in cores] == possible
    # The degeneracy alone does not reject all of them.
    assert any(small and not able for small, able in zip(degenerate, possible, strict=True))


@pytest.mark.parametrize(("m", "n", "fact"), [(1, 70, "n=63"), (30, 40, "m=12"), (4, 1000, "n=63")])
def test_large_samples_are_contained_but_have_no_exact_probability(m: int, n: int, fact: str) -> None:
    family = family_of("barabasi", m=m)
    graph = family.sample(n, np.random.default_rng(0))

    assert family.contains(graph)
    # As many edges, but no order of removal ends with a star.
    assert not family_of("barabasi", m=1).contains(nx.disjoint_union(nx.cycle_graph(3), nx.star_graph(60)))
    with pytest.raises(FamilyError, match=fact) as error:
        family.log_prob(graph)
    assert error.value.reason == "intractable"
