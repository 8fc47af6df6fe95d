from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.operators import SparseGraph
from graphite_gen.single_graph import node_classification
from graphite_gen.single_graph.data import NodeSplit, describe_nodes
from graphite_gen.single_graph.inputs import inputs_of
from graphite_gen.single_graph.node_classification import (
    GCNClassifier,
    iterate_classification,
    node_split,
    summarise_classification,
)
from graphite_gen.single_graph.settings import ClassifierSettings

from .graphs import GROUPS, planted

QUICK = ClassifierSettings(width=8, latent=4, epochs=60, learning_rate=0.03)


@pytest.mark.parametrize("kind", ["gcn", "graphite"])
def test_groups_are_learned_from_a_few_labels(kind: str) -> None:
    scores = list(iterate_classification(planted(), replace(QUICK, kind=kind), 2, 0))

    assert np.mean([score.accuracy for score in scores]) > 0.85
    row = summarise_classification(kind, True, scores)
    assert row.accuracy == pytest.approx(np.mean([score.accuracy for score in scores]))
    assert row.accuracy_se is not None
    again = next(iterate_classification(planted(), replace(QUICK, kind=kind), 1, 0))
    assert (again.predictions == scores[0].predictions).all()


def test_the_gcn_is_that_of_pytorch_geometric() -> None:
    geometric = pytest.importorskip("torch_geometric.nn")
    graph = planted()
    inputs = inputs_of(graph)
    edges = torch.tensor(graph.edges.T.copy(), dtype=torch.int64)
    network = GCNClassifier(inputs.width, 8, GROUPS, 0.5)
    first, second = geometric.GCNConv(inputs.width, 8), geometric.GCNConv(8, GROUPS)
    with torch.no_grad():
        first.lin.weight.copy_(network.hidden.weight.T)
        first.bias.copy_(network.hidden.bias)
        second.lin.weight.copy_(network.out.linear.weight)
        second.bias.copy_(network.out.bias)
    both = torch.cat([edges, edges.flip(0)], dim=1)
    x = inputs @ torch.eye(inputs.width)
    wanted = second(torch.relu(first(x, both)), both)

    found = network(SparseGraph.from_edges(edges, graph.nodes).normalised(), inputs, None)
    assert torch.allclose(found, wanted)


def test_a_split_is_the_graphs_own_without_nodes_of_no_class() -> None:
    graph = planted()
    labels = np.full(60, -1)
    labels[:40] = 0
    labels[20:30] = 1
    own = replace(graph, labels=labels, split=NodeSplit(np.arange(10), np.arange(10, 25), np.arange(25, 60)))
    found = node_split(own, 0)

    assert found.train.tolist() == list(range(10))
    assert found.test.tolist() == list(range(25, 40))


def test_a_fresh_split_has_every_class_and_no_node_twice() -> None:
    found = node_split(planted(), 0)

    parts = np.concatenate([found.train, found.validation, found.test])
    assert len(np.unique(parts)) == len(parts) == 60
    assert np.bincount(found.train // 15).tolist() == [8] * 4
    assert len(found.validation) * 2 <= len(found.test) + 1


@pytest.mark.parametrize(("split", "different"), [("own", 1), ("fresh", 3)])
def test_runs_learn_from_the_graphs_own_nodes_or_each_from_others(
    split: str, different: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = NodeSplit(np.arange(0, 60, 3), np.arange(1, 60, 3), np.arange(2, 60, 3))
    seen: list[NodeSplit] = []

    def noted(*args: Any) -> NodeSplit:
        seen.append(node_split(*args))
        return seen[-1]

    monkeypatch.setattr(node_classification, "node_split", noted)
    list(iterate_classification(replace(planted(), split=own), replace(QUICK, epochs=1), 3, 0, split=split))

    assert len({tuple(parts.train) for parts in seen}) == different
    assert all((tuple(parts.train) == tuple(own.train)) == (split == "own") for parts in seen)


def test_too_few_labels_are_told() -> None:
    graph = planted().graph
    for labels, problem in (
        (None, "0 classes"),
        ([None] * 60, "0 classes"),
        (["a"] * 60, "1 classes"),
        (["a", "b"] + [None] * 58, "for validation"),
    ):
        with pytest.raises(DatasetError, match=problem):
            node_split(describe_nodes(graph, None, labels), 0)
    with pytest.raises(ConfigError, match="'dropout' is 1"):
        ClassifierSettings(dropout=1.0)
