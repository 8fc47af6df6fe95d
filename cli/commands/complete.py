"""Complete a partially known graph."""

from math import comb
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from .. import options
from ..command import command
from ..console import count_of, counting, note
from ..types import PATH_OR_DASH


@command(
    short_help="Complete a partially known graph.",
    groups={
        "Model": "model seed",
        "Unknown pairs": "unlisted add_nodes index",
        "Output": "count output format union scores force",
    },
)
@click.argument("partial", type=PATH_OR_DASH)
@options.number("-n", "--count", default=10, help="Number of completed graphs.")
@options.file_or_dash(
    *("-o", "--output"),
    help="File to write, '-' for stdout, or a template such as 'out/{index:04d}.graphml' for one file per graph.  "
    "[default: stdout, or nothing with '--scores -']",
)
@options.output_format(default="by suffix; that of PARTIAL for stdout")
@options.file_or_dash(
    "--scores",
    help="Write the unknown pairs with the probability of an edge, most likely first, and then those of the labels of "
    "nodes without one, to a '.csv' or '.json' file; '-' is CSV on stdout.",
)
@options.number("--add-nodes", low=0, default=0, help="Number of nodes to add; all their pairs are unknown.")
@click.option(
    "--unlisted",
    type=click.Choice(("absent", "unknown")),
    help="State of pairs that the file does not list.  [default: unknown if the file lists absent but no unknown "
    "pairs, else absent]",
)
@options.number(
    *("--graph", "index"), low=0, metavar="I", help="Index of the graph to complete, from 0, if the file has several."
)
@options.model
@options.number(
    "--particles",
    help="Particles per run. Without this option, an autoregressive model enumerates all completions if they are few.  "
    "[default: 256 for a one-shot model, 64 for an autoregressive one]",
)
@options.number(
    "--steps",
    low=4,
    default=200,
    help="Steps per Markov chain of an autoregressive model; with more steps, more completions are enumerated.",
)
@options.number("--runs", low=2, default=4, help="Independent runs, whose spread gives the standard errors.")
@options.all_of(options.input_format("--input-format"), options.simplify, options.ignore_weights)
@options.all_of(options.union, options.force, options.seed, options.device, options.threads)
def complete(partial: Path, particles: int | None, steps: int, runs: int, **values: Any) -> None:
    """Sample the unknown pairs of the graph PARTIAL, given the known ones.

    The edge attribute 'state' is 'present', 'absent' or 'unknown'; an edge without it is present. Nodes keep their
    names. In completed graphs, the edge attribute 'sampled' marks new edges, and the node attribute 'added' new nodes.
    A model of graphs with attributes also samples node labels, edge labels and weights that are missing.

    \b
    Example:
        graphite-gen complete partial.graphml -n 10 -o completed.graphml
        graphite-gen complete partial.graphml --scores ranking.csv -o completed.jsonl
        graphite-gen complete graph.graphml --add-nodes 5 -n 10 -o larger.graphml
    """
    given = SimpleNamespace(**values)
    output, scores, force = given.output, given.scores, given.force
    if output is not None and scores is not None and output.resolve() == scores.resolve():
        raise click.UsageError(f"'-o' and '--scores' cannot both be '{output}'.")

    from graphite_gen.completion import PartialGraph, Unknowns
    from graphite_gen.completion import complete as complete_graph
    from graphite_gen.errors import DatasetError
    from graphite_gen.io import check_output, read_graphs
    from graphite_gen.records import Provenance

    from ..diagnosis import completion_diagnosis
    from ..model_choice import choose_model
    from ..writing import check_scores, write, write_scores

    check_scores(scores, force)
    reader = read_graphs(partial, format=given.input_format, simplify=given.simplify)
    graphs, index = list(reader), given.index or 0
    if index >= len(graphs) or (given.index is None and len(graphs) > 1):
        found = "" if given.index is None else f" no graph {index}:"
        choose = "Choose the one to complete with '--graph I'."
        raise DatasetError(f"'{partial}' has{found} {len(graphs)} graphs, counted from 0. {choose}")
    graph = graphs[index].unweighted() if given.ignore_weights else graphs[index]
    if output is None and str(scores) != "-":
        output = Path("-")
    format = given.format or (reader.format if str(output) == "-" else None)
    if output is not None:
        format = check_output(output, format=format, force=force, union=given.union, many=given.count > 1)
    known = PartialGraph.from_marks(graph, unlisted=given.unlisted, add_nodes=given.add_nodes)
    trained = choose_model(given.model, given.device, prefer=reader.provenance.family)
    if not trained.config.is_autoregressive:
        options.refuse_without_effect(["steps"], "a one-shot model")
    pairs, unknown, edges = comb(known.nodes, 2), len(known.unknown), len(known.graph.edges)
    pairs, noun = (2 * pairs, "ordered pair") if known.graph.directed else (pairs, "pair")
    missing = ""
    if not trained.schema.is_plain:
        numbers = Unknowns.of(trained, known).counts
        words = {"labels": "node label", "types": "edge label", "weights": "edge weight"}
        missing = "".join(f" {count_of(numbers[name], word)} unknown." for name, word in words.items() if numbers[name])
    note(f"{count_of(pairs, noun)}: {unknown} unknown, {edges} present, {pairs - unknown - edges} absent.{missing}")
    seen = trained.sizes.graphs
    if not min(seen) <= known.nodes <= max(seen):
        note(f"'{trained.name}' was trained on {min(seen)} to {max(seen)} nodes: {known.nodes} are an extrapolation.")

    estimator: dict[str, Any] = {"particles": particles, "steps": steps, "runs": runs, "seed": given.seed}
    with counting("Completing") as progress:
        result = complete_graph(trained, known, given.count, progress=progress, **estimator)
    note(completion_diagnosis(result))
    if scores is not None:
        write_scores(result.scores, scores, force, result.label_scores)
    if output is not None:
        provenance = Provenance(source="complete", model=trained.name, seed=given.seed)
        target = {"format": format, "union": given.union, "force": force}
        write(result.samples, output, provenance=provenance, total=given.count, **target)
