import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.random import Generator
from scipy.spatial.distance import pdist
from scipy.stats import wasserstein_distance
from tiny import random_graph

from graphite_gen.errors import ConfigError, DatasetError
from graphite_gen.evaluation.descriptors import DESCRIPTORS, describe
from graphite_gen.evaluation.mmd import BANDWIDTHS, MMDEstimate, MMDRow, compare_rows, estimate_mmd
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph

Row = np.ndarray


def rows_of(name: str) -> tuple[Row, Row]:
    # Of other sizes and densities, so that histograms of degrees differ in length.
    first = [random_graph(n, 0, 0.3) for n in (5, 9, 12, 7, 8)]
    second = [random_graph(n, 0, 0.5) for n in (10, 6, 13)]

    return describe(first, [name])[name], describe(second, [name])[name]


def variation(x: Row, y: Row) -> float:
    return float(np.abs(x - y).sum()) / 2


def moved_earth(x: Row, y: Row) -> float:
    return float(wasserstein_distance(np.arange(len(x)), np.arange(len(y)), x, y))


def straight(x: Row, y: Row) -> float:
    return math.sqrt(sum((x - y) ** 2))


def double_sum(x: Row, y: Row, distance: Callable[[Row, Row], float], sigma: float, *, unbiased: bool = False) -> float:
    """The squared MMD; without pairs of a row with itself if it is unbiased."""
    x, y = padded(x, y)

    def mean(rows: Row, others: Row) -> float:
        values = np.array([[math.exp(-(distance(a, b) ** 2) / (2 * sigma**2)) for b in others] for a in rows])
        return float(values[~np.eye(len(rows), dtype=bool)].mean() if unbiased and rows is others else values.mean())

    return mean(x, x) + mean(y, y) - 2 * mean(x, y)


def padded(x: Row, y: Row) -> tuple[Row, Row]:
    width = max(x.shape[1], y.shape[1])
    x, y = (np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in (x, y))

    return x, y


def compare(*sets: list[SimpleGraph], descriptors: Sequence[str], convention: str) -> tuple[MMDRow, ...]:
    return compare_rows(*(describe(graphs, descriptors) for graphs in sets), conventions=[convention], replicates=0)


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

    assert found.value == pytest.approx(double_sum(x, y, distance, sigma), abs=1e-9)
    assert (found.low, found.high, found.graphs) == (None, None, (5, 3))


@pytest.mark.parametrize("descriptor", DESCRIPTORS)
def test_rbf_is_the_largest_unbiased_double_sum_over_bandwidths(descriptor: str) -> None:
    x, y = rows_of(descriptor)
    mean = pdist(np.concatenate(padded(x, y))).mean()

    found = estimate_mmd(x, y, descriptor)

    values = {multiple * mean: double_sum(x, y, straight, multiple * mean, unbiased=True) for multiple in BANDWIDTHS}
    assert found.value == pytest.approx(max(values.values()), abs=1e-9)
    assert values[min(values, key=lambda sigma: abs(sigma - found.bandwidth))] == pytest.approx(found.value, abs=1e-9)


def test_a_set_and_itself_and_repeated_graphs_have_no_distance() -> None:
    x, _ = rows_of("degree")
    row = np.tile([0.5, 0.5], (3, 1))

    assert estimate_mmd(x, x, "degree", "tv").value == pytest.approx(0, abs=1e-12)
    assert estimate_mmd(x[:1], x[:1], "degree", "emd").value == pytest.approx(0, abs=1e-12)
    assert estimate_mmd(row, row, "degree", replicates=5).value == pytest.approx(0, abs=1e-12)


def interval(densities: tuple[float, float], nodes: int, count: int, convention: str, rng: Generator) -> MMDEstimate:
    """An estimate with its interval, for two sets of random graphs."""
    graphs = ([random_graph(nodes, seed, p) for seed in rng.integers(2**32, size=count)] for p in densities)
    x, y = (describe(each, ["degree"])["degree"] for each in graphs)

    return estimate_mmd(x, y, "degree", convention, replicates=200)


def test_intervals_contain_the_estimate_and_shrink_with_more_graphs() -> None:
    rng = np.random.default_rng(2)
    few, many = (interval((0.3, 0.35), 10, count, "rbf", rng) for count in (20, 180))

    assert few.low < few.value < few.high
    assert many.low < many.value < many.high
    assert many.high - many.low < (few.high - few.low) / 1.7


def test_intervals_have_about_their_nominal_coverage() -> None:
    # At one bandwidth the mean of many unbiased estimates is the truth.
    rng = np.random.default_rng(3)
    found = [interval((0.25, 0.45), 8, 40, "emd", rng) for _ in range(60)]
    truth = float(np.mean([each.value for each in found]))

    assert sum(each.low <= truth <= each.high for each in found) >= 50


# Descriptors for which few graphs show a difference: the bias of the V-statistics hides it for clustering, and spectra
# of small graphs in 200 bins have little in common for any family. 'test_assessment.py' has the convention 'rbf'.
@pytest.mark.parametrize(("convention", "descriptors"), [("tv", ["degree"]), ("emd", ["degree", "orbit"])])
def test_other_families_are_further_away_than_the_same_one(convention: str, descriptors: list[str]) -> None:
    train, test, other = (generate(name, 60, seed=seed).graphs for seed, name in enumerate(("ba", "ba", "er")))

    for row in compare(other, test, train, convention=convention, descriptors=descriptors):
        assert row.level is None
        assert row.ratio == row.samples.value / row.attainable.value > 3


def test_the_level_is_that_of_training_graphs_at_the_bandwidth_of_the_samples() -> None:
    samples, reference, train = (generate("ego", 12, seed=seed).graphs for seed in (0, 1, 2))
    y, z = describe(reference, ["degree"])["degree"], describe(train, ["degree"])["degree"]

    (row,) = compare(samples, reference, train, convention="rbf", descriptors=["degree"])

    biased, unbiased = (
        double_sum(z, y, straight, row.samples.bandwidth, unbiased=unbiased) for unbiased in (False, True)
    )
    chance = biased - unbiased
    level = max(unbiased, 0) + chance
    assert row.level == pytest.approx(level, abs=1e-9)
    assert row.ratio == pytest.approx((max(row.samples.value, 0) + chance) / level, abs=1e-9)


def test_biased_ratios_use_equally_many_graphs() -> None:
    sets = (generate("barabasi", count, seed=seed).graphs for seed, count in enumerate((300, 20, 20)))

    (many,) = compare(*sets, convention="tv", descriptors=["clustering"])

    # The average over all pairs, those of a graph with itself among them, falls with the number of graphs.
    assert many.samples.value / many.attainable.value < 0.7
    assert many.ratio == pytest.approx(1, abs=0.1)


def test_unknown_names_and_too_few_graphs_are_refused() -> None:
    x, y = rows_of("degree")
    with pytest.raises(ConfigError, match="no convention 'mmd'"):
        estimate_mmd(x, y, "degree", "mmd")
    with pytest.raises(ConfigError, match="no descriptor 'size'"):
        estimate_mmd(x, y, "size")
    with pytest.raises(DatasetError, match="1 and 3"):
        estimate_mmd(x[:1], y, "degree")
