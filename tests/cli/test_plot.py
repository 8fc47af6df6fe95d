from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import TINY, Invoke, assert_error, is_one_line


@pytest.mark.parametrize("kind", ["gallery", "distributions", "adjacency"])
def test_graphs_are_drawn_to_files_and_to_the_terminal(invoke: Invoke, graphs: Path, kind: str) -> None:
    pytest.importorskip("matplotlib")
    drawn = invoke("plot", kind, graphs, "--reference", graphs, "-o", "picture.svg")
    shown = invoke("plot", kind, graphs, "--reference", graphs, "--terminal", "-n", 2)

    assert drawn.exit_code == 0, drawn.stderr
    assert "<svg" in Path("picture.svg").read_text(encoding="utf-8")
    assert drawn.stdout == ""
    assert shown.exit_code == 0, shown.stderr
    assert {"gallery": "●", "distributions": "clustering coefficient", "adjacency": "▀"}[kind] in shown.stdout


def test_training_curves_come_from_the_history_of_a_checkpoint(invoke: Invoke, model: Path) -> None:
    pytest.importorskip("matplotlib")
    assert invoke("plot", "training", model, "-o", "curves.png").exit_code == 0
    shown = invoke("plot", "training", "bundled:ego", "--terminal")

    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
    assert "training loss, nats per graph, epochs 1 to 16" in shown.stdout


@pytest.mark.slow
def test_numbers_of_decoding_steps_are_compared(invoke: Invoke, graphs: Path) -> None:
    pytest.importorskip("matplotlib")
    assert invoke("train", "--family", "ego", *TINY, "--out", ".", "--name", "ar").exit_code == 0
    line = ("plot", "decoding-steps", "ar", "--reference", graphs, "-k", 2, "--samples", 8)
    shown = invoke(*line, "--terminal")

    assert invoke(*line, "-o", "steps.pdf").exit_code == 0
    assert Path("steps.pdf").read_bytes().startswith(b"%PDF")
    assert shown.exit_code == 0, shown.stderr
    assert [row.split()[0] for row in shown.stdout.splitlines()] == ["decoding", "1", "4", "16", "64", "all"]


def test_mistakes_end_in_one_line(invoke: Invoke, graphs: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for line, problem in (
        (["gallery", graphs, "-o", "g.txt"], "not a picture"),
        (["gallery", "missing.h5", "--terminal"], "missing.h5"),
        (["training", "missing", "--terminal"], "no model 'missing'"),
        (["training", graphs, "--terminal"], "is not a checkpoint"),
        (["stages", model, "--reference", graphs, "--terminal"], "one-shot decoder"),
    ):
        result = invoke("plot", *line)
        assert result.exit_code == 1
        assert is_one_line(result.stderr.splitlines(keepends=True)[-1])
        assert problem in result.stderr
    assert invoke("plot", "gallery", graphs).exit_code == 2
    assert invoke("plot", "gallery", graphs, "--terminal", "-o", "g.png").exit_code == 2
    assert invoke("plot", "stages", model, "--terminal").exit_code == 2
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert_error(invoke("plot", "gallery", graphs, "-o", "g.png"), "graphite-gen[plot]")
    assert not Path("g.png").exists()
