from collections import Counter
from itertools import combinations

import pytest
import torch
from scipy.stats import chisquare
from tiny import random_graph
from torch import Tensor
from torch.nn import functional as F

from graphite_gen.network import losses
from graphite_gen.network.losses import exact_loss, sampled_loss, uniform_pairs
from graphite_gen.network.pair_logits import PairLogits

from .graphs import adjacency, dense, pair_logits


def edges_of(nodes: int, density: float = 0.3) -> Tensor:
    return torch.as_tensor(random_graph(nodes, seed=1, density=density).edges.T.copy(), dtype=torch.long)


def dense_loss(logits: PairLogits, edges: Tensor, positive_weight: float) -> Tensor:
    upper = torch.ones(logits.nodes, logits.nodes).triu(1).bool()
    values, present = dense(logits)[upper], adjacency(edges, logits.nodes)[upper]

    return F.binary_cross_entropy_with_logits(
        values, present, pos_weight=torch.tensor(positive_weight), reduction="sum"
    )


def gradients(loss: Tensor, logits: PairLogits) -> tuple[Tensor, ...]:
    return torch.autograd.grad(loss, (logits.factor, logits.bias, logits.shift))


@pytest.mark.parametrize("positive_weight", [1.0, 2.5])
@pytest.mark.parametrize(("rows", "columns"), [(256, 512), (4, 4), (3, 5), (1, 2)])
def test_the_tiled_loss_and_its_gradients_are_those_of_all_pairs(
    rows: int, columns: int, positive_weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "_ROWS", rows)
    monkeypatch.setattr(losses, "_COLUMNS", columns)
    logits, edges = pair_logits(11), edges_of(11)
    for leaf in (logits.factor, logits.bias, logits.shift):
        leaf.requires_grad_()

    tiled = exact_loss(logits, edges, positive_weight=positive_weight)
    whole = dense_loss(logits, edges, positive_weight)

    assert torch.allclose(tiled, whole)
    for ours, theirs in zip(gradients(3 * tiled, logits), gradients(3 * whole, logits), strict=True):
        assert torch.allclose(ours, theirs)


@pytest.mark.parametrize("scale", [10.0, 100.0, 1e4])
def test_large_logits_do_not_overflow(scale: float) -> None:
    logits, edges = pair_logits(8), edges_of(8)
    logits = PairLogits(logits.factor * scale**0.5, logits.sign, logits.bias * scale, logits.shift * scale)

    assert torch.allclose(exact_loss(logits, edges), dense_loss(logits, edges, 1.0))


def test_single_precision_is_near_double(single_precision: None) -> None:
    logits, edges = pair_logits(300), edges_of(300, 0.02)
    double = PairLogits(*(leaf.double() for leaf in (logits.factor, logits.sign, logits.bias, logits.shift)))

    assert exact_loss(logits, edges).item() == pytest.approx(exact_loss(double, edges).item(), rel=1e-6)


@pytest.mark.parametrize("positive_weight", [1.0, 2.5])
def test_the_mean_of_estimates_is_the_exact_loss(positive_weight: float) -> None:
    logits, edges = pair_logits(12), edges_of(12)
    generator = torch.Generator().manual_seed(0)
    shuffled = edges[:, torch.randperm(edges.shape[1], generator=generator)]

    draws = torch.stack(
        [sampled_loss(logits, shuffled, 30, generator, positive_weight=positive_weight) for _ in range(3000)]
    )

    exact = exact_loss(logits, edges, positive_weight=positive_weight)
    assert abs(draws.mean() - exact) < 4 * draws.std() / 3000**0.5
    assert draws.std() / 3000**0.5 < 0.01 * exact


def test_drawn_pairs_are_uniform() -> None:
    pairs = uniform_pairs(5, 20_000, torch.Generator().manual_seed(1))

    counts = Counter(map(tuple, pairs.T.tolist()))
    assert sorted(counts) == list(combinations(range(5), 2))
    assert chisquare(list(counts.values())).pvalue > 1e-3


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_smallest_graphs_have_a_loss(nodes: int) -> None:
    logits = pair_logits(nodes)
    none = torch.empty(2, 0, dtype=torch.long)

    exact = exact_loss(logits, none)

    assert torch.allclose(exact, dense_loss(logits, none, 1.0))
    assert torch.allclose(sampled_loss(logits, none, 7, torch.Generator().manual_seed(0)), exact)


def test_unscored_edges_are_excluded() -> None:
    logits, edges = pair_logits(9), edges_of(9)
    scored = torch.arange(edges.shape[1]) % 3 == 0
    wanted = dense_loss(logits, edges, 0.0) + 2.5 * F.softplus(-logits.of(edges[:, scored])).sum()

    draws = [
        sampled_loss(logits, edges, 5000, torch.Generator().manual_seed(seed), positive_weight=2.5, scored=scored)
        for seed in range(20)
    ]

    assert torch.allclose(exact_loss(logits, edges, positive_weight=2.5, scored=scored), wanted)
    assert torch.allclose(torch.stack(draws).mean(), wanted, rtol=0.01)
