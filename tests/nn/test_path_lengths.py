import networkx as nx
import numpy as np
import pytest
import torch
from tiny import normal, small_batch

from graphite_gen.data.batch import GraphBatch, collate
from graphite_gen.graph import as_simple_graph
from graphite_gen.nn.encoder import NodeFeatures
from graphite_gen.nn.path_lengths import distance_features, path_lengths, structural_features

GRAPHS = [
    nx.path_graph(7),
    nx.disjoint_union(nx.cycle_graph(5), nx.star_graph(2)),
    nx.empty_graph(3),
    nx.empty_graph(1),
]


def batch_of(*graphs: nx.Graph, nodes: int | None = None) -> GraphBatch:
    return collate([as_simple_graph(graph) for graph in graphs], nodes)


def test_path_lengths_are_those_of_networkx() -> None:
    graphs = [*GRAPHS, nx.gnp_random_graph(12, 0.2, seed=3)]
    batch = batch_of(*graphs, nodes=14)

    found = path_lengths(batch.adj, batch.mask)

    for lengths, graph in zip(found, graphs, strict=True):
        known = dict(nx.all_pairs_shortest_path_length(graph))
        longest = max(max(row.values()) for row in known.values())
        for i in graph:
            for j in graph:
                assert lengths[i, j] == known[i].get(j, longest + 1)


def test_structural_features_are_those_of_networkx() -> None:
    graph = nx.lollipop_graph(4, 3)
    batch = batch_of(graph, nx.path_graph(9))

    found = structural_features(batch)[0, : len(graph)].expm1()

    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    for node, row in zip(graph, found, strict=True):
        assert row[0] == pytest.approx(graph.degree[node])
        assert row[1] == pytest.approx(np.mean(list(lengths[node].values())))
        assert row[2] == pytest.approx(nx.eccentricity(graph, node))
        assert row[3].log1p() == pytest.approx(nx.clustering(graph, node))


def test_positions_are_those_of_multidimensional_scaling() -> None:
    """A grid: the leading two coordinates are well separated from the others, and their eigenvalues differ."""
    graph = nx.convert_node_labels_to_integers(nx.grid_2d_graph(8, 4))
    lengths = np.array(nx.floyd_warshall_numpy(graph))
    centring = np.eye(32) - 1 / 32
    values, vectors = np.linalg.eigh(-centring @ lengths**2 @ centring / 2)
    expected = vectors[:, [-1, -2]] * np.sqrt(values[[-1, -2]] / values[-1] * 32)

    found = distance_features(batch_of(graph, nodes=35), normal(1, 35, 5))[0]

    assert found.shape == (35, 3 + 4)
    assert np.abs(found[:32, :2].numpy()) == pytest.approx(np.abs(expected), abs=0.05)


def test_features_depend_on_neither_padding_nor_numbering_and_are_finite() -> None:
    batch, noise = small_batch(), normal(2, 3, 7, 6)
    features = NodeFeatures(("distance",), 7, 6, 0)
    order = torch.tensor([2, 0, 1, 3, 4, 5, 6])
    permuted = GraphBatch(batch.adj[:, order][:, :, order], batch.mask[:, order], batch.x[:, order])

    found = features(batch, noise)

    assert found.shape == (2, 3, 7, features.out_features)
    assert torch.allclose(features(permuted, noise[:, :, order]), found[:, :, order])
    padded = features(small_batch(padding=4), torch.nn.functional.pad(noise, (0, 0, 0, 2), value=3.0))
    assert torch.allclose(padded[:, :, :7], found)
    empty = batch_of(*GRAPHS)
    assert features(empty, normal(4, empty.mask.shape[1], 6)).isfinite().all()
    assert NodeFeatures(("distance",), 7, 1, 0)(batch, noise[..., :1]).shape[-1] == 1 + 4
