import numpy as np
import pytest

from graphite_gen.completion.posterior import Posterior


def test_weights_average_over_runs_and_particles() -> None:
    posterior = Posterior.weighted(
        np.array([[[1, 0], [0, 0]], [[1, 1], [0, 1]]], dtype=np.float32), np.log([[1.0, 2.0], [3.0, 2.0]])
    )
    means, errors = posterior.edge_probabilities()

    assert posterior.log_evidence == pytest.approx(np.log(2))
    assert posterior.run_log_evidence == pytest.approx(np.log([1.5, 2.5]))
    assert posterior.weights == pytest.approx(np.array([[1, 2], [3, 2]]) / 8)
    assert means == pytest.approx([4 / 8, 5 / 8])
    assert (errors > 0).all()


def test_samples_follow_the_weights_and_do_not_depend_on_the_count() -> None:
    posterior = Posterior.weighted(np.array([[[0.9], [0.1]]], dtype=np.float32), np.log([[3.0, 1.0]]))
    many = np.array(list(posterior.samples(4000, seed=1)))

    assert many.mean() == pytest.approx(0.7, abs=4 * np.sqrt(0.7 * 0.3 / 4000))
    assert (np.array(list(posterior.samples(10, seed=1))) == many[:10]).all()


def test_disagreement_is_the_fraction_of_the_variance_between_runs() -> None:
    alike = np.tile(np.array([[[1], [0]]], dtype=np.bool_), (4, 1, 1))
    apart = np.array([[[1], [1]], [[0], [0]], [[1], [1]], [[0], [0]]], dtype=np.bool_)

    assert Posterior.weighted(alike, np.zeros((4, 2))).edge_probabilities()[1] == pytest.approx([0])
    assert Posterior.weighted(alike, np.zeros((4, 2))).disagreement == pytest.approx(0)
    # The variance of four values is estimated with three degrees of freedom.
    assert Posterior.weighted(apart, np.zeros((4, 2))).disagreement == pytest.approx(4 / 3)
    assert Posterior.weighted(np.ones((2, 2, 1), dtype=np.bool_), np.zeros((2, 2))).disagreement == 0
