"""Logs of long benchmarks: a line for every measurement, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

Row = dict[str, Any]
J = TypeVar("J", bound=Hashable)


def read_log(log: Path) -> list[Row]:
    """The lines of the log; a last one that was cut off is left out."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""

    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]


def run_all(jobs: Iterable[J], keys: Sequence[str], measure: Callable[[J], Row], log: Path) -> None:
    """Do the jobs that the log does not have, adding a line for each.

    Arguments:
        jobs: What to measure, each named by the values of some keys.
        keys: These keys of a row.
        measure: What gives the row of a job.
        log: Where rows are kept.
    """
    rows = read_log(log)
    done = {tuple(row[key] for key in keys) for row in rows}
    # Written anew, so that no line is added to one that was cut off.
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for job in jobs:
        if job not in done:
            row = measure(job)
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def add_options(parser: argparse.ArgumentParser, log: Path) -> None:
    """The options of a benchmark that keeps a log."""
    parser.add_argument("--log", type=Path, default=log, help="where finished runs are kept; it is taken up again")
    parser.add_argument("--tables", action="store_true", help="train nothing: make the tables of what the log has")
    parser.add_argument("--quick", action="store_true", help="a minute, to see that it works; needs a --log of its own")


def parse(parser: argparse.ArgumentParser, log: Path) -> argparse.Namespace:
    """The options as given; quick runs may not go to the log of the real ones."""
    arguments = parser.parse_args()
    if arguments.quick and arguments.log == log:
        parser.error("--quick would spoil the log of the real runs: pass another with --log")

    return arguments
