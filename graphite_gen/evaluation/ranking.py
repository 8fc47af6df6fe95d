"""Ranking metrics of scores: ROC AUC, average precision, Hits@K and mean reciprocal rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

__all__ = ["area_under_curve", "average_precision", "hits", "mean_reciprocal_rank", "ranks_among"]


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


def ranks_among(positives: ArrayLike, negatives: ArrayLike) -> NDArray[np.float64]:
    """The rank of each positive among the negatives, 1 for the best, ties counted half, with shape :math:`(M,)`.

    Negatives have shape :math:`(K,)`, or :math:`(M, K)` if each positive has its own.
    """
    high, low = np.asarray(positives), np.asarray(negatives)
    if low.ndim == 1:
        low = np.sort(low)
        above = len(low) - np.searchsorted(low, high, side="right")
        not_below = len(low) - np.searchsorted(low, high, side="left")
    else:
        above, not_below = (low > high[:, None]).sum(1), (low >= high[:, None]).sum(1)

    return np.asarray(1 + (above + not_below) / 2)


def hits(ranks: NDArray[np.float64], count: int) -> float:
    """Hits@K: the fraction of positives that rank among the first ``count``."""
    return float(np.mean(ranks <= count))


def mean_reciprocal_rank(ranks: NDArray[np.float64]) -> float:
    """The mean reciprocal rank (MRR)."""
    return float(np.mean(1 / ranks))
