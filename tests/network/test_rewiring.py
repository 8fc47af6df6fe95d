from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch

from graphite_gen.network import rewiring
from graphite_gen.network.lookalikes import rewire
from graphite_gen.network.pair_logits import PairLogits
from graphite_gen.network.rewiring import Observed, Rewiring, degree_classes

from .graphs import pair_logits, pairs_of


def observed_of(graph: nx.Graph) -> Observed:
    return Observed.of(pairs_of(graph).T, len(graph))


def chain(graph: nx.Graph, bound: float = 0.2, logits: PairLogits | None = None, seed: int = 0) -> Rewiring:
    logits = logits or pair_logits(len(graph), seed=seed)

    return Rewiring(pairs_of(graph).T.copy(), logits, np.arange(len(graph)), observed_of(graph), bound)


def graph_of(edges: np.ndarray, nodes: int) -> nx.Graph:
    graph = nx.empty_graph(nodes)
    graph.add_edges_from(edges.T.tolist())

    return graph


def flat(nodes: int) -> PairLogits:
    """Log-odds that are the same for all pairs."""
    return PairLogits(torch.zeros(nodes, 1), torch.ones(1), torch.zeros(nodes), torch.zeros(()))


def ring(nodes: int) -> PairLogits:
    """Log-odds that decrease with the distance on a ring."""
    angle = torch.arange(nodes) * (2 * torch.pi / nodes)
    factor = torch.cat([torch.stack([(k * angle).cos(), (k * angle).sin()], 1) for k in (1, 2, 4, 8, 16)], 1)

    return PairLogits(1.2 * factor, torch.ones(10), torch.zeros(nodes), torch.zeros(()))


def test_sweeps_keep_degrees_and_give_simple_graphs() -> None:
    graph = nx.powerlaw_cluster_graph(150, 3, 0.5, seed=1)
    own, rng = chain(graph), np.random.default_rng(1)

    accepted = sum(own.sweep(rng) for _ in range(40))

    assert accepted > 50
    assert (own.edges[0] < own.edges[1]).all()
    after = graph_of(own.edges, 150)
    assert after.number_of_edges() == graph.number_of_edges()
    assert dict(after.degree) == dict(graph.degree)


def test_gains_are_the_change_of_the_exponent() -> None:
    graph = nx.powerlaw_cluster_graph(60, 4, 0.8, seed=2)
    own = chain(graph)
    own.copy_cost, own.mixing = 1.7, 0.9
    own.closing = np.linspace(-1, 2, len(own.closing))
    rng = np.random.default_rng(3)
    swaps = np.concatenate([own._proposals(100, rng) for _ in range(3)], axis=1)
    gain, closed = own.gain(swaps), own.closed(swaps)
    matrix = own.logits.tile(slice(None), slice(None)).numpy()
    degrees = np.array([degree for _, degree in graph.degree])

    def exponent(changed: nx.Graph) -> tuple[float, float]:
        i, j = np.array(changed.edges).T
        mixing = nx.degree_pearson_correlation_coefficient(changed) * changed.size()
        copies = sum(graph.has_edge(*edge) for edge in changed.edges)
        triangles = np.array(list(nx.triangles(changed).values()))
        rest = rewiring.SHARPNESS * matrix[i, j].sum() - own.copy_cost * copies + own.mixing * mixing

        return rest, own.closing[degree_classes(degrees)] @ triangles

    before = exponent(graph)
    assert swaps.shape[1] > 50
    assert np.abs(closed).max() > 0.5
    for swap, wanted, wanted_closed in zip(swaps.T.tolist(), gain, closed, strict=True):
        _, _, a, b, c, d = swap
        changed = graph.copy()
        changed.remove_edges_from([(a, b), (c, d)])
        changed.add_edges_from([(a, c), (b, d)])
        after = exponent(changed)
        assert after[0] - before[0] == pytest.approx(wanted, abs=1e-8)
        assert after[1] - before[1] == pytest.approx(wanted_closed, abs=1e-8)


def test_observed_statistics_are_those_of_networkx() -> None:
    graph = nx.powerlaw_cluster_graph(80, 3, 0.6, seed=4)
    own = observed_of(graph)
    classes = degree_classes(np.array([degree for _, degree in graph.degree]))
    triangles = np.array(list(nx.triangles(graph).values()))

    assert own.assortativity == pytest.approx(nx.degree_pearson_correlation_coefficient(graph))
    for each in set(classes.tolist()):
        assert own.triangles[each] == pytest.approx(triangles[classes == each].mean())
    assert observed_of(nx.cycle_graph(6)).assortativity is None


def rewired(graph: nx.Graph, logits: PairLogits, bound: float = 0.2, seed: int = 0) -> tuple[nx.Graph, float]:
    nodes = len(graph)
    rng = np.random.default_rng(seed)
    edges, copied = rewire(pairs_of(graph).T, logits, np.arange(nodes), observed_of(graph), Counter(), bound, rng)

    return graph_of(edges, nodes), copied


@pytest.mark.parametrize("bound", [0.05, 0.2])
def test_copied_edges_are_bounded(bound: float) -> None:
    graph = nx.circulant_graph(200, [1, 5])
    after, copied = rewired(graph, ring(200), bound)

    assert copied == pytest.approx(sum(graph.has_edge(*edge) for edge in after.edges) / graph.size())
    assert 0 < copied <= bound
    # Without the bound, the log-odds keep most of the edges.
    assert rewired(graph, ring(200), 1.0)[1] > 2 * bound


def test_triangles_and_assortativity_are_those_of_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.powerlaw_cluster_graph(300, 3, 0.8, seed=5)
    wanted = nx.average_clustering(graph)
    mixing = nx.degree_pearson_correlation_coefficient(graph)
    after, _ = rewired(graph, flat(300))

    assert nx.average_clustering(after) == pytest.approx(wanted, rel=0.15)
    assert nx.degree_pearson_correlation_coefficient(after) == pytest.approx(mixing, abs=0.05)
    monkeypatch.setattr(rewiring, "_TRIANGLE_STEP", 0.0)
    assert nx.average_clustering(rewired(graph, flat(300))[0]) < 0.7 * wanted


def test_assortative_networks_stay_assortative(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.disjoint_union(nx.random_regular_graph(3, 150, seed=1), nx.random_regular_graph(7, 100, seed=1))
    graph.add_edges_from([(0, 150), (1, 151)])
    wanted = nx.degree_pearson_correlation_coefficient(graph)

    found = nx.degree_pearson_correlation_coefficient(rewired(graph, flat(250), 0.1)[0])
    monkeypatch.setattr(rewiring, "_MIXING_STEP", 0.0)
    without = nx.degree_pearson_correlation_coefficient(rewired(graph, flat(250), 0.1)[0])

    assert found == pytest.approx(wanted, abs=0.1)
    assert without < wanted - 0.2


def test_log_odds_keep_edges_local() -> None:
    graph = nx.circulant_graph(200, [1, 5])

    def spans(after: nx.Graph) -> float:
        return float(np.mean([min(abs(i - j), 200 - abs(i - j)) for i, j in after.edges]))

    local, anywhere = (rewired(graph, logits)[0] for logits in (ring(200), flat(200)))

    assert spans(local) < 8
    assert spans(anywhere) > 3 * spans(local)
    assert nx.average_shortest_path_length(local) > 1.5 * nx.average_shortest_path_length(anywhere)


def test_connected_networks_stay_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nx.circulant_graph(150, [1])
    assert nx.is_connected(rewired(graph, flat(150))[0])
    monkeypatch.setattr("graphite_gen.network.lookalikes.reconnect", lambda edges, *rest: edges)
    assert not nx.is_connected(rewired(graph, flat(150))[0])


def test_complete_graphs_are_copied() -> None:
    after, copied = rewired(nx.complete_graph(6), flat(6))

    assert copied == 1
    assert after.number_of_edges() == 15
