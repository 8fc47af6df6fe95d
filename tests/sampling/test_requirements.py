"""Whether demands can be met is told as counting all graphs on a few nodes tells it."""

from __future__ import annotations

from itertools import product

import networkx as nx
import numpy as np
import pytest
from tiny import all_graphs

from graphite_gen.sampling.constraints import (
    Acyclic,
    AllOf,
    Connected,
    Constraint,
    Degrees,
    Edges,
    MaxDegree,
    Planar,
    Regular,
    Tree,
)
from graphite_gen.sampling.requirements import is_graphical

SOME: list[Constraint] = [
    Tree(),
    Connected(),
    Acyclic(),
    Planar(),
    Regular(1),
    Regular(2),
    MaxDegree(1),
    MaxDegree(2),
    Edges(2),
    Edges(4),
    Edges(11),
]


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5])
def test_an_obstacle_is_found_where_no_graph_is_all_that_is_asked_and_nowhere_else(nodes: int) -> None:
    graphs = all_graphs(nodes)
    held = {constraint: [constraint.holds(graph) for graph in graphs] for constraint in SOME}

    for first, second in product(SOME, SOME):
        exists = any(map(min, held[first], held[second]))
        assert (AllOf((first, second)).obstacle(nodes) is None) == exists, (first, second)


@pytest.mark.parametrize("nodes", [1, 2, 3, 4])
@pytest.mark.parametrize("other", [Connected(), Acyclic(), Tree(), Edges(3), MaxDegree(2)])
def test_degrees_are_possible_where_some_graph_has_them(nodes: int, other: Constraint) -> None:
    graphs = [graph for graph in all_graphs(nodes) if other.holds(graph)]
    found = {tuple(graph.degrees().tolist()) for graph in graphs}

    for degrees in product(range(nodes + 1), repeat=nodes):
        assert (AllOf((Degrees(degrees), other)).obstacle(nodes) is None) == (degrees in found), degrees


def test_graphical_is_what_networkx_calls_it() -> None:
    for degrees in product(range(5), repeat=5):
        assert is_graphical(np.array(degrees)) == nx.is_graphical(degrees)
