"""Node orderings follow their stated probabilities, which do not depend on node numbers."""

import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from numpy.typing import NDArray

from graphite_gen.autoregressive import ordering
from graphite_gen.autoregressive.ordering import proposal_log_prob, propose_orderings, sample_orderings
from graphite_gen.config import ORDERINGS

# A triangle with a tail and an isolated node, with padding.
EDGES = [(0, 1), (1, 2), (2, 3), (1, 3)]
NODES, PADDED = 5, 6


def matrix(edges: list[tuple[int, int]], padded: int = PADDED) -> NDArray[np.bool_]:
    adj = np.zeros((1, padded, padded), dtype=np.bool_)
    for i, j in edges:
        adj[0, i, j] = adj[0, j, i] = True

    return adj


def distribution(edges: list[tuple[int, int]], rule: str, soft: float = 0.0) -> dict[tuple[int, ...], float]:
    """The probability of every ordering; none of them is regular, so all have the same weight."""
    adj, rng = matrix(edges).repeat(math.factorial(NODES), 0), np.random.default_rng(0)
    orders = [(*nodes, *range(NODES, PADDED)) for nodes in itertools.permutations(range(NODES))]
    log_q = proposal_log_prob(adj, np.full(len(adj), NODES), rule, np.array(orders), rng, soft)

    return {order[:NODES]: probability for order, probability in zip(orders, np.exp(log_q).tolist(), strict=True)}


@pytest.mark.parametrize("rule", ORDERINGS)
def test_samples_follow_their_stated_probabilities(rule: str) -> None:
    draws = 6000
    adj, sizes = matrix(EDGES).repeat(draws, 0), np.full(draws, NODES)

    orders, log_q = sample_orderings(adj, sizes, rule, np.random.default_rng(0))
    counts = Counter(map(tuple, orders[:, :NODES].tolist()))
    expected = distribution(EDGES, rule)

    assert sum(expected.values()) == pytest.approx(1)
    assert (orders[:, NODES:] == np.arange(NODES, PADDED)).all()
    assert np.allclose(np.exp(log_q), [expected[tuple(order)] for order in orders[:, :NODES].tolist()])
    for order, probability in expected.items():
        spread = math.sqrt(draws * probability * (1 - probability))
        assert abs(counts[order] - draws * probability) <= 5 * spread + 1e-9


@pytest.mark.parametrize("rule", ORDERINGS)
def test_softened_rules_give_every_ordering_with_its_stated_probability(rule: str) -> None:
    draws = 6000
    adj, sizes = matrix(EDGES).repeat(draws, 0), np.full(draws, NODES)

    orders, log_q = propose_orderings(adj, sizes, rule, np.random.default_rng(0), 0.6)
    counts = Counter(map(tuple, orders[:, :NODES].tolist()))
    expected = distribution(EDGES, rule, 0.6)

    assert sum(expected.values()) == pytest.approx(1)
    assert min(expected.values()) > 0
    assert np.allclose(np.exp(log_q), [expected[tuple(order)] for order in orders[:, :NODES].tolist()])
    for order, probability in expected.items():
        assert abs(counts[order] - draws * probability) <= 5 * math.sqrt(draws * probability)


def test_softened_rules_mix_uniform_and_rule_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "SOFTNESS", (0.2,))
    # A star: 'max-degree' puts its centre first, and then any node.
    adj, sizes = matrix([(0, 1), (0, 2)], padded=3), np.array([3])

    found = [
        np.exp(proposal_log_prob(adj, sizes, "max-degree", np.array([order]), np.random.default_rng(0), 0.5))[0]
        for order in ([0, 1, 2], [1, 0, 2])
    ]

    assert found == pytest.approx([(0.5 + 0.5 * (0.8 + 0.2 / 3)) / 2, 0.5 * (0.2 / 3) / 2])


@pytest.mark.parametrize("seed", range(8))
def test_onion_orders_by_layer_from_the_innermost(seed: int) -> None:
    graphs = [nx.gnp_random_graph(nodes, 0.25, seed=seed) for nodes in (12, 9)]
    adj = np.zeros((2, 12, 12), dtype=np.bool_)
    for row, graph in zip(adj, graphs, strict=True):
        row[: len(graph), : len(graph)] = nx.to_numpy_array(graph) > 0

    orders, log_q = sample_orderings(adj, np.array([12, 9]), "onion", np.random.default_rng(seed))

    for graph, order, value in zip(graphs, orders.tolist(), log_q.tolist(), strict=True):
        layers = nx.onion_layers(graph)
        assert [layers[node] for node in order[: len(graph)]] == sorted(layers.values(), reverse=True)
        assert value == pytest.approx(-sum(math.lgamma(count + 1) for count in Counter(layers.values()).values()))


@pytest.mark.parametrize("rule", ORDERINGS)
def test_probabilities_do_not_depend_on_node_numbers(rule: str) -> None:
    names = [3, 0, 4, 1, 2]
    there = distribution([(names[i], names[j]) for i, j in EDGES], rule)

    for order, probability in distribution(EDGES, rule).items():
        assert there[tuple(names[node] for node in order)] == pytest.approx(probability)


def graph_and_order(rule: str, seed: int) -> tuple[nx.Graph, list[int]]:
    """A connected random graph and an ordering of its nodes."""
    graph = nx.gnp_random_graph(12, 0.3, seed=seed)
    graph.add_edges_from((i, i + 1) for i in range(11))
    adj = nx.to_numpy_array(graph)[None] > 0

    return graph, sample_orderings(adj, np.array([12]), rule, np.random.default_rng(seed))[0][0].tolist()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rule", ["frontier", "bfs", "dfs", "max-cardinality"])
def test_prefixes_of_connected_graphs_are_connected(rule: str, seed: int) -> None:
    graph, order = graph_and_order(rule, seed)

    assert all(nx.is_connected(graph.subgraph(order[:count])) for count in range(1, len(order) + 1))


@pytest.mark.parametrize("seed", range(5))
def test_bfs_orders_by_distance_from_a_node_of_the_highest_degree(seed: int) -> None:
    graph, order = graph_and_order("bfs", seed)
    distance = nx.single_source_shortest_path_length(graph, order[0])

    assert graph.degree[order[0]] == max(degree for _, degree in graph.degree)
    assert [distance[node] for node in order] == sorted(distance.values())


@pytest.mark.parametrize("seed", range(5))
def test_degeneracy_removes_a_node_of_the_lowest_degree_left(seed: int) -> None:
    graph, order = graph_and_order("degeneracy", seed)

    for node in reversed(order):
        assert graph.degree[node] == min(degree for _, degree in graph.degree)
        graph.remove_node(node)


def test_inverse_probabilities_of_regular_orderings_count_them() -> None:
    draws = 3000
    path = matrix([(0, 1), (1, 2), (2, 3)], padded=5).repeat(draws, 0)

    orders, log_q = sample_orderings(path, np.full(draws, 4), "attachment", np.random.default_rng(0))

    # A path on four nodes has 2^3 orderings in which each node has one edge to earlier ones.
    assert len(set(map(tuple, orders.tolist()))) == 8
    assert np.exp(-log_q).mean() == pytest.approx(8, rel=0.05)


def test_attachment_orderings_of_barabasi_albert_graphs_are_mostly_regular() -> None:
    graphs = [nx.barabasi_albert_graph(12, 3, seed=seed) for seed in range(40)]
    adj = np.stack([nx.to_numpy_array(graph) > 0 for graph in graphs])

    orders, _ = sample_orderings(adj, np.full(40, 12), "attachment", np.random.default_rng(0))

    regular = [
        all(sum(graph.has_edge(order[k], other) for other in order[:k]) == 3 for k in range(3, 12))
        for graph, order in zip(graphs, orders.tolist(), strict=True)
    ]
    assert np.mean(regular) > 0.75


@pytest.mark.parametrize("rule", ORDERINGS)
def test_importance_weights_sum_any_function_over_all_orderings(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Heavier weights and more softened orderings than the defaults, so that a few thousand samples are enough.
    monkeypatch.setattr(ordering, "IRREGULAR_WEIGHT", 0.3)
    draws, nodes = 6000, 4
    adj, sizes = matrix([(0, 1), (1, 2), (2, 3)], padded=nodes).repeat(draws, 0), np.full(draws, nodes)
    values = {order: 1 + number for number, order in enumerate(itertools.permutations(range(nodes)))}

    orders, log_q = propose_orderings(adj, sizes, rule, np.random.default_rng(0), 0.5)
    terms = np.array([values[tuple(order)] for order in orders.tolist()]) * np.exp(-log_q)

    error = terms.std() / math.sqrt(draws)
    assert error < 0.1 * sum(values.values())
    assert abs(terms.mean() - sum(values.values())) < 5 * error


def test_training_finds_a_regular_ordering_of_every_graph_of_preferential_attachment() -> None:
    """Only one candidate in four is regular, and in some graphs one in a hundred."""
    adj = np.stack([nx.to_numpy_array(nx.barabasi_albert_graph(16, 4, seed=seed)) > 0 for seed in range(60)])

    orders, _ = sample_orderings(adj, np.full(60, 16), "attachment", np.random.default_rng(0))

    rows = np.arange(60)[:, None, None]
    ordered = adj[rows, orders[:, :, None], orders[:, None, :]]
    is_regular = (np.tril(ordered, -1).sum(-1)[:, 4:] == 4).all(1)
    assert is_regular.mean() > 0.95


def test_topological_orderings_follow_the_arcs_and_others_come_as_late_as_possible() -> None:
    rng = np.random.default_rng(0)
    dag = nx.DiGraph([(0, 3), (3, 1), (0, 1), (4, 2)])
    arcs = np.zeros((50, 6, 6), dtype=np.bool_)
    sources, targets = zip(*dag.edges, strict=True)
    arcs[:, list(sources), list(targets)] = True

    orders, _ = sample_orderings(arcs, np.full(50, 5), "topological", rng)

    for order in orders[:, :5].tolist():
        assert all(order.index(u) < order.index(v) for u, v in dag.edges)
    assert len({*map(tuple, orders.tolist())}) > 5
    # Any node of a cycle may come first, and then the arcs are followed.
    arcs[:] = False
    arcs[:, [0, 1, 2], [1, 2, 0]] = True
    orders, _ = sample_orderings(arcs, np.full(50, 3), "topological", rng)
    assert {tuple(order) for order in orders[:, :3].tolist()} == {(0, 1, 2), (1, 2, 0), (2, 0, 1)}
