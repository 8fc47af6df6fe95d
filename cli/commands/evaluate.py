"""Whether samples are any good."""

from __future__ import annotations

from pathlib import Path

import click

from .. import options
from ..command import Command
from ..types import LIMIT, PATH, PATH_OR_DASH

VALIDITIES = ("planar", "sbm", "tree")
CONVENTIONS = ("tv", "emd", "rbf")


@click.command(cls=Command, short_help="Judge samples against a reference.")
@click.argument("samples", type=PATH_OR_DASH)
@click.option(
    "--reference",
    type=PATH,
    required=True,
    help="Test graphs: those that the file marks 'test', else all of it.",
)
@click.option(
    "--train",
    type=PATH,
    help="Training graphs, for novelty and what is attainable.  [default: those the reference's file marks 'train']",
)
@options.family("The family that samples should belong to.  [default: the one written in the reference's file]")
@options.parameters
@click.option(
    "--valid-if", type=click.Choice(VALIDITIES), help="What samples should be, where it is not a family's graphs."
)
@click.option(
    "--convention",
    "conventions",
    type=click.Choice(CONVENTIONS),
    multiple=True,
    help="Show this convention of the MMD; may be repeated.  [default: all]",
)
@click.option(
    "--most",
    type=click.IntRange(2),
    metavar="N",
    default=1000,
    show_default=True,
    help="The most graphs of a set whose distances are taken; of more, some are chosen at random.",
)
@click.option(
    "--fail-above",
    type=LIMIT,
    metavar="FIGURE=X",
    multiple=True,
    help="Exit with 1 if 'ratio', 'discrepancy' or 'auc' is above X; may be repeated.",
)
@click.option(
    "--fail-below",
    type=LIMIT,
    metavar="FIGURE=X",
    multiple=True,
    help="Exit with 1 if 'valid', 'unique', 'novel' or 'vun' is below X; may be repeated.",
)
@options.input_format()
@options.simplify
@options.seed
@options.workers
@options.as_json
def evaluate(
    samples: Path,
    reference: Path,
    train: Path | None,
    family: str | None,
    parameters: tuple[tuple[str, str], ...],
    valid_if: str | None,
    conventions: tuple[str, ...],
    most: int,
    fail_above: tuple[tuple[str, float], ...],
    fail_below: tuple[tuple[str, float], ...],
    format: str | None,
    simplify: bool,
    seed: int,
    workers: int,
    as_json: bool,
) -> None:
    """Judge SAMPLES against test graphs: what differs, what is valid, unique and novel, and what that means.

    Distances are MMDs of degrees, clustering, orbits and spectra. Conventions 'tv' and 'emd' are those of published
    tables and depend on the number of graphs; 'rbf' is the sound one. Beside each stands the same figure of training
    graphs, and the ratio, which is about 1 for samples of the true law.

    \b
    Example:
        graphite-gen evaluate samples.g6 --reference test.h5
        graphite-gen evaluate samples.h5 --reference test.h5 --train train.h5 --family barabasi
        graphite-gen evaluate samples.h5 --reference test.h5 --json --fail-above ratio=3 --fail-below novel=0.5
    """
    if parameters and family is None:
        raise click.UsageError("'--param' belongs to '--family'.")
    if family is not None and valid_if is not None:
        raise click.UsageError("Pass '--family' or '--valid-if', not both.")

    from ..sharing import process_group, use_one_thread

    use_one_thread()
    group = process_group(workers)

    from graphite_gen.evaluation import VALIDITY
    from graphite_gen.evaluation import evaluate as judge

    from ..judging import hold_against, show_evaluation
    from ..reading import find_law, read_for_all, read_sets

    drawn, _ = read_for_all(group, samples, format=format, simplify=simplify)
    test, seen, provenance = read_sets(reference, train, simplify=simplify, group=group)
    found = judge(
        drawn,
        test,
        seen,
        family=None if valid_if else find_law(family, dict(parameters), provenance),
        validity=VALIDITY[valid_if] if valid_if else None,
        conventions=conventions or CONVENTIONS,
        most=most,
        seed=seed,
        group=group,
    )
    if not group.is_rank_zero:
        return
    show_evaluation(found, as_json, conventions or CONVENTIONS)
    hold_against(found, above=fail_above, below=fail_below)
