"""Histograms of descriptors, sizes and path lengths for figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import DatasetError
from ..graph import SimpleGraph
from ..records import Record
from .descriptors import clustering_coefficients, describe, spectra
from .statistics import mean_path_lengths

__all__ = ["Distribution", "distributions"]

BINS = 20
# Integers with a wider range than this are binned.
MAX_VALUES = 40

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Distribution(Record):
    """One quantity over samples and over the reference.

    Attributes:
        label: The label of the horizontal axis.
        places: The centres of the bins.
        samples: The proportion of values of the samples in each bin, or the mean count of each orbit.
        reference: The same for the reference; None without one.
        logarithmic: Whether the vertical axis should be logarithmic.
    """

    name: str
    label: str
    places: tuple[float, ...]
    samples: tuple[float, ...]
    reference: tuple[float, ...] | None
    logarithmic: bool = False


def distributions(samples: Sequence[SimpleGraph], reference: Sequence[SimpleGraph] = ()) -> tuple[Distribution, ...]:
    """The distributions of all descriptors, sizes and path lengths; those of the skeletons of directed graphs."""
    if not samples:
        raise DatasetError("There are no graphs to show distributions of.")
    sides = [[graph.skeleton() for graph in side] for side in (samples, reference) if side]
    degrees = [np.concatenate([graph.degrees() for graph in side]) for side in sides]
    sizes = [np.array([graph.nodes for graph in side]) for side in sides]
    clustering = [np.concatenate(clustering_coefficients(side)) for side in sides]
    eigenvalues = [np.concatenate(spectra(side)) for side in sides]
    paths = [mean_path_lengths(side) for side in sides]
    counts = [describe(side, ["orbit"])["orbit"].mean(0).tolist() for side in sides]
    known = tuple(counts[1]) if reference else None
    orbits = Distribution("orbit", "orbit", tuple(range(len(counts[0]))), tuple(counts[0]), known, logarithmic=True)

    return (
        _integers("degree", "degree of a node", degrees),
        _binned("clustering", "clustering coefficient of a node", clustering, (0.0, 1.0)),
        orbits,
        _binned("spectrum", "eigenvalue of the normalised Laplacian", eigenvalues, (0.0, 2.0)),
        _integers("size", "nodes of a graph", sizes),
        _binned("path length", "mean path length of a graph", paths, None),
    )


def _integers(name: str, label: str, sides: Sequence[NDArray[np.int64]]) -> Distribution:
    """A histogram of integers, one bin for each unless the range is wide."""
    values = [side.astype(np.float64) for side in sides]
    low, high = int(min(map(np.min, sides))), int(max(map(np.max, sides)))
    if high - low >= MAX_VALUES:
        return _binned(name, label, values, None)

    return _binned(name, label, values, (low - 0.5, high + 0.5), high - low + 1)


def _binned(
    name: str, label: str, sides: Sequence[Values], span: tuple[float, float] | None, bins: int = BINS
) -> Distribution:
    finite = [side[np.isfinite(side)] for side in sides]
    if span is None:
        every = np.concatenate(finite)
        span = (float(every.min()), float(every.max())) if len(every) else (0.0, 1.0)
    edges = np.histogram_bin_edges(np.zeros(0), bins, span)
    # Rounding can put eigenvalues just outside their range.
    proportions = (np.histogram(np.clip(side, *span), edges)[0] / max(len(side), 1) for side in finite)
    own, *known = (tuple(row.tolist()) for row in proportions)
    places = tuple(((edges[1:] + edges[:-1]) / 2).tolist())

    return Distribution(name, label, places, own, known[0] if known else None)
