"""Files of graphs, and of ranked pairs."""

import csv
import io
import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from graphite_gen.distributed import ProcessGroup
from graphite_gen.errors import OutputError
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import check_target, dropped_by, format_of, open_output, write_graphs
from graphite_gen.records import Provenance

from .console import count_of, note, track


def write(
    graphs: Iterable[SimpleGraph],
    output: Path,
    *,
    format: str | None,
    provenance: Provenance | None,
    force: bool,
    union: bool = False,
    total: int | None = None,
    at_once: int = 1,
    group: ProcessGroup | None = None,
) -> None:
    """Write a stream of graphs with progress on stderr; ranks other than 0 only exhaust the stream."""
    if group is not None and not group.is_rank_zero:
        deque(graphs, maxlen=0)
        return
    to_stdout = str(output) == "-"
    name = format_of(output, format)
    graphs = _noting_losses(graphs, name)
    if not (to_stdout and sys.stdout is not None and sys.stdout.isatty()):
        graphs = track(graphs, total, "Writing", at_once)
    count = write_graphs(graphs, output, format=format, provenance=provenance, force=force, union=union)
    if to_stdout:
        return

    note(f"Wrote {count_of(count, 'graph')} to '{output}'{' as their disjoint union' if union else ''}.")
    if count > 1 and not union and "{index" not in str(output) and name in ("graphml", "gml"):
        if name == "graphml":
            note(
                "networkx.read_graphml reads only the first graph of a file. To read all of them:\n"
                "    from networkx.readwrite.graphml import GraphMLReader\n"
                f"    graphs = list(GraphMLReader()(path={str(output)!r}))"
            )
        else:
            note("networkx.read_gml reads only files with one graph.")
        note(f"Or write one file per graph, -o '{output.stem}/{{index:04d}}.{name}', or one graph, '--union'.")


def _noting_losses(graphs: Iterable[SimpleGraph], format: str) -> Iterator[SimpleGraph]:
    """The graphs, with one note on what the format cannot store."""
    noted = False
    for graph in graphs:
        if not noted and (dropped := dropped_by(format, graph)):
            note(f"Format '{format}' cannot store {' and '.join(dropped)}, which are dropped.")
            noted = True
        yield graph


def check_scores(path: Path | None, force: bool, suffixes: Sequence[str] = (".csv", ".json")) -> None:
    """Check that a table can be written to a file, if any, before the work is done."""
    if path is None or str(path) == "-":
        return
    if path.suffix.lower() not in suffixes:
        known = ", ".join(f"'{suffix}'" for suffix in suffixes)
        raise OutputError(f"Scores cannot be written to '{path}': use {known}, or '-' for CSV on stdout.")
    if path.is_dir():
        raise OutputError(f"'{path}' is a folder: pass a file for the scores.")
    check_target(path, force)


def write_scores(scores: Sequence[Any], path: Path, force: bool, labels: Sequence[Any] = ()) -> None:
    """Write ranked pairs as CSV or JSON by suffix; CSV to stdout.

    If there are labels of nodes, they follow: rows of a node, no target and its label, in a table with a column for it.
    """
    # A trained autoencoder has no standard errors, and a baseline has scores instead of probabilities.
    forms = {"score": ".6g", "probability": ".6g", "standard_error": ".3g"}
    figures = [name for name in forms if hasattr(scores[0], name)] if scores else ["probability"]
    rows = [
        (score.source, score.target, *(f"{getattr(score, name):{forms[name]}}" for name in figures)) for score in scores
    ]
    columns = ["source", "target", *figures]
    if labels:
        figures = [name for name in forms if hasattr(labels[0], name)]
        columns = ["source", "target", "label", *figures]
        rows = [(*row[:2], "", *row[2:]) for row in rows]
        rows += [
            (one.node, "", one.label, *(f"{getattr(one, name):{forms[name]}}" for name in figures)) for one in labels
        ]
    if path.suffix.lower() == ".json":
        every = [score.to_json() for score in (*scores, *labels)]
        write_text(json.dumps(every, indent=2, default=str) + "\n", path, force)
    else:
        write_text(as_csv(columns, rows), path, force)
    if str(path) != "-":
        note(f"Wrote {count_of(len(rows), 'score')} to '{path}'.")


def write_text(text: str, path: Path, force: bool) -> None:
    """Write a text to a file, or to stdout if it is '-'."""
    if str(path) == "-":
        click.echo(text, nl=False)
        return
    with open_output(path, force) as stream:
        stream.write(text.encode("utf-8"))


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The text of a CSV file."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows([columns, *rows])

    return buffer.getvalue()
