r"""How far apart two sets of graphs are: the maximum mean discrepancy (MMD) of their descriptors.

.. math:: MMD^2 = E\,k(x, x') + E\,k(y, y') - 2\,E\,k(x, y)

Three conventions that must not be compared with each other:

``tv``
    The Gaussian :math:`k = \exp(-d^2 / 2\sigma^2)` of the total variation :math:`d = \frac12 \sum_b |x_b - y_b|`, as in
    the tables of GRAN, SPECTRE and DiGress. Orbit means enter as they are.
``emd``
    The Gaussian of the earth mover's distance between histograms, as in the tables of GraphRNN and GDSS. Bins of degree
    and spectrum are 1 apart, bins of clustering 1/100. For orbit means those tables take the plain Euclidean distance.
``rbf``
    The Gaussian of the Euclidean distance, the bandwidth chosen from multiples of the mean distance so as to show the
    largest difference.

The first two average over all pairs, a graph with itself included. That is biased, the more so the fewer graphs there
are, and their kernels are not always positive definite. The third leaves a graph with itself out: unbiased at each
bandwidth, and sometimes negative. Its maximum is on average above zero even for equal laws, which is why it stands
beside the same figure of training graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import ConfigError, DatasetError
from ..graph import SimpleGraph
from ..records import Record
from ..rng import stream
from .descriptors import CLUSTERING_BINS, DESCRIPTORS, describe

__all__ = [
    "BANDWIDTHS",
    "CONVENTIONS",
    "Kernel",
    "MMDEstimate",
    "MMDRow",
    "chance_level",
    "compare_graphs",
    "compare_rows",
    "earth_mover",
    "estimate_mmd",
    "euclidean",
    "total_variation",
]

BANDWIDTHS = (0.01, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""The multiples of the mean distance among which ``rbf`` chooses."""

REPLICATES = 100
COVERAGE = 0.95

Matrix = NDArray[np.float64]


def total_variation(x: Matrix, y: Matrix) -> Matrix:
    r"""Half the sum of absolute differences of each two rows, from shapes (m, K) and (n, K) to (m, n)."""
    return _distances(x, y, "cityblock") / 2


def earth_mover(x: Matrix, y: Matrix) -> Matrix:
    r"""The earth mover's distance of each two histograms whose bins are 1 apart, with shape (m, n).

    On a line it is the area between the cumulative sums, :math:`\sum_b |\sum_{c \le b} (x_c - y_c)|`.
    """
    return _distances(x.cumsum(1), y.cumsum(1), "cityblock")


def euclidean(x: Matrix, y: Matrix) -> Matrix:
    """The Euclidean distance of each two rows, with shape (m, n)."""
    return _distances(x, y, "euclidean")


def _distances(x: Matrix, y: Matrix, metric: str) -> Matrix:
    # Most of many bins are empty in all graphs, and what never differs adds nothing.
    differs = (x != x[:1]).any(0) | (y != x[:1]).any(0)

    return np.asarray(cdist(x[:, differs], y[:, differs], metric)) if differs.any() else np.zeros((len(x), len(y)))


@dataclass(frozen=True)
class Kernel:
    r"""The Gaussian :math:`k = \exp(-d^2 / 2\sigma^2)` of a distance.

    Attributes:
        distance: The distance :math:`d` of each two rows.
        sigma: Its scale.
    """

    distance: Callable[[Matrix, Matrix], Matrix]
    sigma: float


CONVENTIONS: Mapping[str, Mapping[str, Kernel] | None] = MappingProxyType(
    {
        "tv": {
            "degree": Kernel(total_variation, 1.0),
            "clustering": Kernel(total_variation, 0.1),
            "orbit": Kernel(total_variation, 30.0),
            "spectrum": Kernel(total_variation, 1.0),
        },
        "emd": {
            "degree": Kernel(earth_mover, 1.0),
            # Bins 1/100 apart and a scale of 0.1 are bins 1 apart and a scale of 10.
            "clustering": Kernel(earth_mover, 0.1 * CLUSTERING_BINS),
            "orbit": Kernel(euclidean, 30.0),
            "spectrum": Kernel(earth_mover, 1.0),
        },
        "rbf": None,
    }
)
"""The kernel of each descriptor in each convention; None where it is chosen by the data."""


@dataclass(frozen=True)
class MMDEstimate(Record):
    """A squared MMD.

    Attributes:
        descriptor: What was compared.
        convention: How.
        value: The estimate.
        low: The lower end of its 95 % bootstrap interval; None where none was asked for.
        high: The upper end.
        bandwidth: The scale of the kernel.
        graphs: How many graphs each set has.
    """

    descriptor: str
    convention: str
    value: float
    low: float | None
    high: float | None
    bandwidth: float
    graphs: tuple[int, int]


@dataclass(frozen=True)
class MMDRow(Record):
    """An MMD beside what can be attained.

    Attributes:
        samples: Samples against the reference.
        attainable: Training graphs against the reference; None where there are none.
        chance: What chance alone adds to a figure that is not corrected for it, see :func:`chance_level`; None in the
            older conventions, which are not. Where training and reference graphs are all alike, or there are no
            training graphs, that of the samples; where those are all alike too, the most that it can be.
        level: The figure of training graphs at the bandwidth of the samples, at least zero, and chance; None without
            training graphs.
        ratio: The samples' figure, at least zero, and chance, over the level: unbiased figures of equal laws lie around
            zero, and nothing can be measured by that alone. In older conventions the first figure over the second,
            both of the same number of graphs, on which they depend. About 1 for samples of the true law; None without
            training graphs, and in older conventions where those are the reference.
    """

    samples: MMDEstimate
    attainable: MMDEstimate | None = None
    chance: float | None = None
    level: float | None = None
    ratio: float | None = None


def compare_graphs(
    samples: Sequence[SimpleGraph],
    reference: Sequence[SimpleGraph],
    train: Sequence[SimpleGraph] = (),
    *,
    conventions: Sequence[str] = tuple(CONVENTIONS),
    descriptors: Sequence[str] = tuple(DESCRIPTORS),
    replicates: int = REPLICATES,
    seed: int = 0,
) -> tuple[MMDRow, ...]:
    """Every asked-for MMD of samples against a reference, and beside it that of training graphs.

    Arguments:
        samples: The graphs to judge, as they were sampled.
        reference: Test graphs.
        train: Training graphs: how far they are from the reference is the attainable level.
        conventions: Keys of :data:`CONVENTIONS`.
        descriptors: Keys of :data:`DESCRIPTORS`.
        replicates: Bootstrap replicates of each interval; 0 for none.
        seed: The seed of the replicates.

    Raises:
        ConfigError: There is no such convention or descriptor.
        DatasetError: There are too few graphs, or one has no nodes.
    """
    for name in descriptors:
        _require("descriptor", name, DESCRIPTORS)
    if not samples or not reference:
        raise DatasetError("There is nothing to compare: pass at least one sample and one reference graph.")
    x, y = describe(samples, descriptors), describe(reference, descriptors)
    z = describe(train, descriptors) if train else None

    return compare_rows(x, y, z, conventions=conventions, replicates=replicates, seed=seed)


def compare_rows(
    x: Mapping[str, Matrix],
    y: Mapping[str, Matrix],
    z: Mapping[str, Matrix] | None = None,
    *,
    conventions: Sequence[str] = tuple(CONVENTIONS),
    replicates: int = REPLICATES,
    seed: int = 0,
    group: ProcessGroup = SINGLE_PROCESS,
) -> tuple[MMDRow, ...]:
    """The same by the descriptors of samples, reference and training graphs, as :func:`describe` gives them; of
    processes that share them, each gets all.
    """
    figures = [(convention, name) for convention in conventions for name in x]

    def compare(number: int) -> MMDRow:
        convention, name = figures[number]
        first = estimate_mmd(x[name], y[name], name, convention, replicates=replicates, seed=seed)
        second = None
        if z is not None:
            second = estimate_mmd(z[name], y[name], name, convention, replicates=replicates, seed=seed)
        measure = _measured if convention == "rbf" else _divided

        return measure(MMDRow(first, second), x[name], y[name], None if z is None else z[name])

    return tuple(group.all_gather_in_order(len(figures), compare))


def _divided(row: MMDRow, x: Matrix, y: Matrix, z: Matrix | None) -> MMDRow:
    """The row of a biased figure with its ratio, both parts of which are of as many graphs."""
    if z is None or row.attainable is None:
        return row
    count = min(len(x), len(z))
    first, second = (
        found.value
        if len(rows) == count
        else estimate_mmd(_evenly(rows, count), y, found.descriptor, found.convention).value
        for found, rows in ((row.samples, x), (row.attainable, z))
    )

    return replace(row, ratio=first / second if second > 0 else None)


def _evenly(rows: Matrix, count: int) -> Matrix:
    return rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]


def _measured(row: MMDRow, x: Matrix, y: Matrix, z: Matrix | None) -> MMDRow:
    """The row of an unbiased figure with its ratio, which is taken at one bandwidth."""
    sigma = row.samples.bandwidth
    levels = (chance_level(rows, y, sigma) for rows in (z, x) if rows is not None)
    chance = next((level for level in levels if level > 0), 1 / len(x) + 1 / len(y))
    if z is None:
        return replace(row, chance=chance)
    once = [np.ones((1, len(rows)), dtype=np.int64) for rows in (z, y)]
    squares = _Distances.of(euclidean, z, y).squared(np.float64)
    level = max(float(_mmd(squares, sigma, *once, unbiased=True)[0]), 0.0) + chance

    return replace(row, chance=chance, level=level, ratio=(max(row.samples.value, 0.0) + chance) / level)


def estimate_mmd(
    x: Matrix,
    y: Matrix,
    descriptor: str,
    convention: str = "rbf",
    *,
    replicates: int = 0,
    seed: int = 0,
) -> MMDEstimate:
    r"""The squared MMD of two sets of rows.

    Arguments:
        x: Rows of a descriptor, with shape (m, K).
        y: Rows of the same descriptor, with shape (n, L); missing columns are zeros.
        descriptor: Its name, a key of :data:`DESCRIPTORS`.
        convention: A key of :data:`CONVENTIONS`.
        replicates: Bootstrap replicates of its interval; 0 for none.
        seed: The seed of the replicates.

    Raises:
        ConfigError: There is no such convention or descriptor.
        DatasetError: There are too few rows.
    """
    _require("descriptor", descriptor, DESCRIPTORS)
    _require("convention", convention, CONVENTIONS)
    kernels = CONVENTIONS[convention]
    unbiased = kernels is None
    least = 2 if unbiased else 1
    if min(len(x), len(y)) < least:
        raise DatasetError(
            f"The MMD '{convention}' needs at least {least} graph{'s' * (least > 1)} on each side, "
            f"and there are {len(x)} and {len(y)}."
        )
    kernel = Kernel(euclidean, 1.0) if kernels is None else kernels[descriptor]
    between = _Distances.of(kernel.distance, x, y)
    rng = stream(seed, "bootstrap", convention, descriptor)
    counts = [rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), replicates) for rows in (x, y)]
    # Every graph once, and then the replicates. Single precision is more than enough to choose a bandwidth and for the
    # spread of replicates, and several times as fast.
    u, v = (np.concatenate([np.ones((1, rows.shape[1]), dtype=rows.dtype), rows]) for rows in counts)
    sigmas = _bandwidths(between) if unbiased else [kernel.sigma]
    single = between.squared(np.float32)
    values = np.stack([_mmd(single, sigma, u, v, unbiased=unbiased) for sigma in sigmas])
    sigma = sigmas[int(values[:, 0].argmax())]
    value = float(_mmd(between.squared(np.float64), sigma, u[:1], v[:1], unbiased=unbiased)[0])
    low = high = None
    if replicates:
        # Maxima of noisier figures are higher: it is their spread that counts, not where they lie.
        spread = values[:, 1:].max(0)
        ends = np.nanquantile(spread, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
        low, high = (value + ends - np.nanmean(spread)).tolist()

    return MMDEstimate(descriptor, convention, value, low, high, sigma, (len(x), len(y)))


def chance_level(x: Matrix, y: Matrix, sigma: float) -> float:
    r"""What chance alone makes of the squared MMD ``rbf`` of two such sets, if nothing is done about it.

    .. math:: \frac{1 - E\,k(x, x')}{m} + \frac{1 - E\,k(y, y')}{n}

    By this the average over all pairs, a graph with itself included, is above the unbiased figure. It falls with the
    number of graphs as the noise of that figure does, and so it is a natural unit for it.

    Arguments:
        x: Rows of a descriptor, with shape (m, K), at least two.
        y: Rows of the same descriptor, with shape (n, L), at least two.
        sigma: The bandwidth.
    """
    kernels = [_gaussian(np.square(euclidean(rows, rows)), sigma) for rows in (x, y)]

    return float(sum((1 - _within(k, np.ones((1, len(k))))[0]) / len(k) for k in kernels))


@dataclass(frozen=True)
class _Distances:
    """The distances of the rows of two sets, within each and across."""

    xx: Matrix
    yy: Matrix
    xy: Matrix

    @classmethod
    def of(cls, distance: Callable[[Matrix, Matrix], Matrix], x: Matrix, y: Matrix) -> _Distances:
        """The distances, missing columns taken as zeros."""
        width = max(x.shape[1], y.shape[1])
        x, y = (np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in (x, y))

        return cls(distance(x, x), distance(y, y), distance(x, y))

    def squared(self, precision: type[np.floating[Any]]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Their squares."""
        xx, yy, xy = (np.square(part).astype(precision) for part in (self.xx, self.yy, self.xy))

        return xx, yy, xy


def _bandwidths(between: _Distances) -> list[float]:
    # Over distinct pairs: the zeros of rows with themselves would make small sets look closer.
    rows = sum(between.xy.shape)
    mean = (between.xx.sum() + between.yy.sum() + 2 * between.xy.sum()) / (rows * (rows - 1))

    return [multiple * (float(mean) or 1.0) for multiple in BANDWIDTHS]


def _gaussian(squares: NDArray[Any], sigma: float) -> NDArray[Any]:
    """The kernel of squared distances, in their own precision."""
    return np.asarray(np.exp(squares * (-0.5 / sigma**2)))


def _mmd(
    squares: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    sigma: float,
    u: NDArray[np.int64],
    v: NDArray[np.int64],
    *,
    unbiased: bool,
) -> Matrix:
    """The squared MMD with rows counted so many times, from counts of shapes (R, m) and (R, n) to shape (R,).

    A row is never compared with a copy of itself, except once for each row in the biased estimate: otherwise every
    replicate would look less varied than the rows are.
    """
    xx, yy, xy = (_gaussian(part, sigma) for part in squares)
    u, v = (counts.astype(xy.dtype) for counts in (u, v))
    within = _within(xx, u), _within(yy, v)
    across = ((u @ xy) * v).sum(1, dtype=np.float64) / xy.size
    if unbiased:
        return within[0] + within[1] - 2 * across
    both = [
        1 / rows + (1 - 1 / rows) * mean if rows > 1 else np.ones_like(mean)
        for rows, mean in zip(xy.shape, within, strict=True)
    ]

    return np.asarray(both[0] + both[1] - 2 * across)


def _within(k: NDArray[Any], counts: NDArray[Any]) -> Matrix:
    """The mean kernel of two different rows, with shape (R,); not a number where only one row was drawn."""
    twice = np.square(counts).sum(1, dtype=np.float64)
    total = ((counts @ k) * counts).sum(1, dtype=np.float64) - twice
    pairs = counts.sum(1, dtype=np.float64) ** 2 - twice

    return np.divide(total, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)


def _require(what: str, name: str, known: Mapping[str, object]) -> None:
    if name not in known:
        raise ConfigError(f"No {what} is called '{name}': pass one of {', '.join(repr(key) for key in known)}.")
