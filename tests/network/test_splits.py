from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from scipy.stats import chisquare

from graphite_gen.errors import GraphiteError
from graphite_gen.network.splits import contains_pairs, sample_non_edges, split_edges

from .graphs import pairs_of


@pytest.mark.parametrize("form", ["connected", "random"])
def test_parts_are_disjoint_and_have_their_sizes(form: str) -> None:
    graph = nx.gnm_random_graph(60, 200, seed=1)
    edges = pairs_of(graph)
    split = split_edges(60, edges, np.random.default_rng(0), form=form)

    assert (len(split.train), len(split.validation), len(split.test)) == (170, 10, 20)
    parts = [set(map(tuple, part.tolist())) for part in (split.train, split.validation, split.test)]
    assert set.union(*parts) == set(map(tuple, edges.tolist()))
    assert sum(map(len, parts)) == 200
    negatives = [tuple(pair) for pair in [*split.validation_negatives.tolist(), *split.test_negatives.tolist()]]
    assert len(set(negatives)) == len(negatives) == 30
    assert all(i < j and not graph.has_edge(i, j) for i, j in negatives)


def test_a_connected_split_keeps_every_component_connected() -> None:
    graph = nx.disjoint_union_all([nx.gnm_random_graph(20, 40, seed=seed) for seed in range(3)] + [nx.path_graph(4)])
    edges = pairs_of(graph)
    for seed in range(20):
        rest = nx.empty_graph(len(graph))
        rest.add_edges_from(split_edges(len(graph), edges, np.random.default_rng(seed)).train.tolist())
        assert nx.number_connected_components(rest) == nx.number_connected_components(graph)


def test_held_out_edges_follow_the_distribution_of_deletion_in_random_order() -> None:
    # Two triangles that share an edge, and a tail; two edges are held out.
    graph = nx.Graph([(0, 1), (1, 2), (0, 2), (1, 3), (2, 3), (3, 4)])
    edges = pairs_of(graph)
    draw, runs = np.random.default_rng(0), 4000

    def deleted() -> frozenset[tuple[int, int]]:
        rest, gone = graph.copy(), set()
        for i, j in draw.permutation(edges).tolist():
            rest.remove_edge(i, j)
            if nx.is_connected(rest):
                gone.add((i, j))
            else:
                rest.add_edge(i, j)
            if len(gone) == 2:
                break
        return frozenset(gone)

    def split() -> frozenset[tuple[int, int]]:
        found = split_edges(5, edges, draw, validation=0.2, test=0.2)
        return frozenset(map(tuple, np.concatenate([found.validation, found.test]).tolist()))

    wanted, found = (Counter(sample() for _ in range(runs)) for sample in (deleted, split))
    assert wanted.keys() == found.keys()
    expected = np.array([wanted[key] for key in wanted])
    difference = np.array([found[key] for key in wanted]) - expected
    # Both sides are random: twice the variance of one.
    assert (difference**2 / (2 * expected)).sum() < 30


@pytest.mark.parametrize(("nodes", "count"), [(6, 4), (40, 3)])
def test_non_edges_are_uniform(nodes: int, count: int) -> None:
    edges = pairs_of(nx.cycle_graph(nodes))
    draw = np.random.default_rng(0)
    found: Counter[tuple[int, int]] = Counter()
    for _ in range(3000):
        found.update(map(tuple, sample_non_edges(nodes, edges, count, draw).tolist()))
    free = [pair for pair in combinations(range(nodes), 2) if pair not in set(map(tuple, edges.tolist()))]

    assert set(found) == set(free)
    assert chisquare([found[pair] for pair in free]).pvalue > 1e-3


def test_contains_pairs_finds_edges() -> None:
    edges = pairs_of(nx.path_graph(4))

    assert contains_pairs(4, edges, np.array([[0, 1], [0, 2], [2, 3]])).tolist() == [True, False, True]
    assert contains_pairs(4, edges[:0], np.array([[0, 1]])).tolist() == [False]


@pytest.mark.parametrize(
    ("graph", "form", "problem"),
    [
        (nx.path_graph(30), "connected", "split-disconnects"),
        (nx.path_graph(3), "random", "2 edges"),
        (nx.empty_graph(1), "connected", "0 edges"),
        (nx.complete_graph(8), "connected", "too dense"),
        (nx.cycle_graph(8), "foo", "'foo'"),
    ],
)
def test_graphs_that_cannot_be_split_are_refused(graph: nx.Graph, form: str, problem: str) -> None:
    with pytest.raises(GraphiteError) as error:
        split_edges(len(graph), pairs_of(graph), np.random.default_rng(0), form=form)
    assert problem in f"{error.value.reason} {error.value}"
