from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax
from torch import Tensor

from graphite_gen.errors import DatasetError
from graphite_gen.network import node_classification
from graphite_gen.network.fitting import link_loss
from graphite_gen.network.hyperparameters import CLASSIFIERS, ClassifierSettings
from graphite_gen.network.network import NodeSplit, describe_nodes
from graphite_gen.network.node_classification import (
    GCNClassifier,
    GraphiteClassifier,
    run_classification,
    run_nodes,
    summarise_classification,
)
from graphite_gen.network.node_inputs import inputs_of
from graphite_gen.nn.operators import SparseGraph

from .graphs import GROUPS, dense_gcn, edge_tensor, planted

QUICK = ClassifierSettings(width=8, latent=4, epochs=60, learning_rate=0.03)


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_groups_are_learned_from_a_few_labels(kind: str) -> None:
    scores = [run_classification(planted(), replace(QUICK, kind=kind), run, 0) for run in (0, 1, 0)]

    assert np.mean([score.accuracy for score in scores]) > 0.85
    row = summarise_classification(kind, True, scores)
    assert row.accuracy == pytest.approx(np.mean([score.accuracy for score in scores]))
    assert row.accuracy_se is not None
    assert (scores[2].predictions == scores[0].predictions).all()


@pytest.mark.parametrize("split", ["own", "fresh"])
@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_labels_of_test_nodes_affect_only_the_test_score(kind: str, split: str) -> None:
    graph, settings = planted(), replace(QUICK, kind=kind, epochs=15)
    score = run_classification(graph, settings, 1, 0, split=split)

    # The split of the first is kept, as a fresh one reads the labels.
    own = replace(graph, split=run_nodes(graph, split, 0, 1))
    test = own.split.test
    for shift in (1, 2, 3):
        labels = graph.labels.copy()
        labels[test] = (labels[test] + shift) % GROUPS
        other = run_classification(replace(own, labels=labels), settings, 1, 0)
        assert (other.predictions == score.predictions).all()
        assert (other.validation, other.epoch) == (score.validation, score.epoch)
        assert other.accuracy == np.mean(score.predictions[test] == labels[test])
    assert score.accuracy == np.mean(score.predictions[test] == graph.labels[test])
    assert score.accuracy > 0.5


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_predictions_are_those_of_the_best_epoch_by_validation(kind: str) -> None:
    graph = planted()
    validation = run_nodes(graph, "own", 0, 0).validation
    settings = replace(QUICK, kind=kind, learning_rate=0.3)
    # The first epochs of a run are those of a shorter one.
    scores = [run_classification(graph, replace(settings, epochs=epochs), 0, 0) for epochs in range(1, 13)]

    assert 1 < len({score.epoch for score in scores}) < len(scores)
    for epochs, score in enumerate(scores, start=1):
        assert score.validation == max(score.validation for score in scores[:epochs])
        assert score.validation == np.mean(score.predictions[validation] == graph.labels[validation])
        assert score.epoch <= epochs
        assert (score.predictions == scores[score.epoch - 1].predictions).all()


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_probabilities_are_those_of_the_predicted_classes(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Tensor] = []

    def logits(network: GCNClassifier, *args: Any) -> Tensor:
        found.append(network.class_logits(args[0], network.hidden_states(*args), *args[1:]))
        return found[-1]

    monkeypatch.setattr(GCNClassifier, "forward", logits)
    score = run_classification(planted(), replace(QUICK, kind=kind, epochs=5), 0, 0)

    p = softmax(found[score.epoch - 1].numpy(), axis=1)
    assert np.allclose(score.probabilities, p[np.arange(60), score.predictions])
    assert np.allclose(score.probabilities, p.max(axis=1))


@pytest.mark.parametrize("weight", [0.0, 0.5, 2.0])
def test_the_hybrid_adds_the_weighted_loss_of_hidden_edges(weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted()
    seen: list[SparseGraph] = []
    slopes: list[Tensor] = []

    def hidden_states(network: GraphiteClassifier, over: SparseGraph, *rest: Any) -> Tensor:
        seen.append(over)
        return GCNClassifier.hidden_states(network, over, *rest)

    def noted(*args: Any) -> Tensor:
        edges, hidden = args[4], args[5]
        assert edges.T.tolist() == graph.edges.tolist()
        assert 0 < hidden.sum() < len(hidden)
        assert torch.allclose(seen[-1].matrix.to_dense(), dense_gcn(edges[:, ~hidden], graph.nodes))
        loss = link_loss(*args)
        loss.register_hook(slopes.append)
        return loss

    monkeypatch.setattr(GraphiteClassifier, "hidden_states", hidden_states)
    monkeypatch.setattr(node_classification, "link_loss", noted)
    run_classification(graph, replace(QUICK, reconstruction=weight, epochs=3), 0, 0)

    assert slopes == [weight] * (3 if weight else 0)


def test_the_classifier_of_the_paper_reads_posterior_parameters_and_node_features(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph, inputs, hidden = planted(), inputs_of(planted()), []

    def noted(*args: Any) -> Tensor:
        hidden.append(int(args[5].sum()))
        return link_loss(*args)

    built: list[Any] = []
    monkeypatch.setattr(node_classification, "link_loss", noted)
    build = node_classification._build
    monkeypatch.setattr(node_classification, "_build", lambda *args: built.append(build(*args)) or built[-1])
    run_classification(graph, replace(QUICK, kind="graphite-paper", epochs=3), 0, 0)

    # No edge is hidden from the encoder.
    assert hidden == [0] * 3
    (network,) = built
    a, x = dense_gcn(edge_tensor(graph), graph.nodes), inputs @ torch.eye(inputs.width)
    encoder, out = network.autoencoder.encoder, network.out
    h = torch.relu(a @ x @ encoder.hidden.weight + encoder.hidden.bias)
    posterior = encoder(SparseGraph.from_edges(edge_tensor(graph), graph.nodes).normalised(), inputs)
    assert torch.allclose(posterior.mu, a @ encoder.mu.linear(h) + encoder.mu.bias, atol=1e-6)
    weights = torch.cat([out.linear.weight.T, network.out_inputs.weight])
    wanted = a @ torch.cat([posterior.mu, posterior.log_sigma, x], 1) @ weights + out.bias + network.out_inputs.bias
    found = network(SparseGraph.from_edges(edge_tensor(graph), graph.nodes).normalised(), inputs, None)
    assert torch.allclose(found, wanted, atol=1e-6)


def test_the_gcn_is_that_of_pytorch_geometric() -> None:
    geometric = pytest.importorskip("torch_geometric.nn")
    inputs, edges = inputs_of(planted()), edge_tensor(planted())
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

    found = network(SparseGraph.from_edges(edges, 60).normalised(), inputs, None)
    assert torch.allclose(found, wanted)


def test_without_edges_features_are_needed() -> None:
    graph = planted()
    lone = replace(graph, graph=replace(graph.graph, edges=graph.edges[:0]))

    assert run_classification(lone, QUICK, 0, 0).accuracy > 0.4
    with pytest.raises(DatasetError, match="no edges and no features"):
        run_classification(lone, QUICK, 0, 0, features=False)


def test_the_split_of_the_network_is_used_without_unlabelled_nodes() -> None:
    labels = np.repeat([0, 1, 0, -1], [20, 10, 10, 20])
    own = replace(planted(), labels=labels, split=NodeSplit(np.arange(10), np.arange(10, 25), np.arange(25, 60)))
    found = run_nodes(own, "own", 0, 0)

    assert found.train.tolist() == list(range(10))
    assert found.test.tolist() == list(range(25, 40))


def test_a_random_split_has_every_class_and_disjoint_parts() -> None:
    found = run_nodes(planted(), "own", 0, 0)

    parts = np.concatenate([found.train, found.validation, found.test])
    assert len(np.unique(parts)) == len(parts) == 60
    assert np.bincount(found.train // 15).tolist() == [8] * 4
    assert len(found.validation) * 2 <= len(found.test) + 1


@pytest.mark.parametrize(("split", "different"), [("own", 1), ("fresh", 3)])
def test_splits_are_the_same_or_random_in_each_run(split: str, different: int) -> None:
    own = NodeSplit(np.arange(0, 60, 3), np.arange(1, 60, 3), np.arange(2, 60, 3))
    for graph in (planted(), replace(planted(), split=own)):
        seen = {tuple(run_nodes(graph, split, 0, run).train.tolist()) for run in range(3)}
        assert len(seen) == different
        assert (tuple(own.train.tolist()) in seen) == (split == "own" and graph.split is own)


def test_too_few_labels_are_refused() -> None:
    graph = planted().graph
    for labels, problem in (
        (None, "0 classes"),
        ([None] * 60, "0 classes"),
        (["a"] * 60, "1 class"),
    ):
        with pytest.raises(DatasetError, match=problem):
            run_nodes(describe_nodes(graph, None, labels), "own", 0, 0)


@pytest.mark.parametrize("kind", ["gcn", "graphite"])
def test_a_handful_of_labels_are_all_used_for_training(kind: str) -> None:
    whole = planted()
    known = [0, 20, 40]
    graph = replace(whole, labels=np.where(np.isin(np.arange(60), known), whole.labels, -1))

    score = run_classification(graph, replace(QUICK, kind=kind, epochs=60), 0, 0)

    assert run_nodes(graph, "own", 0, 0).train.tolist() == known
    assert (score.accuracy, score.validation, score.epoch, score.test_nodes) == (None, None, 60, 0)
    assert np.mean(score.predictions == whole.labels) > 0.7
    assert summarise_classification(kind, False, [score]).accuracy is None
