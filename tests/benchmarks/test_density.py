"""The script of Table 1 in its quick mode."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def density(log: Path) -> str:
    command = [sys.executable, "-m", "benchmarks.reproduce.density", "--quick", "--log", str(log)]

    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
def test_quick_mode_prints_all_tables_and_continues_its_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    before = {path: path.read_bytes() for path in (ROOT / "benchmarks" / "results").iterdir()}

    printed = density(log)

    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 2 * 2 * 2 * 4 * 2  # presets, conventions, families, kinds, runs
    assert printed.count("Graphite gains") == 8
    assert printed.count("a fair coin per cell        | 277.26") == 2
    assert printed.count("| entropy ") == 2

    # A truncated entry is computed again, with the same figures.
    text = log.read_text(encoding="utf-8")
    log.write_text(text[: text.rindex("{") + 20], encoding="utf-8")
    assert density(log) == printed

    assert {path: path.read_bytes() for path in (ROOT / "benchmarks" / "results").iterdir()} == before
