"""Output shared by all benchmarks: a table on the screen, a JSON file, a Markdown file, and its copy in the docs."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

__all__ = ["FOLDER", "lines", "provenance", "publish", "render"]

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "benchmarks" / "results"
DOCS = ROOT / "docs"


def lines(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the lines of a Markdown table with aligned columns."""
    cells = [list(header), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])

    return [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]


def publish(name: str, title: str, header: Sequence[str], rows: Sequence[Sequence[Any]], details: Any) -> None:
    """Print a table, store it under ``results/`` with its provenance, and update the documentation.

    Arguments:
        name: The name of the result files.
        title: One line that says what the table shows and in which unit.
        header: The column names.
        rows: The cells, as text or numbers.
        details: Anything else to store in the JSON file: settings, seeds, the figures of every run.
    """
    result = {
        "title": title,
        "header": list(header),
        "rows": rows,
        "details": details,
        "machine": _machine(),
        "run": {"command": _command(), "commit": _commit(), "date": datetime.now(timezone.utc).strftime("%Y-%m-%d")},
    }
    text = render(result)
    print(f"\n{text}")

    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.json").write_text(json.dumps(result, indent=2, default=str) + "\n", encoding="utf-8")
    (FOLDER / f"{name}.md").write_text(text, encoding="utf-8")
    for page in (DOCS.parent / "README.md", *DOCS.rglob("*.md")):
        if page.exists():
            _update(page, name, text)


def provenance() -> dict[str, Any]:
    """Return commit, date and machine for a row of a log, whose rows may come from different runs."""
    return {"commit": _commit(), "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"), "machine": _machine()}


def render(result: Mapping[str, Any]) -> str:
    """Return a stored result as Markdown: title, table and provenance."""
    run, machine = result.get("run", {}), result["machine"]
    cpu = machine.get("cpu", f"{machine['processor']}, CPU model not recorded")
    facts = [
        f"Commit {run['commit']}, {run['date']}" if run else "Commit and date not recorded",
        f"Python {machine['python']}, torch {machine['torch']}, {cpu}",
    ]
    if run:
        facts.insert(0, f"`{run['command']}`")
    table = "\n".join(lines(result["header"], result["rows"]))

    return f"{result['title']}:\n\n{table}\n\n<small>{'. '.join(facts)}.</small>\n"


def _update(page: Path, name: str, text: str) -> None:
    """Replace the table between the markers of that name, if the page has them."""
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    if found:
        page.write_text(before + begin + text + end + rest.partition(end)[2], encoding="utf-8")


def _machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "processor": platform.machine(),
        "cpu": f"{_cpu_model()} ({os.cpu_count()} cores)",
        "threads": torch.get_num_threads(),
    }


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]

    return names[0] if names else platform.processor() or platform.machine()


def _commit() -> str:
    """Return the current commit, marked if the working tree has other changes."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "graphite_gen", "cli", "benchmarks/*.py")

    return (git("rev-parse", "--short", "HEAD") or "unknown") + (" with local changes" if changed else "")


def _command() -> str:
    """Return the command line of this benchmark, with file names for paths."""
    script = Path(sys.argv[0]).resolve()
    start = ".".join(script.relative_to(ROOT).with_suffix("").parts) if script.is_relative_to(ROOT) else script.name

    return " ".join(["python -m", start, *(Path(word).name if "/" in word else word for word in sys.argv[1:])])


def _text(cell: Any) -> str:
    return f"{cell:.2f}" if isinstance(cell, float) else f"{cell:,}" if isinstance(cell, int) else str(cell)
