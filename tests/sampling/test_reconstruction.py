from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import hypergeom
from tiny import coin_model, path, random_graph, small_model, star

import graphite_gen as gg
from graphite_gen.errors import SamplingError
from graphite_gen.graph import SimpleGraph, as_simple_graph
from graphite_gen.sampling.reconstruction import edge_recovery, reconstruct


def test_edges_are_counted_as_by_hand() -> None:
    found = edge_recovery([path(4), star(4)], [star(4), star(4)])

    # The path 0-1-2-3 and the star share one edge, the stars three: 4 of 6 edges.
    assert (found.precision, found.recall) == (4 / 6, 4 / 6)
    empty = SimpleGraph.from_pairs(3, [])
    assert edge_recovery([path(3)], [empty]).precision is None
    assert edge_recovery([path(3)], [empty]).recall == 0


@pytest.mark.usefixtures("single_precision")
def test_informative_latents_recover_more_edges_than_chance() -> None:
    model = gg.load("geometric-one-shot")
    graphs = [as_simple_graph(graph) for graph in gg.generate("geometric", 20, seed=8)]

    result = model.reconstruct(graphs, seed=0)

    assert [graph.nodes for graph in result.graphs] == [graph.nodes for graph in graphs]
    assert result.recovery.recall > result.chance.recall + 0.2
    assert result.recovery.precision > result.chance.precision + 0.2
    assert abs(result.prior.recall - result.chance.recall) < 0.1


def test_latents_that_the_decoder_ignores_recover_what_chance_does() -> None:
    graphs = [random_graph(8, seed) for seed in range(200)]

    result = reconstruct(coin_model(0.5), graphs)

    means = [
        hypergeom(28, len(graph.edges), len(other.edges)).mean()
        for graph, other in zip(graphs, result.graphs, strict=True)
    ]
    assert np.isclose(result.chance.recall, sum(means) / sum(len(graph.edges) for graph in graphs))
    # About 2,800 edges: the standard error is below 0.01.
    assert abs(result.recovery.recall - result.chance.recall) < 0.04


def test_nodes_keep_their_names_and_autoencoders_have_no_prior() -> None:
    graph = replace(path(3), names=("a", "b", "c"))

    result = reconstruct(small_model(kind="gae"), [graph])

    assert result.graphs[0].names == ("a", "b", "c")
    assert result.prior is None
    assert result.to_json()["prior"] is None


def test_weighted_models_have_no_edges_to_recover() -> None:
    with pytest.raises(SamplingError, match="weight for every pair"):
        reconstruct(small_model(observation="normal"), [random_graph(4, 0, weighted=True)])
