"""Chains over completions keep to the exact law given what is known."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from graphite_gen.completion import PartialGraph
from graphite_gen.completion.moves import Chains, move_particles
from graphite_gen.completion.posterior import Posterior
from graphite_gen.schedule import Schedule

from .test_growth import HIDDEN, PAW, exact, staged


def shares(walked: NDArray[np.bool_], answers: NDArray[np.bool_]) -> NDArray[np.float64]:
    return (walked[..., None, :] == answers).all(-1).mean(tuple(range(walked.ndim - 1)))


def test_chains_follow_the_exact_law_wherever_they_begin() -> None:
    model, partial = staged("uniform"), PartialGraph.from_pairs(PAW, HIDDEN)
    with torch.no_grad():
        # Estimates that differ much from order to order keep chains where they are for hundreds of steps; those of an
        # untrained model differ most under rules that it does not follow.
        for parameter in model.network.decoder.parameters():
            parameter.mul_(0.5)
    joint, answers = exact(model, partial, 0)
    law = joint / joint.sum()
    start = np.zeros((150, 3), dtype=np.bool_)
    # An untrained model follows no rule, so that orders of none must be common.
    chains = Chains(model, partial, start, schedule=Schedule(), rng=np.random.default_rng(0), any_order=0.5)

    walked = np.stack(list(islice(chains, 30, 100)))

    assert 0 < chains.accepted < 100 * 150
    assert shares(walked, answers) == pytest.approx(law, abs=0.035)


def test_moved_particles_are_those_of_the_law_and_keep_the_evidence() -> None:
    model, partial = staged("uniform"), PartialGraph.from_pairs(PAW, HIDDEN)
    joint, answers = exact(model, partial, 0)
    weights = np.tile(np.log(joint), (2, 1))
    start = Posterior.weighted(np.tile(answers.astype(np.float32), (2, 1, 1)), weights)

    moved = move_particles(model, partial, start, steps=400, schedule=Schedule(), rng=np.random.default_rng(1))

    assert moved.log_evidence == start.log_evidence
    assert moved.probabilities.shape == (2, 8 * 300, 3)
    assert moved.edge_probabilities()[0] == pytest.approx(joint / joint.sum() @ answers, abs=0.08)
