from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphite_gen.api import load
from graphite_gen.families import family
from graphite_gen.families.entropies import known_entropy
from graphite_gen.families.simulate import generate_graphs
from graphite_gen.io import read_graphs, write_graphs

from .conftest import TINY, Invoke, assert_error, is_one_line, only_json

KEYS = (
    "model convention graphs samples nll standard_error elbo ess khat size_nats baseline entropy "
    "entropy_standard_error floor floor_standard_error excess excess_standard_error"
)


def test_json_has_the_librarys_estimate_and_the_exact_entropy(invoke: Invoke, graphs: Path, model: Path) -> None:
    value = only_json(invoke("nll", graphs, "--model", model, "-k", 50, "--seed", 2, "--json"))
    test = [graph for graph in read_graphs(graphs) if graph.attributes["split"] == "test"]
    expected = load(model).nll(test, samples=50, seed=2)
    entropies = [-family("ego").log_prob(graph) for graph in test]
    excess = np.array([row.nll for row in expected.per_graph]) - entropies

    assert set(value) >= set(KEYS.split())
    assert value["khat"] == pytest.approx(expected.khat)
    assert (value["graphs"], value["samples"], value["model"]) == (4, 50, "ego")
    assert value["nll"] == pytest.approx(expected.nll)
    assert value["elbo"] <= -value["nll"]
    assert value["entropy"] == value["floor"] == pytest.approx(np.mean(entropies))
    assert value["excess"] == pytest.approx(excess.mean())
    assert value["excess_standard_error"] == pytest.approx(excess.std(ddof=1) / 2)
    assert (value["paired"], value["floor_standard_error"]) == (True, None)


def test_values_per_graph_average_to_the_total(invoke: Invoke, graphs: Path, model: Path) -> None:
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
def test_a_split_can_be_chosen_and_the_choice_is_printed(
    invoke: Invoke, graphs: Path, model: Path, split: str | None, count: int
) -> None:
    option = () if split is None else ("--split", split)
    result = invoke("nll", graphs, "--model", model, "-k", 2, *option, "--json")

    assert only_json(result)["graphs"] == count
    assert f"Scoring {'all ' if count == 12 else ''}{count}" in result.stderr


def test_all_graphs_are_scored_if_none_is_marked(invoke: Invoke, graphs: Path, model: Path) -> None:
    assert invoke("convert", graphs, "plain.g6").exit_code == 0
    result = invoke("nll", "plain.g6", "--model", model, "-k", 2, "--json")
    value = only_json(result)

    assert value["graphs"] == 12
    assert value["floor"] is None
    assert "marks no graphs" in result.stderr
    missing = invoke("nll", "plain.g6", "--model", model, "--split", "test")
    assert missing.exit_code == 1
    assert "split" in missing.stderr


def test_a_family_can_be_named_and_must_contain_the_graphs(invoke: Invoke, graphs: Path, model: Path) -> None:
    line = ("nll", graphs, "--model", model, "-k", 2, "--json", "--split", "all")
    er = only_json(invoke(*line, "--family", "er"))
    tree = invoke(*line, "--family", "tree")

    assert er["floor"] == pytest.approx(
        np.mean([graph.nodes * (graph.nodes - 1) / 2 * np.log(2) for graph in read_graphs(graphs)])
    )
    assert only_json(tree)["floor"] is None
    assert "No entropy: " in tree.stderr
    geometric = invoke(*line, "--family", "geometric")
    assert only_json(geometric)["excess"] is None
    assert "No entropy: " in geometric.stderr
    assert is_one_line(invoke("nll", graphs, "--family", "nobody").stderr)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Geometric graphs of the sizes in the table, and with another radius."""
    folder = tmp_path_factory.mktemp("geometric")
    for name, param in (("near.h5", "r=0.5"), ("far.h5", "r=0.6")):
        write_graphs(generate_graphs(family("geometric", r=param[2:]), 5, (10, 12), 1), folder / name)

    return folder / "near.h5", folder / "far.h5"


def test_geometric_graphs_are_compared_with_the_shipped_entropy(
    invoke: Invoke, model: Path, scored: tuple[Path, Path]
) -> None:
    near, _ = scored
    line = ("nll", near, "--model", model, "-k", 5, "--family", "geometric", "--split", "all")
    value = only_json(invoke(*line, "--json", "--per-graph"))
    entropies = {n: known_entropy(family("geometric"), n) for n in (10, 11, 12)}
    expected = np.array([entropies[row["nodes"]].nats for row in value["per_graph"]])
    excess = np.array([row["nll"] for row in value["per_graph"]]) - expected

    assert value["paired"] is False
    assert value["floor"] == pytest.approx(expected.mean())
    assert value["excess"] == pytest.approx(excess.mean())
    spread = excess.std(ddof=1) / len(excess) ** 0.5
    assert value["excess_standard_error"] == pytest.approx(np.hypot(spread, value["floor_standard_error"]))
    assert value["floor_standard_error"] > 0
    assert {row["floor"] for row in value["per_graph"]} == {None}
    assert value["covered"] is not None

    text = " ".join(invoke(*line, "--per-graph").stdout.split())
    assert (
        f"{value['floor']:.2f} ± {value['floor_standard_error']:.2f} (true process, expected for these sizes)" in text
    )
    assert f"{value['excess']:.2f} ± {value['excess_standard_error']:.2f} above the entropy, not paired" in text
    assert f"{value['covered']:.0%} of the way" in text


def test_an_unknown_entropy_is_null_and_the_command_to_estimate_it_is_printed(
    invoke: Invoke, model: Path, scored: tuple[Path, Path]
) -> None:
    line = ("nll", scored[1], "--model", model, "-k", 2, "--split", "all", "--json")
    result = invoke(*line, "--family", "geometric", "--param", "r=0.6")
    value = only_json(result)

    for key in ("floor", "excess", "excess_standard_error", "paired", "covered"):
        assert value[key] is None
    notes = [text for text in result.stderr.splitlines() if text.startswith("No entropy: ")]
    assert len(notes) == 1
    assert "graphite-gen families --entropy geometric --param r=0.6 --nodes 10:12" in notes[0]


def test_convention_paper_is_declared_not_to_be_a_distribution(invoke: Invoke, graphs: Path, model: Path) -> None:
    result = invoke("nll", graphs, "--model", model, "-k", 2, "--convention", "paper")

    assert result.exit_code == 0
    assert "not a distribution" in " ".join(result.stdout.split())
    assert "entropy" not in result.stdout


def test_identity_features_are_mentioned(invoke: Invoke, graphs: Path) -> None:
    assert invoke("train", "--family", "ego", *TINY, "--preset", "paper").exit_code == 0
    result = invoke("nll", graphs, "-k", 2)

    assert result.exit_code == 0
    assert "identity features" in result.stderr


def test_sizes_outside_the_training_graphs_are_mentioned(invoke: Invoke, model: Path) -> None:
    assert invoke("generate", "--family", "ego", "-n", 6, "--nodes", "8:9", "-o", "large.h5").exit_code == 0
    result = invoke("nll", "large.h5", "--model", model, "-k", 2, "--json")

    assert "not trained on graphs with 9 nodes" in result.stderr
    assert only_json(result)["size_nats"] is None


def test_the_bundled_model_of_the_files_family_is_preferred(
    invoke: Invoke, graphs: Path, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("barabasi", "ego"):
        shutil.copytree(model, tmp_path / "bundled" / name, ignore=shutil.ignore_patterns("state.json"))
    monkeypatch.setattr("graphite_gen.training.checkpoint.bundled_folder", lambda: tmp_path / "bundled")
    result = invoke("nll", graphs, "-k", 2)

    assert result.exit_code == 0
    assert str(tmp_path / "bundled" / "ego") in result.stderr
    assert "graphs' family" in result.stderr


def test_stdin_is_read(invoke: Invoke, graphs: Path, model: Path) -> None:
    text = invoke("convert", graphs, "-", "--output-format", "jsonl").stdout_bytes
    value = only_json(invoke("nll", "-", "--format", "jsonl", "--model", model, "-k", 2, "--json", input=text))

    assert value["graphs"] == 4


@pytest.mark.parametrize("line", [("missing.h5",), (".",), ("a.txt",)])
def test_an_unreadable_file_is_reported_in_one_line(invoke: Invoke, model: Path, line: tuple[str, ...]) -> None:
    assert_error(invoke("nll", *line, "--model", model))


def test_wrong_usage_is_exit_two(invoke: Invoke, graphs: Path) -> None:
    assert invoke("nll").exit_code == 2
    assert invoke("nll", graphs, "-k", 0).exit_code == 2
    assert invoke("nll", graphs, "--param", "m=3").exit_code == 2
    assert invoke("nll", graphs, "--split", "most").exit_code == 2
    for option in (("--method", "ais"), ("--check",), ("--unlabelled",)):
        assert invoke("nll", graphs, "--convention", "paper", *option).exit_code == 2


@pytest.fixture
def quick_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit proposals in a few steps only."""
    monkeypatch.setattr("graphite_gen.likelihood.proposal.FIT_STEPS", 3)


@pytest.mark.usefixtures("quick_fit")
def test_annealing_is_the_librarys_and_the_table_shows_the_method(invoke: Invoke, graphs: Path, model: Path) -> None:
    line = ("nll", graphs, "--model", model, "--method", "auto", "-k", 5, "--chains", 30, "--steps", 2)
    value = only_json(invoke(*line, "--json", "--per-graph"))
    test = [graph for graph in read_graphs(graphs) if graph.attributes["split"] == "test"]
    expected = load(model).nll(test, samples=5, method="auto", chains=30, steps=2)

    assert value["nll"] == pytest.approx(expected.nll)
    assert (value["method"], value["annealed"], value["chains"], value["steps"]) == ("auto", 4, 30, 2)
    assert [row["method"] for row in value["per_graph"]] == ["ais"] * 4
    assert "for 4 of 4 graphs 30 annealed chains of 2" in " ".join(invoke(*line).stdout.split())


def test_the_covered_fraction_between_baseline_and_entropy_is_shown(invoke: Invoke, graphs: Path, model: Path) -> None:
    line = ("nll", graphs, "--model", model, "-k", 30, "--split", "all")
    value = only_json(invoke(*line, "--json"))
    covered = (value["baseline"] - value["nll"]) / (value["baseline"] - value["floor"])

    assert value["covered"] == pytest.approx(covered)
    assert f"{covered:.0%} of the way" in invoke(*line).stdout
    # The baseline is the true process.
    assert only_json(invoke(*line, "--json", "--family", "er"))["covered"] is None


def test_unreliable_weights_are_flagged(invoke: Invoke, graphs: Path, model: Path) -> None:
    value = only_json(invoke("nll", graphs, "--model", model, "-k", 60, "--json"))
    few = only_json(invoke("nll", graphs, "--model", model, "-k", 5, "--json"))

    assert value["flagged"] >= 1
    assert f"k̂ > 0.7 for {value['flagged']} of 4 graphs" in value["diagnosis"]
    assert "use '--method auto'" in value["diagnosis"]
    assert "too few weights to estimate k̂ for 4 of 4 graphs" in few["diagnosis"]
    assert few["khat"] is None


@pytest.mark.usefixtures("quick_fit")
def test_the_check_has_bounds_and_a_verdict(invoke: Invoke, graphs: Path, model: Path) -> None:
    line = ("nll", graphs, "--model", model, "-k", 30, "--chains", 8, "--steps", 4, "--check", "--check-graphs", 2)
    check = only_json(invoke(*line, "--json"))["check"]
    text = " ".join(invoke(*line).stdout.split())

    assert check["graphs"] == len(check["per_graph"]) == 2
    assert check["gap"] == pytest.approx(check["upper"] - check["lower"])
    assert check["trusted"] == check["verdict"].startswith("reliable")
    assert check["verdict"] in text
    assert f"bounds {check['lower']:.2f} to {check['upper']:.2f}" in text


def test_a_model_worse_than_the_baseline_gets_a_finding(invoke: Invoke, model: Path) -> None:
    assert invoke("generate", "--family", "tree", "-n", 12, "--nodes", "5:8", "-o", "tree.h5").exit_code == 0
    line = ("nll", "tree.h5", "--model", model, "-k", 30, "--split", "all")
    value = only_json(invoke(*line, "--json"))

    assert value["nll"] > value["baseline"] + 1
    assert "above the ER baseline: one edge probability per size does better" in value["remark"]
    assert value["remark"] in " ".join(invoke(*line).stdout.split())


def test_the_curve_is_a_table_and_a_list(invoke: Invoke, graphs: Path, model: Path) -> None:
    line = ("nll", graphs, "--model", model, "-k", 20, "--curve")
    value = only_json(invoke(*line, "--json"))

    assert [point["samples"] for point in value["curve"]] == [1, 10, 20]
    assert value["curve"][0]["nll"] == pytest.approx(-value["elbo"])
    assert value["curve"][-1]["nll"] == pytest.approx(value["nll"])
    for point in value["curve"]:
        assert f"{point['nll']:.2f} ± {point['standard_error']:.2f}" in invoke(*line).stdout


def test_classes_cost_less_and_stay_comparable(invoke: Invoke, graphs: Path, model: Path) -> None:
    pytest.importorskip("igraph")
    from graphite_gen.likelihood.automorphisms import log_labellings

    line = ("nll", graphs, "--model", model, "-k", 5, "--split", "all", "--json")
    plain, classes = only_json(invoke(*line)), only_json(invoke(*line, "--unlabelled"))
    shift = np.mean([log_labellings(graph) for graph in read_graphs(graphs)])

    assert classes["unlabelled"]
    for key in ("nll", "floor", "baseline"):
        assert classes[key] == pytest.approx(plain[key] - shift)
    for key in ("excess", "excess_standard_error", "covered", "size_nats"):
        assert classes[key] == pytest.approx(plain[key])
    assert "isomorphism class" in invoke(*line[:-1], "--unlabelled").stdout


def test_classes_need_igraph_and_an_exchangeable_model(
    invoke: Invoke, graphs: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke("train", "--family", "ego", *TINY, "--preset", "paper").exit_code == 0
    numbering = invoke("nll", graphs, "-k", 2, "--unlabelled")
    monkeypatch.setitem(sys.modules, "igraph", None)
    missing = invoke("nll", graphs, "--model", model, "-k", 2, "--unlabelled")

    assert (numbering.exit_code, missing.exit_code) == (1, 1)
    assert "omit '--unlabelled'" in numbering.stderr
    assert "pip install igraph" in missing.stderr


def test_a_model_of_another_family_is_mentioned_with_the_one_to_use(
    invoke: Invoke, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert invoke("generate", "--family", "tree", "-n", 3, "--nodes", "5:8", "-o", "tree.h5").exit_code == 0
    monkeypatch.setattr("graphite_gen.training.checkpoint.bundled_folder", lambda: tmp_path / "bundled")
    line = ("nll", "tree.h5", "--model", model, "-k", 2)
    none = invoke(*line)
    shutil.copytree(model, tmp_path / "bundled" / "powerlaw-tree", ignore=shutil.ignore_patterns("state.json"))
    bundled = invoke(*line)

    assert "was trained on 'ego' graphs, but these are 'powerlaw-tree' graphs" in none.stderr
    assert "graphite-gen train --family powerlaw-tree" in none.stderr
    assert "Use '--model powerlaw-tree'" in bundled.stderr


def test_an_empty_file_and_weighted_graphs_are_refused_with_advice(invoke: Invoke, model: Path) -> None:
    Path("empty.jsonl").write_text("")
    weighted = nx.Graph()
    weighted.add_edge("a", "b", weight=2.5)
    nx.write_graphml(weighted, "weighted.graphml")

    empty = invoke("nll", "empty.jsonl", "--model", model)
    other = invoke("nll", "weighted.graphml", "--model", model)

    assert empty.exit_code == other.exit_code == 1
    assert "graphite-gen generate" in empty.stderr
    assert "is weighted, but 'ego' was trained on unweighted graphs" in other.stderr
    assert "graphite-gen train" in other.stderr


def test_defaults_are_the_librarys() -> None:
    from graphite_gen.cli.commands.nll import nll
    from graphite_gen.likelihood.annealed import CHAINS, STEPS

    defaults = {option.name: option.default for option in nll.params}

    assert (defaults["chains"], defaults["steps"]) == (CHAINS, STEPS)


def test_an_autoregressive_model_is_scored_and_checked_with_fewer_decoding_steps(invoke: Invoke, graphs: Path) -> None:
    assert invoke("train", "--family", "ego", *TINY, "--name", "ar").exit_code == 0

    def score(*line: object) -> dict[str, Any]:
        common = ("--model", "ar", "--samples", 30, "--check", "--check-graphs", 3, "--json")
        return only_json(invoke("nll", graphs, *common, *line))

    finest, one = score("--method", "auto"), score("--stages", 1)

    assert finest["method"] == "is"
    assert "'--method auto' is importance sampling" in invoke("nll", graphs, "--model", "ar", "--method", "auto").stderr
    assert finest["nll"] != one["nll"]
    assert finest["check"]["lower"] != one["check"]["lower"]
    assert "anneal" in invoke("nll", graphs, "--model", "ar", "--method", "ais").stderr
    for option in ("--chains", "--steps"):
        refused = invoke("nll", graphs, "--model", "ar", "--check", option, 5)
        assert_error(refused, f"'{option}' has no effect on an autoregressive model", code=2)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (("--chains", 64), "'--chains' has no effect on method 'is' without '--check'"),
        (("--steps", 9), "'--steps' has no effect on method 'is' without '--check'"),
        (("--method", "ais", "-k", 9), "'--samples' has no effect on method 'ais' without '--check'"),
        (("--check-graphs", 9), "'--check-graphs' needs '--check'"),
    ],
)
def test_an_option_without_effect_is_refused(invoke: Invoke, graphs: Path, line: tuple[object, ...], what: str) -> None:
    assert_error(invoke("nll", graphs, *line), what, code=2)
