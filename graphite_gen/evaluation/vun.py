"""Valid, unique, novel: whether samples are what they should be, differ, and were not copied from training graphs.

Samples are scored as they are: nothing is repaired, and no component is taken away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import DatasetError
from ..families import Family
from ..graph import SimpleGraph
from ..records import Record
from .isomorphism import find_isomorphic, isomorphism_classes
from .parallel import arrays_of

__all__ = ["VUN", "Proportion", "score_vun"]

# The normal quantile of a 95 % interval.
QUANTILE = 1.959963984540054


@dataclass(frozen=True)
class Proportion(Record):
    """So many of so many, with its 95 % interval.

    Attributes:
        count: How many.
        total: Of how many.
        value: The share; None where there are none to count.
        low: The lower end of its interval.
        high: The upper end.
    """

    count: int
    total: int
    value: float | None
    low: float
    high: float

    @classmethod
    def of(cls, count: int, total: int) -> Proportion:
        r"""The share :math:`p = k / n` with Wilson's interval for a binomial,

        .. math:: \frac{p + z^2 / 2n \pm z \sqrt{p (1 - p) / n + z^2 / 4n^2}}{1 + z^2 / n},

        which stays within [0, 1] and is not empty at its ends.
        """
        if not total:
            return cls(0, 0, None, 0.0, 1.0)
        p, extra = count / total, QUANTILE**2 / total
        middle = (p + extra / 2) / (1 + extra)
        half = math.sqrt(p * (1 - p) * extra + extra**2 / 4) / (1 + extra)
        low = max(middle - half, 0.0) if count else 0.0
        high = min(middle + half, 1.0) if count < total else 1.0

        return cls(count, total, p, low, high)


@dataclass(frozen=True)
class VUN(Record):
    """What becomes of samples when they are checked.

    Attributes:
        valid: Samples that are what they should be; None where nothing was asked of them.
        unique: Isomorphism classes among the samples. Copies of one graph are not independent draws, so that its
            interval is a guide only.
        novel: Samples isomorphic to no training graph; None where there are no training graphs.
        vun: Classes that are valid and novel, of all samples: the figure of the published tables. What was not asked
            for is not counted against it.
        unique_of_valid: Classes among the valid samples.
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
    """How many samples are valid, unique and novel.

    Arguments:
        samples: The graphs to judge.
        train: What the model was trained on.
        validity: What tells whether a graph is valid, or the family that it should belong to.
        group: The processes that divide the work; each gets the result.

    Raises:
        DatasetError: There are no samples.
    """
    if not samples:
        raise DatasetError("There are no samples to score: pass at least one.")
    check = validity.contains if isinstance(validity, Family) else validity
    firsts = isomorphism_classes(samples, group=group)
    classes = sorted(set(firsts))
    # Validity and novelty do not depend on how nodes are numbered: one graph of each class is enough.
    representatives = [samples[index] for index in classes]
    copied = find_isomorphic(representatives, train, group=group)
    new = {index for index, copy in zip(classes, copied, strict=True) if copy is None}
    good = set(classes)
    if check is not None:
        holds = arrays_of(representatives, lambda some: {"holds": np.array(list(map(check, some)))}, group)["holds"]
        good = {index for index, held in zip(classes, holds.tolist(), strict=True) if held}
    valid = [first for first in firsts if first in good]

    return VUN(
        valid=None if check is None else Proportion.of(len(valid), len(samples)),
        unique=Proportion.of(len(classes), len(samples)),
        novel=Proportion.of(sum(first in new for first in firsts), len(samples)) if train else None,
        vun=Proportion.of(len(good & new), len(samples)),
        unique_of_valid=None if check is None else Proportion.of(len(good), len(valid)),
        novel_of_valid=Proportion.of(sum(first in new for first in valid), len(valid)) if train and check else None,
    )
