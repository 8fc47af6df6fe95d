from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import pytest
from tiny import coin_model, path, small_model

import graphite_gen as gg
from graphite_gen.completion import PartialGraph, complete
from graphite_gen.errors import ConfigError, SamplingError
from graphite_gen.graph import SimpleGraph

STAGED = {"stages": 0, "encoder": "none", "latent": 1}


@pytest.mark.parametrize("changes", [{}, STAGED])
def test_known_pairs_stay_and_unknown_ones_vary(changes: dict[str, Any]) -> None:
    model = gg.Model(small_model(**changes))
    graph = nx.relabel_nodes(nx.path_graph(5), dict(enumerate("abcde")))
    unknown = [("a", "b"), ("a", "c"), ("b", "d"), ("a", "e")]

    result = model.complete(graph, 40, unknown=unknown, seed=3, particles=64)
    free = {frozenset(pair) for pair in unknown}

    assert isinstance(result, gg.Completion)
    assert len({frozenset(map(frozenset, found.edges)) for found in result.graphs}) > 1
    for found in result.graphs:
        assert list(found) == list("abcde")
        changed = {frozenset(edge) for edge in found.edges} ^ {frozenset(edge) for edge in graph.edges}
        assert changed <= free
        assert all(frozenset((u, v)) in free for u, v, sampled in found.edges(data="sampled") if sampled)
    assert {frozenset((score.source, score.target)) for score in result.scores} == free
    assert [s.probability for s in result.scores] == sorted((s.probability for s in result.scores), reverse=True)


@pytest.mark.parametrize("changes", [{}, STAGED])
def test_more_samples_begin_with_the_fewer(changes: dict[str, Any]) -> None:
    partial = PartialGraph.from_marks(path(4), add_nodes=2)
    few, many = (complete(small_model(**changes), partial, count, particles=20, seed=1) for count in (3, 9))

    assert [graph.edges.tolist() for graph in few.samples] == [graph.edges.tolist() for graph in many.samples[:3]]
    assert few.scores == many.scores
    assert all(graph.nodes == 6 for graph in few.samples)


def test_the_baseline_counts_known_pairs_alone() -> None:
    model = small_model(graphs=[path(4)])
    partial = PartialGraph.from_pairs(path(4), [(0, 1), (0, 3)])
    full = -model.sizes.baseline(path(4))
    hidden = -model.sizes.baseline(SimpleGraph.from_pairs(4, [(1, 2), (2, 3)])) - full

    baseline = complete(model, partial, 0, particles=2).baseline

    # Taking the edge 0 - 1 out of a graph changes its odds by those of one pair.
    assert baseline > full
    assert baseline < full + 2 * abs(hidden) + 2 * 0.6931472


@pytest.mark.parametrize(
    ("model", "graph", "message"),
    [
        (small_model(kind="gae"), path(4), "autoencoder"),
        (small_model(observation="normal"), path(4), "weight for every pair"),
        (small_model(node_features=3), path(4), "reads 3 node features"),
        (small_model(decoder_features=("identity",), max_nodes=3), path(4), "knows 3 of them"),
        (small_model(), replace(path(4), weights=[2.0, 1.0, 1.0]), "weighted"),
    ],
)
def test_models_and_graphs_that_do_not_fit_are_refused(model: Any, graph: SimpleGraph, message: str) -> None:
    import numpy as np

    if graph.weights is not None:
        graph = replace(graph, weights=np.array(graph.weights))
    with pytest.raises(SamplingError, match=message):
        complete(model, PartialGraph.from_pairs(graph, [(0, 3)]), 1)


def test_evidence_without_any_chance_is_refused() -> None:
    with pytest.raises(SamplingError, match="no chance at all"):
        complete(coin_model(float("nan")), PartialGraph.from_pairs(path(4), [(0, 3)]), 1, particles=4)


def test_stages_are_for_staged_models() -> None:
    with pytest.raises(SamplingError, match="stages have no use"):
        complete(small_model(), PartialGraph.from_pairs(path(4), [(0, 3)]), 1, stages=3)


def test_unlisted_and_unknown_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="'unlisted' has no use"):
        gg.Model(small_model()).complete(nx.path_graph(4), 1, unknown=[(0, 3)], unlisted="absent")
