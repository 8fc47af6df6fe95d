"""Benchmarks of the decoder: cost by size, speed against an earlier version, quality by time, families as files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.performance import against_earlier, decoder_scaling
from benchmarks.reproduce import family_as_file, quality_by_time
from graphite_gen.data.dataset import split_of
from graphite_gen.families import family
from graphite_gen.io import read_graphs


def test_the_exponent_of_a_power_law_is_its_own() -> None:
    rows = [{"nodes": n, "training": {"cpu_seconds": 3e-4 * n**1.25}} for n in (40, 160, 2000)]

    assert decoder_scaling.exponent(rows, "training") == pytest.approx(1.25)


@pytest.mark.usefixtures("single_precision")
def test_cost_by_size_continues_its_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.jsonl"

    decoder_scaling.main(["--quick", "--log", str(log)])
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    # The same number of nodes in each size.
    assert [(row["nodes"], row["graphs"]) for row in rows] == [(20, 4), (40, 2)]
    assert "exponent" in capsys.readouterr().out

    decoder_scaling.main(["--quick", "--log", str(log)])
    assert [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()] == rows


def test_ratios_compare_versions_within_a_round_and_not_across_commits() -> None:
    commits = {"earlier": "old beside new", "this": "new"}
    rates = {"old beside new": [1.0, 2.0, 4.0], "new": [10.0, 20.0, 80.0], "other": [1e6, 1e6, 1e6]}
    rows = [
        {"task": "ego", "version": version, "round": number, "commit": commit, "rate": rate, "mean_degree": 4.0}
        for version, commit in [*commits.items(), ("this", "other")]
        for number, rate in enumerate(rates[commit])
    ]

    (line,) = against_earlier.summarise(rows, commits)

    assert line[:3] == ["ego", "2", "20"]
    assert line[5] == "10.0× (10.0 to 20.0)"


@pytest.mark.parametrize("task", against_earlier.BRIEF)
def test_briefly_trained_models_have_graphs_of_the_stated_size(task: str, tmp_path: Path) -> None:
    graphs = list(read_graphs(against_earlier.training_file(task, tmp_path)))

    assert len(graphs) == against_earlier.BRIEF[task][0]
    assert {graph.nodes for graph in graphs} == {int(task.rpartition(" ")[2])}
    if task.startswith("mean degree"):
        assert np.mean([2 * len(graph.edges) / graph.nodes for graph in graphs]) == 4


def test_quality_by_time_is_drawn_for_both_versions(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"version": version, "family": name, "budget": budget, "seed": 0, "minutes": budget + 0.1, "commit": version}
        | {"excess": 0.1 / budget - 0.02, "excess_error": 0.01}
        for version in ("this", "earlier")
        for name in quality_by_time.LINES
        for budget in (0.5, 8.0)
    ]
    picture = tmp_path / "images" / "picture.png"

    quality_by_time.draw(rows, picture)
    header, lines = quality_by_time.table(rows)

    assert picture.read_bytes().startswith(b"\x89PNG")
    assert header == ["family", "commit", "0.5 min", "8 min"]
    assert len(lines) == 12
    assert lines[0][2] == "0.180 ± 0.010 (0.6)"


def test_a_family_is_written_without_its_name_or_splits(tmp_path: Path) -> None:
    file = family_as_file.write_family("ego", 20, 0, tmp_path)

    reader = read_graphs(file)
    graphs = list(reader)
    assert len(graphs) == 20
    assert all(map(family("ego").contains, graphs))
    assert {split_of(graph) for graph in graphs} == {None}
    assert reader.provenance.family is None
