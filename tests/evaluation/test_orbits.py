"""Orbit counts are those of an enumeration of all small subgraphs."""

from __future__ import annotations

import itertools
import time

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings

from graphite_gen.evaluation import orbits
from graphite_gen.evaluation import sparse_union as _union
from graphite_gen.evaluation.orbits import ORBITS, orbit_counts
from graphite_gen.graph import SimpleGraph

from .graphs import random_graph, small_graphs

# The orbit of a node by the sorted degrees of its subgraph and its own degree in it, which identify it.
PARTS = {
    ((1, 1), 1): 0,
    ((1, 1, 2), 1): 1,
    ((1, 1, 2), 2): 2,
    ((2, 2, 2), 2): 3,
    ((1, 1, 2, 2), 1): 4,
    ((1, 1, 2, 2), 2): 5,
    ((1, 1, 1, 3), 1): 6,
    ((1, 1, 1, 3), 3): 7,
    ((2, 2, 2, 2), 2): 8,
    ((1, 2, 2, 3), 1): 9,
    ((1, 2, 2, 3), 2): 10,
    ((1, 2, 2, 3), 3): 11,
    ((2, 2, 3, 3), 2): 12,
    ((2, 2, 3, 3), 3): 13,
    ((3, 3, 3, 3), 3): 14,
}


def enumerated(graph: SimpleGraph) -> np.ndarray:
    whole = graph.to_networkx()
    counts = np.zeros((graph.nodes, ORBITS), dtype=np.int64)
    for size in (2, 3, 4):
        for nodes in itertools.combinations(range(graph.nodes), size):
            part = whole.subgraph(nodes)
            if nx.is_connected(part):
                degrees = dict(part.degree())
                for node in nodes:
                    counts[node, PARTS[tuple(sorted(degrees.values())), degrees[node]]] += 1

    return counts


@given(small_graphs())
@settings(max_examples=150, deadline=None)
def test_counts_of_any_small_graph_are_those_of_an_enumeration(graph: SimpleGraph) -> None:
    assert (orbit_counts([graph])[0] == enumerated(graph)).all()


@pytest.mark.parametrize(("triangles", "room"), [(orbits.DENSE_TRIANGLES, 0), (-1, 0), (-1, orbits.DENSE_NODES)])
def test_dense_and_sparse_code_paths_agree_with_an_enumeration(
    monkeypatch: pytest.MonkeyPatch, triangles: int, room: int
) -> None:
    rng = np.random.default_rng(1)
    sizes = ((9, 0.9), (12, 0.6), (3, 1.0), (10, 0.3), (13, 0.0), (13, 0.2), (13, 1.0))
    graphs = [random_graph(nodes, density, rng) for nodes, density in sizes]
    monkeypatch.setattr(orbits, "DENSE_TRIANGLES", triangles)
    monkeypatch.setattr(orbits, "DENSE_NODES", room)

    for graph, counts in zip(graphs, orbit_counts(graphs), strict=True):
        assert (counts == enumerated(graph)).all()


def test_counts_do_not_depend_on_the_batch_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    graphs = [random_graph(int(n), 0.6, rng) for n in (9, 1, 12, 5)]
    whole = orbit_counts(graphs)

    monkeypatch.setattr(_union, "MAX_WALKS", 100)
    monkeypatch.setattr(orbits, "TRIANGLES", 7)

    assert all((a == b).all() for a, b in zip(whole, orbit_counts(graphs), strict=True))
    assert orbit_counts([]) == []


@pytest.mark.slow
def test_many_small_and_some_large_graphs_are_counted_in_seconds() -> None:
    rng = np.random.default_rng(2)
    for nodes, density, count, seconds in ((20, 0.3, 1000, 5), (200, 0.075, 200, 60)):
        graphs = [random_graph(nodes, density, rng) for _ in range(count)]
        started = time.process_time()
        orbit_counts(graphs)

        assert time.process_time() - started < seconds
