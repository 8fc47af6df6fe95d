"""A classifier two-sample test between samples and reference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from ..errors import DatasetError
from ..records import Record
from ..rng import stream
from .parallel import same_width
from .ranking import area_under_curve

__all__ = ["MIN_GRAPHS", "ClassifierScore", "fit_logistic", "log_odds", "same_columns", "score_classifier"]

MIN_GRAPHS = 8
"""The minimum number of graphs in each set: halves are halved again to choose a descriptor."""

RIDGE = 1.0
OPTIONS = {"maxiter": 1000, "gtol": 1e-7, "ftol": 1e-14}
REPLICATES = 500
COVERAGE = 0.95

Rows = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class ClassifierScore(Record):
    """A discrepancy from 0 to 1 with its 95 % bootstrap interval, the AUC (0.5 is chance), the descriptor that was
    chosen in each half, and the number of graphs of each set.
    """

    discrepancy: float
    low: float
    high: float
    auc: float
    descriptors: tuple[str, ...]
    graphs: tuple[int, int]


def score_classifier(x: Mapping[str, Rows], y: Mapping[str, Rows], *, seed: int = 0) -> ClassifierScore:
    r"""The PolyGraph discrepancy (Krimmel et al., 2025) of two sets of graphs, given rows of the same descriptors.

    It is the root of a lower bound on the Jensen-Shannon divergence, in bits, by a classifier with the probability
    :math:`D(x)` that :math:`x` is a sample: 0 for sets that it cannot distinguish and 1 for disjoint ones.

    .. math:: JSD \ge 1 + \frac12 E_{samples} \log_2 D + \frac12 E_{reference} \log_2 (1 - D)

    A logistic regression is fitted to half of the graphs, with the descriptor that is best by cross-validation within
    that half, and evaluated on the other half; then the halves are swapped.
    """
    m, n = (len(next(iter(rows.values()))) for rows in (x, y))
    if min(m, n) < MIN_GRAPHS:
        message = f"A classifier needs at least {MIN_GRAPHS} graphs in each set, not {m} and {n}."
        raise DatasetError(message, reason="too-few-graphs")
    rng = stream(seed, "classifier")
    halves = [np.array_split(rng.permutation(count), 2) for count in (m, n)]
    sides = {name: same_columns(name, x[name], y[name]) for name in x}
    chosen: list[str] = []
    areas: list[float] = []
    gains: tuple[list[Rows], list[Rows]] = ([], [])
    for own in (0, 1):
        fit, held = ([half[k] for half in halves] for k in (own, 1 - own))
        best = max(sides, key=lambda name: _cross_validated(*sides[name], fit))
        first, second = _held_out(*sides[best], fit, held)
        chosen.append(best)
        areas.append(area_under_curve(first, second))
        gains[0].append(log_expit(first) / math.log(2))
        gains[1].append(log_expit(-second) / math.log(2))
    pooled = [np.concatenate(parts) for parts in gains]
    replicates = sum(rng.choice(part, (REPLICATES, len(part))).mean(1) for part in pooled) / 2
    ends = np.quantile(replicates, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    mean = sum(part.mean() for part in pooled) / 2
    discrepancy, low, high = np.sqrt(np.clip(1 + np.array([mean, *ends]), 0, 1)).tolist()

    return ClassifierScore(discrepancy, low, high, float(np.mean(areas)), tuple(chosen), (m, n))


def same_columns(name: str, x: Rows, y: Rows) -> tuple[Rows, Rows]:
    """Rows of equal width without constant columns; logarithms of orbit counts."""
    x, y = same_width(x, y)
    if name == "orbit":
        x, y = np.log1p(x), np.log1p(y)
    varies = np.ptp(np.concatenate([x, y]), axis=0) > 0

    return x[:, varies], y[:, varies]


def _cross_validated(x: Rows, y: Rows, fit: list[Indices]) -> float:
    """The cross-validated gain in nats within the half that is fitted on."""
    parts = [np.array_split(rows, 2) for rows in fit]
    total = 0.0
    for own in (0, 1):
        first, second = _held_out(x, y, [part[own] for part in parts], [part[1 - own] for part in parts])
        total += float(log_expit(first).mean() + log_expit(-second).mean())

    return total


def _held_out(x: Rows, y: Rows, fit: list[Indices], held: list[Indices]) -> tuple[Rows, Rows]:
    """The log-odds of the held-out samples and reference graphs."""
    seen = np.concatenate([x[fit[0]], y[fit[1]]])
    first, second = log_odds(seen, np.arange(len(seen)) < len(fit[0]), x[held[0]], y[held[1]])

    return first, second


def log_odds(seen: Rows, is_sample: NDArray[np.bool_], *sides: Rows) -> list[Rows]:
    """The log-odds of the rows of each side, by a logistic regression on the rows seen, standardised."""
    mean, scale = seen.mean(0), seen.std(0)
    scale[scale == 0] = 1.0
    weights, intercept = fit_logistic((seen - mean) / scale, is_sample)

    return [(rows - mean) / scale @ weights + intercept for rows in sides]


def fit_logistic(rows: Rows, is_sample: NDArray[np.bool_], ridge: float = RIDGE) -> tuple[NDArray[np.float64], float]:
    r"""The weights and the intercept of a class-balanced logistic regression.

    It minimises :math:`\sum_i c_i \log(1 + e^{-s_i (w \cdot x_i + b)}) + \frac{\lambda}{2} |w|^2`, with
    :math:`c_i` half the number of rows divided by that of the class of row :math:`i`. Rows are standardised.
    """
    design = np.column_stack([rows, np.ones(len(rows))])
    counts = np.where(is_sample, len(rows) / (2 * is_sample.sum()), len(rows) / (2 * (~is_sample).sum()))
    penalty = np.append(np.full(rows.shape[1], ridge), 0.0)
    signs = np.where(is_sample, 1.0, -1.0)

    def loss(beta: Rows) -> tuple[float, Rows]:
        margins = signs * (design @ beta)
        gradient = penalty * beta - design.T @ (counts * signs * expit(-margins))
        return float((penalty * beta**2).sum() / 2 - (counts * log_expit(margins)).sum()), gradient

    beta = minimize(loss, np.zeros(design.shape[1]), jac=True, method="L-BFGS-B", options=OPTIONS).x

    return beta[:-1], float(beta[-1])
