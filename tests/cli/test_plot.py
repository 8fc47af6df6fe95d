from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import assert_error, invoke, run


@pytest.mark.parametrize("kind", ["gallery", "distributions", "adjacency"])
def test_graphs_are_drawn_to_files_and_to_the_terminal(graphs: Path, kind: str) -> None:
    pytest.importorskip("matplotlib")
    drawn = run("plot", kind, graphs, "--reference", graphs, "-o", "picture.svg")
    shown = run("plot", kind, graphs, "--reference", graphs, "--terminal", "-n", 2)

    assert "<svg" in Path("picture.svg").read_text(encoding="utf-8")
    assert drawn.stdout == ""
    assert {"gallery": "●", "distributions": "clustering coefficient", "adjacency": "▀"}[kind] in shown.stdout


def test_training_curves_come_from_the_history_of_a_checkpoint(model: Path) -> None:
    pytest.importorskip("matplotlib")
    run("plot", "training", model, "-o", "curves.png")
    shown = run("plot", "training", model, "--terminal")

    assert Path("curves.png").read_bytes().startswith(b"\x89PNG")
    assert "training loss, nats per graph, epochs 1 to 2" in shown.stdout


def test_mistakes_end_in_one_line(graphs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for line, problem in (
        (["gallery", graphs, "-o", "g.txt"], "not a picture"),
        (["gallery", "missing.h5", "--terminal"], "missing.h5"),
        (["training", "missing", "--terminal"], "no model 'missing'"),
        (["training", graphs, "--terminal"], "is not a checkpoint"),
    ):
        assert_error(invoke("plot", *line), problem, after_notes=True)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert_error(invoke("plot", "gallery", graphs, "-o", "g.png"), "graphite-gen[plot]")
    assert not Path("g.png").exists()
