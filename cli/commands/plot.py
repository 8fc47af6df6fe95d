"""Figures of graphs, of descriptor distributions and of training runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from .. import options
from ..command import command
from ..console import note, track
from ..types import PATH_OR_NAME

KINDS = ("gallery", "distributions", "adjacency", "training", "decoding-steps")


class _Kind(click.Choice):  # type: ignore[type-arg]
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        # The former name of the figure still works.
        return super().convert("decoding-steps" if value == "stages" else value, param, ctx)


@command(
    short_help="Plot graphs, distributions and curves.",
    groups={"Graphs": "reference count family parameters", "Output": "output terminal force"},
    needs={"parameters": "family"},
)
@click.argument("kind", metavar="KIND", type=_Kind(KINDS))
@click.argument("source", metavar="GRAPHS|MODEL", type=PATH_OR_NAME)
@options.file("--reference", help="Reference graphs: the split 'test' of the file, else all its graphs.")
@options.file("-o", "--output", help="Picture to write: '.png', '.svg' or '.pdf' (needs matplotlib).")
@options.flag("--terminal", help="Draw in the terminal instead of to a file.")
@options.number("-n", "--count", high=100, default=6, help="Maximum number of graphs to draw.")
@options.number("--samples", default=64, help="For 'decoding-steps': graphs to sample for each number of steps.")
@options.number(
    *("-k", "--orders"),
    metavar="K",
    default=10,
    help="For 'decoding-steps': node orderings to sample per reference graph, to estimate its NLL.",
)
@options.family(
    "For 'decoding-steps': the family of valid samples.  [default: the one recorded in the reference's file]"
)
@options.all_of(options.parameters, options.input_format(), options.simplify, options.seed, options.threads)
@options.force
def plot(kind: str, source: str, output: Path | None, terminal: bool, force: bool, **values: Any) -> None:
    """Draw a figure to a file or to the terminal. KIND is one of:

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

    from graphite_gen.viz import figures

    from .. import drawing

    if output is not None:
        figures.check_picture(output, force)
        figures.new_figure(1, 1)  # fails early without matplotlib
    given = SimpleNamespace(**values)
    collect = {"training": _training, "decoding-steps": _decoding_steps}.get(kind, _graphs)
    data, settings = collect(source, given, kind)
    name = kind.replace("-", "_")
    if output is None:
        getattr(drawing, f"show_{name}")(*data, **settings)
    else:
        figures.save_picture(getattr(figures, f"plot_{name}")(*data, **settings), output, force=force)
        note(f"Drew '{output}'.")


def _graphs(source: str, given: SimpleNamespace, kind: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    from graphite_gen.io import read_graphs

    from ..reading import read_split

    graphs = list(read_graphs(source, format=given.format, simplify=given.simplify))
    reference = read_split(given.reference, "test", given.simplify) if given.reference else []

    return (graphs, reference), {} if kind == "distributions" else {"count": given.count}


def _training(source: str, given: SimpleNamespace, kind: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    from graphite_gen.api import LOCAL
    from graphite_gen.training.checkpoint import find_checkpoint, load_checkpoint
    from graphite_gen.training.trainer import read_history

    folder = find_checkpoint(source, LOCAL)
    model = load_checkpoint(folder)

    return (read_history(folder),), {"title": model.name}


def _decoding_steps(source: str, given: SimpleNamespace, kind: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    from graphite_gen.io import read_graphs
    from graphite_gen.viz.decoding_steps import DECODING_STEPS, iterate_decoding_steps

    from ..model_choice import choose_model, use_threads
    from ..reading import find_entropy, find_family, marked_or_all

    if given.reference is None:
        raise click.UsageError("'decoding-steps' needs graphs to score: pass '--reference FILE'.")
    use_threads(given.threads)
    reader = read_graphs(given.reference, simplify=given.simplify)
    family = find_family(given.family, given.parameters, reader.provenance)
    graphs = marked_or_all(list(reader), "test", given.reference)
    model = choose_model(source, "cpu")
    found = iterate_decoding_steps(model, graphs, family, samples=given.samples, orders=given.orders, seed=given.seed)
    points = list(track(found, len(DECODING_STEPS), "Decoding steps"))
    entropy = find_entropy(family, graphs, [0.0] * len(graphs))

    return (points,), {"entropy": entropy and entropy.nats, "title": model.name}
