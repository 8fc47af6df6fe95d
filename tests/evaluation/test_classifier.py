import math

import numpy as np
import pytest

from graphite_gen.errors import DatasetError
from graphite_gen.evaluation.classifier import fit_logistic, score_classifier


def test_the_fit_is_that_of_scikit_learn() -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 5))
    is_sample = np.arange(60) < 15
    rows[is_sample] += 0.7

    weights, intercept = fit_logistic(rows, is_sample, ridge=2.0)

    other = linear_model.LogisticRegression(C=0.5, class_weight="balanced", tol=1e-10).fit(rows, is_sample)
    assert weights == pytest.approx(other.coef_[0], abs=1e-4)
    assert intercept == pytest.approx(other.intercept_[0], abs=1e-4)


def test_the_discrepancy_of_normal_distributions_agrees_with_integration() -> None:
    rng = np.random.default_rng(1)
    x, y = ({"noise": rng.normal(size=(1500, 1)), "shift": rng.normal(mean, size=(1500, 1))} for mean in (0, 1.5))
    grid = np.linspace(-9, 11, 4001)
    p, q = (np.exp(-((grid - mean) ** 2) / 2) / math.sqrt(2 * math.pi) for mean in (0, 1.5))
    middle = (p + q) / 2
    divergence = ((p * np.log2(p / middle) + q * np.log2(q / middle)) / 2).sum() * (grid[1] - grid[0])

    found = score_classifier(x, y)

    assert found.descriptors == ("shift", "shift")
    assert found.discrepancy == pytest.approx(math.sqrt(divergence), abs=0.03)
    assert found.low <= found.discrepancy <= found.high
    # The chance that one normal is above the other.
    assert found.auc == pytest.approx(0.5 * (1 + math.erf(1.5 / 2)), abs=0.02)


def test_equal_distributions_are_not_separated_and_disjoint_ones_are() -> None:
    rng = np.random.default_rng(2)
    x, y = ({"degree": rng.normal(size=(100, 4))} for _ in range(2))

    same = score_classifier(x, y)
    other = score_classifier(x, {"degree": y["degree"][:30] + np.array([50, 0, 0, 0])})

    assert same.low == 0
    assert abs(same.auc - 0.5) < 0.15
    assert other.discrepancy > 0.9
    assert other.graphs == (100, 30)


def test_constant_rows_are_not_separated_and_too_few_are_refused() -> None:
    alike = {"degree": np.ones((10, 3))}

    assert score_classifier(alike, alike).discrepancy == 0
    with pytest.raises(DatasetError, match="at least 8"):
        score_classifier({"degree": np.ones((3, 2))}, {"degree": np.ones((9, 2))})
