from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch

from graphite_gen.network.pair_features import CombinedLogits, PairFeatures, fit_combination

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

    assert len(tiles) == 12
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
    weights = torch.linspace(-1, 1, 13)
    combined = CombinedLogits(logits, features, weights, torch.tensor(0.5))
    wanted = torch.stack([logits.of(PAIRS), *features.of(PAIRS)]).T @ weights + 0.5

    assert torch.allclose(combined.of(PAIRS), wanted)
    assert torch.allclose(combined.tile(slice(0, NODES), slice(0, NODES))[tuple(PAIRS)], wanted)
    alone = CombinedLogits(logits, features, torch.eye(13)[0], torch.tensor(0.0))
    assert torch.allclose(alone.tile(slice(0, NODES), slice(0, NODES)), dense(logits))


def test_combination_is_the_ridge_regression_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    draw = np.random.default_rng(0)
    columns = draw.normal(size=(4, 80)) * np.array([1, 10, 0.1, 0])[:, None] + 3
    is_edge = columns[0] + draw.normal(size=80) > 3
    weights, bias = fit_combination(torch.tensor(columns), torch.tensor(is_edge))

    scale = columns.std(1) + (columns.std(1) < 1e-9)
    oracle = linear_model.LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit((columns / scale[:, None]).T, is_edge)
    # A constant column has no weight.
    assert np.allclose(weights[:3], (oracle.coef_[0] / scale)[:3], rtol=1e-3)
    assert weights[3] == 0
    assert torch.allclose(
        weights @ torch.tensor(columns) + bias,
        torch.tensor(oracle.decision_function((columns / scale[:, None]).T)),
        atol=1e-3,
    )
