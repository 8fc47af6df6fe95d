"""Ranked pairs as CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from graphite_gen.completion import EdgeScore

__all__ = ["check_scores", "write_scores"]

COLUMNS = ("source", "target", "probability", "standard_error")


def check_scores(path: Path, force: bool) -> None:
    """Refuse a file that cannot be written, before the work is done.

    Raises:
        OutputError: It exists, or its suffix is not one that ranked pairs are written in.
    """
    from graphite_gen.errors import OutputError

    if str(path) == "-":
        return
    if path.suffix.lower() not in (".csv", ".json"):
        raise OutputError(f"'{path}' is no file for scores: name it '.csv' or '.json', or pass '-' for CSV on stdout.")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise OutputError(f"'{path}' is or is in no folder for a file of scores: pass a file in one that exists.")
    if path.exists() and not force:
        raise OutputError(f"'{path}' exists: pass --force to replace it.")


def write_scores(scores: Sequence[EdgeScore], path: Path, force: bool) -> None:
    """Write pairs in the order they come, by suffix; CSV to stdout."""
    from .console import note

    text = _json(scores) if path.suffix.lower() == ".json" else _csv(scores)
    if str(path) == "-":
        click.echo(text, nl=False)
        return
    check_scores(path, force)
    path.write_text(text, encoding="utf-8")
    note(f"Wrote {len(scores)} scores to '{path}'.")


def _json(scores: Sequence[EdgeScore]) -> str:
    return json.dumps([score.to_json() for score in scores], indent=2, default=str) + "\n"


def _csv(scores: Sequence[EdgeScore]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(COLUMNS)
    for score in scores:
        writer.writerow([score.source, score.target, f"{score.probability:.6g}", f"{score.standard_error:.3g}"])

    return buffer.getvalue()
