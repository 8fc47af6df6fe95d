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
    from graphite_gen.network.link_prediction import PredictedLink, ScoredLink

    Ranked = Sequence[EdgeScore] | Sequence[PredictedLink] | Sequence[ScoredLink]

__all__ = ["check_scores", "write_scores"]

PROBABILITY, SCORE, ERROR = "probability", "score", "standard_error"


def check_scores(path: Path, force: bool) -> None:
    """Refuse a file that cannot be written, before the work is done.

    Raises:
        OutputError: It exists, may not be written, or its suffix is not one that ranked pairs are written in.
    """
    from graphite_gen.errors import OutputError
    from graphite_gen.io import check_target

    if str(path) == "-":
        return
    if path.suffix.lower() not in (".csv", ".json"):
        raise OutputError(f"'{path}' is no file for scores: name it '.csv' or '.json', or pass '-' for CSV on stdout.")
    if path.is_dir():
        raise OutputError(f"'{path}' is a folder: pass a file for the scores.")
    check_target(path, force)


def write_scores(scores: Ranked, path: Path, force: bool) -> None:
    """Write pairs in the order they come, by suffix; CSV to stdout.

    Raises:
        OutputError: The file cannot be written.
    """
    from graphite_gen.errors import OutputError
    from graphite_gen.io.atomic import replacing

    from .console import count_of, note

    text = _json(scores) if path.suffix.lower() == ".json" else _csv(scores)
    if str(path) == "-":
        click.echo(text, nl=False)
        return
    check_scores(path, force)
    try:
        with replacing(path.resolve()) as stream:
            stream.write(text.encode("utf-8"))
    except OSError as error:
        raise OutputError(f"'{path}' cannot be written: {error.strerror or error}.") from error
    note(f"Wrote {count_of(len(scores), 'score')} to '{path}'.")


def _json(scores: Ranked) -> str:
    return json.dumps([score.to_json() for score in scores], indent=2, default=str) + "\n"


def _csv(scores: Ranked) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    # What is read off a trained model has no error of its own, and what is no model gives no probability.
    has_errors = bool(scores) and all(hasattr(score, ERROR) for score in scores)
    figure = SCORE if scores and all(hasattr(score, SCORE) for score in scores) else PROBABILITY
    writer.writerow(("source", "target", figure, *([ERROR] if has_errors else [])))
    for score in scores:
        row = [score.source, score.target, f"{getattr(score, figure):.6g}"]
        writer.writerow([*row, f"{getattr(score, ERROR):.3g}"] if has_errors else row)

    return buffer.getvalue()
