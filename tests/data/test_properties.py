import networkx as nx
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny import path, random_graph

from graphite_gen.data.properties import is_acyclic, is_connected, largest_component, reciprocity
from graphite_gen.graph import SimpleGraph

graphs = st.builds(random_graph, st.integers(1, 9), st.integers(0, 10**6), st.floats(0, 0.6))


@settings(deadline=None)
@given(graphs)
def test_connectedness_and_the_largest_component_with_all_its_data_are_those_of_networkx(graph: SimpleGraph) -> None:
    n, e, rng = graph.nodes, len(graph.edges), np.random.default_rng(0)
    names, columns = tuple(f"n{i}" for i in range(n)), ({"number": list(range(n))}, {"number": list(range(e))})
    arrays = rng.random(e), rng.random((n, 2)).astype(np.float32)
    graph = SimpleGraph(n, graph.edges, *arrays, names, *columns, {"family": "er"})
    whole = graph.to_networkx()
    expected = whole.subgraph(max(nx.connected_components(whole), key=len))

    found = largest_component(graph).to_networkx()

    assert is_connected(graph) == nx.is_connected(whole)
    assert sorted(found.nodes(data=True)) == sorted(expected.nodes(data=True))
    assert nx.utils.graphs_equal(found, expected.copy())


@settings(deadline=None)
@given(nodes=st.integers(1, 7), density=st.floats(0, 0.5), seed=st.integers(0, 10**6))
def test_reciprocity_and_cycles_of_directed_graphs_are_those_of_networkx(nodes: int, density: float, seed: int) -> None:
    whole = nx.gnp_random_graph(nodes, density, seed=seed, directed=True)
    graph = SimpleGraph.from_networkx(whole)

    assert is_acyclic(graph) == nx.is_directed_acyclic_graph(whole)
    assert reciprocity(graph) == (nx.overall_reciprocity(whole) if whole.size() else 0.0)
    assert is_acyclic(graph.skeleton()) == nx.is_forest(whole.to_undirected())


def test_the_first_of_equal_components_is_kept_and_a_plain_graph_stays_plain() -> None:
    found = largest_component(SimpleGraph.from_pairs(5, [(1, 3), (0, 4)]))

    assert (found.nodes, found.edges.tolist()) == (2, [[0, 1]])
    assert (found.weights, found.features, found.names) == (None, None, None)
    assert largest_component(SimpleGraph.from_pairs(0, [])).nodes == 0


def test_a_long_path_in_any_order_is_one_component_and_two_are_not() -> None:
    order = np.random.default_rng(0).permutation(3000)
    whole = path(3000).permuted(order)
    cut = SimpleGraph(3000, np.delete(path(3000).edges, 1000, axis=0)).permuted(order)

    assert is_connected(whole)
    assert not is_connected(cut)
    assert largest_component(cut).nodes == 1999
