"""Which states close no cycle, compared with a search for cycles by networkx."""

import networkx as nx
import numpy as np
import pytest

from graphite_gen.autoregressive.acyclic import Reachability
from graphite_gen.data.edge_states import count_states

GRAPHS, NODES = 6, 8


def with_edge(graph: nx.DiGraph, new: int, old: int, state: int, labels: int) -> nx.DiGraph:
    """The graph with one more edge of some state, as seen from its new node."""
    forward, backward = divmod(state + 1, max(labels, 1) + 1)
    found = graph.copy()
    found.add_edges_from([(new, old)] * (forward > 0) + [(old, new)] * (backward > 0))

    return found


@pytest.mark.parametrize("labels", [0, 1, 2])
@pytest.mark.parametrize("density", [0.2, 0.5, 0.9])
def test_states_are_allowed_exactly_if_they_close_no_cycle(labels: int, density: float) -> None:
    rng, states = np.random.default_rng([labels, int(10 * density)]), count_states(labels, True)
    reachability = Reachability(GRAPHS, NODES, labels)
    graphs: list[nx.DiGraph] = [nx.DiGraph() for _ in range(GRAPHS)]
    refused = 0
    for t in range(NODES):
        row = np.zeros((GRAPHS, t), dtype=np.int64)
        for i in range(t):
            # Some graphs alone, in any order.
            chosen = rng.permutation(np.flatnonzero(rng.random(GRAPHS) < density))
            allowed = reachability.allowed(t, chosen, np.full(len(chosen), i), row[chosen])
            assert allowed.shape == (len(chosen), states)
            for graph, own in zip(chosen.tolist(), allowed, strict=True):
                bigger = [with_edge(graphs[graph], t, i, state, labels) for state in range(states)]
                acyclic = [nx.is_directed_acyclic_graph(one) for one in bigger]
                assert own.tolist() == acyclic
                refused += states - 2 * max(labels, 1) < states - sum(acyclic)
                state = int(rng.choice(np.flatnonzero(own)))
                graphs[graph], row[graph, i] = bigger[state], state + 1
        owner, node = np.nonzero(row)
        reachability.add(t, owner, node, row[owner, node] - 1)

    # States with arcs both ways are refused always, single arcs in some cases only.
    assert refused > 0
    assert all(map(nx.is_directed_acyclic_graph, graphs))


def test_paths_through_a_later_node_are_followed() -> None:
    # 0 -> 2 -> 1: an arc 1 -> 3 -> 0 would close a cycle.
    reachability = Reachability(1, 4, 0)
    none = np.zeros(0, dtype=np.int64)
    forth, back = 1, 0  # from the new node, and to it
    reachability.add(0, none, none, none)
    reachability.add(1, none, none, none)
    reachability.add(2, np.array([0, 0]), np.array([0, 1]), np.array([back, forth]))

    allowed = reachability.allowed(3, np.array([0]), np.array([0]), np.array([[0, back + 1, 0]]))

    assert allowed[0].tolist() == [True, False, False]
