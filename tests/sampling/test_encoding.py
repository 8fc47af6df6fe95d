from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from tiny import AUTOREGRESSIVE, autoregressive_model, path, random_graph, small_model, star

from graphite_gen.data.batch import collate
from graphite_gen.errors import CheckpointError, DatasetError
from graphite_gen.graph import SimpleGraph
from graphite_gen.sampling.encoding import encode_graphs

KINDS: dict[str, dict[str, Any]] = {
    "one-shot": {},
    "autoregressive": {**AUTOREGRESSIVE, "encoder": "residual", "ordering": "bfs"},
    "spectral": {
        **AUTOREGRESSIVE,
        "encoder": "residual",
        "ordering": "bfs",
        "encoder_features": ("degree", "spectral", "random"),
    },
}


def asymmetric_graph(nodes: int = 8) -> SimpleGraph:
    """A graph whose only automorphism is the identity, so that a permutation of its nodes is unique."""
    for seed in range(100):
        graph = random_graph(nodes, seed)
        own = graph.to_networkx()
        if sum(1 for _ in nx.isomorphism.GraphMatcher(own, own).isomorphisms_iter()) == 1:
            return graph
    raise AssertionError


@pytest.mark.parametrize("kind", KINDS)
def test_encoding_a_relabelled_graph_permutes_its_latents(kind: str) -> None:
    model, graph = small_model(**KINDS[kind]), asymmetric_graph()
    order = np.random.default_rng(0).permutation(graph.nodes)

    (first,), (second,) = encode_graphs(model, [graph]), encode_graphs(model, [graph.permuted(order)])

    assert np.allclose(second.mean[order], first.mean, atol=1e-5)
    assert np.allclose(second.std[order], first.std, atol=1e-5)
    assert np.allclose(second.vector, first.vector, atol=1e-5)
    if first.position is not None:
        assert (second.position[order] == first.position).all()
    assert first.std.min() > 0


@pytest.mark.parametrize("kind", ["one-shot", "autoregressive"])
def test_the_encoding_of_a_graph_does_not_depend_on_the_others(kind: str) -> None:
    model = small_model(**KINDS[kind])
    graphs = [star(5), path(8), random_graph(3, 1), path(8)]

    together = list(encode_graphs(model, graphs))

    for graph, encoded in zip(graphs, together, strict=True):
        (alone,) = encode_graphs(model, [graph])
        assert encoded.mean.shape == (graph.nodes, model.config.latent)
        assert np.allclose(encoded.mean, alone.mean, atol=1e-5)
        assert np.array_equal(encoded.position, alone.position)


def test_latents_are_those_of_the_encoder_and_depend_on_the_seed_of_its_random_features() -> None:
    # Without random features the posterior is a function of the graph alone.
    model, graph = small_model(encoder_features=("degree",)), random_graph(6, 2)
    batch = collate([graph])
    posterior = model.network.encode(batch, torch.zeros(1, 6, 0))
    (encoded,) = encode_graphs(model, [graph])
    assert np.allclose(encoded.mean, posterior.mu[0].detach(), atol=1e-5)
    assert np.allclose(encoded.std, posterior.sigma[0].detach(), atol=1e-5)

    random = small_model(encoder_features=("degree", "random"))
    (first,), (second,) = encode_graphs(random, [graph], 0), encode_graphs(random, [graph], 1)
    assert not np.allclose(first.mean, second.mean, atol=1e-2)


def test_positions_are_an_ordering_of_the_rule() -> None:
    model = small_model(**{**KINDS["autoregressive"], "ordering": "max-degree"})

    (encoded,) = encode_graphs(model, [star(6, centre=4)])

    assert encoded.position[4] == 0


def test_an_autoencoder_has_no_deviations() -> None:
    (encoded,) = encode_graphs(small_model(kind="graphite-ae"), [path(5)])

    assert not encoded.std.any()


def test_what_cannot_be_encoded_is_refused() -> None:
    with pytest.raises(CheckpointError, match="no encoder"):
        list(encode_graphs(autoregressive_model(), [path(4)]))
    with pytest.raises(DatasetError, match="Graph 1 is weighted"):
        list(encode_graphs(small_model(), [path(4), random_graph(5, 0, weighted=True)]))
    with pytest.raises(DatasetError, match="no graphs"):
        list(encode_graphs(small_model(), []))
