"""Descriptors agree with networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from graphite_gen.errors import DatasetError
from graphite_gen.evaluation.descriptors import (
    clustering_histograms,
    degree_histograms,
    describe,
    orbit_means,
    spectrum_histograms,
)
from graphite_gen.graph import SimpleGraph

from .graphs import random_graph, small_graphs


@given(small_graphs())
@settings(max_examples=60, deadline=None)
def test_histograms_of_any_graph_are_those_of_networkx(graph: SimpleGraph) -> None:
    whole = graph.to_networkx()
    degrees = np.array(nx.degree_histogram(whole))
    clustering = np.histogram(list(nx.clustering(whole).values()), 100, (0, 1))[0]

    assert np.allclose(degree_histograms([graph])[0], degrees / graph.nodes)
    assert np.allclose(clustering_histograms([graph])[0], clustering / graph.nodes)


@given(small_graphs())
@settings(max_examples=60, deadline=None)
def test_the_spectrum_of_any_graph_is_that_of_networkx(graph: SimpleGraph) -> None:
    matrix = nx.normalized_laplacian_matrix(graph.to_networkx()).toarray()
    values = np.clip(np.linalg.eigvalsh(matrix), 0, 2)

    found = spectrum_histograms([graph])[0]

    assert np.allclose(found, np.histogram(values, 200, (-1e-5, 2))[0] / graph.nodes)


def test_the_spectrum_of_a_bipartite_graph_keeps_its_largest_eigenvalue() -> None:
    path = SimpleGraph.from_pairs(2, [(0, 1)])

    row = spectrum_histograms([path])[0]

    assert row[0] == row[-1] == 0.5


def test_rows_of_many_graphs_are_the_rows_of_each() -> None:
    rng = np.random.default_rng(0)
    graphs = [random_graph(int(n), 0.4, rng) for n in (3, 11, 7)]

    together = describe(graphs)

    for name, rows in together.items():
        for graph, row in zip(graphs, rows, strict=True):
            alone = describe([graph])[name][0]
            assert np.allclose(row[: len(alone)], alone)
            assert not row[len(alone) :].any()


def test_orbit_means_of_a_triangle_with_a_leaf() -> None:
    paw = SimpleGraph.from_pairs(4, [(0, 1), (1, 2), (0, 2), (2, 3)])

    row = orbit_means([paw])[0]

    assert np.allclose(row * 4, [8, 4, 2, 3, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0, 0])


def test_a_graph_without_nodes_is_refused() -> None:
    with pytest.raises(DatasetError) as error:
        describe([SimpleGraph.from_pairs(1, []), SimpleGraph.from_pairs(0, [])])
    assert (error.value.reason, error.value.index) == ("empty-graph", 1)
