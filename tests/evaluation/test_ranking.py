import numpy as np
import pytest

from graphite_gen.evaluation.ranking import area_under_curve, average_precision


@pytest.mark.parametrize("values", [3, 10**9])
def test_scikit_learn_agrees_with_and_without_ties(values: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    draw = np.random.default_rng(0)
    for _ in range(20):
        positives, negatives = draw.integers(0, values, 17) + 0.3 * values, draw.integers(0, values, 23)
        truth = np.repeat([1, 0], [17, 23])
        scores = np.concatenate([positives, negatives])

        assert area_under_curve(positives, negatives) == pytest.approx(metrics.roc_auc_score(truth, scores))
        assert average_precision(positives, negatives) == pytest.approx(metrics.average_precision_score(truth, scores))
