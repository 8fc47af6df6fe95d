from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch

from graphite_gen.evaluation.ranking import area_under_curve
from graphite_gen.network.baselines import baseline_scores
from graphite_gen.network.pair_features import CENTRE, CombinedLogits, PairFeatures, combination_terms, fit_combination

from .graphs import dense, pair_logits, pairs_of

# Two components, a leaf and two isolated nodes.
GRAPH = nx.disjoint_union_all([nx.gnm_random_graph(16, 40, seed=4), nx.star_graph(4), nx.empty_graph(2)])
NODES = len(GRAPH)
EDGES = pairs_of(GRAPH)
PAIRS = torch.tensor(list(combinations(range(NODES), 2))).T


def test_pairs_and_tiles_have_the_same_features() -> None:
    features = PairFeatures.from_edges(NODES, EDGES)
    tiles = list(features.tile(slice(2, 9), slice(5, NODES)))
    pairs = torch.cartesian_prod(torch.arange(2, 9), torch.arange(5, NODES)).T

    assert len(tiles) == 15
    for tile, values in zip(tiles, features.of(pairs), strict=True):
        assert torch.allclose(tile.flatten(), values)


def test_features_say_degrees_isolation_and_components() -> None:
    *_, low, high, one, both, connected, _ = PairFeatures.from_edges(NODES, EDGES).of(PAIRS)
    component = {node: number for number, part in enumerate(nx.connected_components(GRAPH)) for node in part}

    for k, (i, j) in enumerate(PAIRS.T.tolist()):
        degrees = sorted((GRAPH.degree[i], GRAPH.degree[j]))
        assert (low[k], high[k]) == pytest.approx(tuple(np.log1p(degrees)))
        assert (one[k], both[k]) == (degrees[0] == 0, degrees[1] == 0)
        assert connected[k] == (component[i] == component[j])


def test_combined_logits_are_the_weighted_sum() -> None:
    features, logits = PairFeatures.from_edges(NODES, EDGES), pair_logits(NODES)
    weights = torch.linspace(-1, 1, len(CENTRE))
    combined = CombinedLogits(logits, features, weights, torch.tensor(0.5))
    own = logits.of(PAIRS)
    wanted = torch.stack([own, torch.sigmoid(own).log(), *features.of(PAIRS)]).T @ weights + 0.5

    assert torch.allclose(combined.of(PAIRS), wanted)
    assert torch.allclose(combined.tile(slice(0, NODES), slice(0, NODES))[tuple(PAIRS)], wanted)
    alone = CombinedLogits(logits, features, torch.eye(len(CENTRE))[0], torch.tensor(0.0))
    assert torch.allclose(alone.tile(slice(0, NODES), slice(0, NODES)), dense(logits))


@pytest.mark.parametrize("precision", [1.0, 20.0])
def test_combination_is_the_ridge_regression_of_scikit_learn(precision: float) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    draw = np.random.default_rng(0)
    columns = draw.normal(size=(4, 80)) * np.array([1, 10, 0.1, 0])[:, None] + 3
    is_edge = columns[0] + draw.normal(size=80) > 3
    weights, bias = fit_combination(torch.tensor(columns), torch.tensor(is_edge), [0.0] * 4, precision)

    scale = columns.std(1) + (columns.std(1) < 1e-9)
    oracle = linear_model.LogisticRegression(C=1 / precision, tol=1e-10, max_iter=1000)
    oracle.fit((columns / scale[:, None]).T, is_edge)
    # A constant column has no weight.
    assert np.allclose(weights[:3], (oracle.coef_[0] / scale)[:3], rtol=1e-3)
    assert weights[3] == 0
    assert torch.allclose(
        weights @ torch.tensor(columns) + bias,
        torch.tensor(oracle.decision_function((columns / scale[:, None]).T)),
        atol=1e-3,
    )


def test_features_tell_distant_pairs_apart_as_pagerank_does() -> None:
    edges = pairs_of(nx.path_graph(25))
    pairs = torch.stack([torch.zeros(24, dtype=torch.int64), torch.arange(1, 25)])
    log, *above = [*PairFeatures.from_edges(25, edges).of(pairs)][:4]
    score = baseline_scores("pagerank", 25, edges, 0).of(pairs)

    assert score[-1] < 1e-9
    assert (log.diff() < 0).all()
    assert torch.allclose(log, score.log())
    for floor, feature in zip((1e-6, 1e-3, 1e-2), above, strict=True):
        assert torch.allclose(feature, score.clamp_min(floor).log())


def test_pagerank_at_other_teleport_probabilities_is_the_sum_over_walks() -> None:
    adj = nx.to_numpy_array(GRAPH, nodelist=range(NODES)) + np.eye(NODES)
    walk = adj / np.sqrt(np.outer(adj.sum(0), adj.sum(0)))
    found = [*PairFeatures.from_edges(NODES, EDGES).of(PAIRS)]

    for column, teleport in ((0, 0.1), (4, 0.03), (5, 0.25)):
        powers = [teleport * (1 - teleport) ** k * np.linalg.matrix_power(walk, k) for k in range(31)]
        assert np.allclose(found[column].exp(), sum(powers)[tuple(PAIRS.numpy())], rtol=1e-4)


def test_fit_to_few_pairs_stays_near_pagerank_and_a_fit_to_many_leaves_it() -> None:
    features = PairFeatures.from_edges(NODES, EDGES)
    terms = torch.stack([*combination_terms(pair_logits(NODES).of(PAIRS), features.of(PAIRS))])
    rank = baseline_scores("pagerank", NODES, EDGES, 0).of(PAIRS)
    # What is fitted says the reverse of PageRank.
    is_edge = rank < rank.median()

    def agreement(copies: int, *chosen: int) -> float:
        subset = torch.tensor(chosen) if chosen else torch.arange(len(rank))
        weights, bias = fit_combination(terms[:, subset].repeat(1, copies), is_edge[subset].repeat(copies))
        scores = weights @ terms + bias
        return area_under_curve(scores[~is_edge].numpy(), scores[is_edge].numpy())

    order = rank.argsort().tolist()
    assert agreement(1, *order[:1], *order[-1:]) > 0.9
    assert agreement(50) < 0.1


def test_prior_mean_ranks_by_pagerank() -> None:
    features = PairFeatures.from_edges(NODES, EDGES)
    terms = torch.stack([*combination_terms(pair_logits(NODES).of(PAIRS), features.of(PAIRS))])
    rank = baseline_scores("pagerank", NODES, EDGES, 0).of(PAIRS)
    weights, _ = fit_combination(terms, rank > rank.median(), precision=1e9)
    linked = rank > 0

    assert len(terms) == len(CENTRE)
    assert (((weights @ terms)[linked])[rank[linked].argsort()].diff() > -1e-6).all()


def test_terms_that_hardly_vary_have_no_weight() -> None:
    """Of 500 pairs, one has a PageRank just above a floor: by the prior alone its weight would be in the thousands."""
    rng = np.random.default_rng(0)
    terms = torch.from_numpy(rng.normal(size=(len(CENTRE), 500)))
    terms[5] = np.log(1e-2)
    terms[5, 0] += 1e-3

    weights, _ = fit_combination(terms, torch.from_numpy(rng.random(500) < 0.5))

    assert weights[5] == 0
    assert weights.abs().max() < 10


def test_prior_mean_is_the_sum_of_standardised_logarithms_of_pagerank_above_four_floors() -> None:
    features = PairFeatures.from_edges(NODES, EDGES)
    terms = torch.stack([*combination_terms(pair_logits(NODES).of(PAIRS), features.of(PAIRS))])
    rank = baseline_scores("pagerank", NODES, EDGES, 0).of(PAIRS)
    weights, _ = fit_combination(terms, rank > rank.median(), precision=1e9)
    logarithms = [rank.clamp_min(floor).log() for floor in (1e-30, 1e-6, 1e-3, 1e-2)]
    wanted = torch.stack([(each - each.mean()) / each.std(correction=0) for each in logarithms]).sum(0)
    scores = weights @ terms

    assert torch.allclose(scores - scores.mean(), wanted, atol=1e-3)
