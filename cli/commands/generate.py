"""Graphs from the true process of a family."""

from __future__ import annotations

from pathlib import Path

import click

from .. import options
from ..command import Command


@click.command(cls=Command, short_help="Draw graphs from a family's own law.")
@options.family("The family; 'graphite-gen families' lists them.", required=True)
@options.parameters
@click.option(
    "-n", "--graphs", type=click.IntRange(1), metavar="N", default=300, show_default=True, help="How many graphs."
)
@options.nodes("10:20", "Nodes per graph, at most 5000 (2000 in trees); each size equally often.")
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
    """Draw graphs from the true process of a family, marked as train, validation and test in even thirds.

    With '--param largest_component=true' the families 'erdos-renyi', 'geometric' and 'regular' keep the largest
    component of each draw, as the paper does: a graph may then have fewer nodes than '--nodes' asks for.

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

    law = family_of(family, **dict(parameters))
    group = process_group(workers)
    write(
        generate_graphs(law, graphs, nodes, seed, group=group),
        output,
        format=format,
        provenance=Provenance(law.name, law.parameters(), seed, "generate"),
        force=force,
        union=union,
        total=graphs,
        group=group,
    )
