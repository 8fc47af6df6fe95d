"""What the figures say, in words: where samples differ most, and whether they are copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .classifier import LEAST_GRAPHS
from .mmd import MMDRow
from .vun import Proportion

if TYPE_CHECKING:
    from .assessment import Evaluation, Summary

__all__ = ["find_words"]

CLOSE, FAR = 1.5, 3.0
"""Ratios up to which samples are as good as can be, and beyond which they clearly are not."""

SURE = 3.0
"""Standard errors beyond which two means differ."""

HARDLY = 0.6
"""The AUC up to which a classifier that is not sure of its gain may have guessed."""


def find_words(evaluation: Evaluation) -> tuple[str, ...]:
    """One sentence or two for each thing worth knowing, the most important first."""
    return (
        *_collapse(evaluation),
        *_copies(evaluation),
        *_validity(evaluation),
        *_distance(evaluation),
        *_difference(evaluation),
        *_classifier(evaluation),
        *_scarcity(evaluation),
    )


def _collapse(evaluation: Evaluation) -> Iterator[str]:
    unique, (own, usual) = evaluation.vun.unique, evaluation.comparable_unique
    repeated = own.high < usual.low
    if unique.count == 1 and usual.count > 1:
        end = ": the model has collapsed." if repeated else "."
        yield f"All {unique.total} samples are one and the same graph (uniqueness){end}"
    elif repeated:
        yield (
            f"Samples repeat themselves: {own.count} different graphs among {own.total} ({_percent(own)}), "
            f"where {usual.count} of as many reference graphs are different."
        )


def _copies(evaluation: Evaluation) -> Iterator[str]:
    novel, usual = evaluation.vun.novel, evaluation.reference_vun.novel
    if novel is None or usual is None:
        return
    memorised = novel.high < usual.low
    if novel.count and not memorised:
        return
    words = (
        f"Only {novel.count} of {novel.total} samples are new, the others are copies of training graphs"
        if novel.count
        else "Novelty is 0: every sample is a copy of a training graph"
    )
    if memorised:
        yield f"{words}, where {_percent(usual)} of the reference graphs are new. The model has memorised them."
    elif 2 * usual.count < usual.total:
        yield (
            f"{words}, but so are {usual.total - usual.count} of the {usual.total} reference graphs: either there are "
            "few graphs of this kind, or the reference was trained on."
        )
    else:
        yield f"{words}."


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
        )
    elif ratio <= CLOSE:
        yield f"On average, samples are as close to the reference as training graphs are (ratio {ratio:.2g})."
    elif ratio <= FAR:
        yield f"Samples are somewhat further from the reference than training graphs are (ratio {ratio:.2g})."
    else:
        yield f"Samples are clearly not of the reference's law: {ratio:.3g} times as far from it as training graphs."


def _difference(evaluation: Evaluation) -> Iterator[str]:
    rows = [row for row in evaluation.mmd if row.samples.convention == "rbf"]
    worst = max(rows, key=_times)
    # The largest of four noisy figures is above a limit more often than their mean.
    if (evaluation.ratio or 0.0) > CLOSE or _times(worst) > FAR:
        times = "" if worst.ratio is None else f", {worst.ratio:.3g} times what is attainable"
        yield f"They differ most in {worst.samples.descriptor} (MMD {worst.samples.value:.3g}{times})."
    plainest = max(evaluation.summaries, key=_apart)
    if _apart(plainest) > SURE and not _is_scarce(evaluation):
        yield (
            f"The plainest difference is in {plainest.name}: {plainest.samples:.4g} on average, "
            f"and {plainest.reference:.4g} in the reference."
        )


def _times(row: MMDRow) -> float:
    """How many times what is attainable, or what chance alone would make of it where that is not known."""
    if row.ratio is not None:
        return row.ratio
    assert row.chance is not None, "the convention 'rbf' knows its chance"

    return max(row.samples.value, 0.0) / row.chance + 1


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
        can = "hardly tells" if score.auc > HARDLY else "cannot tell"
        yield f"A classifier {can} them from the reference (AUC {score.auc:.2f}, where 0.5 is chance)."


def _is_scarce(evaluation: Evaluation) -> bool:
    return min(evaluation.samples, evaluation.reference) < LEAST_GRAPHS


def _scarcity(evaluation: Evaluation) -> Iterator[str]:
    if _is_scarce(evaluation):
        yield f"So few graphs tell little: pass at least {LEAST_GRAPHS} samples and as many reference graphs."


def _percent(share: Proportion) -> str:
    return "-" if share.value is None else f"{share.value:.0%}"
