from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from graphite_gen.api import load
from graphite_gen.families import family
from graphite_gen.formats import read_graphs

from .conftest import TINY, Invoke, is_one_line, only_json

KEYS = {
    "model",
    "convention",
    "graphs",
    "samples",
    "nll",
    "standard_error",
    "elbo",
    "ess",
    "khat",
    "size_nats",
    "baseline",
    "floor",
    "excess",
    "excess_standard_error",
}


def test_json_is_the_librarys_estimate_beside_the_exact_floor(invoke: Invoke, graphs: Path, model: Path) -> None:
    value = only_json(invoke("nll", graphs, "--model", model, "-k", 50, "--seed", 2, "--json"))
    test = [graph for graph in read_graphs(graphs) if graph.attributes["split"] == "test"]
    expected = load(model).nll(test, samples=50, seed=2)
    floors = [-family("ego").log_prob(graph) for graph in test]
    excess = np.array([row.nll for row in expected.per_graph]) - floors

    assert set(value) >= KEYS
    assert value["khat"] == pytest.approx(expected.khat)
    assert (value["graphs"], value["samples"], value["model"]) == (4, 50, "ego")
    assert value["nll"] == pytest.approx(expected.nll)
    assert value["elbo"] <= -value["nll"]
    assert value["floor"] == pytest.approx(np.mean(floors))
    assert value["excess"] == pytest.approx(excess.mean())
    assert value["excess_standard_error"] == pytest.approx(excess.std(ddof=1) / 2)


def test_rows_of_each_graph_average_to_the_whole(invoke: Invoke, graphs: Path, model: Path) -> None:
    value = only_json(invoke("nll", graphs, "--model", model, "-k", 5, "--split", "all", "--per-graph", "--json"))

    assert len(value["per_graph"]) == value["graphs"] == 12
    for key in ("nll", "elbo", "baseline", "floor", "size_nats"):
        assert np.mean([row[key] for row in value["per_graph"]]) == pytest.approx(value[key])


def test_the_table_has_the_same_figures(invoke: Invoke, graphs: Path, model: Path) -> None:
    line = ("nll", graphs, "--model", model, "-k", 5)
    value = only_json(invoke(*line, "--json"))
    text = invoke(*line, "--per-graph", env={"COLUMNS": "80"}).stdout

    for key in ("nll", "baseline", "floor", "excess", "size_nats"):
        assert f"{value[key]:.2f}" in text
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text


@pytest.mark.parametrize(("split", "count"), [("train", 4), ("validation", 4), ("test", 4), ("all", 12), (None, 4)])
def test_splits_choose_graphs_and_the_choice_is_told(
    invoke: Invoke, graphs: Path, model: Path, split: str | None, count: int
) -> None:
    option = () if split is None else ("--split", split)
    result = invoke("nll", graphs, "--model", model, "-k", 2, *option, "--json")

    assert only_json(result)["graphs"] == count
    assert f"Scoring {'all ' if count == 12 else ''}{count}" in result.stderr


def test_all_graphs_are_scored_where_none_is_marked(invoke: Invoke, graphs: Path, model: Path) -> None:
    assert invoke("convert", graphs, "plain.g6").exit_code == 0
    result = invoke("nll", "plain.g6", "--model", model, "-k", 2, "--json")
    value = only_json(result)

    assert value["graphs"] == 12
    assert value["floor"] is None
    assert "marks no graphs" in result.stderr
    missing = invoke("nll", "plain.g6", "--model", model, "--split", "test")
    assert missing.exit_code == 1
    assert "split" in missing.stderr


def test_a_law_can_be_named_and_must_contain_the_graphs(invoke: Invoke, graphs: Path, model: Path) -> None:
    line = ("nll", graphs, "--model", model, "-k", 2, "--json", "--split", "all")
    er = only_json(invoke(*line, "--family", "er"))
    tree = invoke(*line, "--family", "tree")

    assert er["floor"] == pytest.approx(
        np.mean([graph.nodes * (graph.nodes - 1) / 2 * np.log(2) for graph in read_graphs(graphs)])
    )
    assert only_json(tree)["floor"] is None
    assert "No floor: " in tree.stderr
    geometric = invoke(*line, "--family", "geometric")
    assert only_json(geometric)["excess"] is None
    assert "No floor: " in geometric.stderr
    assert is_one_line(invoke("nll", graphs, "--family", "nobody").stderr)


def test_the_papers_convention_is_said_to_be_no_law(invoke: Invoke, graphs: Path, model: Path) -> None:
    result = invoke("nll", graphs, "--model", model, "-k", 2, "--convention", "paper")

    assert result.exit_code == 0
    assert "no law over graphs" in result.stdout
    assert "floor" not in result.stdout


def test_a_model_that_numbers_nodes_is_said_to(invoke: Invoke, graphs: Path) -> None:
    assert invoke("train", "--family", "ego", *TINY, "--preset", "paper").exit_code == 0
    result = invoke("nll", graphs, "-k", 2)

    assert result.exit_code == 0
    assert "depends on how the file numbers them" in result.stderr


def test_unseen_sizes_are_told(invoke: Invoke, model: Path) -> None:
    assert invoke("generate", "--family", "ego", "-n", 6, "--nodes", "8:9", "-o", "large.h5").exit_code == 0
    result = invoke("nll", "large.h5", "--model", model, "-k", 2, "--json")

    assert "never saw graphs with 9 nodes" in result.stderr
    assert only_json(result)["size_nats"] is None


def test_the_bundled_model_of_the_files_family_is_preferred(
    invoke: Invoke, graphs: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("barabasi", "ego"):
        shutil.copytree(model, tmp_path / "bundled" / name)
    monkeypatch.setattr("graphite_gen.checkpoint.bundled_folder", lambda: tmp_path / "bundled")
    result = invoke("nll", graphs, "-k", 2)

    assert result.exit_code == 0
    assert str(tmp_path / "bundled" / "ego") in result.stderr
    assert "graphs' family" in result.stderr


def test_stdin_is_read(invoke: Invoke, graphs: Path, model: Path) -> None:
    text = invoke("convert", graphs, "-", "--output-format", "jsonl").stdout_bytes
    value = only_json(invoke("nll", "-", "--format", "jsonl", "--model", model, "-k", 2, "--json", input=text))

    assert value["graphs"] == 4


@pytest.mark.parametrize("line", [("missing.h5",), (".",), ("a.txt",)])
def test_what_cannot_be_read_is_one_line(invoke: Invoke, model: Path, line: tuple[str, ...]) -> None:
    result = invoke("nll", *line, "--model", model)

    assert result.exit_code == 1
    assert is_one_line(result.stderr)


def test_wrong_usage_is_exit_two(invoke: Invoke, graphs: Path) -> None:
    assert invoke("nll").exit_code == 2
    assert invoke("nll", graphs, "-k", 0).exit_code == 2
    assert invoke("nll", graphs, "--param", "m=3").exit_code == 2
    assert invoke("nll", graphs, "--split", "most").exit_code == 2
