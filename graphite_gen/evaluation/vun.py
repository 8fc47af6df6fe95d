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
from .attributes import has_attributes
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
    """Proportions of valid, unique and novel samples; isomorphism ignores labels, weights and directions.

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
    # Novelty is invariant under isomorphism: one graph of each class is enough.
    copies = find_isomorphic([samples[index] for index in classes], train, group=group)
    new = {index for index, copy in zip(classes, copies, strict=True) if copy is None}
    valid = firsts
    if check is not None:
        # So is validity, unless it depends on attributes.
        tested = list(range(len(samples))) if any(map(has_attributes, samples)) else firsts
        indices = sorted(set(tested))
        some = [samples[index] for index in indices]
        checked = arrays_of(some, lambda part: {"valid": np.array(list(map(check, part)))}, group)
        is_valid = dict(zip(indices, checked["valid"].tolist(), strict=True))
        valid = [first for first, index in zip(firsts, tested, strict=True) if is_valid[index]]
    good = set(valid)

    return VUN(
        valid=None if check is None else Proportion.of(len(valid), len(samples)),
        unique=Proportion.of(len(classes), len(samples)),
        novel=Proportion.of(sum(first in new for first in firsts), len(samples)) if train else None,
        vun=Proportion.of(len(good & new), len(samples)),
        unique_of_valid=None if check is None else Proportion.of(len(good), len(valid)),
        novel_of_valid=Proportion.of(sum(first in new for first in valid), len(valid)) if train and check else None,
    )
