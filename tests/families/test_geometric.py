from collections import Counter
from math import exp, inf, log, pi

import networkx as nx
import numpy as np
import pytest
from tiny import all_graphs

from graphite_gen.errors import FamilyError
from graphite_gen.families import family as family_of
from graphite_gen.families.geometric import Geometric
from graphite_gen.graph import SimpleGraph


def test_edges_join_points_up_to_the_radius() -> None:
    graph, points = Geometric(r=0.4).sample_with_points(15, np.random.default_rng(0))
    distances = np.linalg.norm(points[:, None] - points, axis=-1)

    assert points.min() >= 0
    assert points.max() <= 1
    assert np.array_equal(graph.adjacency(), (distances <= 0.4) & ~np.eye(15, dtype=bool))


def test_points_found_give_exactly_the_graph() -> None:
    family, rng = Geometric(), np.random.default_rng(0)
    for _ in range(40):
        graph = family.sample(20, rng)
        points = family.find_points(graph, rng)

        assert points is not None
        assert points.min() >= 0
        assert points.max() <= 1
        assert np.array_equal(family.graph_of(points).edges, graph.edges)


@pytest.mark.slow
@pytest.mark.parametrize("r", [0.2, 0.5, 0.8])
def test_nearly_all_samples_are_contained(r: float) -> None:
    family, rng = family_of("geometric", r=r), np.random.default_rng(0)

    assert np.mean([family.contains(family.sample(int(rng.integers(10, 21)), rng)) for _ in range(400)]) >= 0.99


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
        *((nx.gnp_random_graph(15, 0.5, seed), False) for seed in range(10)),
    ],
)
def test_known_unit_disk_graphs_of_the_square_are_contained(graph: nx.Graph, contained: bool) -> None:
    assert family_of("geometric").contains(SimpleGraph.from_networkx(graph)) == contained


def test_the_largest_component_is_connected() -> None:
    family, rng = family_of("geometric", r=0.2, largest_component=True), np.random.default_rng(0)
    graphs = [family.sample(12, rng) for _ in range(20)]

    assert all(nx.is_connected(graph.to_networkx()) for graph in graphs)
    assert min(graph.nodes for graph in graphs) < 12
    assert all(family.contains(graph) for graph in graphs)
    assert not family.contains(SimpleGraph.from_pairs(2, []))


def test_bounds_of_two_points_meet_at_the_closed_form() -> None:
    family, rng = Geometric(), np.random.default_rng(0)
    points = np.array([[0.2, 0.2], [0.4, 0.4]])
    bounds = family.log_prob_bounds(SimpleGraph.from_pairs(2, [(0, 1)]), rng, 20_000, points)

    # The probability that two uniform points of the unit square are at most r = 1/2 apart: πr² - 8r³/3 + r⁴/2.
    assert bounds == pytest.approx([log(pi / 4 - 1 / 3 + 1 / 32)] * 2, abs=0.04)


@pytest.mark.slow
def test_estimates_of_all_graphs_on_four_nodes_are_their_frequencies() -> None:
    family, rng = Geometric(), np.random.default_rng(0)
    counts = Counter(family.sample(4, rng).edges.tobytes() for _ in range(40_000))
    estimates = {g.edges.tobytes(): exp(family.log_prob_bounds(g, rng, 2000)[0]) for g in all_graphs(4)}

    assert sum(estimates.values()) == pytest.approx(1, abs=0.02)
    assert all(counts[key] / 40_000 == pytest.approx(estimates[key], rel=0.25, abs=1e-3) for key in estimates)


@pytest.mark.slow
def test_bounds_meet_and_averages_are_in_the_right_order() -> None:
    family = Geometric()
    bounds = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        graph, points = family.sample_with_points(10, rng)
        bounds.append(family.log_prob_bounds(graph, rng, 500, points))
    lower, upper = np.array(bounds).T
    gaps = upper - lower

    assert np.abs(gaps).max() < 1
    assert gaps.mean() > -3 * gaps.std() / 10**0.5


def test_bounds_of_an_impossible_graph_are_infinite_and_wrong_points_are_refused() -> None:
    rng = np.random.default_rng(0)
    graph, points = Geometric().sample_with_points(8, rng)

    assert Geometric().log_prob_bounds(SimpleGraph.from_networkx(nx.star_graph(6)), rng, 50) == (-inf, inf)
    with pytest.raises(FamilyError, match="points"):
        Geometric().log_prob_bounds(graph, rng, points=points / 10)
    with pytest.raises(FamilyError, match="largest_component=false"):
        Geometric(largest_component=True).log_prob_bounds(graph, rng)
