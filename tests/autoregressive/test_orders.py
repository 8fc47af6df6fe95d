"""Orders of arrival are drawn from the law that their probability states, and that law knows no node numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from graphite_gen.autoregressive import ordering as orders_module
from graphite_gen.autoregressive.ordering import chosen_log_prob, draw_chosen_orders, draw_orders
from graphite_gen.config import ORDERINGS

# A triangle with a tail and a stranger, padded by one place.
EDGES = [(0, 1), (1, 2), (2, 3), (1, 3)]
NODES, PLACES = 5, 6


def matrix(edges: list[tuple[int, int]], places: int = PLACES) -> NDArray[np.bool_]:
    adj = np.zeros((1, places, places), dtype=np.bool_)
    for i, j in edges:
        adj[0, i, j] = adj[0, j, i] = True

    return adj


def law(edges: list[tuple[int, int]], rule: str) -> dict[tuple[int, ...], float]:
    """The probability of every order of the nodes; none of them is even, so that nothing is chosen by it."""
    rng, found = np.random.default_rng(0), {}
    for nodes in itertools.permutations(range(NODES)):
        orders = np.array([[*nodes, *range(NODES, PLACES)]])
        found[nodes] = math.exp(chosen_log_prob(matrix(edges), np.array([NODES]), rule, orders, rng, part=0)[0])

    return found


@pytest.mark.parametrize("rule", ORDERINGS)
def test_the_orders_of_a_graph_have_probabilities_that_sum_to_one(rule: str) -> None:
    assert sum(law(EDGES, rule).values()) == pytest.approx(1)


@pytest.mark.parametrize("rule", ORDERINGS)
def test_draws_follow_their_stated_law(rule: str) -> None:
    draws = 6000
    adj, sizes = matrix(EDGES).repeat(draws, 0), np.full(draws, NODES)

    orders, log_q = draw_orders(adj, sizes, rule, np.random.default_rng(0))
    counts = Counter(map(tuple, orders[:, :NODES].tolist()))
    expected = law(EDGES, rule)

    assert (orders[:, NODES:] == np.arange(NODES, PLACES)).all()
    assert np.allclose(np.exp(log_q), [expected[tuple(order)] for order in orders[:, :NODES].tolist()])
    for order, probability in expected.items():
        spread = math.sqrt(draws * probability * (1 - probability))
        assert abs(counts[order] - draws * probability) <= 5 * spread + 1e-9


@pytest.mark.parametrize("rule", ORDERINGS)
def test_numbering_the_nodes_otherwise_changes_nothing(rule: str) -> None:
    names = [3, 0, 4, 1, 2]
    renamed = [(names[i], names[j]) for i, j in EDGES]

    there = law(renamed, rule)

    for order, probability in law(EDGES, rule).items():
        assert there[tuple(names[node] for node in order)] == pytest.approx(probability)


def graph_of(seed: int) -> nx.Graph:
    graph = nx.gnp_random_graph(12, 0.3, seed=seed)
    graph.add_edges_from((i, i + 1) for i in range(11))

    return graph


def order_of(graph: nx.Graph, rule: str, seed: int) -> list[int]:
    adj = nx.to_numpy_array(graph)[None] > 0
    orders, _ = draw_orders(adj, np.array([len(graph)]), rule, np.random.default_rng(seed))

    return [int(node) for node in orders[0]]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rule", ["frontier", "bfs", "dfs", "max-cardinality"])
def test_a_connected_graph_grows_connected(rule: str, seed: int) -> None:
    graph = graph_of(seed)
    order = order_of(graph, rule, seed)

    assert all(nx.is_connected(graph.subgraph(order[:count])) for count in range(1, len(order) + 1))


@pytest.mark.parametrize("seed", range(5))
def test_breadth_is_by_distance_from_a_node_of_the_highest_degree(seed: int) -> None:
    graph = graph_of(seed)
    order = order_of(graph, "bfs", seed)
    distance = nx.single_source_shortest_path_length(graph, order[0])

    assert graph.degree[order[0]] == max(degree for _, degree in graph.degree)
    assert [distance[node] for node in order] == sorted(distance.values())


@pytest.mark.parametrize("seed", range(5))
def test_peeling_removes_a_node_of_the_lowest_degree_left(seed: int) -> None:
    graph = graph_of(seed)

    for node in reversed(order_of(graph, "degeneracy", seed)):
        assert graph.degree[node] == min(degree for _, degree in graph.degree)
        graph.remove_node(node)


def test_the_inverse_probabilities_of_even_orders_count_them() -> None:
    draws = 3000
    path = matrix([(0, 1), (1, 2), (2, 3)], places=5).repeat(draws, 0)

    orders, log_q = draw_orders(path, np.full(draws, 4), "attachment", np.random.default_rng(0))

    # A path on four nodes grows node by node, each with one edge, in 2^3 orders.
    assert len(set(map(tuple, orders.tolist()))) == 8
    assert np.exp(-log_q).mean() == pytest.approx(8, rel=0.05)


def test_nodes_of_a_preferential_attachment_graph_bring_as_many_edges_each() -> None:
    graphs = [nx.barabasi_albert_graph(12, 3, seed=seed) for seed in range(40)]
    adj = np.stack([nx.to_numpy_array(graph) > 0 for graph in graphs])

    orders, _ = draw_orders(adj, np.full(40, 12), "attachment", np.random.default_rng(0))

    even = [
        all(sum(graph.has_edge(order[k], other) for other in order[:k]) == 3 for k in range(3, 12))
        for graph, order in zip(graphs, orders.tolist(), strict=True)
    ]
    assert np.mean(even) > 0.75


@pytest.mark.parametrize("rule", ORDERINGS)
def test_inverse_probabilities_of_chosen_orders_sum_anything_over_all_orders(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More orders by no rule than in use, so that a few thousand draws show what the rule leaves out.
    monkeypatch.setattr(orders_module, "UNEVEN", 0.3)
    draws, nodes = 6000, 4
    adj, sizes = matrix([(0, 1), (1, 2), (2, 3)], places=nodes).repeat(draws, 0), np.full(draws, nodes)
    worth = {order: 1 + number for number, order in enumerate(itertools.permutations(range(nodes)))}

    orders, log_q = draw_chosen_orders(adj, sizes, rule, np.random.default_rng(0), 0.5)
    terms = np.array([worth[tuple(order)] for order in orders.tolist()]) * np.exp(-log_q)

    error = terms.std() / math.sqrt(draws)
    assert error < 0.1 * sum(worth.values())
    assert abs(terms.mean() - sum(worth.values())) < 5 * error
