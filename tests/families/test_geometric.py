from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest

from graphite_gen.errors import FamilyError
from graphite_gen.families import family
from graphite_gen.families.geometric import Geometric
from graphite_gen.graph import SimpleGraph

from .helpers import CHANCE, agreement


def test_edges_join_points_up_to_the_radius() -> None:
    graph, points = Geometric(r=0.4).sample_with_points(15, np.random.default_rng(0))
    distances = np.linalg.norm(points[:, None] - points, axis=-1)

    assert points.min() >= 0
    assert points.max() <= 1
    assert np.array_equal(graph.adjacency(), (distances <= 0.4) & ~np.eye(15, dtype=bool))


def test_edge_counts_agree_with_networkx() -> None:
    law, rng = family("geometric"), np.random.default_rng(0)
    ours = Counter(len(law.sample(9, rng).edges) for _ in range(3000))
    theirs = Counter(nx.random_geometric_graph(9, 0.5, seed=s).number_of_edges() for s in range(3000))

    assert agreement(ours, theirs) > CHANCE


def test_points_found_give_exactly_the_graph() -> None:
    law, rng = Geometric(), np.random.default_rng(0)
    for _ in range(40):
        graph = law.sample(20, rng)
        points = law.find_points(graph, rng)

        assert points is not None
        assert points.min() >= 0
        assert points.max() <= 1
        assert np.array_equal(law.graph_of(points).edges, graph.edges)


@pytest.mark.slow
@pytest.mark.parametrize("r", [0.2, 0.5, 0.8])
def test_nearly_all_true_graphs_are_recognised(r: float) -> None:
    law, rng = family("geometric", r=r), np.random.default_rng(0)

    assert np.mean([law.contains(law.sample(int(rng.integers(10, 21)), rng)) for _ in range(400)]) >= 0.99


@pytest.mark.parametrize(
    ("graph", "contained"),
    [
        (nx.empty_graph(1), True),
        (nx.star_graph(5), True),
        (nx.star_graph(6), False),
        (nx.complete_bipartite_graph(2, 2), True),
        (nx.complete_bipartite_graph(2, 3), False),
        (nx.empty_graph(8), True),  # the widest eight points in the unit square are 0.518 apart
        (nx.empty_graph(9), False),  # nine points: exactly 0.5 apart
        (nx.complete_graph(20), True),
    ],
)
def test_what_the_plane_and_the_square_have_room_for_is_contained(graph: nx.Graph, contained: bool) -> None:
    assert family("geometric").contains(SimpleGraph.from_networkx(graph)) == contained


def test_dense_random_graphs_are_not_geometric() -> None:
    rng = np.random.default_rng(0)

    assert not any(family("geometric").contains(family("er").sample(15, rng)) for _ in range(10))


def test_the_largest_component_is_connected() -> None:
    law, rng = family("geometric", r=0.2, largest_component=True), np.random.default_rng(0)
    graphs = [law.sample(12, rng) for _ in range(20)]

    assert all(nx.is_connected(graph.to_networkx()) for graph in graphs)
    assert min(graph.nodes for graph in graphs) < 12
    assert all(law.contains(graph) for graph in graphs)
    assert not law.contains(SimpleGraph.from_pairs(2, []))


def test_there_is_no_exact_law() -> None:
    with pytest.raises(FamilyError, match="no tractable probability"):
        family("geometric").log_prob(SimpleGraph.from_pairs(2, []))
