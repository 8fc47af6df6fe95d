"""What benchmarks share: one table on the screen, one JSON file, one Markdown table, and its copy in the README."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

__all__ = ["FOLDER", "lines", "publish"]

FOLDER = Path(__file__).resolve().parent / "results"
README = Path(__file__).resolve().parents[1] / "README.md"


def lines(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """The lines of a Markdown table, in columns of even width."""
    cells = [list(header), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])

    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]


def publish(name: str, title: str, header: Sequence[str], rows: Sequence[Sequence[Any]], details: Any) -> None:
    """Print a table and keep it with the numbers behind it under ``results/``.

    Arguments:
        name: The benchmark's name, which names its files.
        title: One line that says what the table shows and in which unit.
        header: The names of the columns.
        rows: The cells, as text or numbers.
        details: Whatever else the JSON file should hold: settings, seeds, every run's figures.
    """
    table = "\n".join(lines(header, rows))
    print(f"\n{title}\n")
    print(table)

    FOLDER.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "torch": torch.__version__, "processor": platform.machine()}
    content = {"title": title, "header": list(header), "rows": rows, "details": details, "machine": machine}
    (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=2, default=str) + "\n", encoding="utf-8")
    text = f"{title}:\n\n{table}\n"
    (FOLDER / f"{name}.md").write_text(text, encoding="utf-8")
    _update_readme(name, text)


def _update_readme(name: str, text: str) -> None:
    """Replace the table between the marks of that name, where the README has them."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    before, found, rest = README.read_text(encoding="utf-8").partition(begin)
    if found:
        README.write_text(before + begin + text + end + rest.partition(end)[2], encoding="utf-8")


def _text(cell: Any) -> str:
    return f"{cell:.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)
