import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp

from graphite_gen.errors import CheckpointError, ConfigError, SamplingError
from graphite_gen.graph import SimpleGraph
from graphite_gen.network.calibration import expected_degrees
from graphite_gen.network.generation import NetworkModel, fit_network_model, sample_networks
from graphite_gen.network.hyperparameters import GENERATION
from graphite_gen.network.network import Network
from graphite_gen.network.storage import load_network, save_network
from graphite_gen.training.checkpoint import load_checkpoint, read_tensors, write_tensors

from .graphs import network_of

# Blocks of unlike sizes and densities, and one that is mostly tied to another.
SIZES = (60, 40, 20)
DENSITIES = np.array([[0.15, 0.01, 0.0], [0.01, 0.05, 0.25], [0.0, 0.25, 0.02]])
BLOCK = np.repeat(np.arange(3), SIZES)


@cache
def observed() -> Network:
    return network_of(nx.stochastic_block_model(SIZES, DENSITIES, seed=2))


@cache
def model() -> NetworkModel:
    return fit_network_model(observed(), name="blocks")


def edges_between_blocks(graph: SimpleGraph) -> np.ndarray:
    i, j = BLOCK[graph.edges].T
    counts = np.zeros((3, 3))
    np.add.at(counts, (np.minimum(i, j), np.maximum(i, j)), 1)

    return counts


def test_samples_have_the_degrees_and_blocks_of_the_network() -> None:
    # A bound on copied edges costs structure that the decoder has memorised.
    graphs = list(sample_networks(model(), 8, seed=1, novelty=0.0))

    mean = np.mean([edges_between_blocks(graph) for graph in graphs], axis=0)
    wanted = edges_between_blocks(observed().graph)
    # The edges within and between blocks, of which there are up to 251, to a tenth of all.
    assert np.abs(mean - wanted).max() < 0.1 * wanted.sum()
    assert mean[0, 2] < 0.05 * wanted.sum()
    assert mean.sum() == pytest.approx(wanted.sum(), rel=0.03)
    degrees = np.mean([graph.degrees() for graph in graphs], axis=0)
    assert np.corrcoef(degrees, observed().graph.degrees())[0, 1] > 0.9


@pytest.mark.parametrize("nodes", [60, 400])
def test_samples_of_another_size_keep_the_degree_distribution(nodes: int) -> None:
    graphs = list(sample_networks(model(), 4, nodes=nodes, seed=2))

    degrees = np.concatenate([graph.degrees() for graph in graphs])
    assert all(graph.nodes == nodes for graph in graphs)
    assert degrees.mean() == pytest.approx(model().mean_degree, rel=0.06)
    # The degrees of new nodes are those of their originals.
    assert ks_2samp(degrees, observed().graph.degrees()).statistic < 0.12


def test_a_graph_depends_on_the_seed_and_not_on_the_count() -> None:
    first, again, other = (
        list(sample_networks(model(), n, nodes=(90, 120), seed=s)) for n, s in ((3, 1), (2, 1), (2, 5))
    )

    assert all(np.array_equal(a.edges, b.edges) for a, b in zip(first, again, strict=False))
    assert not np.array_equal(first[0].edges, other[0].edges)
    assert len({graph.nodes for graph in first}) > 1
    for graph in first:
        assert (graph.edges[:, 0] < graph.edges[:, 1]).all()
        assert graph.edges.max() < graph.nodes


@cache
def clubs() -> NetworkModel:
    """A model of a graph with far more triangles than random graphs of its degrees."""
    return fit_network_model(network_of(nx.connected_caveman_graph(24, 5)), name="clubs")


@pytest.mark.parametrize("nodes", [240, 600])
def test_transitivity_does_not_depend_on_the_size(nodes: int) -> None:
    own, larger = (
        np.mean([nx.transitivity(graph) for graph in clubs().sample(2, nodes=n, seed=3)]) for n in (None, nodes)
    )

    assert own > 0.2
    assert larger == pytest.approx(own, rel=0.2)


def test_larger_graphs_have_a_giant_component() -> None:
    graph = clubs().sample(1, nodes=1200, seed=4)[0]
    # Ten copies of the network, and the largest component spans most of them.
    assert len(max(nx.connected_components(graph), key=len)) > 900


@pytest.mark.parametrize(
    ("observed", "nodes", "error"), [(5, 6, 0.1), (5, 8, 0.1), (5, 23, 0.1), (2, 3, 0.25), (2, 7, 0.15), (2, 200, 0.03)]
)
def test_complete_graphs_give_larger_ones_of_their_mean_degree(observed: int, nodes: int, error: float) -> None:
    fitted = fit_network_model(network_of(nx.complete_graph(observed)), replace(GENERATION, epochs=20))
    sizes = [each.number_of_edges() for each in fitted.sample(20, nodes=nodes, seed=1)]

    assert np.mean(sizes) == pytest.approx((observed - 1) * nodes / 2, rel=error)


@cache
def dense_model() -> NetworkModel:
    return fit_network_model(network_of(nx.gnp_random_graph(100, 0.5, seed=0)))


@pytest.mark.parametrize("nodes", [75, 150, 200])
def test_dense_graphs_of_another_size_keep_homogeneous_degrees(nodes: int) -> None:
    fitted = dense_model()
    degrees = np.array([degree for _, degree in fitted.sample(1, nodes=nodes, seed=2)[0].degree])

    assert degrees.mean() == pytest.approx(fitted.mean_degree, rel=0.05)
    # At most a sixth; a tenth in the network itself.
    assert degrees.std() < degrees.mean() / 6


def degree_error(biases: torch.Tensor, part: float) -> float:
    """Root mean square error of the logarithms of expected degrees."""
    draw = torch.Generator().manual_seed(9)
    logits = [model().draw(draw)[1] for _ in range(12)]
    found = [expected_degrees(replace(each, bias=each.bias + biases), part)[0] for each in logits]

    return float((torch.stack(found).mean(0) / model().degrees).log().square().mean().sqrt())


@pytest.mark.parametrize("nodes", [35, 61, 86, 100, 120])
def test_interpolated_biases_are_nearly_as_accurate_as_fitted_ones(nodes: int) -> None:
    # Fitted for 1/2 and 1/4 of the 120 nodes, interpolated in between.
    part = (nodes - 1) / 119
    exact = model()._fit_biases(part)
    found = model().biases_for(nodes)

    assert torch.equal(found, exact) == (nodes == 120)
    assert degree_error(found, part) < 1.05 * degree_error(exact, part)
    # Biases for another size are far off.
    assert degree_error(model().biases_for(nodes // 2), part) > 2 * degree_error(exact, part)


def test_biases_are_fitted_once_per_fraction_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = []
    fit = NetworkModel._fit_biases
    monkeypatch.setattr(NetworkModel, "_fit_biases", lambda own, part: fits.append(part) or fit(own, part))
    one, other = replace(model()), replace(model())
    up = [one.biases_for(nodes) for nodes in range(31, 121)]
    assert fits == [0.25, 0.5] or fits == [0.5, 0.25]
    down = [other.biases_for(nodes) for nodes in range(120, 30, -1)]

    assert sorted(fits) == [0.25, 0.25, 0.5, 0.5]
    assert all(torch.equal(a, b) for a, b in zip(up, reversed(down), strict=True))


def test_latents_and_largest_component_are_optional() -> None:
    (graph,) = sample_networks(model(), 1, nodes=60, largest=True, latents=True)

    assert nx.is_connected(graph.to_networkx())
    assert len(graph.node_attributes) == GENERATION.latent
    assert len(graph.node_attributes["z0"]) == graph.nodes <= 60


def test_damaged_checkpoints_are_refused(tmp_path: Path) -> None:
    save_network(model(), tmp_path)
    with pytest.raises(CheckpointError, match="one network"):
        load_checkpoint(tmp_path)
    path = tmp_path / "model.safetensors"
    tensors, _ = read_tensors(path)
    config = json.loads((tmp_path / "config.json").read_text())
    del config["weights_sha256"], config["checksum"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    for change, problem in (
        ({"mu": tensors["mu"][:5]}, "does not fit"),
        ({"degrees": -tensors["degrees"]}, "degrees"),
        ({"degrees": 0 * tensors["degrees"]}, "degrees"),
        ({"biases": tensors["biases"] * torch.nan}, "finite"),
        ({"evidence": None}, "evidence"),
        ({"pairs": tensors["pairs"][:, 1:].contiguous()}, "edges"),
    ):
        changed = tensors | change
        write_tensors(path, {name: tensor for name, tensor in changed.items() if tensor is not None})
        with pytest.raises(CheckpointError, match=problem):
            load_network(tmp_path)


def test_isolated_nodes_and_components_are_reproduced() -> None:
    parts = [nx.complete_graph(5), nx.empty_graph(1), nx.complete_graph(5), nx.empty_graph(3)]
    trained = fit_network_model(network_of(nx.disjoint_union_all(parts)), replace(GENERATION, epochs=100))
    degrees = np.mean([graph.degrees() for graph in sample_networks(trained, 8)], axis=0)

    assert degrees[[5, 11, 12, 13]].max() < 0.5
    assert degrees[[0, 1, 6, 7]].min() > 3


def test_samples_of_the_same_size_have_the_degrees_and_few_copied_edges() -> None:
    known = set(map(tuple, observed().edges.tolist()))
    for novelty in (0.7, 0.9):
        (graph,) = sample_networks(model(), 1, seed=6, novelty=novelty)
        copied = len(known & set(map(tuple, graph.edges.tolist()))) / len(known)

        assert np.array_equal(graph.degrees(), observed().graph.degrees())
        assert copied == pytest.approx(graph.attributes["copied_edges"], abs=1e-5)
        assert copied <= 1 - novelty + 1e-9


def test_models_saved_without_edges_sample_independent_edges(tmp_path: Path) -> None:
    save_network(replace(model(), pairs=None), tmp_path)
    older = load_network(tmp_path)
    (graph,) = sample_networks(older, 1, seed=7)

    assert older.pairs is None
    assert "copied_edges" not in graph.attributes
    assert not np.array_equal(graph.degrees(), observed().graph.degrees())
    with pytest.raises(SamplingError, match="edges"):
        list(sample_networks(older, 1, novelty=0.5))
    save_network(model(), tmp_path)
    assert torch.equal(load_network(tmp_path).pairs, model().pairs)


@pytest.mark.parametrize("novelty", [-0.1, 1.5])
def test_a_novelty_is_a_proportion(novelty: float) -> None:
    with pytest.raises(ConfigError, match="novelty"):
        list(sample_networks(model(), 1, novelty=novelty))
