"""Writing graphs as they come, and telling how to read them."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from .console import count_of, note, track

if TYPE_CHECKING:
    from graphite_gen.distributed import ProcessGroup
    from graphite_gen.graph import SimpleGraph
    from graphite_gen.records import Provenance

__all__ = ["write"]


def write(
    graphs: Iterable[SimpleGraph],
    output: Path,
    *,
    format: str | None,
    provenance: Provenance | None,
    force: bool,
    union: bool,
    total: int | None = None,
    group: ProcessGroup | None = None,
) -> None:
    """Write a stream of graphs, counting on stderr, and say what was written.

    Of processes that share the graphs one writes them, and the others run through their share.
    """
    from graphite_gen.io import format_of, write_graphs

    if group is not None and not group.is_rank_zero:
        deque(graphs, maxlen=0)
        return
    to_stdout = str(output) == "-"
    name = format_of(output, format)
    graphs = _noting_losses(graphs, name)
    if not (to_stdout and sys.stdout is not None and sys.stdout.isatty()):
        graphs = track(graphs, total, "Writing")
    count = write_graphs(graphs, output, format=format, provenance=provenance, force=force, union=union)
    if to_stdout:
        return

    note(f"Wrote {count_of(count, 'graph')} to '{output}'{' as their union' if union else ''}.")
    if count > 1 and not union and "{index" not in str(output) and name in ("graphml", "gml"):
        _tell_how_to_read(output, name)


def _tell_how_to_read(output: Path, format: str) -> None:
    """What other programs make of many graphs in one file."""
    if format == "graphml":
        note(
            "Many graphs in one GraphML file: networkx.read_graphml opens the first alone. For all of them:\n"
            "    from networkx.readwrite.graphml import GraphMLReader\n"
            f"    graphs = list(GraphMLReader()(path={str(output)!r}))"
        )
    else:
        note("Many graphs in one GML file: networkx.read_gml opens files of one graph alone.")
    note(f"Or write one file each with -o '{output.stem}/{{index:04d}}.{format}', or one graph with --union.")


def _noting_losses(graphs: Iterable[SimpleGraph], format: str) -> Iterator[SimpleGraph]:
    """The graphs, with a note on what the format drops of the first one that loses anything."""
    from graphite_gen.io import dropped_by

    noted = False
    for graph in graphs:
        if not noted and (dropped := dropped_by(format, graph)):
            note(f"'{format}' does not hold {' and '.join(dropped)}: only the rest of the graphs is written.")
            noted = True
        yield graph
