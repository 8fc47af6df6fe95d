"""Every convention of the MMD is its textbook formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.evaluation.descriptors import DESCRIPTORS, describe
from graphite_gen.evaluation.mmd import BANDWIDTHS, MMDRow, chance_level, compare_rows, estimate_mmd
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph

from .graphs import random_graph

Row = np.ndarray


def rows_of(name: str) -> tuple[Row, Row]:
    rng = np.random.default_rng(0)
    # Of other sizes and densities, so that histograms of degrees differ in length.
    first = [random_graph(int(n), 0.3, rng) for n in (5, 9, 12, 7, 8)]
    second = [random_graph(int(n), 0.5, rng) for n in (10, 6, 13)]

    return describe(first, [name])[name], describe(second, [name])[name]


def padded(x: Row, y: Row) -> tuple[Row, Row]:
    width = max(len(x), len(y))

    return np.append(x, np.zeros(width - len(x))), np.append(y, np.zeros(width - len(y)))


def variation(x: Row, y: Row) -> float:
    x, y = padded(x, y)

    return sum(abs(a - b) for a, b in zip(x, y, strict=True)) / 2


def moved_earth(x: Row, y: Row) -> float:
    return float(wasserstein_distance(np.arange(len(x)), np.arange(len(y)), x, y))


def straight(x: Row, y: Row) -> float:
    x, y = padded(x, y)

    return math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))


def biased(x: Row, y: Row, distance, sigma: float) -> float:
    def mean(rows: Row, others: Row) -> float:
        values = [math.exp(-(distance(a, b) ** 2) / (2 * sigma**2)) for a in rows for b in others]
        return sum(values) / len(values)

    return mean(x, x) + mean(y, y) - 2 * mean(x, y)


def unbiased(x: Row, y: Row, sigma: float) -> float:
    def k(a: Row, b: Row) -> float:
        return math.exp(-(straight(a, b) ** 2) / (2 * sigma**2))

    def within(rows: Row) -> float:
        n = len(rows)
        return sum(k(rows[i], rows[j]) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))

    return within(x) + within(y) - 2 * sum(k(a, b) for a in x for b in y) / (len(x) * len(y))


def compare(
    samples: list[SimpleGraph],
    reference: list[SimpleGraph],
    train: list[SimpleGraph] | None = None,
    *,
    descriptors: Sequence[str] = tuple(DESCRIPTORS),
    **options: Any,
) -> tuple[MMDRow, ...]:
    x, y, z = (graphs and describe(graphs, descriptors) for graphs in (samples, reference, train))

    return compare_rows(x, y, z, **options)


@pytest.mark.parametrize(
    ("convention", "descriptor", "distance", "sigma"),
    [
        ("tv", "degree", variation, 1.0),
        ("tv", "clustering", variation, 0.1),
        ("tv", "orbit", variation, 30.0),
        ("tv", "spectrum", variation, 1.0),
        ("emd", "degree", moved_earth, 1.0),
        ("emd", "clustering", lambda x, y: moved_earth(x, y) / 100, 0.1),
        ("emd", "orbit", straight, 30.0),
        ("emd", "spectrum", moved_earth, 1.0),
    ],
)
def test_the_published_conventions_are_their_double_sums(convention, descriptor, distance, sigma) -> None:
    x, y = rows_of(descriptor)

    found = estimate_mmd(x, y, descriptor, convention)

    assert found.value == pytest.approx(biased(x, y, distance, sigma), abs=1e-9)
    assert (found.low, found.high, found.graphs) == (None, None, (5, 3))


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
def test_rbf_is_the_largest_unbiased_double_sum_over_bandwidths(descriptor: str) -> None:
    x, y = rows_of(descriptor)
    rows = [*x, *y]
    distances = [straight(a, b) for i, a in enumerate(rows) for b in rows[:i]]
    mean = sum(distances) / len(distances)

    found = estimate_mmd(x, y, descriptor)

    values = {multiple * mean: unbiased(x, y, multiple * mean) for multiple in BANDWIDTHS}
    assert found.value == pytest.approx(max(values.values()), abs=1e-9)
    assert values[min(values, key=lambda sigma: abs(sigma - found.bandwidth))] == pytest.approx(found.value, abs=1e-9)


def test_biased_conventions_of_a_set_with_itself_are_zero() -> None:
    x, _ = rows_of("degree")

    assert estimate_mmd(x, x, "degree", "tv").value == pytest.approx(0, abs=1e-12)
    assert estimate_mmd(x[:1], x[:1], "degree", "emd").value == pytest.approx(0, abs=1e-12)


def test_sets_of_one_repeated_graph_have_no_distance() -> None:
    row = np.tile([0.5, 0.5], (3, 1))

    assert estimate_mmd(row, row, "degree", replicates=5).value == pytest.approx(0, abs=1e-12)


def test_intervals_contain_the_estimate_and_shrink_with_more_graphs() -> None:
    rng = np.random.default_rng(2)
    widths = []
    for count in (20, 180):
        first, second = (
            describe([random_graph(10, density, rng) for _ in range(count)], ["degree"])["degree"]
            for density in (0.3, 0.35)
        )
        found = estimate_mmd(first, second, "degree", replicates=200)
        assert found.low is not None
        assert found.high is not None
        assert found.low < found.value < found.high
        widths.append(found.high - found.low)

    assert widths[1] < widths[0] / 1.7


def test_intervals_have_about_their_nominal_coverage() -> None:
    # At one bandwidth the mean of many unbiased estimates is the truth.
    rng = np.random.default_rng(3)
    found = []
    for _ in range(60):
        first, second = (
            describe([random_graph(8, density, rng) for _ in range(40)], ["degree"])["degree"]
            for density in (0.25, 0.45)
        )
        found.append(estimate_mmd(first, second, "degree", "emd", replicates=200))
    truth = float(np.mean([each.value for each in found]))

    covered = sum(each.low <= truth <= each.high for each in found)

    assert covered >= 50


# Descriptors for which few graphs show a difference: the bias of the V-statistics hides it for clustering, and spectra
# of small graphs in 200 bins have little in common for any family.
@pytest.mark.parametrize(
    ("convention", "descriptors"),
    [("tv", ["degree"]), ("emd", ["degree", "orbit"]), ("rbf", ["degree", "clustering", "orbit"])],
)
def test_other_families_are_further_away_than_the_same_one(convention: str, descriptors: list[str]) -> None:
    train, test, other = (
        generate(name, 60, seed=seed).graphs for name, seed in (("barabasi", 0), ("barabasi", 1), ("erdos-renyi", 2))
    )

    for row in compare(other, test, train, conventions=[convention], descriptors=descriptors, replicates=0):
        assert row.attainable is not None
        assert (row.level is None) == (convention != "rbf")
        if convention == "rbf":
            assert row.ratio == (row.samples.value + row.chance) / row.level
        else:
            assert row.ratio == row.samples.value / row.attainable.value
        assert row.ratio > 3


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
def test_the_chance_level_is_the_bias_of_the_v_statistic(descriptor: str) -> None:
    x, y = rows_of(descriptor)
    sigma = 0.7 * straight(x[0], y[0])

    added = biased(x, y, straight, sigma) - unbiased(x, y, sigma)

    assert chance_level(x, y, sigma) == pytest.approx(added, abs=1e-9)


def test_the_level_is_that_of_training_graphs_at_the_bandwidth_of_the_samples() -> None:
    samples, reference, train = (generate("ego", 12, seed=seed).graphs for seed in (0, 1, 2))
    y, z = describe(reference, ["degree"])["degree"], describe(train, ["degree"])["degree"]

    (row,) = compare(samples, reference, train, conventions=["rbf"], descriptors=["degree"])

    chance = biased(z, y, straight, row.samples.bandwidth) - unbiased(z, y, row.samples.bandwidth)
    level = max(unbiased(z, y, row.samples.bandwidth), 0) + chance
    assert row.level == pytest.approx(level, abs=1e-9)
    assert row.ratio == pytest.approx((max(row.samples.value, 0) + chance) / level, abs=1e-9)


def test_biased_ratios_use_equally_many_graphs() -> None:
    samples, reference, train = (
        generate("barabasi", count, seed=seed).graphs for seed, count in enumerate((300, 20, 20))
    )

    many = compare(samples, reference, train, conventions=["tv"], descriptors=["clustering"])[0]

    # The average over all pairs, those of a graph with itself among them, falls with the number of graphs.
    assert many.samples.value / many.attainable.value < 0.7
    assert many.ratio == pytest.approx(1, abs=0.1)


def test_without_training_graphs_there_is_no_ratio() -> None:
    graphs = generate("ego", 6, seed=0).graphs

    rows = compare(graphs[:3], graphs[3:], conventions=["tv"], descriptors=["degree"])

    assert [(row.attainable, row.level, row.ratio) for row in rows] == [(None, None, None)]
    assert len(compare(graphs[:3], graphs[3:])) == 12
    assert rows[0].to_json()["samples"]["descriptor"] == "degree"


def test_unknown_names_and_too_few_graphs_are_refused() -> None:
    x, y = rows_of("degree")
    with pytest.raises(ConfigError, match="no convention 'mmd'"):
        estimate_mmd(x, y, "degree", "mmd")
    with pytest.raises(ConfigError, match="no descriptor 'size'"):
        estimate_mmd(x, y, "size")
    with pytest.raises(DatasetError, match="1 and 3"):
        estimate_mmd(x[:1], y, "degree")
