"""Validity, uniqueness and novelty (V.U.N.) of samples, scored as they are, without repair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import DatasetError
from ..families import Family
from ..graph import SimpleGraph
from ..records import Record
from .isomorphism import find_isomorphic, isomorphism_classes
from .parallel import arrays_of

__all__ = ["VUN", "Proportion", "score_vun"]


@dataclass(frozen=True)
class Proportion(Record):
    """A proportion with its 95 % confidence interval; the value is None if the total is 0."""

    count: int
    total: int
    value: float | None
    low: float
    high: float

    @classmethod
    def of(cls, count: int, total: int) -> Proportion:
        """The proportion of a total, with Wilson's interval for a binomial."""
        if not total:
            return cls(0, 0, None, 0.0, 1.0)
        low, high = binomtest(count, total).proportion_ci(method="wilson")

        return cls(count, total, count / total, float(low), float(high))


@dataclass(frozen=True)
class VUN(Record):
    """Proportions of valid, unique and novel samples.

    Attributes:
        valid: Valid samples; None without a criterion.
        unique: Isomorphism classes per sample; the interval is approximate, as duplicates are not independent.
        novel: Samples isomorphic to no training graph; None without training graphs.
        vun: Valid and novel isomorphism classes per sample, as in published tables; missing criteria count as met.
        unique_of_valid: Isomorphism classes per valid sample.
        novel_of_valid: Novel samples among the valid ones.
    """

    valid: Proportion | None
    unique: Proportion
    novel: Proportion | None
    vun: Proportion
    unique_of_valid: Proportion | None
    novel_of_valid: Proportion | None


def score_vun(
    samples: Sequence[SimpleGraph],
    train: Sequence[SimpleGraph] = (),
    validity: Callable[[SimpleGraph], bool] | Family | None = None,
    *,
    group: ProcessGroup = SINGLE_PROCESS,
) -> VUN:
    """The proportions of valid, unique and novel samples, on every process of the group."""
    if not samples:
        raise DatasetError("There are no samples to score.")
    check = validity.contains if isinstance(validity, Family) else validity
    firsts = isomorphism_classes(samples, group=group)
    classes = sorted(set(firsts))
    # Validity and novelty are invariant under isomorphism: one graph of each class is enough.
    representatives = [samples[index] for index in classes]
    copies = find_isomorphic(representatives, train, group=group)
    new = {index for index, copy in zip(classes, copies, strict=True) if copy is None}
    good = set(classes)
    if check is not None:
        checked = arrays_of(representatives, lambda some: {"valid": np.array(list(map(check, some)))}, group)
        good = {index for index, is_valid in zip(classes, checked["valid"].tolist(), strict=True) if is_valid}
    valid = [first for first in firsts if first in good]

    return VUN(
        valid=None if check is None else Proportion.of(len(valid), len(samples)),
        unique=Proportion.of(len(classes), len(samples)),
        novel=Proportion.of(sum(first in new for first in firsts), len(samples)) if train else None,
        vun=Proportion.of(len(good & new), len(samples)),
        unique_of_valid=None if check is None else Proportion.of(len(good), len(valid)),
        novel_of_valid=Proportion.of(sum(first in new for first in valid), len(valid)) if train and check else None,
    )
