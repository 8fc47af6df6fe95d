import math

import numpy as np
import pytest
from scipy import stats

from graphite_gen.likelihood.psis import fit_pareto, needs_annealing, nll_curve, smooth_weights


@pytest.mark.parametrize("shape", [-0.4, 0.0, 0.3, 0.7, 1.2])
def test_shape_and_scale_of_a_pareto_distribution_are_estimated(shape: float) -> None:
    excesses = np.sort(stats.genpareto.rvs(shape, scale=3, size=4000, random_state=np.random.default_rng(0)))

    found, scale = fit_pareto(excesses)

    assert found == pytest.approx(shape, abs=0.06)
    assert scale == pytest.approx(3, rel=0.08)


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.9, 1.5])
def test_khat_is_the_tail_index_and_weights_with_a_high_one_are_unchanged(shape: float) -> None:
    uniform = np.random.default_rng(1).random(20_000)
    log_weights = -shape * np.log(uniform)

    smoothed = smooth_weights(log_weights)

    assert smoothed.khat == pytest.approx(shape, abs=0.2)
    assert smooth_weights(log_weights - 5000).khat == pytest.approx(smoothed.khat)
    assert needs_annealing(smoothed.khat) == np.array_equal(smoothed.log_weights, log_weights) == (shape > 0.7)


def test_smoothing_log_normal_weights_keeps_the_mean_and_the_variance_low() -> None:
    rng = np.random.default_rng(2)
    draws = rng.normal(-1.125, 1.5, (300, 1000))

    smoothed = np.array([smooth_weights(row).log_mean for row in draws])
    raw = np.logaddexp.reduce(draws, axis=1) - math.log(1000)

    assert smoothed.mean() == pytest.approx(0, abs=0.03)
    assert smoothed.std() < 1.02 * raw.std()


def test_only_the_tail_is_smoothed_in_order_and_below_the_largest() -> None:
    log_weights = np.random.default_rng(3).normal(size=400)

    smoothed = smooth_weights(log_weights)

    changed = smoothed.log_weights != log_weights
    # The tail has 60 weights, whose largest may be unchanged.
    assert changed.sum() in (59, 60)
    changed[log_weights.argmax()] = True
    assert log_weights[changed].min() > log_weights[~changed].max()
    assert np.array_equal(np.argsort(smoothed.log_weights), np.argsort(log_weights))
    assert smoothed.log_weights.max() <= log_weights.max()
    weights = np.exp(log_weights)
    assert smoothed.ess == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


@pytest.mark.parametrize("count", [1, 5, 20])
def test_few_weights_have_no_khat_and_need_annealing(count: int) -> None:
    log_weights = np.random.default_rng(5).normal(size=count)

    smoothed = smooth_weights(log_weights)

    assert smoothed.khat is None
    assert needs_annealing(None)
    assert smoothed.log_mean == pytest.approx(math.log(np.exp(log_weights).mean()))


def test_khat_is_zero_for_equal_weights_and_infinite_for_a_dominating_one() -> None:
    equal = np.full(100, -3e4) + 1e-6 * np.random.default_rng(6).random(100)
    alone = np.zeros(100)
    alone[17] = 2000.0

    assert smooth_weights(equal).khat == 0
    assert smooth_weights(equal).ess == pytest.approx(100)
    assert smooth_weights(equal).log_mean == pytest.approx(-3e4)
    assert smooth_weights(alone).khat == math.inf
    assert smooth_weights(alone).log_mean == pytest.approx(2000 - math.log(100))


def test_practically_equal_weights_have_a_khat_of_zero() -> None:
    # A heavy tail of tiny differences.
    log_weights = 1e-3 * np.minimum(np.random.default_rng(10).pareto(1.0, 1000), 300)

    smoothed = smooth_weights(log_weights)

    assert smoothed.ess > 990
    assert smoothed.khat == 0
    assert smoothed.log_mean == pytest.approx(math.log(np.exp(log_weights).mean()))
    assert smooth_weights(100 * log_weights).khat != 0


def test_ties_do_not_affect_the_fit() -> None:
    rng = np.random.default_rng(7)
    log_weights = np.round(rng.normal(size=1000), 1)

    khat = smooth_weights(log_weights).khat

    assert khat is not None
    assert -1 < khat < 0.7


def test_the_curve_runs_from_one_sample_to_all() -> None:
    log_weights = np.random.default_rng(8).normal(0, 2, 2500)

    curve = dict(nll_curve(log_weights, np.random.default_rng(0)))

    assert list(curve) == [1, 10, 100, 1000, 2500]
    assert curve[1] == pytest.approx(-log_weights.mean())
    assert curve[2500] == pytest.approx(-math.log(np.exp(log_weights).mean()))
    assert curve[1] > curve[10] > curve[100] > curve[1000] - 0.1
    assert list(dict(nll_curve(log_weights[:100], np.random.default_rng(0)))) == [1, 10, 100]


def test_a_point_of_the_curve_is_the_mean_over_subsets() -> None:
    log_weights = np.random.default_rng(9).normal(0, 3, 11)
    left_out = [-math.log(np.exp(np.delete(log_weights, i)).mean()) for i in range(11)]

    points = [dict(nll_curve(log_weights, np.random.default_rng(seed)))[10] for seed in range(2000)]

    assert set(np.round(points, 9)) <= set(np.round(left_out, 9))
    assert np.mean(points) == pytest.approx(np.mean(left_out), abs=5 * np.std(left_out) / math.sqrt(2000))
