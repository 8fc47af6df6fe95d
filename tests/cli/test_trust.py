"""Verdicts weigh the noise of what they are drawn from."""

from __future__ import annotations

import math

import numpy as np
import pytest

from graphite_gen.cli.trust import is_trusted, verdict
from graphite_gen.likelihood.bdmc import BDMCEstimate, GraphBDMC, join_bdmc


def bdmc(gaps: list[float], importance: list[float] | None = None) -> BDMCEstimate:
    """Bounds these many nats apart, with importance sampling so far above the lower one."""
    above = gaps if importance is None else importance
    rows = [
        GraphBDMC(5, 4, 10.0 + i, 10.0 + i + gap, 10.0 + i + off, 0.1)
        for i, (gap, off) in enumerate(zip(gaps, above, strict=True))
    ]

    return join_bdmc("tiny", 100, 8, 8, rows)


def spread(mean: float, error: float, count: int = 16) -> list[float]:
    """Values with this mean and this standard error."""
    signs = np.resize([1.0, -1.0], count)

    return (mean + error * math.sqrt(count) * signs / signs.std(ddof=1)).tolist()


@pytest.mark.parametrize(
    ("mean", "error", "word"),
    [
        (0.3, 0.1, "trusted"),
        (0.9, 0.04, "trusted"),
        # Neither one side of a nat nor the other.
        (0.9, 0.6, "not settled"),
        (1.1, 0.6, "not settled"),
        (0.3, 0.4, "not settled"),
        (1.3, 0.1, "not known"),
        (3.0, 0.6, "not known"),
    ],
)
def test_a_gap_is_weighed_by_its_own_error(mean: float, error: float, word: str) -> None:
    bounds = bdmc(spread(mean, error))
    text = verdict(bounds, "ais")

    assert bounds.gap_standard_error == pytest.approx(error)
    assert text.split(":")[0] == word
    assert is_trusted(bounds, "ais") == (word == "trusted")
    assert f"{mean:.2f} ± {error:.2f}" in text
    assert ("--check-graphs" in text) == (word == "not settled")


def test_bounds_that_meet_tell_a_poor_method() -> None:
    poor = bdmc(spread(0.2, 0.05), spread(4.0, 0.5))

    assert is_trusted(poor, "ais")
    assert not is_trusted(poor, "is")
    assert verdict(poor, "is").startswith("not trusted")
    assert "4.00 ± 0.50" in verdict(poor, "is")


def test_a_method_at_the_lower_bound_needs_no_other_bound() -> None:
    loose = bdmc(spread(6.0, 0.5), spread(0.2, 0.05))

    assert is_trusted(loose, "is")
    assert verdict(loose, "ais").startswith("not known")


def test_differences_are_taken_graph_by_graph() -> None:
    # The bounds of graphs differ by nats from each other, and by nothing from graph to graph.
    assert is_trusted(bdmc([0.5] * 4), "is")


@pytest.mark.parametrize(
    ("mean", "error", "word", "noise"),
    [
        (-0.3, 0.2, "trusted", "within noise"),
        (-0.3, 0.1, "trusted", "more than noise"),
        (-0.9, 0.6, "not settled", "within noise"),
        (-3.0, 0.3, "not trusted", "more than noise"),
    ],
)
def test_a_method_below_the_lower_bound_is_told_with_its_noise(
    mean: float, error: float, word: str, noise: str
) -> None:
    # The last is further below what no true figure can be below than a nat: as wrong as one above it.
    low = bdmc(spread(0.5, 0.05), spread(mean, error))
    text = verdict(low, "is")

    assert text.split(":")[0] == word
    assert is_trusted(low, "is") == (word == "trusted")
    assert f"{-mean:.2f} ± {error:.2f} nats below the lower bound in the mean, {noise}" in text
    assert "too high" not in text


@pytest.mark.parametrize(("error", "noise"), [(0.05, "more than noise"), (0.2, "within noise")])
def test_a_method_above_the_upper_bound_is_told_with_its_noise(error: float, noise: str) -> None:
    high = bdmc([0.1] * 16, spread(0.4, error))

    assert f"0.40 ± {error:.2f} nats too high" in verdict(high, "is")
    assert f"0.30 ± {error:.2f} above the upper bound, {noise}" in verdict(high, "is")
    # The upper bound is what 'ais' gives: it is not above itself.
    assert "above" not in verdict(high, "ais")


@pytest.mark.parametrize("mean", [0.004, -0.004])
def test_what_would_be_shown_as_nothing_is_not_told_as_outside(mean: float) -> None:
    text = verdict(bdmc([0.0] * 16, spread(mean, 0.01)), "is")

    assert "at most 0.00 ± 0.01 nats too high" in text
    assert "bound" not in text


def test_bounds_that_noise_has_swapped_are_told() -> None:
    swapped = verdict(bdmc(spread(-0.3, 0.2)), "ais")

    assert swapped.startswith("trusted")
    assert "0.30 ± 0.20 nats below the lower bound in the mean, within noise" in swapped


def test_one_graph_settles_nothing() -> None:
    assert not is_trusted(bdmc([0.1]), "is")
    assert verdict(bdmc([0.1]), "is").startswith("not settled: on 1 graph of")
    assert "±" not in verdict(bdmc([0.1]), "is")
    # One graph says nothing of its noise, wherever the method lies.
    for off in (-0.3, 0.4):
        text = verdict(bdmc([0.1], [off]), "is")
        assert "bound" in text
        assert "nois" not in text


def test_bounds_that_cross_by_more_than_noise_are_not_trusted() -> None:
    crossed = bdmc([-5.0, -5.1, -4.9], [0.2, 0.3, 0.1])

    assert not is_trusted(crossed, "is")
    assert "not known: on 3 graphs of the model itself, the bounds cross: method 'is'" in verdict(crossed, "is")
    assert "5.20 ± 0.12 above the upper bound, more than noise" in verdict(crossed, "is")
    assert "'--steps' or '--chains'" in verdict(crossed, "is")
    assert "samples ('-k')" in verdict(crossed, "is", anneals=False)
    # By no more than noise, or by less than counts, bounds may cross.
    assert is_trusted(bdmc(spread(-1.5, 0.6), spread(0.2, 0.1)), "is")
    assert is_trusted(bdmc(spread(-0.5, 0.01), spread(0.2, 0.01)), "is")


@pytest.mark.parametrize("graphs", [1, 4])
@pytest.mark.parametrize(("method", "word"), [("is", "not trusted"), ("ais", "not known")])
def test_an_infinite_estimate_is_no_noise(graphs: int, method: str, word: str) -> None:
    poor = [math.inf] + [0.1] * (graphs - 1)
    bounds = bdmc([0.1, 0.2, 0.1, 0.2][:graphs] if method == "is" else poor, poor)
    text = verdict(bounds, method)

    assert not is_trusted(bounds, method)
    assert text.startswith("not known" if graphs == 1 else word)
    assert "inf" in text or graphs == 1
    assert "nois" not in text
    assert "nan" not in text


def test_a_staged_model_is_not_told_to_anneal() -> None:
    poor = bdmc(spread(6, 0.5))

    assert "--method ais" not in verdict(poor, "is", anneals=False)
    assert "-k" in verdict(poor, "is", anneals=False)
