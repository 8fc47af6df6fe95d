"""Graphs from the true process of a family."""

from __future__ import annotations

from pathlib import Path

import click

from .. import options
from ..command import Command


@click.command(
    cls=Command,
    short_help="Generate graphs of a random graph family.",
    groups={"Graphs": "family parameters graphs nodes seed", "Output": "output format union force"},
)
@options.family("Family; 'graphite-gen families' lists them.", required=True)
@options.parameters
@options.number("-n", "--graphs", default=300, help="Number of graphs.")
@options.nodes("10:20", "Nodes per graph, at most 5000 (2000 in trees); sizes of a range are uniform.")
@options.output
@options.output_format()
@options.union
@options.force
@options.seed
@options.workers
def generate(
    family: str,
    parameters: tuple[tuple[str, str], ...],
    graphs: int,
    nodes: tuple[int, int],
    output: Path,
    format: str | None,
    union: bool,
    force: bool,
    seed: int,
    workers: int,
) -> None:
    """Generate graphs from the true process of a family: one third each for training, validation and test.

    With '--param largest_component=true' the families 'erdos-renyi', 'geometric' and 'regular' keep only the largest
    component of each graph, as the paper does: a graph may then have fewer nodes than '--nodes'.

    \b
    Example:
        graphite-gen generate --family ego -o ego.h5
        graphite-gen generate --family geometric --param r=0.3 --param largest_component=true -o geometric.h5
        graphite-gen generate --family barabasi --param m=3 --nodes 15 --graphs 1000 -o ba.g6
    """
    from graphite_gen.families import family as family_of
    from graphite_gen.families.simulate import generate_graphs
    from graphite_gen.records import Provenance

    from ..sharing import process_group
    from ..writing import write

    chosen = family_of(family, **dict(parameters))
    group = process_group(workers)
    write(
        generate_graphs(chosen, graphs, nodes, seed, group=group),
        output,
        format=format,
        provenance=Provenance(chosen.name, chosen.parameters(), seed, "generate"),
        force=force,
        union=union,
        total=graphs,
        group=group,
    )
