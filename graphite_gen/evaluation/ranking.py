"""Ranking metrics of scores: ROC AUC and average precision."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

__all__ = ["area_under_curve", "average_precision"]


def area_under_curve(positives: ArrayLike, negatives: ArrayLike) -> float:
    """The area under the ROC curve: the probability that a positive scores above a negative, ties counted half."""
    high, low = np.asarray(positives), np.asarray(negatives)
    ranks = rankdata(np.concatenate([high, low]))

    return float((ranks[: len(high)].sum() - len(high) * (len(high) + 1) / 2) / (len(high) * len(low)))


def average_precision(positives: ArrayLike, negatives: ArrayLike) -> float:
    """The mean precision at the score of each positive, from the same arguments; ties are ranked together."""
    high, low = np.sort(np.asarray(positives)), np.sort(np.asarray(negatives))
    # The numbers of positives and negatives with at least the score of each positive.
    true = len(high) - np.searchsorted(high, high, side="left")
    false = len(low) - np.searchsorted(low, high, side="left")

    return float(np.mean(true / (true + false)))
