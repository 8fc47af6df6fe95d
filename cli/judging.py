"""How an evaluation is shown, and held against what a script asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .console import show_facts, show_json, show_rows

if TYPE_CHECKING:
    from graphite_gen.evaluation import ClassifierScore, Evaluation, MMDEstimate, Proportion

__all__ = ["hold_against", "show_evaluation"]


def show_evaluation(evaluation: Evaluation, as_json: bool, conventions: Sequence[str]) -> None:
    """Everything, the words first."""
    if as_json:
        return show_json(evaluation.to_json())

    for line in evaluation.findings:
        click.echo(line)
    click.echo()
    ratio = "-" if evaluation.ratio is None else f"{evaluation.ratio:.2f}, the mean over descriptors of 'rbf' below"
    show_facts(
        [
            ("graphs", f"{evaluation.samples} samples, {evaluation.reference} reference, {evaluation.train} training"),
            ("ratio", ratio),
            *_shares(evaluation),
            *_classifiers(evaluation),
        ]
    )
    click.echo()
    _show_distances(evaluation, conventions)
    click.echo()
    _show_summaries(evaluation)

    return None


def _shares(evaluation: Evaluation) -> list[tuple[str, str]]:
    own, usual = evaluation.vun, evaluation.reference_vun
    rows = [
        ("valid", own.valid, None),
        ("unique", own.unique, usual.unique),
        ("novel", own.novel, usual.novel),
        ("V.U.N.", own.vun, None),
    ]

    return [
        (name, _share(share) + (f"; reference {share_of.value:.1%}" if share_of and share_of.value is not None else ""))
        for name, share, share_of in rows
        if share is not None
    ]


def _share(share: Proportion) -> str:
    if share.value is None:
        return "-"

    return f"{share.value:.1%} ({share.low:.1%} to {share.high:.1%}), {share.count} of {share.total}"


def _classifiers(evaluation: Evaluation) -> list[tuple[str, str]]:
    score, other = evaluation.classifier, evaluation.attainable_classifier
    if score is None:
        return []
    beside = "" if other is None else f"; training graphs {_score(other)}"

    return [("classifier", f"discrepancy {_score(score)}{beside}")]


def _score(score: ClassifierScore) -> str:
    return f"{score.discrepancy:.2f} ({score.low:.2f} to {score.high:.2f}), AUC {score.auc:.2f}"


def _show_distances(evaluation: Evaluation, conventions: Sequence[str]) -> None:
    columns = ("MMD²", "convention", "samples", "95 % interval", "training", "ratio")
    show_rows(
        columns,
        [
            (
                row.samples.descriptor,
                row.samples.convention,
                f"{row.samples.value:.5f}",
                _interval(row.samples),
                "-" if row.attainable is None else f"{row.attainable.value:.5f}",
                "-" if row.ratio is None else f"{row.ratio:.2f}",
            )
            for row in evaluation.mmd
            if row.samples.convention in conventions
        ],
        numbers=columns[2:],
    )


def _interval(estimate: MMDEstimate) -> str:
    return "-" if estimate.low is None else f"{estimate.low:.5f} to {estimate.high:.5f}"


def _show_summaries(evaluation: Evaluation) -> None:
    columns = ("mean ± deviation", "samples", "reference")
    show_rows(
        columns,
        [
            (
                row.name,
                _mean(row.samples, row.samples_deviation),
                _mean(row.reference, row.reference_deviation),
            )
            for row in evaluation.summaries
        ],
        numbers=columns[1:],
    )


def _mean(value: float | None, deviation: float | None) -> str:
    return "-" if value is None or deviation is None else f"{value:.3g} ± {deviation:.2g}"


def hold_against(
    evaluation: Evaluation, *, above: Sequence[tuple[str, float]], below: Sequence[tuple[str, float]]
) -> None:
    """Refuse samples that are not as good as was asked.

    Raises:
        QualityError: A figure is above or below its limit, or not known.
    """
    from graphite_gen.errors import QualityError

    figures = evaluation.figures()
    failures = []
    for limits, word in ((above, "above"), (below, "below")):
        for name, limit in limits:
            value = figures[name]
            if value is None:
                raise QualityError(f"There is no '{name}' to hold against {limit:g}: {_missing(name)}.")
            if (value > limit) if word == "above" else (value < limit):
                failures.append(f"{name} is {value:.3g}, {word} {limit:g}")
    if failures:
        raise QualityError(f"The samples are not as good as asked: {'; '.join(failures)}.")


def _missing(name: str) -> str:
    if name in ("ratio", "novel"):
        return "pass training graphs with '--train'"

    return "pass '--family' or '--valid-if'" if name == "valid" else "it takes at least 8 graphs on each side"
