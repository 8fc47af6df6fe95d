import sys

import networkx as nx
import numpy as np
import pytest
from tiny import random_graph

from graphite_gen.evaluation.isomorphism import find_isomorphic, isomorphism_classes, node_colours
from graphite_gen.graph import SimpleGraph

from ..families.helpers import shape


@pytest.fixture(params=["igraph", "networkx"])
def oracle(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without igraph installed."""
    if request.param == "networkx":
        monkeypatch.setitem(sys.modules, "igraph", None)


def signatures(graphs: list[SimpleGraph]) -> set[bytes]:
    return {np.sort(colours).tobytes() for colours in node_colours(graphs)}


@pytest.mark.usefixtures("oracle")
def test_classes_are_those_of_canonical_forms() -> None:
    graphs = [random_graph(5, seed) for seed in range(150)]
    graphs += [SimpleGraph.from_networkx(nx.random_regular_graph(3, 8, seed=seed)) for seed in range(40)]
    forms = [shape(graph) for graph in graphs]

    assert isomorphism_classes(graphs) == [forms.index(form) for form in forms]


@pytest.mark.usefixtures("oracle")
def test_graphs_with_equal_signatures_are_compared_exactly() -> None:
    # Every node sees a long path in either direction, whether there is one ring or there are two.
    rings = (nx.cycle_graph(14), nx.disjoint_union(nx.cycle_graph(7), nx.cycle_graph(7)))
    one, two = map(SimpleGraph.from_networkx, rings)

    assert len(signatures([one, two])) == 1
    assert isomorphism_classes([one, two, one]) == [0, 1, 0]


@pytest.mark.usefixtures("oracle")
def test_the_first_isomorphic_graph_among_others_is_found() -> None:
    rng = np.random.default_rng(1)
    others = [random_graph(9, seed, 0.4) for seed in range(30)]
    wanted = [others[17].permuted(rng.permutation(9)), random_graph(12, 0, 0.4), others[3]]

    assert find_isomorphic(wanted, others) == [17, None, 3]
    assert find_isomorphic(wanted, []) == [None, None, None]
    assert find_isomorphic([], others) == []


def test_signatures_distinguish_nearly_all_regular_graphs() -> None:
    graphs = [SimpleGraph.from_networkx(nx.random_regular_graph(4, 18, seed=seed)) for seed in range(200)]

    assert len(signatures(graphs)) >= len(set(isomorphism_classes(graphs))) - 1
