import time

import pytest
from hypothesis import given, settings
from tiny import random_graph

from graphite_gen.evaluation import orbits, sparse_union
from graphite_gen.evaluation.orbits import orbit_counts
from graphite_gen.graph import SimpleGraph

from .graphs import enumerated, small_graphs


@given(small_graphs())
@settings(max_examples=150, deadline=None)
def test_counts_of_any_small_graph_are_those_of_an_enumeration(graph: SimpleGraph) -> None:
    assert (orbit_counts([graph])[0] == enumerated(graph)).all()


@pytest.mark.parametrize("limits", [{}, {"MAX_WALKS": 100, "TRIANGLES": 7}])
@pytest.mark.parametrize(
    "dense", [{}, {"DENSE_NODES": 0}, {"DENSE_TRIANGLES": -1}, {"DENSE_NODES": 0, "DENSE_TRIANGLES": -1}]
)
def test_dense_and_sparse_code_paths_and_small_batches_agree_with_an_enumeration(
    monkeypatch: pytest.MonkeyPatch, limits: dict[str, int], dense: dict[str, int]
) -> None:
    sizes = ((9, 0.9), (12, 0.6), (3, 1.0), (1, 0.0), (10, 0.3), (13, 0.0), (13, 0.2), (13, 1.0))
    graphs = [random_graph(nodes, 1, density) for nodes, density in sizes]
    for name, value in {**limits, **dense}.items():
        monkeypatch.setattr(sparse_union if name == "MAX_WALKS" else orbits, name, value)

    for graph, counts in zip(graphs, orbit_counts(graphs), strict=True):
        assert (counts == enumerated(graph)).all()
    assert orbit_counts([]) == []


@pytest.mark.slow
def test_many_small_and_some_large_graphs_are_counted_in_seconds() -> None:
    for nodes, density, count, seconds in ((20, 0.3, 1000, 5), (200, 0.075, 200, 60)):
        graphs = [random_graph(nodes, seed, density) for seed in range(count)]
        started = time.process_time()
        orbit_counts(graphs)

        assert time.process_time() - started < seconds
