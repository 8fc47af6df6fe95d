from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
import torch

from graphite_gen.network import calibration
from graphite_gen.network.calibration import density_shift, expected_degrees, fit_biases
from graphite_gen.network.pair_logits import PairLogits

from .graphs import dense, pair_logits
from .test_edge_sampler import sparse_logits


def edge_matrix(logits: PairLogits) -> torch.Tensor:
    """The probability of every pair as a matrix; a node has no edge with itself."""
    return torch.sigmoid(dense(logits)) * (1 - torch.eye(logits.nodes))


@pytest.mark.parametrize("tile", [7, 1 << 18])
def test_expected_degrees_are_sums_over_all_pairs(tile: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibration, "_TILE", tile)
    logits = pair_logits(9)
    logits.bias.requires_grad_()
    degrees, slopes = expected_degrees(logits)

    sums = edge_matrix(logits).sum(1)
    assert torch.allclose(degrees, sums)
    by_own_bias = [torch.autograd.grad(sums[i], logits.bias, retain_graph=True)[0][i] for i in range(9)]
    assert torch.allclose(slopes, torch.stack(by_own_bias))


def test_degrees_for_a_fraction_of_the_nodes_are_means_over_subsets() -> None:
    logits = pair_logits(6)
    pairs = edge_matrix(logits)
    chosen = [[0, *rest] for rest in combinations(range(1, 6), 3)]
    mean = torch.stack([pairs[0, each].sum() for each in chosen]).mean()

    assert torch.allclose(expected_degrees(logits, 3 / 5)[0][0], mean)


def test_fitted_biases_reproduce_the_degrees() -> None:
    # Two hubs, whose edges are nearly sure, and a node without any.
    degrees = torch.tensor([30.0, 25, 0, *[1 + i % 5 for i in range(37)]])
    logits = pair_logits(40)

    biases = fit_biases([logits] * 60, degrees)
    found = edge_matrix(replace(logits, bias=logits.bias + biases)).sum(1)

    assert torch.allclose(found, degrees, atol=1e-2)


def edges_after(logits: PairLogits, edges: float, seed: int = 0) -> float:
    """The expected number of edges after the density shift."""
    shift = density_shift(logits, edges, np.random.default_rng(seed))

    return edge_matrix(replace(logits, shift=logits.shift + shift)).sum().item() / 2


@pytest.mark.parametrize("edges", [3.0, 40.0, 200.0])
def test_density_shift_gives_the_number_of_edges(edges: float) -> None:
    assert edges_after(pair_logits(25), edges) == pytest.approx(edges, rel=1e-3)


@pytest.fixture
def few_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shifts of more than 60 nodes use sampled graphs."""
    monkeypatch.setattr(calibration, "_ALL_NODES", 60)
    monkeypatch.setattr(calibration, "_FEW_NODES", 60)


def test_density_shift_of_many_nodes_uses_sampled_graphs(few_nodes: None) -> None:
    # The relative error is about one over the root of the number of edges.
    assert edges_after(sparse_logits(1500), 6000, seed=1) == pytest.approx(6000, rel=0.05)


def test_density_shift_is_robust_to_samples_without_edges(few_nodes: None) -> None:
    # With so few expected edges, some samples have none; with certain ones, some have one less.
    rare = PairLogits(torch.zeros(300, 1), torch.ones(1), torch.zeros(300), torch.zeros(()))
    factor = torch.zeros(300, 1)
    factor[:20] = 7
    sure = replace(rare, factor=factor, shift=torch.tensor(-40.0))
    for logits, edges in ((rare, 1.0), (sure, 190.0)):
        found = [edges_after(logits, edges, seed) for seed in range(20)]
        assert max(found) < 10 * edges
        assert np.median(found) == pytest.approx(edges, rel=0.5)
