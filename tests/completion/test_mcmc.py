"""Chains over completions keep to the exact law given what is known."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch
from numpy.typing import ArrayLike, NDArray

from graphite_gen.autoregressive import ordering as orders
from graphite_gen.autoregressive.distribution import Schedule
from graphite_gen.completion import PartialGraph
from graphite_gen.completion import mcmc as moves
from graphite_gen.completion.mcmc import CHAINS, Chains, first_answers, move_particles
from graphite_gen.completion.posterior import Posterior
from graphite_gen.graph import SimpleGraph

from .test_smc import HIDDEN, PAW, autoregressive, exact


def shares(walked: NDArray[np.bool_], answers: NDArray[np.bool_]) -> NDArray[np.float64]:
    return (walked[..., None, :] == answers).all(-1).mean(tuple(range(walked.ndim - 1)))


@pytest.mark.parametrize("order", ["uniform", pytest.param("attachment", marks=pytest.mark.slow)])
def test_chains_follow_the_exact_law_wherever_they_begin(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, partial = autoregressive(order), PartialGraph.from_pairs(PAW, HIDDEN)
    # Estimates that differ much from order to order keep chains where they are for hundreds of steps. Those of an
    # untrained model differ most under rules that it does not follow: uneven orders must count as it grows them.
    monkeypatch.setattr(orders, "UNEVEN", 0.3)
    # It follows no rule, so that orders of none must be common.
    monkeypatch.setattr(moves, "ANY_ORDER", 0.5)
    with torch.no_grad():
        for parameter in model.network.decoder.parameters():
            parameter.mul_(0.5)
    joint, answers = exact(model, partial, 0)
    law = joint / joint.sum()
    start = np.zeros((150, 3), dtype=np.bool_)
    chains = Chains(model, partial, start, schedule=Schedule(), rng=np.random.default_rng(0))

    walked = np.stack(list(islice(chains, 30, 100)))

    # Chains are independent of each other, so that their differences tell how near the law they must be.
    each = np.stack([shares(walked[:, chain], answers) for chain in range(walked.shape[1])])
    errors = each.std(0, ddof=1) / np.sqrt(len(each))
    assert (np.abs(each.mean(0) - law) < 4 * errors + 0.002).all()


def test_moved_particles_are_those_of_the_law_and_keep_the_evidence() -> None:
    model, partial = autoregressive("uniform"), PartialGraph.from_pairs(PAW, HIDDEN)
    joint, answers = exact(model, partial, 0)
    weights = np.tile(np.log(joint), (24, 1))
    start = Posterior.weighted(np.tile(answers.astype(np.float32), (24, 1, 1)), weights)

    moved = move_particles(model, partial, start, steps=40, schedule=Schedule(), rng=np.random.default_rng(1))

    assert moved.log_evidence == start.log_evidence
    assert moved.probabilities.shape == (24, CHAINS * 20, 3)
    means, errors = moved.edge_probabilities()
    assert (errors < 0.06).all()
    assert (np.abs(means - joint / joint.sum() @ answers) < 4 * errors + 0.01).all()


def test_chains_of_a_run_begin_at_its_own_particles() -> None:
    particles = np.array([[[0, 0, 0], [0, 0, 1]], [[1, 1, 1], [1, 1, 0]]], dtype=np.bool_)
    # By weight alone the second run would have all chains.
    start = Posterior.weighted(particles, np.array([[-90.0, -90.0], [0.0, 0.0]]))

    first, second = first_answers(start, np.random.default_rng(0)).reshape(2, CHAINS, 3)

    assert not first[:, :2].any()
    assert second[:, :2].all()
    assert len(np.unique(first, axis=0)) == len(np.unique(second, axis=0)) == 2


@pytest.mark.parametrize("edges", [0, 1, 3, 6])
def test_moves_are_as_likely_one_way_as_their_ratio_says_of_the_other(edges: int) -> None:
    partial = PartialGraph.from_pairs(SimpleGraph.from_pairs(5, []), [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (1, 4)])
    row = np.arange(6) < edges
    chains = Chains(autoregressive("uniform"), partial, row[None], schedule=Schedule(), rng=np.random.default_rng(0))

    there = law_of_moves(chains, row)

    assert len(there) > 1
    for new, (share, weighed) in there.items():
        share_back, weighed_back = law_of_moves(chains, np.array(new))[tuple(row.tolist())]
        # One way may be taken as an edge moved anywhere or beside, which have ratios of their own: both are counted.
        assert_equal_means(weighed, share_back)
        assert_equal_means(weighed_back, share)


Mean = tuple[float, float]
"""A mean and its standard error."""


def assert_equal_means(one: Mean, other: Mean) -> None:
    error = np.hypot(one[1], other[1])

    assert error < 0.012
    assert abs(one[0] - other[0]) < 4 * error


def law_of_moves(
    chains: Chains, row: NDArray[np.bool_], draws: int = 4000
) -> dict[tuple[bool, ...], tuple[Mean, Mean]]:
    """How often each other row is proposed, and how often weighed by the ratio of chances that comes with it."""
    found: dict[tuple[bool, ...], list[float]] = {}
    for _ in range(draws):
        new, log_ratio = chains._move(row)
        found.setdefault(tuple(new.tolist()), []).append(np.exp(log_ratio))
    found.pop(tuple(row.tolist()), None)

    return {new: (mean_of(np.ones(len(ratios)), draws), mean_of(ratios, draws)) for new, ratios in found.items()}


def mean_of(values: ArrayLike, draws: int) -> Mean:
    """The mean of values over draws that otherwise gave 0."""
    mean, square = np.sum(values) / draws, np.sum(np.square(values)) / draws

    return float(mean), float(np.sqrt((square - mean**2) / draws))
