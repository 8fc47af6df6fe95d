from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.stats import sem

from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.evaluation.ranking import area_under_curve
from graphite_gen.network import link_prediction, stacking
from graphite_gen.network.baselines import CHEAP, baseline_scores
from graphite_gen.network.hyperparameters import LinkSettings
from graphite_gen.network.link_prediction import (
    Negatives,
    best_ranking,
    rank_by_baseline,
    rank_missing_links,
    run_baseline,
    run_link,
    run_split,
    summarise_links,
    train_on_all,
)
from graphite_gen.network.network import Network
from graphite_gen.network.pair_logits import PairLogits
from graphite_gen.network.splits import EdgeSplit, Pairs

from .graphs import MEMBERS, network_of, pair_logits, planted

# The KL term counts for more in a small graph: there are fewer pairs to each node.
QUICK = LinkSettings(
    width=16,
    latent=8,
    hops=2,
    epochs=60,
    validate_every=10,
    learning_rate=0.03,
    kl_weight=0.1,
    skip_weight=0.25,
    pair_features="none",
)


def knowing_the_groups(runs: int) -> float:
    """The AUC of scores that depend only on the planted groups."""
    areas = []
    for run in range(runs):
        parts = run_split(planted(), "connected", 0, run)
        same = [pairs[:, 0] // MEMBERS == pairs[:, 1] // MEMBERS for pairs in (parts.test, parts.test_negatives)]
        areas.append(area_under_curve(*same))

    return float(np.mean(areas))


@pytest.mark.parametrize(
    ("kind", "features"), [("graphite-vae", False), ("graphite-ae", True), ("vgae", True), ("gae", False)]
)
def test_every_model_finds_planted_groups(kind: str, features: bool) -> None:
    settings = replace(QUICK, kind=kind, subsample=0.0 if features else 2.0, width=16 if features else 0)
    scores = [run_link(planted(), settings, run, 0, features=features) for run in range(2)]

    assert np.mean([score.auc for score in scores]) > knowing_the_groups(2) - 0.1


def test_runs_are_reproducible_and_differ() -> None:
    first, other, again = (run_link(planted(), replace(QUICK, epochs=10), run, 3) for run in (0, 1, 0))

    assert first == again
    assert first.auc != other.auc


def with_leaves() -> Network:
    """Thirty nodes, each with a leaf, whose edge no connected split holds out."""
    graph = nx.gnm_random_graph(30, 60, seed=0)
    graph.add_edges_from([(node, node + 30) for node in range(30)])

    return network_of(graph)


def fixed_logits(parts: EdgeSplit) -> PairLogits:
    """Logits that are right for all validation pairs and wrong for all test pairs."""
    matrix = torch.zeros(60, 60)
    matrix[tuple(np.concatenate([parts.validation, parts.test_negatives]).T)] = 1
    matrix[tuple(np.concatenate([parts.test, parts.validation_negatives]).T)] = -1
    values, vectors = torch.linalg.eigh(matrix + matrix.T)

    return PairLogits(vectors * values.abs().sqrt(), values.sign(), torch.zeros(60), torch.zeros(()))


@pytest.mark.parametrize("split", ["connected", "random"])
def test_training_validation_and_test_edges_are_used_for_their_purpose(
    split: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = with_leaves()
    parts = run_split(graph, split, 3, 1)
    logits = fixed_logits(parts)

    def train(
        settings: LinkSettings, edges: Any, nodes: int, inputs: Any, seed: int, *, validate: Any, **_: Any
    ) -> Any:
        assert edges.T.tolist() == parts.train.tolist()
        # Nodes are isolated by training edges only.
        isolated = sorted(set(range(60)) - set(parts.train.ravel().tolist()))
        assert ([] if inputs.isolated is None else inputs.isolated.tolist()) == isolated
        assert bool(isolated) == (split == "random")
        # AUC and AP of the validation pairs.
        assert validate(logits) == pytest.approx(2)
        return SimpleNamespace(logits=lambda: logits, epoch=7)

    def baseline(name: str, nodes: int, edges: Pairs, seed: int) -> Any:
        assert edges.tolist() == parts.train.tolist()
        return logits

    monkeypatch.setattr(stacking, "train_autoencoder", train)
    monkeypatch.setattr(link_prediction, "baseline_scores", baseline)
    score = run_link(graph, QUICK, 1, 3, split=split)
    same = run_baseline(graph, "adamic-adar", 1, 3, split=split)

    assert (score.validation_auc, score.auc, score.epoch) == (1, 0, 7)
    assert score.ap < 0.7
    assert (same.validation_auc, same.auc, same.ap, same.epoch) == (1, 0, score.ap, None)


@pytest.mark.parametrize("name", CHEAP)
def test_baselines_find_planted_groups(name: str) -> None:
    scores = [run_baseline(planted(), name, run, 0) for run in range(2)]

    assert np.mean([score.auc for score in scores]) > knowing_the_groups(2) - 0.15
    row = summarise_links(name, False, "connected", scores)
    for mean, error, values in (
        (row.auc, row.auc_se, [score.auc for score in scores]),
        (row.ap, row.ap_se, [score.ap for score in scores]),
        (row.mrr, row.mrr_se, [score.mrr for score in scores]),
        (row.hits[20], row.hits_se[20], [score.hits[20] for score in scores]),
    ):
        assert (mean, error) == pytest.approx((np.mean(values), sem(values)))
    assert summarise_links(name, False, "connected", scores[:1]).auc_se is None


@pytest.mark.parametrize("tile", [1, 500, 10**6])
def test_missing_links_are_ranked_over_all_pairs(monkeypatch: pytest.MonkeyPatch, tile: int) -> None:
    monkeypatch.setattr(link_prediction, "TILE", tile)
    graph, logits = planted(), pair_logits(60)
    adjacency = graph.graph.adjacency()
    free = np.array([pair for pair in combinations(range(60), 2) if not adjacency[pair]])
    done: list[tuple[int, int]] = []
    by_model = rank_missing_links(graph, logits, 20)
    by_rank = rank_by_baseline(graph, "pagerank", 20, 0, progress=lambda *count: done.append(count))
    ranks = baseline_scores("pagerank", 60, graph.edges.astype(int), 0).of(torch.tensor(free.T)).numpy()
    for links, values, scores in (
        (by_model, [link.probability for link in by_model], torch.sigmoid(logits.of(torch.tensor(free.T))).numpy()),
        (by_rank, [link.score for link in by_rank], ranks),
    ):
        order = np.argsort(-scores, kind="stable")[:20]
        assert [[link.source, link.target] for link in links] == free[order].tolist()
        assert np.allclose(values, scores[order])

    assert done[-1] == (60, 60)
    assert len(done) == {1: 60, 500: 8, 10**6: 1}[tile]
    assert (
        len(rank_by_baseline(graph, "pagerank", 10**6, 0)) == len(rank_missing_links(graph, logits, 10**6)) == len(free)
    )


def test_progress_is_reported_every_epoch() -> None:
    done: list[tuple[int, int]] = []
    train_on_all(planted(), replace(QUICK, epochs=3), 0, progress=lambda *count: done.append(count))

    assert done == [(1, 3), (2, 3), (3, 3)]


def test_degenerate_graphs_work_or_are_refused() -> None:
    # Isolated nodes and several components.
    graph = nx.disjoint_union_all([nx.gnm_random_graph(20, 60, seed=0), nx.cycle_graph(8), nx.empty_graph(5)])
    assert 0 <= run_link(network_of(graph), replace(QUICK, epochs=5), 0, 0).auc <= 1

    lonely, pair = network_of(nx.empty_graph(1)), network_of(nx.path_graph(2))
    with pytest.raises(DatasetError, match="0 edges"):
        run_link(lonely, QUICK, 0, 0)
    with pytest.raises(DatasetError, match="no edges"):
        train_on_all(lonely, QUICK, 0)
    assert rank_missing_links(pair, train_on_all(pair, QUICK, 0).logits(), 5) == []
    for graph, problem in ((pair, "complete"), (lonely, "no edges")):
        with pytest.raises(DatasetError, match=problem):
            rank_by_baseline(graph, "pagerank", 5, 0)
    with pytest.raises(ConfigError) as error:
        replace(QUICK, edge_dropout=0.0)
    assert error.value.reason == "no-hidden-edges"


def test_the_best_ranking_is_chosen_on_validation_edges_and_its_precision_counted() -> None:
    graph = planted()
    ranking = best_ranking(graph, [QUICK, "pagerank", "katz"], 30, 0)
    parts = run_split(graph, "connected", 0, 0)
    known = [*parts.train.tolist(), *parts.validation.tolist()]
    free = [list(pair) for pair in combinations(range(60), 2) if list(pair) not in known]
    scores = baseline_scores("pagerank", 60, parts.train, 0).of(torch.tensor(free).T)
    first = [free[place] for place in scores.argsort(descending=True, stable=True)[:30].tolist()]
    alone = best_ranking(graph, ["pagerank"], 30, 0)

    assert list(ranking.validation_auc) == ["graphite-vae", "pagerank", "katz"]
    assert (alone.model, alone.count, alone.hidden) == ("pagerank", 30, len(parts.test))
    assert alone.precision == pytest.approx(sum(pair in parts.test.tolist() for pair in first) / 30)


def test_a_baseline_replaces_a_model_that_is_clearly_worse() -> None:
    graph = network_of(nx.convert_node_labels_to_integers(nx.grid_2d_graph(14, 14)))
    poor = LinkSettings(latent=1, epochs=1, pair_features="none")

    assert best_ranking(graph, [poor, "pagerank"], 10, 0).model == "pagerank"
    # Not for a difference within the standard error.
    assert best_ranking(graph, ["pagerank", "pagerank"], 10, 0).model == "pagerank"
    assert best_ranking(planted(), ["resource-allocation", "adamic-adar"], 10, 0).model == "resource-allocation"


def high_for(nodes: int, pairs: Pairs) -> PairLogits:
    """Logits of 1 for the given pairs and 0 for the others."""
    matrix = torch.zeros(nodes, nodes)
    matrix[tuple(pairs.T)] = 1
    values, vectors = torch.linalg.eigh(matrix + matrix.T)

    return PairLogits(vectors * values.abs().sqrt(), values.sign(), torch.zeros(nodes), torch.zeros(()))


@pytest.mark.parametrize(("edges", "wrong", "model"), [(90, 0, "pagerank"), (90, 2, "katz"), (20, 1, "pagerank")])
def test_a_baseline_replaces_another_from_one_standard_error_on(
    edges: int, wrong: int, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = network_of(nx.gnm_random_graph(60 if edges == 90 else 12, edges, seed=0))
    validation = run_split(graph, "connected", 0, 0).validation
    scores = {"pagerank": validation[wrong:], "katz": validation}
    monkeypatch.setattr(link_prediction, "baseline_scores", lambda name, nodes, *_: high_for(nodes, scores[name]))

    # Two of four are wrong by half an area: 1.7 standard errors. A single edge has no standard error.
    assert len(validation) == (4 if edges == 90 else 1)
    assert best_ranking(graph, ["pagerank", "katz"], 10, 0).model == model


def test_areas_of_a_ranking_are_those_of_validation_edges() -> None:
    areas = best_ranking(planted(), ["pagerank", "katz"], 10, 0).validation_auc

    for name, area in areas.items():
        assert area == pytest.approx(run_baseline(planted(), name, 0, 0).validation_auc)


def test_hard_negatives_are_checked_before_a_long_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_prediction, "train_scores", lambda *_, **__: pytest.fail("trained"))
    with pytest.raises(DatasetError, match="non-neighbours"):
        run_link(planted(), QUICK, 0, 0, negatives=Negatives("hard", 500))
