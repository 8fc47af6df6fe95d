r"""Maximum mean discrepancy (MMD) between the descriptors of two sets of graphs.

.. math:: MMD^2 = E\,k(x, x') + E\,k(y, y') - 2\,E\,k(x, y)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import ConfigError, DatasetError
from ..records import Record, listed
from ..rng import stream
from .descriptors import CLUSTERING_BINS, DESCRIPTORS
from .parallel import same_width

__all__ = ["BANDWIDTHS", "CONVENTIONS", "MMDEstimate", "MMDRow", "chance_level", "compare_rows", "estimate_mmd"]

BANDWIDTHS = (0.01, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""The multiples of the mean distance that ``rbf`` maximises over."""

REPLICATES = 100
COVERAGE = 0.95

Matrix = NDArray[np.float64]
Distance = Callable[[Matrix, Matrix], Matrix]


def total_variation(x: Matrix, y: Matrix) -> Matrix:
    return _distances(x, y, "cityblock") / 2


def earth_mover(x: Matrix, y: Matrix) -> Matrix:
    # Between histograms with bins 1 apart it is the area between the cumulative sums.
    return _distances(x.cumsum(1), y.cumsum(1), "cityblock")


def euclidean(x: Matrix, y: Matrix) -> Matrix:
    return _distances(x, y, "euclidean")


def _distances(x: Matrix, y: Matrix, metric: str) -> Matrix:
    """The distances of all pairs of rows, from shapes (m, K) and (n, K) to (m, n)."""
    # Columns that never vary, such as empty bins, add nothing.
    differs = (x != x[:1]).any(0) | (y != x[:1]).any(0)

    return np.asarray(cdist(x[:, differs], y[:, differs], metric)) if differs.any() else np.zeros((len(x), len(y)))


CONVENTIONS: Mapping[str, Mapping[str, tuple[Distance, float]] | None] = {
    "tv": {
        "degree": (total_variation, 1.0),
        "clustering": (total_variation, 0.1),
        "orbit": (total_variation, 30.0),
        "spectrum": (total_variation, 1.0),
    },
    "emd": {
        "degree": (earth_mover, 1.0),
        # Bins 1/100 apart with bandwidth 0.1 are equivalent to bins 1 apart with bandwidth 10.
        "clustering": (earth_mover, 0.1 * CLUSTERING_BINS),
        "orbit": (euclidean, 30.0),
        "spectrum": (earth_mover, 1.0),
    },
    "rbf": None,
}
r"""The distance :math:`d` and bandwidth of each descriptor in three conventions, whose values are not comparable.

The kernel is :math:`k = \exp(-d^2 / 2\sigma^2)`. ``tv`` takes the total variation, as in tables of GRAN, SPECTRE and
DiGress, and ``emd`` the earth mover's distance, as in those of GraphRNN and GDSS. Both are V-statistics, which include
pairs of a graph with itself: they are biased, the more so the fewer graphs there are. ``rbf`` takes the Euclidean
distance, with the bandwidth, among multiples of the mean distance, that maximises the MMD. It is a U-statistic:
unbiased at each bandwidth, and sometimes negative. Its maximum is positive on average even for equal distributions, so
it is compared with the MMD of training graphs.
"""


@dataclass(frozen=True)
class MMDEstimate(Record):
    """A squared MMD with its 95 % bootstrap interval (None without replicates) and the numbers of graphs."""

    descriptor: str
    convention: str
    value: float
    low: float | None
    high: float | None
    bandwidth: float
    graphs: tuple[int, int]


@dataclass(frozen=True)
class MMDRow(Record):
    """The MMD of samples beside the attainable one of training graphs, if there are any.

    Attributes:
        chance: For ``rbf``, the :func:`chance_level` of training graphs; that of the samples without training graphs or
            if it is 0, and its maximum if both are 0. None for ``tv`` and ``emd``.
        level: For ``rbf``, the MMD of training graphs at the bandwidth of the samples, at least 0, plus ``chance``;
            None without training graphs.
        ratio: About 1 for samples of the true process. For ``rbf``, the MMD of the samples, at least 0, plus
            ``chance``, divided by ``level``: unbiased estimates are around 0 for equal distributions, so plain ratios
            would be noise. For ``tv`` and ``emd`` the ratio of the values for equally many graphs. None without
            training graphs.
    """

    samples: MMDEstimate
    attainable: MMDEstimate | None = None
    chance: float | None = None
    level: float | None = None
    ratio: float | None = None


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
    """The MMDs of samples ``x`` against test graphs ``y``, beside those of training graphs ``z``, on every process.

    The descriptors come from :func:`describe`. Without ``replicates`` of the bootstrap there is no interval.
    """
    cases = [(convention, name) for convention in conventions for name in x]

    def compare(number: int) -> MMDRow:
        convention, name = cases[number]
        first = estimate_mmd(x[name], y[name], name, convention, replicates=replicates, seed=seed)
        second = None
        if z is not None:
            second = estimate_mmd(z[name], y[name], name, convention, replicates=replicates, seed=seed)
        add_ratio = _with_unbiased_ratio if convention == "rbf" else _with_biased_ratio

        return add_ratio(MMDRow(first, second), x[name], y[name], None if z is None else z[name])

    return tuple(group.all_gather_in_order(len(cases), compare))


def _with_biased_ratio(row: MMDRow, x: Matrix, y: Matrix, z: Matrix | None) -> MMDRow:
    """The row with the ratio of two biased estimates from equally many graphs."""
    if z is None or row.attainable is None:
        return row
    count = min(len(x), len(z))

    def value_of(found: MMDEstimate, rows: Matrix) -> float:
        if len(rows) == count:
            return found.value
        some = rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]
        return estimate_mmd(some, y, found.descriptor, found.convention).value

    first, second = value_of(row.samples, x), value_of(row.attainable, z)

    return replace(row, ratio=first / second if second > 0 else None)


def _with_unbiased_ratio(row: MMDRow, x: Matrix, y: Matrix, z: Matrix | None) -> MMDRow:
    """The row with the ratio of two unbiased estimates at one bandwidth."""
    sigma = row.samples.bandwidth
    levels = (chance_level(rows, y, sigma) for rows in (z, x) if rows is not None)
    chance = next((level for level in levels if level > 0), 1 / len(x) + 1 / len(y))
    if z is None:
        return replace(row, chance=chance)
    once = [np.ones((1, len(rows)), dtype=np.int64) for rows in (z, y)]
    squares = [np.square(part) for part in _pairwise(euclidean, z, y)]
    level = max(float(_mmd(squares, sigma, *once, unbiased=True)[0]), 0.0) + chance

    return replace(row, chance=chance, level=level, ratio=(max(row.samples.value, 0.0) + chance) / level)


def estimate_mmd(
    x: Matrix, y: Matrix, descriptor: str, convention: str = "rbf", *, replicates: int = 0, seed: int = 0
) -> MMDEstimate:
    """The squared MMD of two sets of rows of a descriptor, with shapes (m, K) and (n, L); missing columns are zeros."""
    for what, name, known in (("descriptor", descriptor, DESCRIPTORS), ("convention", convention, CONVENTIONS)):
        if name not in known:
            raise ConfigError(f"There is no {what} '{name}'; there are {listed(known)}.")
    kernels = CONVENTIONS[convention]
    unbiased = kernels is None
    least = 2 if unbiased else 1
    if min(len(x), len(y)) < least:
        message = f"The MMD '{convention}' of {len(x)} and {len(y)} graphs is undefined; it needs {least} in each set."
        raise DatasetError(message, reason="too-few-graphs")
    distance, fixed = (euclidean, 1.0) if kernels is None else kernels[descriptor]
    distances = _pairwise(distance, x, y)
    rng = stream(seed, "bootstrap", convention, descriptor)
    counts = [rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), replicates) for rows in (x, y)]
    # The first row is the sample itself. Single precision suffices for the choice of bandwidth and the replicates, and
    # is several times as fast.
    u, v = (np.concatenate([np.ones((1, rows.shape[1]), dtype=rows.dtype), rows]) for rows in counts)
    sigmas = [fixed]
    if unbiased:
        # The mean over distinct pairs: the zero diagonal would bias small sets.
        xx, yy, xy = (float(part.sum()) for part in distances)
        rows = len(x) + len(y)
        sigmas = [multiple * ((xx + yy + 2 * xy) / (rows * (rows - 1)) or 1.0) for multiple in BANDWIDTHS]
    squares = [np.square(part) for part in distances]
    single = [part.astype(np.float32) for part in squares]
    values = np.stack([_mmd(single, sigma, u, v, unbiased=unbiased) for sigma in sigmas])
    sigma = sigmas[int(values[:, 0].argmax())]
    value = float(_mmd(squares, sigma, u[:1], v[:1], unbiased=unbiased)[0])
    low = high = None
    if replicates:
        # Maxima over bandwidths are biased upwards in replicates: only their spread is used.
        spread = values[:, 1:].max(0)
        ends = np.nanquantile(spread, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
        low, high = (value + ends - np.nanmean(spread)).tolist()

    return MMDEstimate(descriptor, convention, value, low, high, sigma, (len(x), len(y)))


def chance_level(x: Matrix, y: Matrix, sigma: float) -> float:
    r"""The bias of the V-statistic of the squared MMD ``rbf`` for two sets like these.

    .. math:: \frac{1 - E\,k(x, x')}{m} + \frac{1 - E\,k(y, y')}{n}

    It decreases with the number of graphs like the noise of the unbiased estimate, and so is a natural unit for it.
    """
    kernels = [_gaussian(np.square(euclidean(rows, rows)), sigma) for rows in (x, y)]

    return float(sum((1 - _within(k, np.ones((1, len(k))))[0]) / len(k) for k in kernels))


def _pairwise(distance: Distance, x: Matrix, y: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """The distances within x, within y and between them; missing columns are zeros."""
    x, y = same_width(x, y)

    return distance(x, x), distance(y, y), distance(x, y)


def _gaussian(squares: NDArray[Any], sigma: float) -> NDArray[Any]:
    """The kernel of squared distances, in their own precision."""
    return np.asarray(np.exp(squares * (-0.5 / sigma**2)))


def _mmd(
    squares: Sequence[NDArray[Any]], sigma: float, u: NDArray[np.int64], v: NDArray[np.int64], *, unbiased: bool
) -> Matrix:
    """The squared MMD of bootstrap replicates, from counts with shapes (R, m) and (R, n) to shape (R,).

    Pairs of copies of one row are left out, except the diagonal of the biased estimate: otherwise replicates would be
    less varied than the rows.
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
    """The mean kernel of two different rows, with shape (R,); NaN if a replicate has only one row."""
    twice = np.square(counts).sum(1, dtype=np.float64)
    total = ((counts @ k) * counts).sum(1, dtype=np.float64) - twice
    pairs = counts.sum(1, dtype=np.float64) ** 2 - twice

    return np.divide(total, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
