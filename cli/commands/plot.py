"""Figures of graphs, of descriptor distributions, of latents and of training runs."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from .. import options
from ..command import command
from ..console import note, track
from ..types import PATH_OR_NAME

KINDS = ("gallery", "distributions", "adjacency", "latents", "training")
LATENTS = ("model", "level", "by", "seed", "ignore_weights", "device", "threads")
"""Options of latents only."""


@command(
    short_help="Plot graphs, distributions and curves.",
    groups={"Graphs": "reference count", "Latents": "model level by seed", "Output": "output terminal force"},
)
@click.argument("kind", metavar="KIND", type=click.Choice(KINDS))
@click.argument("source", metavar="GRAPHS|MODEL", type=PATH_OR_NAME)
@options.file("--reference", help="Reference graphs: the split 'test' of the file, else all its graphs.")
@options.file("-o", "--output", help="Picture to write: '.png', '.svg' or '.pdf' (needs matplotlib).")
@options.flag("--terminal", help="Draw in the terminal instead of to a file.")
@options.number("-n", "--count", high=100, default=6, help="Maximum number of graphs to draw.")
@options.all_of(options.model, options.seed)
@options.choice("--level", of=("graphs", "nodes"), default="graphs", help="A point for each graph, or for each node.")
@click.option(
    "--by",
    metavar="NAME",
    help="Colour: 'nodes', 'edges', 'density' or 'clustering' of graphs, 'degree' or 'clustering' of nodes, or an "
    "attribute.  [default: nodes; degree]",
)
@options.all_of(options.input_format(), options.simplify, options.ignore_weights, options.force)
@options.all_of(options.device, options.threads)
def plot(kind: str, source: str, output: Path | None, terminal: bool, force: bool, **values: Any) -> None:
    """Draw a figure to a file or to the terminal. KIND is one of:

    \b
    gallery        drawings of graphs
    distributions  histograms of their descriptors
    adjacency      their adjacency matrices
    latents        their latents in two dimensions, by principal components
    training       the training history of a model

    The first three show the graphs of '--reference' beside the others.

    \b
    Example:
        graphite-gen plot gallery samples.h5 --reference test.h5 -o gallery.svg
        graphite-gen plot distributions samples.h5 --reference test.h5 --terminal
        graphite-gen plot latents test.h5 --model geometric-one-shot --by edges -o latents.png
        graphite-gen plot training barabasi -o training.png
    """
    if (output is None) == (not terminal):
        raise click.UsageError("Pass either '-o FILE' or '--terminal'.")
    if kind != "latents":
        options.refuse_without_effect(LATENTS, f"'{kind}', only on 'latents'")
    else:
        options.refuse_without_effect(("reference", "count"), "'latents'")

    from graphite_gen.api import LOCAL
    from graphite_gen.io import read_graphs
    from graphite_gen.sampling.encoding import encode_graphs
    from graphite_gen.training.checkpoint import find_checkpoint, load_checkpoint
    from graphite_gen.training.trainer import read_history
    from graphite_gen.viz import figures

    from .. import drawing
    from ..model_choice import choose_model
    from ..reading import read_split, read_with_options

    if output is not None:
        figures.check_picture(output, force)
        figures.new_figure(1, 1)  # fails early without matplotlib
    given = SimpleNamespace(**values)
    data: tuple[Any, ...]
    settings: dict[str, Any]
    if kind == "training":
        folder = find_checkpoint(source, LOCAL)
        settings = {"title": load_checkpoint(folder).name}
        data = (read_history(folder),)
    elif kind == "latents":
        graphs, family = read_with_options(Path(source), values)
        trained = choose_model(given.model, given.device, prefer=family)
        data = list(track(encode_graphs(trained, graphs, given.seed), len(graphs), "Encoding")), graphs
        settings = {"level": given.level, "by": given.by}
    else:
        graphs = list(read_graphs(source, format=given.format, simplify=given.simplify, directed=False))
        reference = read_split(given.reference, "test", given.simplify) if given.reference else []
        data, settings = (graphs, reference), {} if kind == "distributions" else {"count": given.count}
    if output is None:
        getattr(drawing, f"show_{kind}")(*data, **settings)
    else:
        figures.save_picture(getattr(figures, f"plot_{kind}")(*data, **settings), output, force=force)
        note(f"Drew '{output}'.")
