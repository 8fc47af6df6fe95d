import json
from pathlib import Path

import pytest

from .conftest import run

QUICK = ("--count", 12, "--nll-graphs", 3, "--threads", 1)


def test_a_report_is_one_file(model: Path, graphs: Path) -> None:
    pytest.importorskip("matplotlib")
    fresh = run("report", model, "-o", "fresh.html", *QUICK)
    given = run("report", model, "--reference", graphs, "--samples", graphs, "-o", "given.html", *QUICK)

    assert "new graphs of the family &#39;ego&#39;" in Path("fresh.html").read_text(encoding="utf-8")
    page = Path("given.html").read_text(encoding="utf-8")
    assert "4 graphs of &#39;" in page
    assert "entropy" in page
    assert str(Path.home()) not in page
    assert fresh.stdout == given.stdout == ""


def test_a_model_of_own_graphs_is_compared_with_its_validation_graphs(graphs: Path) -> None:
    run("convert", graphs, "mine.g6")
    run("train", "mine.g6", "--preset", "one-shot", "--epochs", 1, "--width", 8, "--threads", 1)
    run("report", "mine", "-o", "mine.html", *QUICK)

    assert "validation graph" in Path("mine.html").read_text(encoding="utf-8")


def test_names_that_utf8_cannot_encode_are_replaced(model: Path) -> None:
    graph = {"graph": {"name": "half \ud800"}, "nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1}]}
    Path("odd.jsonl").write_text(f"{json.dumps(graph)}\n" * 2, encoding="utf-8")
    run("report", model, "--samples", "odd.jsonl", "-o", "odd.html", *QUICK)

    assert "half ?" in Path("odd.html").read_text(encoding="utf-8")


def test_a_model_of_one_network_is_compared_with_it(groups: Path) -> None:
    run("train", "--single", groups, "--epochs", 5, "--threads", 1)
    run("report", "groups", "--reference", groups, "-o", "groups.html", "--threads", 1)

    page = Path("groups.html").read_text(encoding="utf-8")
    assert "Kolmogorov-Smirnov distance" in page
    assert "the network 30" in page


@pytest.mark.slow
def test_the_bundled_model_has_a_report_of_a_few_megabytes() -> None:
    run("report", "bundled:barabasi", "-o", "report.html", "--nll-graphs", 4, "--threads", 1)

    assert Path("report.html").stat().st_size < 5_000_000


def test_a_report_compares_and_colours_labels(model: Path, molecules: tuple[Path, Path]) -> None:
    pytest.importorskip("matplotlib")
    files = ("--samples", molecules[0], "--reference", molecules[1])
    done = run("report", model, *files, "-o", "a.html", "--nll-graphs", 0, "--threads", 1)
    run("report", model, *files, "--node-label", "element", "-o", "b.html", "--nll-graphs", 0, "--threads", 1)

    pages = [Path(name).read_text(encoding="utf-8") for name in ("a.html", "b.html")]
    assert "coloured by 'charge'" in done.stderr
    assert "Colours of nodes by charge" in pages[0]
    assert "Colours of nodes by element" in pages[1]
    assert "<td>element</td><td>assortativity </td>" in pages[0]
    assert "uniqueness and novelty are structural" in pages[0]
