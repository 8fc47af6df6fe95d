"""Means of figures with their standard errors."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["mean_with_error"]


def mean_with_error(values: Sequence[float] | NDArray[np.float64]) -> tuple[float, float | None]:
    """The mean over graphs or runs and its standard error, which one has none of, nor figures that are not finite."""
    mean = float(np.mean(values))
    if len(values) < 2 or not math.isfinite(mean):
        return mean, None

    return mean, float(np.std(values, ddof=1)) / math.sqrt(len(values))
