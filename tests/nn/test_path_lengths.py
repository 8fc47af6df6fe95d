import networkx as nx
import numpy as np
import pytest
import torch

from graphite_gen.data.batch import GraphBatch, collate
from graphite_gen.graph import as_simple_graph
from graphite_gen.nn import path_lengths as module
from graphite_gen.nn.encoder import NodeFeatures
from graphite_gen.nn.path_lengths import path_lengths, structural_features

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


def test_features_depend_on_neither_padding_nor_other_graphs_and_are_finite() -> None:
    whole = structural_features(batch_of(*GRAPHS, nodes=9))

    assert whole.isfinite().all()
    for row, graph in zip(whole, GRAPHS, strict=True):
        assert torch.equal(row[: len(graph)], structural_features(batch_of(graph))[0])


def test_the_encoder_reads_them() -> None:
    batch, features = batch_of(*GRAPHS), NodeFeatures(("structure",), 7, 3, 0)

    found = features(batch, torch.zeros(2, *batch.mask.shape, 0))

    assert features.noise_features == 0
    assert torch.equal(found[1], structural_features(batch) * batch.mask.unsqueeze(-1))


def test_large_graphs_have_the_same_path_lengths(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = batch_of(*GRAPHS, nx.path_graph(12))
    is_real = batch.mask.unsqueeze(-1) & batch.mask.unsqueeze(-2)
    dense = path_lengths(batch.adj, batch.mask)

    searched: list[int] = []
    search = module.shortest_path
    monkeypatch.setattr(module, "DENSE", 0)
    monkeypatch.setattr(module, "shortest_path", lambda *args, **rest: searched.append(1) or search(*args, **rest))

    assert torch.equal(path_lengths(batch.adj, batch.mask)[is_real], dense[is_real])
    assert len(searched) == len(batch.adj), "dense products take a step for every length"
