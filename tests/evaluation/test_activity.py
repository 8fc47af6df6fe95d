import math

import numpy as np
import pytest

from graphite_gen.data.encoded import EncodedGraph
from graphite_gen.evaluation.activity import latent_activity


def encoded(mean: np.ndarray, std: float, sizes: tuple[int, ...]) -> list[EncodedGraph]:
    mean = mean.astype(np.float32)

    return [EncodedGraph(part, np.full_like(part, std)) for part in np.split(mean, np.cumsum(sizes)[:-1])]


def test_independent_nodes_with_the_prior_as_aggregate_have_a_known_information() -> None:
    sizes, spread = (300, 400, 500), np.array([0.8, 0.0])
    mean = np.random.default_rng(0).standard_normal((1200, 2)) * spread
    found = [EncodedGraph(one.mean, np.sqrt(1 - spread**2) * np.ones_like(one.mean)) for one in encoded(mean, 1, sizes)]

    activity = latent_activity(found)

    # The mutual information of a normal mean and a normal draw around it.
    expected = -0.5 * math.log(1 - 0.8**2) * 400
    assert activity.mutual_information == pytest.approx(expected, rel=0.05)
    assert activity.kl == pytest.approx(expected, rel=0.05)
    assert activity.active_units == 1


def test_a_posterior_that_is_the_same_everywhere_carries_no_information_whatever_its_divergence() -> None:
    activity = latent_activity(encoded(np.full((1000, 1), 2.0), 0.5, (10,) * 100))

    # Per node: (4 + 0.25 - 1)/2 + log 2.
    assert activity.kl == pytest.approx(10 * (1.625 + math.log(2)), rel=1e-5)
    assert activity.mutual_information < 0.02 * activity.kl
    assert activity.active_units == 0


@pytest.mark.parametrize(("variance", "active"), [(0.009, 0), (0.011, 1)])
def test_units_are_active_from_a_variance_of_one_hundredth(variance: float, active: int) -> None:
    mean = math.sqrt(variance) * np.array([[1.0], [-1.0]] * 10)

    assert latent_activity(encoded(mean, 1.0, (5, 15))).active_units == active


def test_information_of_separate_posteriors_is_limited_by_the_number_of_nodes() -> None:
    activity = latent_activity(encoded(np.arange(1000.0)[:, None] * 0.1, 0.001, (10,) * 100))

    assert activity.mutual_information == pytest.approx(10 * math.log(1000), rel=0.02)
