"""Isomorphic graphs, and no others, are recognised."""

from __future__ import annotations

import sys

import igraph
import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphite_gen.evaluation.isomorphism import are_isomorphic, find_isomorphic, isomorphism_classes, signatures
from graphite_gen.graph import SimpleGraph

from .graphs import random_graph, small_graphs


@pytest.fixture(params=["igraph", "networkx"])
def oracle(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without igraph installed."""
    if request.param == "networkx":
        monkeypatch.setitem(sys.modules, "igraph", None)


def simple(graph: nx.Graph) -> SimpleGraph:
    return SimpleGraph.from_networkx(nx.convert_node_labels_to_integers(graph))


@given(small_graphs(), st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_a_relabelled_graph_has_the_same_signature_and_is_isomorphic(graph: SimpleGraph, random) -> None:
    order = list(range(graph.nodes))
    random.shuffle(order)
    other = graph.permuted(order)

    assert len(set(signatures([graph, other]))) == 1
    assert are_isomorphic(graph, other)


def canonical(graph: SimpleGraph) -> tuple:
    own = igraph.Graph(n=graph.nodes, edges=graph.edges.tolist())
    moved = own.permute_vertices(own.canonical_permutation())

    return graph.nodes, tuple(sorted(tuple(sorted(edge)) for edge in moved.get_edgelist()))


@pytest.mark.usefixtures("oracle")
def test_classes_are_those_of_canonical_forms() -> None:
    rng = np.random.default_rng(0)
    graphs = [random_graph(5, 0.5, rng) for _ in range(150)]
    graphs += [simple(nx.random_regular_graph(3, 8, seed=seed)) for seed in range(40)]
    forms = [canonical(graph) for graph in graphs]

    assert isomorphism_classes(graphs) == [forms.index(form) for form in forms]


@pytest.mark.usefixtures("oracle")
def test_graphs_with_equal_signatures_are_compared_exactly() -> None:
    # Every node sees a long path in either direction, whether there is one ring or there are two.
    one, two = simple(nx.cycle_graph(14)), simple(nx.disjoint_union(nx.cycle_graph(7), nx.cycle_graph(7)))

    assert len(set(signatures([one, two]))) == 1
    assert not are_isomorphic(one, two)
    assert isomorphism_classes([one, two, one]) == [0, 1, 0]


@pytest.mark.usefixtures("oracle")
def test_the_first_isomorphic_graph_among_others_is_found() -> None:
    rng = np.random.default_rng(1)
    others = [random_graph(9, 0.4, rng) for _ in range(30)]
    wanted = [others[17].permuted(rng.permutation(9)), random_graph(12, 0.4, rng), others[3]]

    assert find_isomorphic(wanted, others) == [17, None, 3]
    assert find_isomorphic(wanted, []) == [None, None, None]
    assert find_isomorphic([], others) == []


def test_signatures_distinguish_nearly_all_regular_graphs() -> None:
    graphs = [simple(nx.random_regular_graph(4, 18, seed=seed)) for seed in range(200)]

    assert len(set(signatures(graphs))) >= len(set(isomorphism_classes(graphs))) - 1
