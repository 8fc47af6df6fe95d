from fractions import Fraction
from math import comb, inf, log

import pytest

from graphite_gen.families.erdos_renyi import log_connected


def connected(n: int, p: Fraction) -> list[Fraction]:
    """The probabilities that 0 … n nodes are connected: one minus those of smaller components of a given node."""
    probabilities = [Fraction(0)]
    for k in range(1, n + 1):
        smaller = (comb(k - 1, a - 1) * probabilities[a] * (1 - p) ** (a * (k - a)) for a in range(1, k))
        probabilities.append(1 - sum(smaller))

    return probabilities


@pytest.mark.parametrize("p", ["1e-9", "0.001", "0.1", "0.5", "0.97", "1"])
def test_the_probability_of_connectedness_agrees_with_exact_arithmetic(p: str) -> None:
    exact = connected(25, Fraction(p))

    assert log_connected(25, float(p))[0] == -inf
    assert log_connected(25, float(p))[1:] == pytest.approx(
        [log(value.numerator) - log(value.denominator) for value in exact[1:]], rel=1e-12, abs=1e-12
    )
    # Without edges only one node is connected.
    assert log_connected(3, 0.0).tolist() == [-inf, 0, -inf, -inf]
    assert log_connected(0, 0.5).tolist() == [-inf]
