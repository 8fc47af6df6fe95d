"""Files of graphs, and of ranked pairs."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .console import count_of, note, track

if TYPE_CHECKING:
    from graphite_gen.completion import EdgeScore
    from graphite_gen.distributed import ProcessGroup
    from graphite_gen.graph import SimpleGraph
    from graphite_gen.network.link_prediction import PredictedLink, ScoredLink
    from graphite_gen.records import Provenance

    Ranked = Sequence[EdgeScore] | Sequence[PredictedLink] | Sequence[ScoredLink]


def write(
    graphs: Iterable[SimpleGraph],
    output: Path,
    *,
    format: str | None,
    provenance: Provenance | None,
    force: bool,
    union: bool = False,
    total: int | None = None,
    group: ProcessGroup | None = None,
) -> None:
    """Write a stream of graphs with progress on stderr; ranks other than 0 only exhaust the stream."""
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
    from graphite_gen.io import dropped_by

    noted = False
    for graph in graphs:
        if not noted and (dropped := dropped_by(format, graph)):
            note(f"Format '{format}' cannot store {' and '.join(dropped)}, which are dropped.")
            noted = True
        yield graph


def check_scores(path: Path, force: bool) -> None:
    """Check that ranked pairs can be written to a file, before the work is done."""
    from graphite_gen.errors import OutputError
    from graphite_gen.io import check_target

    if str(path) == "-":
        return
    if path.suffix.lower() not in (".csv", ".json"):
        raise OutputError(f"Scores cannot be written to '{path}': use '.csv', '.json', or '-' for CSV on stdout.")
    if path.is_dir():
        raise OutputError(f"'{path}' is a folder: pass a file for the scores.")
    check_target(path, force)


def write_scores(scores: Ranked, path: Path, force: bool) -> None:
    """Write ranked pairs as CSV or JSON by suffix; CSV to stdout."""
    from graphite_gen.io import open_output

    if path.suffix.lower() == ".json":
        text = json.dumps([score.to_json() for score in scores], indent=2, default=str) + "\n"
    else:
        text = _csv(scores)
    if str(path) == "-":
        click.echo(text, nl=False)
        return
    with open_output(path, force) as stream:
        stream.write(text.encode("utf-8"))
    note(f"Wrote {count_of(len(scores), 'score')} to '{path}'.")


def _csv(scores: Ranked) -> str:
    def has(name: str) -> bool:
        return bool(scores) and hasattr(scores[0], name)

    # A trained autoencoder has no standard errors, and a baseline has scores instead of probabilities.
    forms = {"score" if has("score") else "probability": ".6g"}
    forms |= {"standard_error": ".3g"} if has("standard_error") else {}
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("source", "target", *forms))
    for score in scores:
        figures = (f"{getattr(score, name):{form}}" for name, form in forms.items())
        writer.writerow((score.source, score.target, *figures))

    return buffer.getvalue()
