"""What the figures say, in words: where samples differ most, and whether they are copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..metrics import MMDRow, Share

if TYPE_CHECKING:
    from .judgement import Evaluation, Summary

__all__ = ["find_words"]

CLOSE, FAR = 1.5, 3.0
"""Ratios up to which samples are as good as can be, and beyond which they clearly are not."""

SURE = 3.0
"""Standard errors beyond which two means differ."""


def find_words(evaluation: Evaluation) -> tuple[str, ...]:
    """One sentence or two for each thing worth knowing, the most important first."""
    return (
        *_collapse(evaluation),
        *_copies(evaluation),
        *_validity(evaluation),
        *_distance(evaluation),
        *_difference(evaluation),
        *_classifier(evaluation),
    )


def _collapse(evaluation: Evaluation) -> Iterator[str]:
    unique, usual = evaluation.vun.unique, evaluation.reference_vun.unique
    if unique.count == 1 and unique.total > 1:
        yield f"All {unique.total} samples are one and the same graph (uniqueness): the model has collapsed."
    elif unique.high < usual.low:
        yield (
            f"Samples repeat themselves: {unique.count} different graphs among {unique.total} ({_percent(unique)}), "
            f"where {_percent(usual)} of the {usual.total} reference graphs are different."
        )


def _copies(evaluation: Evaluation) -> Iterator[str]:
    novel, usual = evaluation.vun.novel, evaluation.reference_vun.novel
    if novel is None or usual is None:
        return
    if novel.count and novel.high >= usual.low:
        return
    words = (
        f"Only {_percent(novel)} of the samples are new, the others are copies of training graphs"
        if novel.count
        else "Novelty is 0: every sample is a copy of a training graph"
    )
    if novel.high < usual.low:
        yield f"{words}, where {_percent(usual)} of the reference graphs are new. The model has memorised them."
    else:
        yield f"{words}, but so are most graphs of this kind: only {_percent(usual)} of the reference graphs are new."


def _validity(evaluation: Evaluation) -> Iterator[str]:
    valid = evaluation.vun.valid
    if valid is None:
        return
    kind = f"valid '{evaluation.family}' graphs" if evaluation.family else "valid"
    first = f"the first {valid.total}" if valid.total < evaluation.samples else f"{valid.total}"
    yield f"{valid.count} of {first} samples are {kind} ({_percent(valid)})."


def _distance(evaluation: Evaluation) -> Iterator[str]:
    ratio = evaluation.ratio
    if ratio is None:
        yield (
            "How close is close enough is not known without training graphs: pass them, and distances stand beside "
            "theirs."
            if not evaluation.train
            else "Training and reference graphs are all alike, so that there is no ratio."
        )
    elif ratio <= CLOSE:
        yield f"Samples are as close to the reference as training graphs are (ratio {ratio:.2g})."
    elif ratio <= FAR:
        yield f"Samples are somewhat further from the reference than training graphs are (ratio {ratio:.2g})."
    else:
        yield f"Samples are clearly not of the reference's law: {ratio:.3g} times as far from it as training graphs."


def _difference(evaluation: Evaluation) -> Iterator[str]:
    rows = [row for row in evaluation.mmd if row.samples.convention == "rbf"]
    worst = max(rows, key=_distance_of)
    plainest = max(evaluation.summaries, key=_apart)
    if _is_clear(worst):
        times = "" if worst.ratio is None else f", {worst.ratio:.3g} times what is attainable"
        yield f"They differ most in {worst.samples.descriptor} (MMD {worst.samples.value:.3g}{times})."
    if _apart(plainest) > SURE:
        yield (
            f"The plainest difference is in {plainest.name}: {plainest.samples:.3g} on average, "
            f"and {plainest.reference:.3g} in the reference."
        )


def _distance_of(row: MMDRow) -> float:
    """How far, in what can be attained where that is known; without any, nothing is nearer than infinitely far."""
    if row.attainable is None:
        return row.samples.value
    if row.ratio is None:
        return float("inf") if row.samples.value > 0 else 0.0

    return row.ratio


def _is_clear(row: MMDRow) -> bool:
    if row.attainable is None:
        return (row.samples.low or 0.0) > 0

    return _distance_of(row) > CLOSE


def _apart(summary: Summary) -> float:
    if summary.samples is None or summary.reference is None:
        return 0.0
    if summary.errors_apart is None:
        return 0.0 if summary.samples == summary.reference else float("inf")

    return summary.errors_apart


def _classifier(evaluation: Evaluation) -> Iterator[str]:
    score = evaluation.classifier
    if score is None:
        return
    if score.low > 0:
        by = " and ".join(dict.fromkeys(score.descriptors))
        yield f"A classifier tells them apart by {by} (discrepancy {score.discrepancy:.2f}, AUC {score.auc:.2f})."
    else:
        yield f"A classifier cannot tell them from the reference (AUC {score.auc:.2f}, where 0.5 is chance)."


def _percent(share: Share) -> str:
    return "-" if share.value is None else f"{share.value:.0%}"
