from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import torch

from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.graph import SimpleGraph
from graphite_gen.metrics.ranking import area_under_curve
from graphite_gen.single_graph import link_prediction
from graphite_gen.single_graph.data import SingleGraph
from graphite_gen.single_graph.link_prediction import (
    iterate_baseline,
    iterate_links,
    rank_missing_links,
    run_split,
    summarise_links,
    train_on_all,
)
from graphite_gen.single_graph.pairs import PairLogits
from graphite_gen.single_graph.settings import LinkSettings

from .graphs import MEMBERS, planted

# The KL term counts for more in a small graph: there are fewer pairs to each node.
QUICK = LinkSettings(
    width=16, latent=8, hops=2, epochs=60, validate_every=10, learning_rate=0.03, kl_weight=0.1, skip_weight=0.25
)


def knowing_the_groups(runs: int) -> float:
    """The AUC of someone who knows nothing but the groups."""
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
    scores = list(iterate_links(planted(), settings, 2, 0, features=features))

    assert np.mean([score.auc for score in scores]) > knowing_the_groups(2) - 0.1
    assert all(score.epoch is not None and 10 <= score.epoch <= 60 for score in scores)
    assert all(score.validation_auc is not None for score in scores)


def test_a_run_is_the_same_however_many_there_are() -> None:
    few = list(iterate_links(planted(), replace(QUICK, epochs=10), 1, 3))
    more = list(iterate_links(planted(), replace(QUICK, epochs=10), 2, 3))

    assert few[0] == more[0]
    assert more[0].auc != more[1].auc


@pytest.mark.parametrize("name", ["spectral", "adamic-adar", "pagerank"])
def test_baselines_find_planted_groups(name: str) -> None:
    scores = list(iterate_baseline(planted(), name, 2, 0))

    assert np.mean([score.auc for score in scores]) > knowing_the_groups(2) - 0.15
    row = summarise_links(name, False, "connected", scores)
    values = [score.auc for score in scores]
    assert row.auc == pytest.approx(np.mean(values))
    assert row.auc_se == pytest.approx(abs(values[0] - values[1]) / 2)
    assert summarise_links(name, False, "connected", scores[:1]).auc_se is None


@pytest.mark.parametrize("tile", [1, 500, 10**6])
def test_missing_links_are_ranked_over_all_pairs(monkeypatch: pytest.MonkeyPatch, tile: int) -> None:
    monkeypatch.setattr(link_prediction, "TILE", tile)
    graph = planted()
    draw = torch.Generator().manual_seed(0)
    logits = PairLogits(
        torch.randn(60, 4, generator=draw),
        torch.tensor([1.0, 1.0, -1.0, 1.0]),
        torch.randn(60, generator=draw),
        torch.tensor(-1.0),
    )
    matrix = logits.tile(slice(0, 60), slice(0, 60)).numpy()
    adjacency = graph.graph.adjacency()
    free = [(i, j) for i in range(60) for j in range(i + 1, 60) if not adjacency[i, j]]
    wanted = sorted(free, key=lambda pair: -matrix[pair])[:20]
    found = rank_missing_links(graph, logits, 20)

    assert [(link.source, link.target) for link in found] == wanted
    assert found[0].probability == pytest.approx(1 / (1 + np.exp(-matrix[wanted[0]])))
    assert len(rank_missing_links(graph, logits, 10**6)) == len(free)


def test_missing_links_are_within_groups_and_have_the_names_of_the_file() -> None:
    graph = planted()
    names = tuple(f"n{node}" for node in range(60))
    named = replace(graph, graph=replace(graph.graph, names=names))
    links = rank_missing_links(named, train_on_all(named, QUICK, 0).logits(), 30)

    groups = [(names.index(link.source) // MEMBERS, names.index(link.target) // MEMBERS) for link in links]
    assert np.mean([a == b for a, b in groups]) > 0.8
    assert all(x.probability >= y.probability for x, y in pairwise(links))


def test_epochs_are_reported_as_they_pass() -> None:
    done: list[tuple[int, int]] = []
    train_on_all(planted(), replace(QUICK, epochs=3), 0, progress=lambda *count: done.append(count))

    assert done == [(1, 3), (2, 3), (3, 3)]


def test_strange_graphs_work_or_are_told() -> None:
    # Isolated nodes and several components.
    graph = nx.disjoint_union(nx.gnm_random_graph(20, 60, seed=0), nx.cycle_graph(8))
    graph.add_nodes_from(range(100, 105))
    simple = SingleGraph(SimpleGraph.from_networkx(graph))
    (score,) = iterate_links(simple, replace(QUICK, epochs=5), 1, 0)
    assert 0 <= score.auc <= 1

    lonely = SingleGraph(SimpleGraph.from_pairs(1, []))
    with pytest.raises(DatasetError, match="0 edges"):
        next(iterate_links(lonely, QUICK, 1, 0))
    with pytest.raises(DatasetError, match="no edges"):
        train_on_all(lonely, QUICK, 0)
    pair = SingleGraph(SimpleGraph.from_pairs(2, [(0, 1)]))
    assert rank_missing_links(pair, train_on_all(pair, QUICK, 0).logits(), 5) == []
    with pytest.raises(ConfigError, match="targets 'all'"):
        replace(QUICK, edge_dropout=0.0)
