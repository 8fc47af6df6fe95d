"""Pictures of graphs, of how they compare, and of how a model was trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .. import options
from ..command import Command
from ..types import PATH, PATH_OR_NAME

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphite_gen.graph import SimpleGraph
    from graphite_gen.records import TrainRecord
    from graphite_gen.viz.decoding_steps import DecodingStepsPoint

KINDS = ("gallery", "distributions", "adjacency", "training", "stages")


@click.command(
    cls=Command,
    short_help="Plot graphs, distributions and curves.",
    groups={
        "Graphs": "reference count family parameters",
        "Output": "output terminal force",
    },
)
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("source", metavar="GRAPHS|MODEL", type=PATH_OR_NAME)
@click.option(
    "--reference",
    type=PATH,
    help="True graphs beside: those that the file marks 'test', else all of it.",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    help="The picture, '.png', '.svg' or '.pdf'; needs matplotlib.",
)
@click.option("--terminal", is_flag=True, help="Draw in the terminal instead.")
@click.option(
    "-n", "--count", type=click.IntRange(1, 100), metavar="N", default=6, show_default=True, help="The most graphs."
)
@click.option(
    "--samples",
    type=click.IntRange(1),
    metavar="N",
    default=64,
    show_default=True,
    help="Graphs to draw for each number of 'stages'.",
)
@click.option(
    "-k",
    "--orders",
    type=click.IntRange(1),
    metavar="K",
    default=10,
    show_default=True,
    help="Orders per reference graph for the NLL of 'stages'.",
)
@options.family("The family that samples of 'stages' should belong to.  [default: the one in the reference's file]")
@options.parameters
@options.input_format()
@options.simplify
@options.seed
@options.threads
@options.force
def plot(
    kind: str,
    source: str,
    reference: Path | None,
    output: Path | None,
    terminal: bool,
    count: int,
    samples: int,
    orders: int,
    family: str | None,
    parameters: tuple[tuple[str, str], ...],
    format: str | None,
    simplify: bool,
    seed: int,
    threads: int | None,
    force: bool,
) -> None:
    """Draw a 'gallery' of graphs, 'distributions' of their descriptors, or their 'adjacency' matrices, with true graphs
    beside if there is a '--reference'; or the 'training' history of a model, or what more 'stages' do for a staged one.

    \b
    Example:
        graphite-gen plot gallery samples.h5 --reference test.h5 -o gallery.svg
        graphite-gen plot distributions samples.h5 --reference test.h5 --terminal
        graphite-gen plot training barabasi -o training.png
        graphite-gen plot stages barabasi --reference test.h5 -o stages.pdf
    """
    if (output is None) == (not terminal):
        raise click.UsageError("Say where to draw: '-o FILE' or '--terminal', one of them.")
    if parameters and family is None:
        raise click.UsageError("'--param' belongs to '--family'.")

    from graphite_gen.viz import check_picture, save_picture

    from ..console import note

    if output is not None:
        check_picture(output, force)
        _need_matplotlib()
    if kind == "training":
        figure = _training(source, terminal)
    elif kind == "stages":
        figure = _stages(
            source, reference, family, dict(parameters), samples, orders, simplify, seed, threads, terminal
        )
    else:
        figure = _graphs(kind, source, reference, format, simplify, count, terminal)
    if figure is not None and output is not None:
        save_picture(figure, output, force=force)
        note(f"Drew '{output}'.")


def _need_matplotlib() -> None:
    """Say what is missing before any work is done."""
    from graphite_gen.viz.figures import new_figure

    new_figure(1, 1)


def _graphs(
    kind: str, source: str, reference: Path | None, format: str | None, simplify: bool, count: int, terminal: bool
) -> Figure | None:
    from graphite_gen.io import read_graphs
    from graphite_gen.viz import plot_adjacency, plot_distributions, plot_gallery

    from ..drawing import show_adjacency, show_distributions, show_gallery
    from ..reading import marked_or_all

    graphs = list(read_graphs(source, format=format, simplify=simplify))
    true: list[SimpleGraph] = []
    if reference is not None:
        true = marked_or_all(list(read_graphs(reference, simplify=simplify)), "test", reference)
    if kind == "distributions":
        if not terminal:
            return plot_distributions(graphs, true)
        show_distributions(graphs, true)
        return None
    show, draw = (show_gallery, plot_gallery) if kind == "gallery" else (show_adjacency, plot_adjacency)
    if not terminal:
        return draw(graphs, true, count=count)
    show(graphs, true, count)

    return None


def _training(source: str, terminal: bool) -> Figure | None:
    from graphite_gen.api import LOCAL
    from graphite_gen.training.checkpoint import find_checkpoint, load_checkpoint
    from graphite_gen.training.trainer import read_history
    from graphite_gen.viz import plot_training

    from ..drawing import show_training

    folder = find_checkpoint(source, LOCAL)
    name = load_checkpoint(folder).name
    history: list[TrainRecord] = read_history(folder)

    if not terminal:
        return plot_training(history, title=name)
    show_training(history)

    return None


def _stages(
    source: str,
    reference: Path | None,
    family: str | None,
    parameters: dict[str, str],
    samples: int,
    orders: int,
    simplify: bool,
    seed: int,
    threads: int | None,
    terminal: bool,
) -> Figure | None:
    from graphite_gen.io import read_graphs
    from graphite_gen.viz import plot_decoding_steps
    from graphite_gen.viz.decoding_steps import DECODING_STEPS, iterate_decoding_steps

    from ..console import track
    from ..drawing import show_decoding_steps
    from ..model_choice import choose_model, use_threads
    from ..reading import find_entropy, find_family, marked_or_all

    if reference is None:
        raise click.UsageError("'stages' needs graphs to score: pass '--reference FILE'.")
    use_threads(threads)
    reader = read_graphs(reference, simplify=simplify)
    law = find_family(family, parameters, reader.provenance)
    graphs = marked_or_all(list(reader), "test", reference)
    model = choose_model(source, "cpu")
    found = iterate_decoding_steps(model, graphs, law, samples=samples, orders=orders, seed=seed)
    points: list[DecodingStepsPoint] = list(track(found, len(DECODING_STEPS), "Stages"))
    entropy = find_entropy(law, graphs, [0.0] * len(graphs))
    level = None if entropy is None else entropy.nats

    if not terminal:
        return plot_decoding_steps(points, entropy=level, title=model.name)
    show_decoding_steps(points, level)

    return None
