"""Drawings keep distances as well as those of networkx, whatever the graph."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from graphite_gen.errors import DatasetError
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph
from graphite_gen.viz.layout import check_drawable, place_nodes

KINDS = {
    "nothing": nx.empty_graph(0),
    "one node": nx.empty_graph(1),
    "no edges": nx.empty_graph(5),
    "star": nx.star_graph(9),
    "path": nx.path_graph(12),
    "complete": nx.complete_graph(7),
    "parts": nx.disjoint_union_all([nx.cycle_graph(6), nx.path_graph(3), nx.empty_graph(2)]),
}


def stress(graph: nx.Graph, points: np.ndarray) -> float:
    """The stress of the best scaling of a drawing."""
    hops = np.array(nx.floyd_warshall_numpy(graph))
    above = np.triu_indices(len(hops), 1)
    d, p = hops[above], np.linalg.norm(points[:, None] - points, axis=-1)[above]
    scale = (p / d).sum() / (p**2 / d**2).sum()

    return float((((scale * p - d) / d) ** 2).sum())


@pytest.mark.parametrize("name", KINDS)
def test_nodes_have_places_of_their_own_within_the_square(name: str) -> None:
    graph = SimpleGraph.from_networkx(KINDS[name])
    points = place_nodes(graph)

    assert points.shape == (graph.nodes, 2)
    assert np.isfinite(points).all()
    assert np.abs(points).max(initial=0) <= 1 + 1e-9
    apart = np.linalg.norm(points[:, None] - points, axis=-1) + np.eye(graph.nodes)
    assert graph.nodes < 2 or apart.min() > 0.05
    assert (place_nodes(graph) == points).all()


@pytest.mark.parametrize("family", ["barabasi", "geometric", "powerlaw-tree"])
def test_distances_are_kept_about_as_well_as_networkx_keeps_them(family: str) -> None:
    for graph in generate(family, 4, seed=3).graphs:
        other = graph.to_networkx()
        if nx.is_connected(other):
            places = nx.kamada_kawai_layout(other)
            theirs = np.array([places[node] for node in range(graph.nodes)])
            assert stress(other, place_nodes(graph)) < 1.1 * stress(other, theirs)


def test_a_blot_is_not_drawn() -> None:
    with pytest.raises(DatasetError, match="Graph 3 has 1001 nodes, and at most 1000 are drawn"):
        check_drawable(SimpleGraph.from_pairs(1001, []), 3)
