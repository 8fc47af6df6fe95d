import numpy as np
import pytest

from graphite_gen.evaluation.ranking import area_under_curve, average_precision, hits, mean_reciprocal_rank, ranks_among


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


def test_ranks_hits_and_reciprocal_ranks_are_those_of_counting() -> None:
    draw = np.random.default_rng(0)
    high, low = draw.integers(0, 9, 12).astype(float), draw.integers(0, 9, 30).astype(float)
    wanted = [1 + sum(low > score) + 0.5 * sum(low == score) for score in high]
    own = np.broadcast_to(low, (12, 30))

    assert ranks_among(high, low).tolist() == wanted
    assert ranks_among(high, own).tolist() == wanted
    assert hits(np.array([1, 2, 2.5, 3]), 2) == 0.5
    assert mean_reciprocal_rank(np.array([1, 2, 4])) == pytest.approx((1 + 1 / 2 + 1 / 4) / 3)
    # With shared negatives the mean rank is the AUC.
    assert 1 - (np.mean(wanted) - 1) / 30 == pytest.approx(area_under_curve(high, low))
