import networkx as nx
import numpy as np
import pytest
from hypothesis import example, given, settings
from tiny import path, random_graph

from graphite_gen.errors import DatasetError
from graphite_gen.evaluation.descriptors import describe
from graphite_gen.graph import SimpleGraph

from .graphs import enumerated, small_graphs


@given(small_graphs())
@example(path(2))  # a bipartite graph keeps its largest eigenvalue, which may be rounded above 2
@settings(max_examples=60, deadline=None)
def test_histograms_of_any_graph_are_those_of_networkx(graph: SimpleGraph) -> None:
    whole = graph.to_networkx()
    eigenvalues = np.linalg.eigvalsh(nx.normalized_laplacian_matrix(whole).toarray()).clip(0, 2)

    found = describe([graph])

    for name, counts in {
        "degree": np.array(nx.degree_histogram(whole)),
        "clustering": np.histogram(list(nx.clustering(whole).values()), 100, (0, 1))[0],
        "orbit": enumerated(graph).sum(axis=0),
        "spectrum": np.histogram(eigenvalues, 200, (-1e-5, 2))[0],
    }.items():
        assert np.allclose(found[name][0], counts / graph.nodes)


def test_rows_of_many_graphs_are_the_rows_of_each() -> None:
    graphs = [random_graph(n, 0, 0.4) for n in (3, 11, 7)]

    for name, rows in describe(graphs).items():
        for graph, row in zip(graphs, rows, strict=True):
            alone = describe([graph])[name][0]
            assert np.allclose(row[: len(alone)], alone)
            assert not row[len(alone) :].any()


def test_a_graph_without_nodes_is_refused() -> None:
    with pytest.raises(DatasetError) as error:
        describe([SimpleGraph.from_pairs(1, []), SimpleGraph.from_pairs(0, [])])
    assert (error.value.reason, error.value.index) == ("empty-graph", 1)
