"""Graphs on a path between two graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import constraint_options, options
from ..command import command
from ..console import note
from ..types import PATH

if TYPE_CHECKING:
    from graphite_gen.graph import SimpleGraph


@command(
    short_help="Interpolate between two graphs.",
    groups={
        "Model": "model seed",
        "Path": "count first last",
        "Constraints": "tree regular degrees connected acyclic planar edges max_degree",
        "Output": "output output_format union force",
    },
)
@click.argument("a", type=PATH)
@click.argument("b", type=PATH)
@options.number("-n", "--count", low=2, default=10, help="Number of graphs on the path, with its ends.")
@options.number("--first", low=0, default=0, metavar="I", help="Index of the graph in A.")
@options.number("--last", low=0, default=0, metavar="I", help="Index of the graph in B.")
@options.all_of(options.output, options.output_format("--output-format"), options.model, constraint_options.options)
@options.all_of(options.input_format(), options.simplify, options.ignore_weights, options.union, options.force)
@options.all_of(options.seed, options.device, options.threads)
def interpolate(a: Path, b: Path, output: Path, first: int, last: int, **values: Any) -> None:
    """Decode graphs on a path of latents from a graph of file A to one of file B.

    Nodes of the two graphs are matched by their latents, which then follow a spherical path. If the graphs differ in
    size, the other nodes of the larger one are added one by one. The graph attribute 't' goes from 0 to 1. Both ends
    are decoded from the latents of the graphs, so they resemble them as far as 'graphite-gen reconstruct' shows.

    \b
    Example:
        graphite-gen generate --family geometric --graphs 20 -o graphs.h5
        graphite-gen interpolate graphs.h5 graphs.h5 --last 1 --model geometric-one-shot -o path.graphml
    """
    from graphite_gen.io import check_output

    target = {"force": values["force"], "union": values["union"]}
    format = check_output(output, format=values["output_format"], many=True, **target)

    from graphite_gen.records import Provenance
    from graphite_gen.sampling.interpolation import interpolate as decode_path

    from ..model_choice import choose_model
    from ..writing import write

    (start, family), (end, _) = _graph(a, first, values), _graph(b, last, values)
    trained = choose_model(values["model"], values["device"], prefer=family)
    constraints = constraint_options.build(constraint_options.used(values))
    count, seed = values["count"], values["seed"]
    path = decode_path(trained, start, end, count, seed=seed, constraints=constraints)
    note(f"From graph {first} of '{a}' ({start.nodes} nodes) to graph {last} of '{b}' ({end.nodes} nodes).")
    provenance = Provenance(source="interpolate", model=trained.name, seed=seed)
    write(path, output, format=format, provenance=provenance, **target)


def _graph(source: Path, index: int, values: dict[str, Any]) -> tuple[SimpleGraph, str | None]:
    from graphite_gen.errors import DatasetError

    from ..reading import read_with_options

    graphs, family = read_with_options(source, values)
    if index >= len(graphs):
        raise DatasetError(f"'{source}' has no graph {index}: its last one is graph {len(graphs) - 1}.")

    return graphs[index], family
