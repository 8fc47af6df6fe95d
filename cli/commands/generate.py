"""Graphs from the true process of a family."""

from pathlib import Path
from typing import Any

from .. import options
from ..command import command
from ..sharing import process_group


@command(
    short_help="Generate graphs of a random graph family.",
    groups={"Graphs": "family parameters graphs nodes seed", "Output": "output format union force"},
)
@options.family(required=True, help="Random graph family; 'graphite-gen families' lists them.")
@options.parameters
@options.number("-n", "--graphs", default=300, help="Number of graphs.")
@options.nodes(
    default="10:20", help="Nodes per graph, at most 5000 (2000 in trees), or a range of sizes to draw uniformly."
)
@options.all_of(options.output, options.output_format(), options.union, options.force, options.seed, options.workers)
def generate(output: Path, workers: int, **values: Any) -> None:
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

    from ..writing import write

    family = family_of(values["family"], **dict(values["parameters"]))
    group, count, seed = process_group(workers), values["graphs"], values["seed"]
    graphs = generate_graphs(family, count, values["nodes"], seed, group=group)
    provenance = Provenance(family.name, family.parameters(), seed, "generate")
    target = {name: values[name] for name in ("format", "force", "union")}
    write(graphs, output, provenance=provenance, total=count, group=group, **target)
