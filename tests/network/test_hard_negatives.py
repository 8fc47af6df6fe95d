import networkx as nx
import numpy as np
import pytest

from graphite_gen.errors import DatasetError
from graphite_gen.network import link_prediction
from graphite_gen.network.hard_negatives import hard_negatives
from graphite_gen.network.hyperparameters import LinkSettings
from graphite_gen.network.link_prediction import Negatives, run_baseline, run_link, run_split

from .graphs import planted


def test_hard_negatives_share_an_end_and_have_the_best_ranks() -> None:
    graph = planted()
    edges, parts = graph.edges.astype(np.int64), run_split(graph, "random", 0, 0)
    found = hard_negatives(60, edges, parts.train, parts.test, 6, np.random.default_rng(0))
    known = graph.graph.to_networkx()
    train = nx.Graph(parts.train.tolist())
    train.add_nodes_from(range(60))

    assert found.shape == (len(parts.test), 6, 2)
    assert (found[..., 0] < found[..., 1]).all()
    for pair, negatives in zip(parts.test.tolist(), found.tolist(), strict=True):
        assert not any(known.has_edge(*each) for each in negatives)
        for end, own in zip(pair, (negatives[:3], negatives[3:]), strict=True):
            assert all(end in each for each in own)
            free = [node for node in range(60) if node != end and not known.has_edge(node, end)]
            best = max(score for *_, score in nx.resource_allocation_index(train, [(end, node) for node in free]))
            # The first by resource allocation is among them.
            scores = [score for *_, score in nx.resource_allocation_index(train, own)]
            assert max(scores) == pytest.approx(best)


def test_cosines_of_features_choose_too() -> None:
    graph = planted()
    edges, parts = graph.edges.astype(np.int64), run_split(graph, "random", 0, 0)
    draws = [np.random.default_rng(0) for _ in range(2)]
    with_features, without = (
        hard_negatives(60, edges, parts.train, parts.test, 20, draw, features)
        for draw, features in zip(draws, (graph.features, None), strict=True)
    )

    assert not np.array_equal(with_features, without)


def test_hard_negatives_are_harder_than_random_ones() -> None:
    graph = planted()
    random, hard = (
        run_baseline(graph, "pagerank", 0, 0, negatives=each) for each in (Negatives(), Negatives("hard", 20))
    )

    assert hard.auc < random.auc
    assert hard.hits[20] is None
    assert 0 < hard.mrr < 1


def test_an_odd_number_of_hard_negatives_is_exact() -> None:
    graph = planted()
    edges, parts = graph.edges.astype(np.int64), run_split(graph, "random", 0, 0)

    assert hard_negatives(60, edges, parts.train, parts.test, 5, np.random.default_rng(0)).shape[1] == 5


def test_too_few_non_neighbours_are_refused_before_training(monkeypatch: pytest.MonkeyPatch) -> None:
    edges = np.array(list(nx.star_graph(8).edges))
    with pytest.raises(DatasetError, match="0 non-neighbours, and 3 are needed"):
        hard_negatives(9, edges, edges[1:], edges[:1], 6, np.random.default_rng(0))
    monkeypatch.setattr(link_prediction, "train_scores", None)
    with pytest.raises(DatasetError, match="non-neighbours") as error:
        run_link(planted(), LinkSettings(), 0, 0, negatives=Negatives("hard", 120))
    assert error.value.reason == "few-non-neighbours"
