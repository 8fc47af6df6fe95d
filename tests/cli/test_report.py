from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .conftest import Invoke, assert_error, is_one_line

QUICK = ("--count", 12, "--nll-graphs", 3, "--threads", 1)


def test_a_report_is_one_file(invoke: Invoke, model: Path, graphs: Path) -> None:
    pytest.importorskip("matplotlib")
    fresh = invoke("report", model, "-o", "fresh.html", *QUICK)
    given = invoke("report", model, "--reference", graphs, "--samples", graphs, "-o", "given.html", *QUICK)

    assert fresh.exit_code == 0, fresh.stderr
    assert given.exit_code == 0, given.stderr
    assert "new graphs of the family &#39;ego&#39;" in Path("fresh.html").read_text(encoding="utf-8")
    page = Path("given.html").read_text(encoding="utf-8")
    assert "4 graphs of &#39;" in page
    assert "entropy" in page
    assert str(Path.home()) not in page
    assert fresh.stdout == given.stdout == ""


def test_a_model_of_own_graphs_is_compared_with_its_validation_graphs(invoke: Invoke, graphs: Path) -> None:
    assert invoke("convert", graphs, "mine.g6").exit_code == 0
    line = ("train", "mine.g6", "--preset", "one-shot", "--epochs", 1, "--width", 8, "--threads", 1, "--name", "mine")
    assert invoke(*line).exit_code == 0
    result = invoke("report", "mine", "-o", "mine.html", *QUICK)

    assert result.exit_code == 0, result.stderr
    page = Path("mine.html").read_text(encoding="utf-8")
    assert "validation graph" in page


def test_names_that_utf8_cannot_encode_are_replaced(invoke: Invoke, model: Path) -> None:
    graph = (
        '{"graph": {"name": "half \\ud800"}, "nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1}]}'
    )
    Path("odd.jsonl").write_text(f"{graph}\n{graph}\n", encoding="utf-8")
    result = invoke("report", model, "--samples", "odd.jsonl", "-o", "odd.html", *QUICK)

    assert result.exit_code == 0, result.stderr
    assert "half ?" in Path("odd.html").read_text(encoding="utf-8")


def test_mistakes_end_in_one_line_and_nothing_is_written(
    invoke: Invoke, model: Path, graphs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("taken.html").write_text("mine", encoding="utf-8")
    for line, problem in (
        (["missing", "-o", "a.html"], "no model 'missing'"),
        ([model, "-o", "taken.html"], "taken.html"),
        ([model, "-o", "no/where.html"], "does not exist"),
        ([model, "--reference", "missing.h5", "-o", "a.html"], "missing.h5"),
        ([model, "--samples", model, "-o", "a.html"], "is a model; expected graphs"),
    ):
        result = invoke("report", *line)
        assert result.exit_code == 1
        assert is_one_line(result.stderr.splitlines(keepends=True)[-1])
        assert problem in result.stderr
    assert invoke("report", model, "-o", "a.txt").exit_code == 2
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = invoke("report", model, "-o", "a.html")
    assert_error(result, "graphite-gen[plot]")
    assert sorted(path.name for path in Path().glob("*.html")) == ["taken.html"]
    assert Path("taken.html").read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
def test_the_bundled_model_has_a_report_of_a_few_megabytes(invoke: Invoke) -> None:
    result = invoke("report", "bundled:barabasi", "-o", "report.html", "--nll-graphs", 4, "--threads", 1)

    assert result.exit_code == 0, result.stderr
    assert Path("report.html").stat().st_size < 5_000_000
