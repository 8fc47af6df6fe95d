from pathlib import Path

import pytest

from .conftest import run


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
