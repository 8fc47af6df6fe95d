"""Complete a partially known graph."""

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


@click.command(
    cls=Command,
    short_help="Complete a partially known graph.",
    groups={
        "Model": "model seed",
        "Unknown pairs": "unlisted add_nodes index",
        "Output": "count output format scores force",
    },
)
@click.argument("partial", type=PATH_OR_DASH)
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1),
    metavar="N",
    default=10,
    show_default=True,
    help="Number of completed graphs.",
)
@click.option(
    "-o",
    "--output",
    type=PATH_OR_DASH,
    help="A file, '-' for stdout, or a template like 'out/{index:04d}.graphml' for one file each.  "
    "[default: stdout; nothing if the scores go there]",
)
@options.output_format(default="by suffix; that of PARTIAL for stdout")
@click.option(
    "--scores",
    type=PATH_OR_DASH,
    help="Write unknown pairs with the probability of an edge, most likely first, to a '.csv' or '.json' file; "
    "'-' is CSV on stdout.  [default: none]",
)
@click.option(
    "--add-nodes",
    type=click.IntRange(0),
    metavar="N",
    default=0,
    show_default=True,
    help="Number of nodes to add, with all pairs unknown.",
)
@click.option(
    "--unlisted",
    type=click.Choice(("absent", "unknown")),
    help="State of pairs that the file does not list.  [default: unknown if it lists absent but no unknown pairs, "
    "else absent]",
)
@click.option(
    "--graph", "index", type=click.IntRange(0), metavar="I", help="Index of the graph in a file of several, from 0."
)
@options.model
@click.option(
    "--particles",
    type=click.IntRange(1),
    metavar="N",
    help="Particles per run.  [default: 256 with a one-shot model; 64 with an autoregressive one, which enumerates all "
    "completions if they are few]",
)
@click.option(
    "--steps",
    type=click.IntRange(4),
    metavar="N",
    default=200,
    show_default=True,
    help="Steps of the Markov chains of an autoregressive model, and the budget for enumeration.",
)
@click.option(
    "--runs",
    type=click.IntRange(2),
    metavar="N",
    default=4,
    show_default=True,
    help="Independent runs, from which errors are estimated.",
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
    """Sample the unknown pairs of the graph PARTIAL, given the known ones.

    The edge attribute 'state' is 'present', 'absent' or 'unknown'; an edge without it is present. Nodes keep their
    names. In completed graphs, the edge attribute 'sampled' marks new edges, and the node attribute 'added' new nodes.

    \b
    Example:
        graphite-gen complete partial.graphml -n 10 -o completed.graphml
        graphite-gen complete partial.graphml --scores ranking.csv -o completed.jsonl
        graphite-gen complete graph.graphml --add-nodes 5 -n 10 -o larger.graphml
    """
    if output is not None and scores is not None and _is_same(output, scores):
        where = "stdout" if str(output) == "-" else f"'{output}'"
        raise click.UsageError(f"'-o' and '--scores' cannot both be {where}.")

    from graphite_gen.completion import PartialGraph
    from graphite_gen.completion import complete as complete_graph
    from graphite_gen.io import check_output
    from graphite_gen.records import Provenance

    from ..console import counting, note
    from ..diagnosis import completion_diagnosis
    from ..model_choice import choose_model, use_threads
    from ..writing import check_scores, write, write_scores

    use_threads(threads)
    if scores is not None:
        check_scores(scores, force)
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
        options.refuse_without_effect({"steps": "--steps"}, "a one-shot model")
    _describe(known, trained)

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
    """Whether two targets are the same; '-' is stdout."""
    if "-" in (str(one), str(other)):
        return str(one) == str(other)

    return one.resolve() == other.resolve()


def _read(path: Path, format: str | None, simplify: bool, index: int | None) -> tuple[SimpleGraph, str, str | None]:
    """Read the graph, its format and the family that the file names."""
    from graphite_gen.errors import DatasetError
    from graphite_gen.io import read_graphs

    reader = read_graphs(path, format=format, simplify=simplify)
    graphs = list(reader)
    if index is None and len(graphs) > 1:
        raise DatasetError(
            f"'{path}' holds {len(graphs)} graphs, and only one can be completed. Choose it with '--graph I'."
        )
    if index is not None and index >= len(graphs):
        raise DatasetError(
            f"'{path}' has no graph {index}: it holds {len(graphs)}, counted from 0. "
            f"Pass '--graph' with at most {len(graphs) - 1}."
        )

    return graphs[index or 0], reader.format, reader.provenance.family


def _describe(partial: PartialGraph, model: TrainedModel) -> None:
    """Print the numbers of known and unknown pairs, and whether the size is new to the model."""
    from math import comb

    from ..console import count_of, note

    pairs, unknown = comb(partial.nodes, 2), len(partial.unknown)
    edges = len(partial.graph.edges)
    note(f"{count_of(pairs, 'pair')}: {unknown} unknown, {edges} present, {pairs - unknown - edges} absent.")
    seen = model.sizes.graphs
    if not min(seen) <= partial.nodes <= max(seen):
        note(
            f"'{model.name}' was trained on {min(seen)} to {max(seen)} nodes, and the graph has {partial.nodes}: "
            f"this is an extrapolation."
        )
