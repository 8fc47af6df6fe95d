"""Sample quality."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import command
from ..console import note, show_facts, show_json, show_rows
from ..sharing import process_group
from ..types import LIMIT, PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.evaluation import AttributeRow, ClassifierScore, Evaluation, Proportion
    from graphite_gen.graph import SimpleGraph

CONVENTIONS = ("tv", "emd", "rbf")
MOST_LABELS = 10
"""The maximum number of rows of the table for each measure of an attribute."""
# The names of 'graphite_gen.evaluation.validity.VALIDITY', which would load scipy.
_PROPERTIES = ("acyclic", "bipartite", "connected", "grid", "lobster", "planar", "sbm", "tree")

_limit = partial(click.option, type=LIMIT, multiple=True)


@command(
    short_help="Compare samples with reference graphs.",
    groups={
        "Graphs": "reference train",
        "Attributes": "node_label edge_label given_attribute",
        "Validity": "family parameters valid_if",
        "Output": "conventions as_json fail_above fail_below",
    },
    needs={"parameters": "family"},
)
@click.argument("samples", type=PATH_OR_DASH)
@options.file("--reference", required=True, help="Test graphs: the split 'test' of the file, else all its graphs.")
@options.file(
    "--train",
    help="Training graphs, to measure novelty, and for their own MMD, which good samples attain.  "
    "[default: the split 'train' of the reference's file]",
)
@options.family(help="Family whose graphs are valid.  [default: the one recorded in the reference's file]")
@options.parameters
@options.attribute(
    "--node-label", help="Node attribute to compare as a label.  [default: all with at most 50 distinct values]"
)
@options.attribute("--edge-label", help="Edge attribute to compare as a label.  [default: likewise]")
@options.attribute(
    "--given-attribute",
    help="Graph attribute with the class that a sample was sampled for, to compare with that of a classifier of the "
    "reference graphs.",
)
@options.choice("--valid-if", of=_PROPERTIES, help="Property of valid graphs, instead of a family.")
@options.choice(
    *("--convention", "conventions"),
    of=CONVENTIONS,
    multiple=True,
    help="MMD convention to show; may be repeated.  [default: all]",
)
@options.number(
    "--most", low=2, default=1000, help="Maximum number of graphs per set for the MMD; larger sets are subsampled."
)
@_limit("--fail-above", help="Exit with 1 if 'ratio', 'discrepancy' or 'auc' is above X; may be repeated.")
@_limit("--fail-below", help="Exit with 1 if 'valid', 'unique', 'novel' or 'vun' is below X; may be repeated.")
@options.all_of(options.input_format(), options.simplify, options.seed)
@options.number("--threads", high=4096, help="Number of CPU threads.  [default: 1]")
@options.all_of(options.workers, options.as_json)
def evaluate(samples: Path, **values: Any) -> None:
    """Compare SAMPLES with test graphs: MMDs, and the proportions that are valid, unique and novel.

    The MMDs are over degrees, clustering, orbits and spectra. Conventions 'tv' and 'emd' are those of published tables
    and depend on the number of graphs; 'rbf' is unbiased. Each MMD is shown beside that of the training graphs, and
    their ratio, which is about 1 for samples of the true process.

    Labels, weights, directions and numeric node features that both samples and test graphs have are compared as well,
    beside the training graphs and the difference of two halves of the test graphs.

    If the reference is one network, statistics of SAMPLES are shown beside its own; one sample is enough.

    \b
    Example:
        graphite-gen evaluate samples.g6 --reference test.h5
        graphite-gen evaluate samples.h5 --reference test.h5 --train train.h5 --family barabasi
        graphite-gen evaluate molecules.graphml --reference test.graphml --node-label element --edge-label bond
        graphite-gen evaluate similar.graphml --reference network.graphml
        graphite-gen evaluate samples.h5 --reference test.h5 --json --fail-above ratio=3 --fail-below novel=0.5
    """
    given = SimpleNamespace(**values)
    if given.family is not None and given.valid_if is not None:
        raise click.UsageError("Pass '--family' or '--valid-if', not both.")

    # Numpy is imported below, and the last digits of its products depend on the number of threads.
    os.environ["OMP_NUM_THREADS"] = str(given.threads or os.environ.get("OMP_NUM_THREADS", 1))
    group = process_group(given.workers)

    from graphite_gen.evaluation import evaluate as evaluate_samples

    from ..reading import find_family, read_for_all, read_sets

    drawn, _ = read_for_all(group, samples, format=given.format, simplify=given.simplify)
    test, seen, provenance = read_sets(given.reference, given.train, simplify=given.simplify, group=group)
    if len(test) == 1:
        options.refuse_without_effect(
            ("train", "family", "valid_if", "conventions", "given_attribute", "fail_above", "fail_below"),
            "one reference network",
        )
        return _compare(drawn, test[0], given) if group.is_rank_zero else None
    conventions = given.conventions or CONVENTIONS
    evaluation = evaluate_samples(
        drawn,
        test,
        seen,
        family=None if given.valid_if else find_family(given.family, given.parameters, provenance),
        validity=given.valid_if,
        conventions=conventions,
        most=given.most,
        node_label=given.node_label,
        edge_label=given.edge_label,
        given_attribute=given.given_attribute,
        seed=given.seed,
        group=group,
    )
    if not group.is_rank_zero:
        return None
    for text in evaluation.notes:
        note(text)
    if given.as_json:
        show_json(evaluation.to_json())
    else:
        _show(evaluation, conventions)
    return _check_limits(evaluation, given.fail_above, given.fail_below)


def _compare(samples: Sequence[SimpleGraph], reference: SimpleGraph, given: SimpleNamespace) -> None:
    """Show statistics of samples beside those of one network."""
    from graphite_gen.evaluation import compare_networks

    found = compare_networks(samples, reference, node_label=given.node_label, edge_label=given.edge_label)
    if reference.directed:
        note("The network is directed: statistics are those of its undirected skeleton.")
    if given.as_json:
        return show_json(found.to_json())
    overlap = (
        None if found.edge_overlap is None else f"{found.edge_overlap:.1%} of the samples' edges are in the network"
    )
    show_facts(
        [
            ("samples", str(found.samples)),
            ("degrees", f"Kolmogorov-Smirnov distance {found.degree_distance:.3f} (0 is equal, 1 the most)"),
            ("edge overlap", overlap),
        ]
    )
    click.echo()
    columns = ("statistic", "network", "samples")
    rows = [
        (row.name, "-" if row.reference is None else f"{row.reference:.4g}", _mean(row.samples, row.deviation))
        for row in found.statistics
    ]
    show_rows(columns, rows, numbers=columns[1:])

    return _show_attributes(found.attributes)


def _show_attributes(rows: Sequence[AttributeRow]) -> None:
    """Show measures of attributes; only the most frequent of many labels."""
    if not rows:
        return
    kinds: dict[tuple[str, ...], list[AttributeRow]] = {}
    for row in rows:
        kinds.setdefault((row.on, row.attribute, row.measure), []).append(row)
    shown = {id(row) for kind in kinds.values() for row in sorted(kind, key=_frequency, reverse=True)[:MOST_LABELS]}
    link = " → " if any(row.attribute == "direction" for row in rows) else " - "
    trained = any(row.training is not None for row in rows)
    columns = ("attribute", "reference", "samples (diff.)", "half (diff.)", *(["training"] if trained else []))
    cells = [
        (
            f"{row.attribute}: {row.measure} {link.join(map(str, row.labels))}".rstrip(),
            "-" if row.reference is None else f"{row.reference:.4g}",
            _with_difference(row.samples, row.difference),
            _with_difference(row.half, row.half_difference),
            *([_with_difference(row.training, None)] if trained else []),
        )
        for row in rows
        if id(row) in shown
    ]
    click.echo()
    show_rows(columns, cells, numbers=columns[1:])
    if len(shown) < len(rows):
        note(f"The {MOST_LABELS} most frequent of each measure are shown; '--json' has all {len(rows)}.")


def _frequency(row: AttributeRow) -> float:
    return row.reference or 0.0


def _with_difference(value: float | None, difference: float | None) -> str:
    if value is None:
        return "-"

    return f"{value:.4g}" if difference is None else f"{value:.4g} ({difference:+.1%})"


def _show(evaluation: Evaluation, conventions: Sequence[str]) -> None:
    click.echo("\n".join(evaluation.findings) + "\n")
    ratio, vun, usual = evaluation.ratio, evaluation.vun, evaluation.reference_vun
    facts = {
        "graphs": f"{evaluation.samples} samples, {evaluation.reference} reference, {evaluation.train} training",
        "ratio": "-" if ratio is None else f"{ratio:.2f}, the mean over the 'rbf' rows below",
        "valid": _proportion(vun.valid),
        "unique": _proportion(vun.unique, usual.unique),
        "novel": _proportion(vun.novel, usual.novel),
        "V.U.N.": "" if evaluation.figures()["vun"] is None else _proportion(vun.vun),
    }
    if evaluation.classifier is not None:
        other = evaluation.attainable_classifier
        beside = "" if other is None else f"; training graphs {_score(other)}"
        facts["classifier"] = f"discrepancy {_score(evaluation.classifier)}{beside}"
    if evaluation.accuracy is not None:
        found = evaluation.accuracy
        facts |= {"accuracy": f"{_proportion(found.samples, found.reference)}, by {found.descriptor}"}
        facts |= {f"{found.attribute} {row.label}": _proportion(row.samples, row.reference) for row in found.classes}
    show_facts(facts.items())
    click.echo()
    columns: tuple[str, ...] = ("MMD²", "convention", "samples", "95 % interval", "training", "ratio")
    rows = [
        (
            row.samples.descriptor,
            row.samples.convention,
            f"{row.samples.value:.5f}",
            "-" if row.samples.low is None else f"{row.samples.low:.5f} to {row.samples.high:.5f}",
            "-" if row.attainable is None else f"{row.attainable.value:.5f}",
            "-" if row.ratio is None else f"{row.ratio:.2f}",
        )
        for row in evaluation.mmd
        if row.samples.convention in conventions
    ]
    show_rows(columns, rows, numbers=columns[2:])
    click.echo()
    columns = ("mean ± deviation", "samples", "reference")
    means = [
        (row.name, _mean(row.samples, row.samples_deviation), _mean(row.reference, row.reference_deviation))
        for row in evaluation.summaries
    ]
    show_rows(columns, means, numbers=columns[1:])
    _show_attributes(evaluation.attributes)


def _proportion(own: Proportion | None, reference: Proportion | None = None) -> str:
    if own is None or own.value is None:
        return "" if own is None else "-"
    text = f"{own.value:.1%} ({own.low:.1%} to {own.high:.1%}), {own.count} of {own.total}"

    return text if reference is None or reference.value is None else f"{text}; reference {reference.value:.1%}"


def _score(score: ClassifierScore) -> str:
    return f"{score.discrepancy:.2f} ({score.low:.2f} to {score.high:.2f}), AUC {score.auc:.2f}"


def _mean(value: float | None, deviation: float | None) -> str:
    return "-" if value is None or deviation is None else f"{value:.3g} ± {deviation:.2g}"


def _check_limits(evaluation: Evaluation, *limits: Sequence[tuple[str, float]]) -> None:
    """Raise an error if a figure is above or below its limit, or not known."""
    from graphite_gen.errors import QualityError

    train = "pass training graphs with '--train'"
    missing = {"ratio": train, "novel": train, "valid": "pass '--family' or '--valid-if'"}
    missing["vun"] = f"{missing['valid']}, and {train}"
    figures = evaluation.figures()
    failures = []
    for word, pairs in zip(("above", "below"), limits, strict=True):
        for name, limit in pairs:
            value = figures[name]
            if value is None:
                why = missing.get(name, "it takes at least 8 graphs in each set")
                raise QualityError(f"'{name}' is not known, so it cannot be compared with {limit:g}: {why}.")
            if (value > limit) if word == "above" else (value < limit):
                failures.append(f"{name} is {value:.3g}, {word} {limit:g}")
    if failures:
        raise QualityError(f"The samples are not good enough: {'; '.join(failures)}.")
