from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny import all_graphs

from graphite_gen.graph import SimpleGraph
from graphite_gen.sampling.conditional import exact_sampler, sample_edge_count, sample_spanning_tree
from graphite_gen.sampling.constraints import Acyclic, AllOf, Connected, Constraint, Edges, MaxDegree, Planar, Tree

from ..families.helpers import ALPHA, fit


def symmetric(nodes: int, scale: float, seed: int = 0) -> NDArray[np.float64]:
    logits = np.triu(scale * np.random.default_rng(seed).normal(size=(nodes, nodes)), 1)

    return logits + logits.T


def assert_follows(
    constraint: Constraint, logits: NDArray[np.float64], draw: Callable[[], Any], draws: int = 2000
) -> None:
    graphs = [graph for graph in all_graphs(len(logits)) if constraint.holds(graph)]
    odds = {graph.edges.tobytes(): np.exp(logits[tuple(graph.edges.T)].sum()) for graph in graphs}
    counts = Counter(SimpleGraph.from_adjacency(draw()).edges.tobytes() for _ in range(draws))

    assert fit(counts, {key: value / sum(odds.values()) for key, value in odds.items()}) > ALPHA


@pytest.mark.parametrize(("nodes", "scale"), [(3, 1.0), (4, 0.0), (4, 1.5), (5, 1.0)])
def test_spanning_trees_are_sampled_in_proportion_to_their_odds(nodes: int, scale: float) -> None:
    logits, rng = symmetric(nodes, scale), np.random.default_rng(1)

    assert_follows(Tree(), logits, lambda: sample_spanning_tree(logits, rng))


@pytest.mark.parametrize(("edges", "shift"), [(0, 0), (1, 0), (1, 100), (3, 0), (6, 0)])
def test_edges_given_their_number_are_sampled_in_proportion_to_their_odds(edges: int, shift: int) -> None:
    logits, rng = shift + symmetric(4, 1.5), np.random.default_rng(1)

    assert_follows(Edges(edges), logits, lambda: sample_edge_count(logits, rng, edges), draws=1000)


@pytest.mark.parametrize("scale", [0.0, 20.0, 1000.0])
def test_samples_are_exact_for_odds_of_any_size(scale: float) -> None:
    for nodes in (1, 2, 9, 40):
        with np.errstate(all="raise", under="ignore"):
            tree = sample_spanning_tree(symmetric(nodes, scale), np.random.default_rng(0))
        assert Tree().holds(SimpleGraph.from_adjacency(tree))
    for edges in (0, 1, 10, 35, 36):
        drawn = sample_edge_count(symmetric(9, scale), np.random.default_rng(0), edges)
        assert drawn is not None
        assert drawn.sum() == 2 * edges


@pytest.mark.parametrize(
    ("constraints", "known"),
    [
        ((Tree(),), True),
        ((Connected(), Acyclic()), True),
        ((Tree(), Planar(), Edges(5)), True),
        ((Connected(), Edges(5)), True),
        ((Edges(7),), True),
        ((Edges(7), MaxDegree(5)), True),
        ((Edges(7), MaxDegree(4)), False),
        ((Edges(6), Connected()), False),
        ((Connected(),), False),
        ((Acyclic(), Edges(4)), False),
        ((Planar(), Edges(7)), False),
    ],
)
def test_exact_samplers_are_used_where_they_are_known(constraints: tuple[Constraint, ...], known: bool) -> None:
    assert (exact_sampler(AllOf(constraints).requirements(6)) is not None) == known
