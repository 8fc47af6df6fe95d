from __future__ import annotations

import math

import pytest

from graphite_gen.records import mean_with_error


def test_a_mean_has_the_standard_error_of_its_values() -> None:
    # The squares of 1, -1 and 0 sum to 2: a variance of 1 between values, a third of it of their mean.
    assert mean_with_error([3.0, 1.0, 2.0]) == pytest.approx((2.0, 1 / math.sqrt(3)))


@pytest.mark.parametrize("values", [[2.5], [math.inf, 1.0], [-math.inf, 1.0, 2.0]])
def test_one_value_has_no_error_and_neither_has_an_infinite_mean(values: list[float]) -> None:
    assert mean_with_error(values) == (sum(values) / len(values), None)
