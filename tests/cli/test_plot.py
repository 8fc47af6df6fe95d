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


def test_latents_are_drawn_to_files_and_to_the_terminal(model: Path, graphs: Path) -> None:
    pytest.importorskip("matplotlib")
    run("plot", "latents", graphs, "--model", model, "--level", "nodes", "--threads", 1, "-o", "picture.svg")
    shown = run("plot", "latents", graphs, "--model", model, "--by", "split", "--terminal")

    assert "degree" in Path("picture.svg").read_text(encoding="utf-8")
    assert "split, test ░▒▓█ validation" in shown.stdout


def test_what_latents_cannot_show_is_one_line(model: Path, graphs: Path) -> None:
    of_graphs = ("plot", "latents", graphs, "--model", model, "--terminal")

    assert_error(invoke(*of_graphs, "--by", "age"), "graph attribute 'age'", "'density'", after_notes=True)
    assert_error(invoke(*of_graphs, "--reference", graphs), "--reference", code=2)
    for option, value in (("--by", "edges"), ("--threads", 1)):
        assert_error(invoke("plot", "gallery", graphs, "--terminal", option, value), option, code=2)


def test_the_label_that_colours_nodes_is_chosen_or_named(molecules: tuple[Path, Path]) -> None:
    pytest.importorskip("matplotlib")
    first = run("plot", "gallery", molecules[0], "--reference", molecules[1], "-o", "first.svg")
    chosen = run("plot", "gallery", molecules[0], "--node-label", "element", "-o", "chosen.svg")
    shown = run("plot", "gallery", molecules[0], "--terminal")

    assert "coloured by 'charge', the first of 'charge', 'element'" in first.stderr
    assert "<!-- charge -->" in Path("first.svg").read_text(encoding="utf-8")
    assert "coloured" not in chosen.stderr
    assert "<!-- element -->" in Path("chosen.svg").read_text(encoding="utf-8")
    assert "no labels, weights or directions" in shown.stderr


def test_graphs_without_attributes_are_drawn_without_notes(graphs: Path) -> None:
    assert run("plot", "gallery", graphs, "--terminal").stderr == ""
