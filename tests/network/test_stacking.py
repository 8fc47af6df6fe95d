from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from graphite_gen.evaluation.ranking import area_under_curve
from graphite_gen.network import stacking
from graphite_gen.network.hyperparameters import LinkSettings
from graphite_gen.network.link_prediction import run_link, run_split
from graphite_gen.network.network import Network
from graphite_gen.network.pair_features import CombinedLogits, PairFeatures
from graphite_gen.network.pair_logits import PairLogits
from graphite_gen.network.stacking import pair_tensor, train_scores

from .graphs import network_of, pair_logits, planted

QUICK = LinkSettings(latent=4, epochs=5)


def keys(pairs: Any) -> set[tuple[int, int]]:
    return {(int(i), int(j)) for i, j in pairs}


@pytest.mark.parametrize("form", ["connected", "random"])
def test_scored_edges_are_hidden_from_encoder_and_features(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted()
    edges = run_split(graph, form, 0, 0).train
    seen: list[tuple[str, set[tuple[int, int]]]] = []

    class Spy(PairFeatures):
        @classmethod
        def from_edges(cls, nodes: int, edges: Any) -> PairFeatures:
            seen.append(("features", keys(edges)))
            found = PairFeatures.from_edges(nodes, edges)
            of = found.of

            def noted(pairs: torch.Tensor) -> Any:
                seen.append(("scored", keys(pairs.T.tolist())))
                return of(pairs)

            object.__setattr__(found, "of", noted)
            return found

    def train(settings: Any, edges: torch.Tensor, *args: Any, **rest: Any) -> Any:
        seen.append(("encoder", keys(edges.T.tolist())))
        return learn(settings, edges, *args, **rest)

    learn = stacking.train_autoencoder
    monkeypatch.setattr(stacking, "PairFeatures", Spy)
    monkeypatch.setattr(stacking, "train_autoencoder", train)
    train_scores(graph, QUICK, edges, 0, form=form)

    assert seen.pop(0) == ("encoder", keys(edges))
    assert seen.pop() == ("features", keys(edges))
    assert len(seen) % 3 == 0
    assert len(seen) >= 3
    for (_, encoder), (_, features), (_, scored) in zip(seen[::3], seen[1::3], seen[2::3], strict=True):
        hidden = scored & keys(edges)
        assert encoder == features == keys(edges) - hidden
        assert len(hidden) == len(scored) / 2 == int(0.1 * len(edges))
        if form == "connected":
            before, after = (nx.Graph(list(each)) for each in (keys(edges), encoder))
            assert nx.number_connected_components(before) == nx.number_connected_components(after)
            assert set(before) == set(after)


def test_features_of_a_scored_pair_do_not_depend_on_its_edge() -> None:
    graph = planted()
    edges = graph.edges.astype(np.int64)
    pairs = pair_tensor(edges[:1])
    without = torch.stack([*PairFeatures.from_edges(60, edges[1:]).of(pairs)])
    with_edge = torch.stack([*PairFeatures.from_edges(60, edges).of(pairs)])
    scores = train_scores(graph, QUICK, edges[1:], 0).scores
    assert isinstance(scores, CombinedLogits)

    # What the model reads of a held-out edge is the graph without it, which differs from the graph with it.
    assert torch.allclose(torch.stack([*scores.features.of(pairs)]), without)
    assert not torch.allclose(without[:3], with_edge[:3])


def test_pair_features_find_what_the_autoencoder_misses() -> None:
    # In a lattice missing edges close squares, which an autoencoder of two dimensions cannot represent.
    graph = network_of(nx.convert_node_labels_to_integers(nx.grid_2d_graph(14, 14)))
    plain = LinkSettings(latent=2, epochs=20, pair_features="none")
    with_features, without = (
        np.mean([run_link(graph, settings, run, 0).auc for run in range(2)])
        for settings in (replace(plain, pair_features="heuristics"), plain)
    )

    assert with_features > 0.9
    assert with_features > without + 0.1


def test_the_autoencoder_is_part_of_the_combination() -> None:
    # Features tell the group where edges do not: pairs of a group, of which few are linked.
    graph = planted()
    edges = run_split(graph, "random", 0, 0).train
    scores = train_scores(graph, LinkSettings(latent=8, epochs=40), edges, 0, form="random", features=True).scores
    assert isinstance(scores, CombinedLogits)

    assert float(scores.weights[0]) > 0
    assert isinstance(scores.logits, PairLogits)
    parts = run_split(graph, "random", 0, 0)
    pairs = [pair_tensor(each) for each in (parts.test, parts.test_negatives)]
    assert area_under_curve(*(scores.of(each).detach().numpy() for each in pairs)) > 0.75


def knowing(graph: Network) -> PairLogits:
    """Logits that are right for all pairs."""
    matrix = 4 * graph.graph.adjacency().astype(np.float64) - 2
    values, vectors = torch.linalg.eigh(torch.tensor(matrix))

    return PairLogits(vectors * values.abs().sqrt(), values.sign(), torch.zeros(graph.nodes), torch.zeros(()))


def test_an_autoencoder_that_is_right_decides_where_the_features_know_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = network_of(nx.gnm_random_graph(200, 600, seed=2))
    parts = run_split(graph, "random", 0, 0)
    monkeypatch.setattr(
        stacking, "train_autoencoder", lambda *args, **rest: SimpleNamespace(logits=lambda: knowing(graph), epoch=3)
    )
    scores = train_scores(graph, QUICK, parts.train, 0, form="random").scores
    assert isinstance(scores, CombinedLogits)
    without = replace(scores, weights=scores.weights * (torch.arange(len(scores.weights)) > 1))
    pairs = [pair_tensor(each) for each in (parts.test, parts.test_negatives)]
    own, features_alone = (area_under_curve(*(each.of(part).numpy() for part in pairs)) for each in (scores, without))

    assert own > 0.95
    assert features_alone < 0.75


def test_edges_of_a_fold_are_scored_by_the_model_that_has_not_seen_them(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = planted()
    edges = run_split(graph, "random", 0, 0).train
    models: list[PairLogits] = []
    fitted: list[torch.Tensor] = []
    scored: list[torch.Tensor] = []

    def train(*args: Any, **rest: Any) -> Any:
        models.append(pair_logits(60, seed=len(models)))
        return SimpleNamespace(logits=lambda logits=models[-1]: logits, epoch=3)

    def fit(columns: torch.Tensor, is_edge: torch.Tensor) -> Any:
        fitted.append(columns)
        return torch.zeros(17), torch.zeros(())

    def features(own: PairFeatures, pairs: torch.Tensor) -> Any:
        scored.append(pairs)
        return of(own, pairs)

    of = PairFeatures.of
    monkeypatch.setattr(PairFeatures, "of", features)
    monkeypatch.setattr(stacking, "train_autoencoder", train)
    monkeypatch.setattr(stacking, "fit_combination", fit)
    scores = train_scores(graph, QUICK, edges, 0, form="random").scores
    (columns,) = fitted

    assert len(models) == len(scored) + 1 > 2
    wanted = [model.of(pairs) for model, pairs in zip(models[1:], scored, strict=True)]
    assert torch.equal(columns[0], torch.cat(wanted))
    assert isinstance(scores, CombinedLogits)
    # The combination uses the model of all edges.
    assert scores.logits is models[0]


@pytest.mark.parametrize("graph", [nx.path_graph(12), nx.path_graph(2), nx.complete_graph(5), nx.star_graph(30)])
def test_forests_and_graphs_with_few_pairs_can_be_scored(graph: nx.Graph) -> None:
    network = network_of(graph)
    scores = train_scores(network, QUICK, network.edges.astype(np.int64), 0).scores

    assert scores.of(pair_tensor(network.edges)).isfinite().all()


def test_progress_counts_the_epochs_of_all_folds() -> None:
    done: list[tuple[int, int]] = []
    graph = planted()
    train_scores(graph, QUICK, graph.edges.astype(np.int64), 0, progress=lambda *count: done.append(count))
    total = done[-1][1]

    assert total % 5 == 0
    assert total > 5
    assert done == [(k, total) for k in range(1, total + 1)]


def test_hidden_edges_are_no_non_edges_of_a_fold() -> None:
    # All pairs but fourteen are edges: nearly a third of the pairs that a fold does not keep are hidden edges.
    edges = network_of(nx.complement(nx.cycle_graph(14))).edges.astype(np.int64)
    for kept, present, absent in stacking._folds(14, edges, "connected", 0):
        assert keys(present) == keys(edges) - keys(kept)
        assert keys(absent).isdisjoint(keys(edges))


def test_folds_are_trained_for_the_selected_number_of_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    def train(settings: Any, *_: Any, **__: Any) -> Any:
        given.append(settings.epochs)
        return SimpleNamespace(logits=lambda: pair_logits(60), epoch=3)

    monkeypatch.setattr(stacking, "train_autoencoder", train)
    train_scores(planted(), QUICK, planted().edges.astype(np.int64), 0)

    assert given[0] == QUICK.epochs
    assert set(given[1:]) == {3}
