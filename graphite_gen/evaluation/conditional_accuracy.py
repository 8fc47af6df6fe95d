"""Whether samples belong to the class that they were sampled for, by a classifier of the reference graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from ..errors import DatasetError, did_you_mean
from ..graph import SimpleGraph
from ..records import Record, count_of
from ..rng import stream
from .attributes import MAX_LABELS, TYPES
from .classifier import log_odds, same_columns
from .vun import Proportion

__all__ = ["MIN_CLASS", "ClassAccuracy", "ConditionalAccuracy", "score_conditions"]

MIN_CLASS = 4
"""The minimum number of reference graphs of each class."""

Rows = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class ClassAccuracy(Record):
    """The proportions of samples and of reference graphs of a class that the classifier assigns to it."""

    label: Any
    samples: Proportion
    reference: Proportion


@dataclass(frozen=True)
class ConditionalAccuracy(Record):
    """The accuracy of a classifier on samples, by the class that they were sampled for.

    Attributes:
        attribute: The graph attribute with the classes.
        descriptor: The descriptor that classifies reference graphs best.
        samples: The proportion of samples that it assigns to their class.
        reference: The same for the reference graphs, by cross-validation.
        classes: Both by class.
    """

    attribute: str
    descriptor: str
    samples: Proportion
    reference: Proportion
    classes: tuple[ClassAccuracy, ...]


def score_conditions(
    samples: Sequence[SimpleGraph],
    reference: Sequence[SimpleGraph],
    attribute: str,
    x: Mapping[str, Rows],
    y: Mapping[str, Rows],
    *,
    seed: int = 0,
) -> ConditionalAccuracy:
    """The proportion of samples that a classifier of the reference graphs assigns to their class.

    The classifier is a logistic regression of each class against the others, with the descriptor that is best by
    two-fold cross-validation.

    Arguments:
        attribute: The graph attribute with the class of a reference graph, and of a sample that it was sampled for.
        x: The rows of descriptors of samples.
        y: The rows of descriptors of reference graphs.

    Raises:
        DatasetError: A graph has no class, the classes are too few or too small, or samples have others.
    """
    wanted, known = _classes(samples, attribute, "samples"), _classes(reference, attribute, "reference graphs")
    labels = sorted(set(known), key=lambda label: (isinstance(label, str), label))
    _check_classes(wanted, known, labels, attribute)
    own, truth = (np.array([labels.index(label) for label in side]) for side in (wanted, known))
    rng = stream(seed, "conditional accuracy")
    parts = [np.array_split(rng.permutation(np.flatnonzero(truth == code)), 2) for code in range(len(labels))]
    folds = [np.concatenate([part[k] for part in parts]) for k in (0, 1)]
    sides = {name: same_columns(name, x[name], y[name]) for name in x}
    held = {name: _cross_validated(rows, truth, folds, len(labels)) for name, (_, rows) in sides.items()}
    best = max(held, key=lambda name: _log_likelihood(held[name], truth))
    right = held[best].argmax(1) == truth
    found = _one_against_rest(sides[best][1], truth, sides[best][0], len(labels)).argmax(1) == own

    return ConditionalAccuracy(
        attribute,
        best,
        _proportion(found),
        _proportion(right),
        tuple(
            ClassAccuracy(label, _proportion(found[own == code]), _proportion(right[truth == code]))
            for code, label in enumerate(labels)
        ),
    )


def _classes(graphs: Sequence[SimpleGraph], attribute: str, what: str) -> list[Any]:
    missing = [graph for graph in graphs if graph.attributes.get(attribute) is None]
    if missing:
        guess = did_you_mean(attribute, missing[0].attributes)
        message = f"{len(missing)} of the {len(graphs)} {what} have no graph attribute '{attribute}'{guess}."
        raise DatasetError(message, reason="no-class", name=attribute)
    found = [graph.attributes[attribute] for graph in graphs]
    wrong = next((value for value in found if not isinstance(value, TYPES)), None)
    if wrong is not None:
        message = f"The graph attribute '{attribute}' is {str(wrong)[:40]}; classes are strings, integers or booleans."
        raise DatasetError(message, reason="no-class", name=attribute)

    return [value.item() if isinstance(value, np.generic) else value for value in found]


def _check_classes(wanted: Sequence[Any], known: Sequence[Any], labels: Sequence[Any], attribute: str) -> None:
    if not 2 <= len(labels) <= MAX_LABELS:
        found = count_of(len(labels), "distinct value")
        message = f"'{attribute}' has {found} on the reference graphs; expected 2 to {MAX_LABELS} classes."
        raise DatasetError(message, reason="class-count", name=attribute)
    rarest = min(labels, key=known.count)
    if known.count(rarest) < MIN_CLASS:
        found = count_of(known.count(rarest), "reference graph")
        message = f"There are {found} of class {rarest!r}; a classifier needs at least {MIN_CLASS} of each class."
        raise DatasetError(message, reason="class-count", name=attribute)
    other = next((label for label in wanted if label not in labels), None)
    if other is not None:
        message = f"Samples have '{attribute}' {other!r}, but no reference graph has."
        raise DatasetError(message, reason="class-unknown", name=attribute)


def _one_against_rest(seen: Rows, truth: Codes, rows: Rows, classes: int) -> Rows:
    """The log-odds of each class, with shape (G, C)."""
    return np.stack([log_odds(seen, truth == code, rows)[0] for code in range(classes)], axis=1)


def _cross_validated(rows: Rows, truth: Codes, folds: Sequence[Codes], classes: int) -> Rows:
    found = np.zeros((len(rows), classes))
    for fit, held in (folds, folds[::-1]):
        found[held] = _one_against_rest(rows[fit], truth[fit], rows[held], classes)

    return found


def _log_likelihood(odds: Rows, truth: Codes) -> float:
    is_class = np.arange(odds.shape[1]) == truth[:, None]

    return float(log_expit(np.where(is_class, odds, -odds)).mean())


def _proportion(right: NDArray[np.bool_]) -> Proportion:
    return Proportion.of(int(right.sum()), len(right))
