"""The rest of a graph that is known in part."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .. import options
from ..command import Command
from ..types import PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.completion import PartialGraph
    from graphite_gen.graph import SimpleGraph
    from graphite_gen.training.checkpoint import TrainedModel


@click.command(cls=Command, short_help="Complete a graph that is known in part.")
@click.argument("partial", type=PATH_OR_DASH)
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1),
    metavar="N",
    default=10,
    show_default=True,
    help="How many completed graphs.",
)
@click.option(
    "-o",
    "--output",
    type=PATH_OR_DASH,
    help="A file, '-' for stdout, or a template like 'out/{index:04d}.graphml' for one file each.  "
    "[default: stdout; nothing if the scores go there]",
)
@click.option(
    "--format",
    type=click.Choice(options.FORMATS, case_sensitive=False),
    help="Format of the graphs written.  [default: by suffix; that of PARTIAL for stdout]",
)
@click.option(
    "--scores",
    type=PATH_OR_DASH,
    help="Write unknown pairs with the probability of an edge, likeliest first, to a '.csv' or '.json' file; "
    "'-' is CSV on stdout.  [default: none]",
)
@click.option(
    "--add-nodes",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    show_default=True,
    help="Nodes to add, pairs unknown.",
)
@click.option(
    "--unlisted",
    type=click.Choice(("absent", "unknown")),
    help="What pairs are that the file does not list.  [default: unknown if it lists absent but no unknown ones, else "
    "absent]",
)
@click.option("--graph", "index", type=click.IntRange(0), metavar="I", help="Which graph of a file of many, from 0.")
@options.model
@click.option(
    "--particles",
    type=click.IntRange(1),
    metavar="N",
    help="Particles of each run.  [default: 256; 64 of a staged model, or all completions if they are few]",
)
@click.option(
    "--steps",
    type=click.IntRange(4),
    metavar="N",
    default=200,
    show_default=True,
    help="Steps by which the particles of a staged model are moved, or as much work; more are more exact.",
)
@click.option(
    "--runs",
    type=click.IntRange(2),
    metavar="N",
    default=4,
    show_default=True,
    help="Runs, whose differences tell how exact.",
)
@options.decoding_steps
@options.input_format("--input-format")
@options.simplify
@options.ignore_weights
@options.force
@options.seed
@options.device
@options.threads
def complete(
    partial: Path,
    count: int,
    output: Path | None,
    format: str | None,
    scores: Path | None,
    add_nodes: int,
    unlisted: str | None,
    index: int | None,
    model: str | None,
    particles: int | None,
    steps: int,
    runs: int,
    decoding_steps: int | None,
    input_format: str | None,
    simplify: bool,
    ignore_weights: bool,
    force: bool,
    seed: int,
    device: str,
    threads: int | None,
) -> None:
    """Sample what is unknown of the graph PARTIAL, given what is known.

    An edge attribute 'state' says of a pair of nodes that it is 'present', 'absent' or 'unknown'; an edge without it is
    present. Nodes keep their names; an attribute 'sampled' tells new edges from known ones, and 'added' new nodes.

    \b
    Example:
        graphite-gen complete partial.graphml -n 10 -o completed.graphml
        graphite-gen complete partial.graphml --scores ranking.csv -o completed.jsonl
        graphite-gen complete graph.graphml --add-nodes 5 -n 10 -o larger.graphml
    """
    if output is not None and scores is not None and _is_same(output, scores):
        where = "stdout" if str(output) == "-" else f"'{output}'"
        raise click.UsageError(f"'-o' and '--scores' cannot both be {where}: the one would spoil the other.")

    from graphite_gen.completion import PartialGraph
    from graphite_gen.completion import complete as complete_graph
    from graphite_gen.io import check_output
    from graphite_gen.records import Provenance

    from ..console import counting, note
    from ..diagnosis import completion_diagnosis
    from ..models import choose_model, use_threads
    from ..ranking import check_scores, write_scores
    from ..writing import write

    use_threads(threads)
    if scores is not None:
        check_scores(scores, force)
    with options.naming_format("--input-format"):
        graph, found, family = _read(partial, input_format, simplify, index)
    if output is None and str(scores) != "-":
        output = Path("-")
    if output is not None:
        format = check_output(output, format=format or (found if str(output) == "-" else None), force=force)
    if ignore_weights:
        graph = graph.unweighted()
    known = PartialGraph.from_marks(graph, unlisted=unlisted, add_nodes=add_nodes)
    trained = choose_model(model, device, prefer=family)
    if not trained.config.is_autoregressive:
        options.refuse_without_effect({"steps": "--steps"}, "a model that decides all pairs at once")
    _tell(known, trained)

    with counting("Completing") as count_parts:
        result = complete_graph(
            trained,
            known,
            count,
            seed=seed,
            particles=particles,
            steps=steps,
            runs=runs,
            decoding_steps=decoding_steps,
            progress=count_parts,
        )
    note(completion_diagnosis(result))
    if scores is not None:
        write_scores(result.scores, scores, force)
    if output is not None:
        provenance = Provenance(source="complete", model=trained.name, seed=seed)
        write(result.samples, output, format=format, provenance=provenance, force=force, union=False, total=count)


def _is_same(one: Path, other: Path) -> bool:
    """Whether two targets are one: '-' is stdout and no file."""
    if "-" in (str(one), str(other)):
        return str(one) == str(other)

    return one.resolve() == other.resolve()


def _read(path: Path, format: str | None, simplify: bool, index: int | None) -> tuple[SimpleGraph, str, str | None]:
    """The graph, the format it was read in, and the family that the file names."""
    from graphite_gen.errors import DatasetError
    from graphite_gen.io import read_graphs

    reader = read_graphs(path, format=format, simplify=simplify)
    graphs = list(reader)
    if index is None and len(graphs) > 1:
        raise DatasetError(f"'{path}' holds {len(graphs)} graphs, and one is completed. Choose it with '--graph I'.")
    if index is not None and index >= len(graphs):
        raise DatasetError(
            f"'{path}' has no graph {index}: it holds {len(graphs)}, counted from 0. "
            f"Pass '--graph' with at most {len(graphs) - 1}."
        )

    return graphs[index or 0], reader.format, reader.provenance.family


def _tell(partial: PartialGraph, model: TrainedModel) -> None:
    """Say how much is known, and what the model has not seen."""
    from math import comb

    from ..console import note, so_many

    pairs, unknown = comb(partial.nodes, 2), len(partial.unknown)
    edges = len(partial.graph.edges)
    note(f"{so_many(pairs, 'pair')}: {unknown} unknown, {edges} present, {pairs - unknown - edges} absent.")
    seen = model.sizes.graphs
    if not min(seen) <= partial.nodes <= max(seen):
        note(
            f"'{model.name}' was trained on {min(seen)} to {max(seen)} nodes, and the graph has {partial.nodes}: "
            f"expect little of it there."
        )
