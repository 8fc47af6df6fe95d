"""Complete a partially known graph."""

from __future__ import annotations

from math import comb
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import Command
from ..types import PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.graph import SimpleGraph


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
@options.number("-n", "--count", default=10, help="Number of completed graphs.")
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
@options.number("--add-nodes", low=0, default=0, help="Number of nodes to add, with all pairs unknown.")
@click.option(
    "--unlisted",
    type=click.Choice(("absent", "unknown")),
    help="State of pairs that the file does not list.  [default: unknown if it lists absent but no unknown pairs, "
    "else absent]",
)
@options.number("--graph", "index", low=0, metavar="I", help="Index of the graph in a file of several, from 0.")
@options.model
@options.number(
    "--particles",
    help="Particles per run.  [default: 256 with a one-shot model; 64 with an autoregressive one, which enumerates all "
    "completions if they are few]",
)
@options.number(
    "--steps",
    low=4,
    default=200,
    help="Steps of the Markov chains of an autoregressive model, and the budget for enumeration.",
)
@options.number("--runs", low=2, default=4, help="Independent runs, from which errors are estimated.")
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
    input_format: str | None,
    simplify: bool,
    ignore_weights: bool,
    force: bool,
    seed: int,
    device: str,
    threads: int | None,
    **estimator: Any,
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
    if output is not None and scores is not None and output.resolve() == scores.resolve():
        raise click.UsageError(f"'-o' and '--scores' cannot both be '{output}'.")

    from graphite_gen.completion import PartialGraph
    from graphite_gen.completion import complete as complete_graph
    from graphite_gen.io import check_output, read_graphs
    from graphite_gen.records import Provenance

    from ..console import count_of, counting, note
    from ..diagnosis import completion_diagnosis
    from ..model_choice import choose_model, use_threads
    from ..writing import check_scores, write, write_scores

    use_threads(threads)
    if scores is not None:
        check_scores(scores, force)
    reader = read_graphs(partial, format=input_format, simplify=simplify)
    graph = _one_of(list(reader), index, partial)
    if output is None and str(scores) != "-":
        output = Path("-")
    if output is not None:
        format = check_output(output, format=format or (reader.format if str(output) == "-" else None), force=force)
    if ignore_weights:
        graph = graph.unweighted()
    known = PartialGraph.from_marks(graph, unlisted=unlisted, add_nodes=add_nodes)
    trained = choose_model(model, device, prefer=reader.provenance.family)
    if not trained.config.is_autoregressive:
        options.refuse_without_effect({"steps": "--steps"}, "a one-shot model")
    pairs, unknown, edges = comb(known.nodes, 2), len(known.unknown), len(known.graph.edges)
    note(f"{count_of(pairs, 'pair')}: {unknown} unknown, {edges} present, {pairs - unknown - edges} absent.")
    seen = trained.sizes.graphs
    if not min(seen) <= known.nodes <= max(seen):
        note(f"'{trained.name}' was trained on {min(seen)} to {max(seen)} nodes: {known.nodes} are an extrapolation.")

    with counting("Completing") as count_parts:
        result = complete_graph(trained, known, count, seed=seed, progress=count_parts, **estimator)
    note(completion_diagnosis(result))
    if scores is not None:
        write_scores(result.scores, scores, force)
    if output is not None:
        provenance = Provenance(source="complete", model=trained.name, seed=seed)
        write(result.samples, output, format=format, provenance=provenance, force=force, union=False, total=count)


def _one_of(graphs: list[SimpleGraph], index: int | None, path: Path) -> SimpleGraph:
    from graphite_gen.errors import DatasetError

    if index is None and len(graphs) > 1:
        raise DatasetError(
            f"'{path}' holds {len(graphs)} graphs, and only one can be completed. Choose it with '--graph I'."
        )
    if index is not None and index >= len(graphs):
        raise DatasetError(
            f"'{path}' has no graph {index}: it holds {len(graphs)}, counted from 0. "
            f"Pass '--graph' with at most {len(graphs) - 1}."
        )

    return graphs[index or 0]
