from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tiny import path, random_graph, small_model, star

from graphite_gen.data.encoded import EncodedGraph
from graphite_gen.data.properties import is_tree
from graphite_gen.errors import SamplingError
from graphite_gen.sampling import Sampler, Tree
from graphite_gen.sampling.encoding import encode_graphs
from graphite_gen.sampling.interpolation import interpolate, latent_path, spherical

from .test_encoding import KINDS, asymmetric_graph


def encoded(nodes: int, seed: int, std: float = 0.3) -> EncodedGraph:
    rng = np.random.default_rng([seed, nodes])
    mean = rng.normal(size=(nodes, 3)).astype(np.float32)

    return EncodedGraph(mean, np.full_like(mean, std), rng.permutation(nodes).astype(np.int32))


def test_a_spherical_path_keeps_the_norm_and_moves_at_constant_speed() -> None:
    a, b = np.array([[3.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 3.0]])

    points = [spherical(a, b, t).ravel() for t in (0, 0.25, 0.5, 0.75, 1)]

    assert np.allclose(np.linalg.norm(points, axis=1), 3)
    assert np.allclose(np.diff(points, axis=0)[0] @ np.diff(points, axis=0)[0], (6 * np.sin(np.pi / 16)) ** 2)
    assert np.array_equal(points[0], a.ravel())
    assert np.array_equal(points[-1], b.ravel())
    assert np.allclose(spherical(a, 2 * a, 0.5), 1.5 * a)


@pytest.mark.parametrize("std", [0.0, 0.3])
def test_the_ends_of_a_path_are_the_latents_of_the_graphs(std: float) -> None:
    a, b = encoded(4, 0, std), encoded(7, 1, std)

    points = latent_path(a, b, 5)

    assert [point.nodes for point in points] == [4, 5, 6, 6, 7]
    assert (points[0].position == a.position).all()
    for point, end in ((points[0], a), (points[-1], b)):
        # Every node of the end is within five standard deviations of one of the point, and is that node without them.
        distance = np.abs(point.mean[:, None] - end.mean).max(-1).min(0)
        assert (distance <= 5 * std + 1e-6).all()
    backwards = latent_path(b, a, 5)[::-1]
    assert all(np.array_equal(one.mean, other.mean) for one, other in zip(points, backwards, strict=True))


def test_a_path_to_a_relabelled_copy_stays_where_it_is() -> None:
    a = encoded(6, 0)
    order = np.random.default_rng(3).permutation(6)
    copy = EncodedGraph(a.mean[order], a.std[order], a.position[order])

    points = latent_path(a, copy, 4)

    assert all(np.allclose(point.mean, points[0].mean, atol=1e-6) for point in points)
    assert all((point.position == a.position).all() for point in points)


@pytest.mark.parametrize("kind", ["one-shot", "autoregressive"])
def test_the_ends_are_decoded_from_the_encoded_graphs(kind: str) -> None:
    model, graph = small_model(**KINDS[kind]), asymmetric_graph()
    start, end = encode_graphs(model, [graph, random_graph(5, 9)])

    graphs = interpolate(model, graph, random_graph(5, 9), 4)

    for place, point in ((0, latent_path(start, end, 4)[0]), (-1, latent_path(start, end, 4)[-1])):
        (decoded,) = Sampler(model, 1, encoded=[point])
        assert np.array_equal(graphs[place].edges, decoded.edges)
    assert [graph.nodes for graph in graphs] == [8, 7, 6, 5]
    assert np.allclose([graph.attributes["t"] for graph in graphs], [0, 1 / 3, 2 / 3, 1])


@pytest.mark.parametrize("changes", [{}, KINDS["autoregressive"]])
def test_constraints_hold_on_the_whole_path(changes: dict[str, Any]) -> None:
    graphs = interpolate(small_model(**changes), path(8), star(6), 5, constraints=[Tree()])

    assert all(map(is_tree, graphs))


def test_a_path_has_two_ends() -> None:
    with pytest.raises(SamplingError, match="at least 2"):
        interpolate(small_model(), path(4), star(4), 1)
