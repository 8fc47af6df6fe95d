"""The verdict on samples in words: where they differ most, and whether they are copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .classifier import MIN_GRAPHS
from .mmd import MMDRow
from .vun import Proportion

if TYPE_CHECKING:
    from .assessment import Evaluation, Summary
    from .attributes import AttributeRow

__all__ = ["list_findings"]

# MMD ratios up to which samples are as good as training graphs, and above which they clearly are not.
CLOSE, FAR = 1.5, 3.0
# Standard errors above which two means differ.
SIGNIFICANT = 3.0
# Distances of attributes, from 0 to 1, up to which they are close or not far, whatever is attainable.
SMALL, MODERATE = 0.02, 0.06
# The AUC up to which an insignificant classifier is at chance level.
WEAK_AUC = 0.6


def list_findings(evaluation: Evaluation) -> tuple[str, ...]:
    """The findings, the most important first."""
    kinds = (_collapse, _copies, _validity, _accuracy, _distance, _difference, _attributes, _classifier, _scarcity)

    return tuple(finding for kind in kinds for finding in kind(evaluation))


def _collapse(evaluation: Evaluation) -> Iterator[str]:
    unique, (own, usual) = evaluation.vun.unique, evaluation.comparable_unique
    repeated = own.high < usual.low
    if unique.count == 1 and usual.count > 1:
        end = ": the model has collapsed." if repeated else "."
        yield f"All {unique.total} samples are isomorphic{end}"
    elif repeated:
        yield (
            f"Samples repeat: {own.count} of {own.total} are unique ({_percent(own)}), compared with {usual.count} of "
            "as many reference graphs."
        )


def _copies(evaluation: Evaluation) -> Iterator[str]:
    novel, usual = evaluation.vun.novel, evaluation.reference_vun.novel
    if novel is None or usual is None:
        return
    memorised = novel.high < usual.low
    if novel.count and not memorised:
        return
    words = (
        f"Only {novel.count} of {novel.total} samples are novel, the others are copies of training graphs"
        if novel.count
        else "Novelty is 0: every sample is a copy of a training graph"
    )
    if memorised:
        yield f"{words}; {_percent(usual)} of the reference graphs are novel. The model has memorised training graphs."
    elif 2 * usual.count < usual.total:
        yield (
            f"{words}, but so are {usual.total - usual.count} of the {usual.total} reference graphs: either there are "
            "few distinct graphs of this kind, or the reference is part of the training data."
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


def _accuracy(evaluation: Evaluation) -> Iterator[str]:
    found = evaluation.accuracy
    if found is not None:
        yield (
            f"A classifier assigns {_percent(found.samples)} of the samples to the '{found.attribute}' that they were "
            f"sampled for, and {_percent(found.reference)} of the reference graphs to theirs."
        )


def _distance(evaluation: Evaluation) -> Iterator[str]:
    ratio = evaluation.ratio
    if ratio is None:
        yield "Without training graphs, the attainable MMD is unknown."
    elif ratio <= CLOSE:
        yield f"On average, samples are as close to the reference as training graphs are (MMD ratio {ratio:.2g})."
    elif ratio <= FAR:
        yield f"Samples are somewhat further from the reference than training graphs are (MMD ratio {ratio:.2g})."
    else:
        yield f"Samples clearly differ from the reference: the MMD is {ratio:.3g} times that of training graphs."


def _difference(evaluation: Evaluation) -> Iterator[str]:
    rows = [row for row in evaluation.mmd if row.samples.convention == "rbf"]
    worst = max(rows, key=_relative)
    # The maximum of four noisy ratios needs a higher threshold than their mean.
    if (evaluation.ratio or 0.0) > CLOSE or _relative(worst) > FAR:
        times = "" if worst.ratio is None else f", {worst.ratio:.3g} times that of training graphs"
        yield f"They differ most in {worst.samples.descriptor} (MMD {worst.samples.value:.3g}{times})."
    largest = max(evaluation.summaries, key=_apart)
    if _apart(largest) > SIGNIFICANT and not any(_scarcity(evaluation)):
        yield (
            f"The summary statistic that differs most is {largest.name}: mean {largest.samples:.4g}, "
            f"reference {largest.reference:.4g}."
        )


def _attributes(evaluation: Evaluation) -> Iterator[str]:
    """One finding for each kind of attribute, by the measure that differs most from what is attainable."""
    kinds: dict[str, list[tuple[AttributeRow, float, float | None]]] = {}
    for row in evaluation.attributes:
        distance, attainable = _distances(row)
        if distance is not None:
            kinds.setdefault(_kind(row), []).append((row, distance, attainable))
    for kind, rows in kinds.items():
        row, distance, attainable = max(rows, key=lambda found: found[1] - CLOSE * (found[2] or 0.0))
        whose = "training graphs" if row.training is not None else "half of the reference"
        base = attainable or 0.0
        if distance <= max(CLOSE * base, SMALL):
            words = "are close to the reference" if attainable is None else f"are about as close as {whose}"
        elif distance <= max(FAR * base, MODERATE):
            words = "differ somewhat from the reference"
        else:
            words = "clearly differ from the reference"
        beside = "" if attainable is None else f"; {whose}: {attainable:.2g}"
        yield f"{kind} {words}: the worst measure is {_measure(row)}, {distance:.2g} apart{beside}."


def _distances(row: AttributeRow) -> tuple[float | None, float | None]:
    """The distance of samples from the reference, and that of training graphs or else halves, from 0 to 1.

    Both are None for measures that have no such range.
    """
    if row.reference is None:
        return row.samples, row.half if row.training is None else row.training
    width = {"reciprocity": 1.0, "proportion acyclic": 1.0}.get(
        row.measure, 2.0 if "correlation" in row.measure else 0.0
    )
    if not width or row.samples is None:
        return None, None
    other = row.half if row.training is None else row.training

    return abs(row.samples - row.reference) / width, None if other is None else abs(other - row.reference) / width


def _kind(row: AttributeRow) -> str:
    if row.on == "graph":
        return "Directions"
    if row.on == "edge":
        return "Weights" if row.measure.startswith("KS") else "Edge labels"
    if row.measure == "TV of edges":
        return "Pairs of node labels"

    return "Node labels" if row.measure.startswith("TV") else "Node features"


def _measure(row: AttributeRow) -> str:
    of = "" if row.attribute in ("weight", "direction") else f" of '{row.attribute}'"
    others = "".join(f" with '{label}'" for label in row.labels)
    names = {"TV of proportions": "their proportions", "TV of edges": "edges between them"}
    names |= {"KS of weights": "their distribution", "KS of values": "the distribution"}

    return f"{names.get(row.measure, row.measure.removeprefix('KS of '))}{of}{others}"


def _relative(row: MMDRow) -> float:
    """The MMD relative to that of training graphs, or to the chance level without them."""
    if row.ratio is not None:
        return row.ratio
    assert row.chance is not None, "rbf rows have a chance level"

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
        yield f"A classifier separates them by {by} (discrepancy {score.discrepancy:.2f}, AUC {score.auc:.2f})."
    else:
        can = "hardly separates" if score.auc > WEAK_AUC else "cannot separate"
        yield f"A classifier {can} them from the reference (AUC {score.auc:.2f}; 0.5 is chance)."


def _scarcity(evaluation: Evaluation) -> Iterator[str]:
    if min(evaluation.samples, evaluation.reference) < MIN_GRAPHS:
        yield f"There are too few graphs for reliable results: at least {MIN_GRAPHS} samples and reference graphs."


def _percent(proportion: Proportion) -> str:
    return "-" if proportion.value is None else f"{proportion.value:.0%}"
