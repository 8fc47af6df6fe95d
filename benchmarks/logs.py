"""Logs of long benchmarks: one line per measurement, so that an interrupted benchmark can be continued."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

Row = dict[str, Any]
J = TypeVar("J", bound=Hashable)


def read_log(log: Path) -> list[Row]:
    """Return the rows of the log, without a truncated last line."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""

    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n")]


def run_all(
    jobs: Iterable[J], keys: Sequence[str], measure: Callable[[J], Row], log: Path, *, again: bool = False
) -> None:
    """Run the jobs that are not in the log, or all of them ``again``, appending one line for each.

    Arguments:
        jobs: The jobs, each a tuple of the values of ``keys``.
        keys: The keys of a row that identify its job.
        measure: Returns the row of a job.
        log: The log file.
        again: Whether to run jobs that are in the log too.
    """
    rows = read_log(log)
    done = {tuple(row[key] for key in keys) for row in rows}
    # Rewritten, so that nothing is appended to a truncated line.
    log.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for job in jobs:
        if again or job not in done:
            row = measure(job)
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def add_options(parser: argparse.ArgumentParser, log: Path) -> None:
    """Add the options of a benchmark with a log."""
    parser.add_argument("--log", type=Path, default=log, help="log of finished runs, which is continued")
    parser.add_argument("--tables", action="store_true", help="do not train, only make the tables from the log")
    parser.add_argument("--quick", action="store_true", help="a short trial; needs another --log")


def parse(parser: argparse.ArgumentParser, log: Path, words: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the options; a quick run must not use the log of the real ones."""
    arguments = parser.parse_args(words)
    if arguments.quick and arguments.log == log:
        parser.error("--quick would write to the log of the real runs: pass another file with --log")

    return arguments


def settings(options: argparse.Namespace) -> Row:
    """Return the options to store with a result, without paths, which differ between machines."""
    return {key: value for key, value in vars(options).items() if not isinstance(value, Path)}
