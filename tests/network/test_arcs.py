import networkx as nx
import numpy as np
import pytest

from graphite_gen.network import arcs as module
from graphite_gen.network.arcs import Arcs

from .graphs import pairs_of


@pytest.mark.parametrize("chunk", [1 << 21, 7])
def test_neighbours_common_neighbours_and_triangles_are_those_of_networkx(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CHUNK", chunk)
    graph = nx.powerlaw_cluster_graph(40, 3, 0.7, seed=1)
    graph.add_node(40)
    edges = pairs_of(graph).T
    arcs = Arcs.of(edges, 41)
    i, j = np.triu_indices(41, 1)

    assert arcs.degrees().tolist() == [graph.degree[node] for node in range(41)]
    assert arcs.contain(i, j).tolist() == [graph.has_edge(*pair) for pair in zip(i, j, strict=True)]
    assert arcs.triangles().tolist() == [nx.triangles(graph, node) for node in range(41)]
    pair, node = arcs.common_neighbours(i, j)
    found = {(int(i[p]), int(j[p]), int(n)) for p, n in zip(pair, node, strict=True)}
    wanted = {(a, b, c) for a, b in zip(i, j, strict=True) for c in set(graph[a]) & set(graph[b])}
    assert found == wanted
    sources = np.repeat(np.arange(40), 50)
    steps = arcs.step(sources, np.random.default_rng(0))
    reached = set(zip(sources.tolist(), arcs.targets[steps].tolist(), strict=True))
    assert reached <= {(a, b) for edge in graph.edges for a, b in (edge, edge[::-1])}
    assert {(39, other) for other in graph[39]} <= reached
    assert (np.sort([sources, arcs.targets[steps]], axis=0) == edges[:, arcs.edge[steps]]).all()


def test_a_graph_without_edges_has_no_neighbours() -> None:
    arcs = Arcs.of(np.empty((2, 0), dtype=np.int64), 3)

    assert not arcs.contain(np.array([0]), np.array([1])).any()
    assert not arcs.triangles().any()
