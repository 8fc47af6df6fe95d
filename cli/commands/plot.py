"""Figures of graphs, of descriptor distributions, of latents and of training runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import command
from ..console import note, note_label, track
from ..types import PATH_OR_NAME

if TYPE_CHECKING:
    from graphite_gen.graph import SimpleGraph

KINDS = ("gallery", "distributions", "adjacency", "latents", "training")
LATENTS = ("model", "level", "by", "seed", "ignore_weights", "device", "threads")
"""Options of latents only."""


@command(
    short_help="Plot graphs, distributions and curves.",
    groups={
        "Graphs": "reference count node_label",
        "Latents": "model level by seed",
        "Output": "output terminal force",
    },
)
@click.argument("kind", metavar="KIND", type=click.Choice(KINDS))
@click.argument("source", metavar="GRAPHS|MODEL", type=PATH_OR_NAME)
@options.file("--reference", help="Reference graphs: the split 'test' of the file, else all its graphs.")
@options.file("-o", "--output", help="Picture to write: '.png', '.svg' or '.pdf' (needs matplotlib).")
@options.flag("--terminal", help="Draw in the terminal instead of to a file.")
@options.number("-n", "--count", high=100, default=6, help="Maximum number of graphs to draw.")
@options.attribute(
    "--node-label",
    help="Node attribute that colours nodes of a gallery.  [default: the first by name, else the degree]",
)
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
    gallery        drawings of graphs: colours for labels, line widths for weights, arrows for arcs
    distributions  histograms of their descriptors
    adjacency      their adjacency matrices
    latents        their latents in two dimensions, by principal components
    training       the training history of a model

    The first three show the graphs of '--reference' beside the others.

    \b
    Example:
        graphite-gen plot gallery samples.h5 --reference test.h5 -o gallery.svg
        graphite-gen plot gallery molecules.graphml --node-label element -o gallery.png
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
    if kind != "gallery" or terminal:
        options.refuse_without_effect(("node_label",), "'--terminal'" if terminal else f"'{kind}', only on 'gallery'")

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
        graphs = list(read_graphs(source, format=given.format, simplify=given.simplify))
        reference = read_split(given.reference, "test", given.simplify) if given.reference else []
        data, settings = (graphs, reference), {} if kind == "distributions" else {"count": given.count}
        shown = (
            [*graphs, *reference] if kind == "distributions" else [*graphs[: given.count], *reference[: given.count]]
        )
        _note_attributes(kind, shown, given.node_label, terminal)
        if kind == "gallery" and not terminal:
            settings["node_label"] = given.node_label
    if output is None:
        getattr(drawing, f"show_{kind}")(*data, **settings)
    else:
        figures.save_picture(getattr(figures, f"plot_{kind}")(*data, **settings), output, force=force)
        note(f"Drew '{output}'.")


def _note_attributes(kind: str, graphs: Sequence[SimpleGraph], node_label: str | None, terminal: bool) -> None:
    """Say which attributes the figure shows, where that is not obvious."""
    from graphite_gen.evaluation.attributes import find_labels

    directed = any(graph.directed for graph in graphs)
    if kind == "distributions" and directed:
        note("The graphs are directed: distributions are those of their undirected skeletons.")
    if kind != "gallery":
        return
    labels = list(find_labels(graphs, "node"))
    if terminal and (labels or directed or any(graph.is_weighted for graph in graphs)):
        note("The terminal shows no labels, weights or directions; '-o FILE' does.")
    elif not terminal:
        note_label(labels, node_label)
