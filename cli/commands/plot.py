"""Figures of graphs, of descriptor distributions and of training runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import Command
from ..types import PATH, PATH_OR_NAME

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from graphite_gen.graph import SimpleGraph
    from graphite_gen.records import TrainRecord
    from graphite_gen.viz.decoding_steps import DecodingStepsPoint

KINDS = ("gallery", "distributions", "adjacency", "training", "decoding-steps")


class _Kind(click.Choice):  # type: ignore[type-arg]
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # The former name of the figure still works.
        return super().convert("decoding-steps" if value == "stages" else value, param, ctx)


@click.command(
    cls=Command,
    short_help="Plot graphs, distributions and curves.",
    groups={
        "Graphs": "reference count family parameters",
        "Output": "output terminal force",
    },
)
@click.argument("kind", type=_Kind(KINDS))
@click.argument("source", metavar="GRAPHS|MODEL", type=PATH_OR_NAME)
@click.option(
    "--reference",
    type=PATH,
    help="Reference graphs: the test split of the file, or all its graphs if it has none.",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    help="The picture to write: '.png', '.svg' or '.pdf' (needs matplotlib).",
)
@click.option("--terminal", is_flag=True, help="Draw in the terminal instead of to a file.")
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1, 100),
    metavar="N",
    default=6,
    show_default=True,
    help="Maximum number of graphs.",
)
@click.option(
    "--samples",
    type=click.IntRange(1),
    metavar="N",
    default=64,
    show_default=True,
    help="For 'decoding-steps': samples per number of steps.",
)
@click.option(
    "-k",
    "--orders",
    type=click.IntRange(1),
    metavar="K",
    default=10,
    show_default=True,
    help="For 'decoding-steps': node orderings per reference graph.",
)
@options.family("For 'decoding-steps': the family of valid samples.  [default: that of the reference file]")
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
    """Draw a figure to a file or to the terminal.

    \b
    gallery         drawings of graphs
    distributions   histograms of their descriptors
    adjacency       their adjacency matrices
    training        the training history of a model
    decoding-steps  validity and NLL of an autoregressive model by the number of decoding steps

    The first three show the graphs of '--reference' beside the others.

    \b
    Example:
        graphite-gen plot gallery samples.h5 --reference test.h5 -o gallery.svg
        graphite-gen plot distributions samples.h5 --reference test.h5 --terminal
        graphite-gen plot training barabasi -o training.png
        graphite-gen plot decoding-steps barabasi --reference test.h5 -o steps.pdf
    """
    if (output is None) == (not terminal):
        raise click.UsageError("Pass either '-o FILE' or '--terminal'.")
    if parameters and family is None:
        raise click.UsageError("'--param' needs '--family'.")

    from graphite_gen.viz.figures import check_picture, save_picture

    from ..console import note

    if output is not None:
        check_picture(output, force)
        _need_matplotlib()
    if kind == "training":
        figure = _training(source, terminal)
    elif kind == "decoding-steps":
        figure = _decoding_steps(
            source, reference, family, dict(parameters), samples, orders, simplify, seed, threads, terminal
        )
    else:
        figure = _graphs(kind, source, reference, format, simplify, count, terminal)
    if figure is not None and output is not None:
        save_picture(figure, output, force=force)
        note(f"Drew '{output}'.")


def _need_matplotlib() -> None:
    """Fail before any work is done if matplotlib is not installed."""
    from graphite_gen.viz.figures import new_figure

    new_figure(1, 1)


def _graphs(
    kind: str, source: str, reference: Path | None, format: str | None, simplify: bool, count: int, terminal: bool
) -> Figure | None:
    from graphite_gen.io import read_graphs
    from graphite_gen.viz.figures import plot_adjacency, plot_distributions, plot_gallery

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
    from graphite_gen.viz.figures import plot_training

    from ..drawing import show_training

    folder = find_checkpoint(source, LOCAL)
    name = load_checkpoint(folder).name
    history: list[TrainRecord] = read_history(folder)

    if not terminal:
        return plot_training(history, title=name)
    show_training(history)

    return None


def _decoding_steps(
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
    from graphite_gen.viz.decoding_steps import DECODING_STEPS, iterate_decoding_steps
    from graphite_gen.viz.figures import plot_decoding_steps

    from ..console import track
    from ..drawing import show_decoding_steps
    from ..model_choice import choose_model, use_threads
    from ..reading import find_entropy, find_family, marked_or_all

    if reference is None:
        raise click.UsageError("'decoding-steps' needs graphs to score: pass '--reference FILE'.")
    use_threads(threads)
    reader = read_graphs(reference, simplify=simplify)
    found_family = find_family(family, parameters, reader.provenance)
    graphs = marked_or_all(list(reader), "test", reference)
    model = choose_model(source, "cpu")
    found = iterate_decoding_steps(model, graphs, found_family, samples=samples, orders=orders, seed=seed)
    points: list[DecodingStepsPoint] = list(track(found, len(DECODING_STEPS), "Decoding steps"))
    entropy = find_entropy(found_family, graphs, [0.0] * len(graphs))
    level = None if entropy is None else entropy.nats

    if not terminal:
        return plot_decoding_steps(points, entropy=level, title=model.name)
    show_decoding_steps(points, level)

    return None
