from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny import autoregressive_model, path

from graphite_gen.completion.partial import PartialGraph
from graphite_gen.completion.posterior import Posterior
from graphite_gen.completion.smc import NextNodeProposal, extend_particles
from graphite_gen.graph import SimpleGraph
from graphite_gen.training.checkpoint import TrainedModel

from ..likelihood.test_bdmc import exact_log_prob

PAW = SimpleGraph.from_pairs(4, [(0, 1), (1, 2), (0, 2), (2, 3)])
HIDDEN = [(0, 1), (1, 3), (2, 3)]


def autoregressive(order: str = "bfs", **changes: object) -> TrainedModel:
    return autoregressive_model(order, 0.35, **changes)


def exact(model: TrainedModel, partial: PartialGraph) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The probability of each completion, by summing over all orderings, and its edges at unknown pairs."""
    unknown = np.array(list(product((False, True), repeat=len(partial.unknown))))

    return np.exp([exact_log_prob(model, partial.completed(edges)) for edges in unknown]), unknown


def completions(model: TrainedModel, partial: PartialGraph, particles: int = 1000) -> Posterior:
    return extend_particles(model, partial, runs=4, particles=particles, rng=np.random.default_rng(5))


@pytest.mark.parametrize(
    ("order", "features"), [("bfs", 0), ("degeneracy", 0), ("uniform", 0), ("dfs", 0), ("uniform", 2)]
)
def test_unknown_pairs_follow_the_exact_posterior(order: str, features: int) -> None:
    x = np.random.default_rng(0).normal(0, 20, (4, features)).astype(np.float32)
    model = autoregressive_model(order, 0.6, node_features=features)
    partial = PartialGraph.from_pairs(replace(PAW, features=x if features else None), HIDDEN)
    joint, unknown = exact(model, partial)
    posterior = completions(model, partial)

    expected = joint / joint.sum()
    draws = 1 / np.square(posterior.weights).sum()
    matches = (posterior.probabilities[:, :, None] == unknown).all(-1)
    found = np.einsum("rp,rpa->a", posterior.weights, matches)

    assert draws > 300
    assert np.ptp(expected @ unknown) > 0.02
    assert found.sum() == pytest.approx(1)
    assert posterior.log_evidence == pytest.approx(np.log(joint.sum()), abs=0.1)
    # Resampled particles share ancestors, so the tolerance is wider than that of independent samples.
    assert (draws * (found - expected) ** 2 / expected).sum() < 7 + 5 * np.sqrt(14)
    assert posterior.edge_probabilities()[0] == pytest.approx(expected @ unknown, abs=0.06)


def test_the_marginal_likelihood_of_no_known_pairs_is_one() -> None:
    partial = PartialGraph.from_marks(SimpleGraph.from_pairs(5, []), unlisted="unknown")

    assert completions(autoregressive("degeneracy"), partial).log_evidence == pytest.approx(0, abs=0.1)
    assert completions(autoregressive(), partial, particles=1).probabilities.shape == (4, 1, 10)


@pytest.mark.parametrize("rule", ["bfs", "degeneracy"])
def test_the_next_node_is_new_and_has_the_stated_probability(rule: str) -> None:
    partial = PartialGraph.from_pairs(path(6), [(0, 5), (1, 2)])
    proposal = NextNodeProposal(partial, rule, 0.3, np.random.default_rng(0))
    earlier = np.tile([[2, 4]], (20_000, 1))

    chosen, log_q = proposal.sample(earlier, np.random.default_rng(1))
    frequencies = np.bincount(chosen, minlength=6) / len(chosen)
    stated = np.zeros(6)
    stated[chosen] = np.exp(log_q)

    assert set(chosen) == {0, 1, 3, 5}
    assert stated.sum() == pytest.approx(1)
    assert frequencies == pytest.approx(stated, abs=0.02)
