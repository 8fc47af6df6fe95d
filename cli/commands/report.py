"""One page that shows a model."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import click

from .. import options
from ..command import Command
from ..types import PATH, PATH_OR_NAME


@click.command(
    cls=Command,
    short_help="Write an HTML report on a model.",
    groups={
        "Graphs": "reference train samples count",
        "Output": "output force",
    },
)
@click.argument("model", metavar="MODEL", type=PATH_OR_NAME)
@click.option(
    "--reference",
    type=PATH,
    help="Test graphs.  [default: fresh graphs of the model's family, else its validation graphs]",
)
@click.option("--train", type=PATH, help="Training graphs.  [default: those it was trained on]")
@click.option("--samples", type=PATH, help="Its samples.  [default: draw them]")
@click.option("-o", "--output", type=PATH, required=True, help="The page, named '.html'; it stands alone.")
@click.option(
    "-n", "--count", type=click.IntRange(2), metavar="N", default=100, show_default=True, help="Samples to draw."
)
@click.option(
    "--nll-graphs",
    type=click.IntRange(0),
    metavar="N",
    default=25,
    show_default=True,
    help="Reference graphs to score; 0 leaves the likelihood out.",
)
@options.family("The family that samples should belong to.  [default: the model's]")
@options.parameters
@options.simplify
@options.seed
@options.threads
@options.force
def report(
    model: str,
    reference: Path | None,
    train: Path | None,
    samples: Path | None,
    output: Path,
    count: int,
    nll_graphs: int,
    family: str | None,
    parameters: tuple[tuple[str, str], ...],
    simplify: bool,
    seed: int,
    threads: int | None,
    force: bool,
) -> None:
    """Sample from MODEL, judge it, and write one page of HTML with all of it: figures, galleries, distributions,
    training history, where everything comes from, and every sample to search and to download.

    The page needs no network and no other file.

    \b
    Example:
        graphite-gen report barabasi -o report.html
        graphite-gen report mine --reference test.h5 --train train.h5 -o mine.html
    """
    if parameters and family is None:
        raise click.UsageError("'--param' belongs to '--family'.")
    if output.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"'{output}' is no page: name it '.html'.")

    from graphite_gen.api import LOCAL
    from graphite_gen.families import family as family_of
    from graphite_gen.io import check_target, open_output, read_graphs
    from graphite_gen.training.checkpoint import find_checkpoint
    from graphite_gen.viz.report import gather, render_page

    from ..console import note, so_many
    from ..model_choice import use_threads
    from ..reading import marked_or_all, read_sets

    check_target(output, force)
    use_threads(threads)
    folder = find_checkpoint(model, LOCAL)
    known, seen, _ = read_sets(reference, train, simplify=simplify) if reference else ([], [], None)
    if reference is None and train is not None:
        seen = marked_or_all(list(read_graphs(train, simplify=simplify)), "train", train)
    contents = gather(
        folder,
        reference=known,
        reference_source=f"{so_many(len(known), 'graph')} of '{reference}'",
        train=seen,
        samples=list(read_graphs(samples, simplify=simplify)) if samples else (),
        family=None if family is None else family_of(family, **dict(parameters)),
        count=count,
        nll_graphs=nll_graphs,
        seed=seed,
        command=shlex.join(["graphite-gen", *sys.argv[1:]]),
        progress=lambda step: note(f"{step} …"),
    )
    # Names in a file of JSON may hold halves of a character, which no file of text can.
    page = render_page(contents).encode(errors="replace")
    with open_output(output, force) as stream:
        stream.write(page)
    note(f"Wrote '{output}', {len(page) / 1e6:.1f} MB. Open it in any browser.")
