"""Graphs from one format to another."""

from itertools import chain
from pathlib import Path

import click

from .. import options
from ..command import command
from ..console import count_of, note
from ..types import PATH_OR_DASH


@command(short_help="Convert graphs to another format.")
@click.argument("source", metavar="IN", type=PATH_OR_DASH)
@click.argument("target", metavar="OUT", type=PATH_OR_DASH)
@options.all_of(options.input_format("--input-format"), options.output_format("--output-format"), options.simplify)
@options.all_of(options.union, options.force)
def convert(source: Path, target: Path, simplify: bool, union: bool, force: bool, **formats: str | None) -> None:
    """Write the graphs of IN, a file or a folder of files, to OUT, with their provenance.

    OUT may be '-' for stdout, or a template such as 'out/{index:04d}.graphml' for one file per graph. For a network in
    HDF5, labels and splits become node attributes; node features are not written.

    \b
    Example:
        graphite-gen convert ego.h5 ego.graphml
        graphite-gen convert ego.h5 'ego/{index:04d}.graphml'
        graphite-gen convert ego.h5 - --output-format g6 | head
    """
    from graphite_gen.io import check_output, read_graphs
    from graphite_gen.network.network import count_features

    from ..writing import write

    output_format = check_output(target, format=formats["output_format"], force=force, union=union)
    with read_graphs(source, format=formats["input_format"], simplify=simplify) as graphs:
        first = next(graphs)
        if graphs.format == "h5" and source.is_file() and (count := count_features(source, first.nodes)):
            note(
                f"Not written to '{target}': {count_of(count, 'feature')} of each node. 'link', 'classify' and 'embed' "
                f"read them from '{source}'."
            )
        every = chain((first,), graphs)
        write(every, target, format=output_format, provenance=graphs.provenance, force=force, union=union)
