import networkx as nx
import numpy as np
import pytest
from tiny import path

from graphite_gen.errors import DatasetError
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph
from graphite_gen.viz.layout import MAX_NODES, check_drawable, place_nodes

COMPONENTS = {
    "no nodes": [],
    "one node": [nx.empty_graph(1)],
    "no edges": [nx.empty_graph(5)],
    "star": [nx.star_graph(9)],
    "path": [nx.path_graph(12)],
    "complete": [nx.complete_graph(7)],
    "path and ring": [nx.path_graph(2), nx.cycle_graph(8)],
    "components": [nx.cycle_graph(6), nx.path_graph(3), nx.empty_graph(2)],
    "large": [nx.gnm_random_graph(300, 900, seed=0), nx.path_graph(4)],
}
GRAPHS = {
    name: SimpleGraph.from_networkx(nx.disjoint_union_all([nx.Graph(), *parts])) for name, parts in COMPONENTS.items()
}


def stress(graph: nx.Graph, points: np.ndarray) -> float:
    """The stress of a layout at its best scale."""
    hops = np.array(nx.floyd_warshall_numpy(graph))
    above = np.triu_indices(len(hops), 1)
    d, p = hops[above], np.linalg.norm(points[:, None] - points, axis=-1)[above]
    scale = (p / d).sum() / (p**2 / d**2).sum()

    return float((((scale * p - d) / d) ** 2).sum())


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_nodes_are_apart_and_within_the_square(graph: SimpleGraph) -> None:
    points = place_nodes(graph)

    assert points.shape == (graph.nodes, 2)
    assert np.isfinite(points).all()
    assert np.abs(points).max(initial=0) <= 1 + 1e-9
    apart = np.linalg.norm(points[:, None] - points, axis=-1) + np.eye(graph.nodes)
    assert graph.nodes < 2 or apart.min() > (0.05 if graph.nodes < 20 else 0)
    assert (place_nodes(graph) == points).all()


@pytest.mark.parametrize("family", ["barabasi", "geometric", "powerlaw-tree"])
def test_stress_is_about_that_of_kamada_kawai(family: str) -> None:
    for graph in generate(family, 4, seed=3).graphs:
        other = graph.to_networkx()
        if nx.is_connected(other):
            theirs = np.array(list(nx.kamada_kawai_layout(other).values()))
            assert stress(other, place_nodes(graph)) < 1.1 * stress(other, theirs)


def test_graphs_that_are_too_large_are_refused() -> None:
    with pytest.raises(DatasetError) as error:
        check_drawable(SimpleGraph.from_pairs(MAX_NODES + 1, []), 3)

    assert (error.value.index, error.value.nodes) == (3, MAX_NODES + 1)


def test_components_are_packed_in_rows_the_largest_first_with_their_longer_side_horizontal() -> None:
    two, nine, one = map(place_nodes, (GRAPHS["path and ring"], SimpleGraph.from_pairs(9, []), path(12)))

    assert (two[2:, 0].min(), two[2:, 1].max()) == pytest.approx((two[:, 0].min(), two[:, 1].max()))
    assert [len(np.unique(axis)) for axis in nine.round(6).T] == [3, 3]
    width, height = np.ptp(one, axis=0)
    assert width > 2 * height
