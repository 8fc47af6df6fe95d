import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

from graphite_gen.api import load
from graphite_gen.cli.commands.nll import nll
from graphite_gen.families import family
from graphite_gen.families.simulate import generate_graphs
from graphite_gen.io import read_graphs, write_graphs
from graphite_gen.likelihood.annealed import CHAINS, STEPS

from .conftest import TINY, assert_error, invoke, run, run_json

Line = tuple[object, ...]


@pytest.fixture
def score(graphs: Path, model: Path) -> Line:
    """The command that scores the graphs under the tiny model."""
    return ("nll", graphs, "--model", model)


def words(text: str) -> str:
    """A table without the spaces and line breaks of its columns."""
    return " ".join(text.split())


def test_json_has_the_librarys_estimate_and_the_exact_entropy(score: Line, graphs: Path, model: Path) -> None:
    value = run_json(*score, "-k", 50, "--seed", 2)
    test = [graph for graph in read_graphs(graphs) if graph.attributes["split"] == "test"]
    expected = load(model).nll(test, samples=50, seed=2)
    entropies = [-family("ego").log_prob(graph) for graph in test]
    excess = np.array([row.nll for row in expected.per_graph]) - entropies

    assert value["khat"] == pytest.approx(expected.khat)
    assert (value["graphs"], value["samples"], value["model"]) == (4, 50, "ego")
    assert value["nll"] == pytest.approx(expected.nll)
    assert value["elbo"] <= -value["nll"]
    assert value["entropy"] == value["floor"] == pytest.approx(np.mean(entropies))
    assert value["excess"] == pytest.approx(excess.mean())
    assert value["excess_standard_error"] == pytest.approx(excess.std(ddof=1) / 2)
    assert (value["paired"], value["floor_standard_error"]) == (True, None)


def test_values_per_graph_average_to_the_total_and_the_table_has_the_same_figures(score: Line) -> None:
    line = (*score, "-k", 20, "--split", "all", "--per-graph", "--curve")
    value, text = run_json(*line), run(*line, env={"COLUMNS": "80"}).stdout
    covered = (value["baseline"] - value["nll"]) / (value["baseline"] - value["floor"])

    assert len(value["per_graph"]) == value["graphs"] == 12
    for key in ("nll", "elbo", "baseline", "floor", "size_nats"):
        assert np.mean([row[key] for row in value["per_graph"]]) == pytest.approx(value[key])
    for key in ("nll", "baseline", "floor", "excess", "size_nats"):
        assert f"{value[key]:.2f}" in text
    assert value["covered"] == pytest.approx(covered)
    assert f"{covered:.0%} of the way" in words(text)
    assert [point["samples"] for point in value["curve"]] == [1, 10, 20]
    assert value["curve"][0]["nll"] == pytest.approx(-value["elbo"])
    assert value["curve"][-1]["nll"] == pytest.approx(value["nll"])
    for point in value["curve"]:
        assert f"{point['nll']:.2f} ± {point['standard_error']:.2f}" in text
    assert max(map(cell_len, text.splitlines())) <= 80
    assert "\x1b" not in text


@pytest.mark.parametrize(("split", "count"), [("train", 4), ("validation", 4), ("test", 4), ("all", 12), (None, 4)])
def test_a_split_can_be_chosen_and_the_choice_is_printed(score: Line, split: str | None, count: int) -> None:
    result = run(*score, "-k", 2, "--json", *(() if split is None else ("--split", split)))

    assert json.loads(result.stdout)["graphs"] == count
    assert f"Scoring {'all ' if count == 12 else ''}{count}" in result.stderr


def test_all_graphs_are_scored_if_none_is_marked(graphs: Path, model: Path) -> None:
    run("convert", graphs, "plain.g6")
    result = run("nll", "plain.g6", "--model", model, "-k", 2, "--json")
    value = json.loads(result.stdout)

    assert (value["graphs"], value["floor"]) == (12, None)
    assert "marks no graphs" in result.stderr


def test_a_family_can_be_named_and_must_contain_the_graphs(score: Line, graphs: Path) -> None:
    line = (*score, "-k", 2, "--split", "all", "--family")
    er = run_json(*line, "er")

    pairs = [graph.nodes * (graph.nodes - 1) / 2 for graph in read_graphs(graphs)]
    assert er["floor"] == pytest.approx(np.mean(pairs) * np.log(2))
    # The baseline is the true process.
    assert er["covered"] is None
    for name in ("tree", "geometric"):
        result = run(*line, name, "--json")
        assert json.loads(result.stdout)["floor"] is json.loads(result.stdout)["excess"] is None
        assert "No entropy: " in result.stderr


def test_geometric_graphs_are_compared_with_the_shipped_entropy(model: Path) -> None:
    write_graphs(generate_graphs(family("geometric"), 5, (10, 12), 1), "near.h5")
    line = ("nll", "near.h5", "--model", model, "-k", 5, "--family", "geometric", "--split", "all", "--per-graph")
    value, text = run_json(*line), words(run(*line).stdout)

    assert value["paired"] is False
    assert value["floor_standard_error"] > 0
    assert {row["floor"] for row in value["per_graph"]} == {None}
    assert f"{value['floor']:.2f} ± {value['floor_standard_error']:.2f} (true process, expected for these" in text
    assert f"{value['excess']:.2f} ± {value['excess_standard_error']:.2f} above the entropy, not paired" in text
    assert f"{value['covered']:.0%} of the way" in text


def test_an_unknown_entropy_is_null_and_the_command_to_estimate_it_is_printed(model: Path) -> None:
    write_graphs(generate_graphs(family("geometric", r=0.6), 5, (10, 12), 1), "far.h5")
    options = ("--split", "all", "--family", "geometric", "--param", "r=0.6")
    result = run("nll", "far.h5", "--model", model, "-k", 2, *options, "--json")
    value = json.loads(result.stdout)

    for key in ("floor", "excess", "excess_standard_error", "paired", "covered"):
        assert value[key] is None
    (note,) = (text for text in result.stderr.splitlines() if text.startswith("No entropy: "))
    assert "graphite-gen families --entropy geometric --param r=0.6 --nodes 10:12" in note


def test_convention_paper_is_declared_not_to_be_a_distribution(score: Line) -> None:
    text = words(run(*score, "-k", 2, "--convention", "paper").stdout)

    assert "not a distribution" in text
    assert "entropy" not in text


def test_sizes_outside_the_training_graphs_are_mentioned(model: Path) -> None:
    run("generate", "--family", "ego", "-n", 6, "--nodes", "8:9", "-o", "large.h5")
    result = run("nll", "large.h5", "--model", model, "-k", 2, "--json")

    assert "not trained on graphs with 9 nodes" in result.stderr
    assert json.loads(result.stdout)["size_nats"] is None


def test_the_bundled_model_of_the_files_family_is_preferred(graphs: Path, model: Path, bundled: Path) -> None:
    for name in ("barabasi", "ego"):
        shutil.copytree(model, bundled / name, ignore=shutil.ignore_patterns("state.json"))
    notes = run("nll", graphs, "-k", 2).stderr

    assert str(bundled / "ego") in notes
    assert "graphs' family" in notes
    # Without graphs there is no family to prefer.
    assert f"'{bundled / 'barabasi'}': the bundled model" in run("sample", "-n", 1, "-o", "a.g6").stderr


@pytest.fixture
def quick_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit proposals in a few steps only."""
    monkeypatch.setattr("graphite_gen.likelihood.proposal.FIT_STEPS", 3)


@pytest.mark.usefixtures("quick_fit")
def test_annealing_is_the_librarys_and_the_table_shows_the_method(score: Line, graphs: Path, model: Path) -> None:
    line = (*score, "--method", "auto", "-k", 5, "--chains", 30, "--steps", 2)
    value = run_json(*line, "--per-graph")
    test = [graph for graph in read_graphs(graphs) if graph.attributes["split"] == "test"]
    expected = load(model).nll(test, samples=5, method="auto", chains=30, steps=2, seed=0)

    assert value["nll"] == pytest.approx(expected.nll)
    assert (value["method"], value["annealed"], value["chains"], value["steps"]) == ("auto", 4, 30, 2)
    assert [row["method"] for row in value["per_graph"]] == ["ais"] * 4
    assert "for 4 of 4 graphs 30 annealed chains of 2" in words(run(*line).stdout)


def test_unreliable_weights_are_flagged(score: Line) -> None:
    value, few = run_json(*score, "-k", 60), run_json(*score, "-k", 5)

    assert value["flagged"] >= 1
    assert f"k̂ > 0.7 for {value['flagged']} of 4 graphs" in value["diagnosis"]
    assert "use '--method auto'" in value["diagnosis"]
    assert "too few weights to estimate k̂ for 4 of 4 graphs" in few["diagnosis"]
    assert few["khat"] is None


@pytest.mark.usefixtures("quick_fit")
def test_the_check_has_bounds_and_a_verdict(score: Line) -> None:
    line = (*score, "-k", 30, "--chains", 8, "--steps", 4, "--check", "--check-graphs", 2)
    check, text = run_json(*line)["check"], words(run(*line).stdout)

    assert check["graphs"] == len(check["per_graph"]) == 2
    assert check["gap"] == pytest.approx(check["upper"] - check["lower"])
    assert check["trusted"] == check["verdict"].startswith("reliable")
    assert check["verdict"] in text
    assert f"bounds {check['lower']:.2f} to {check['upper']:.2f}" in text


def test_classes_are_scored_by_models_without_identity_features(score: Line, graphs: Path) -> None:
    pytest.importorskip("igraph")
    line = (*score, "-k", 5)
    plain, classes = run_json(*line), run_json(*line, "--unlabelled")
    run("train", "--family", "ego", *TINY, "--preset", "paper")

    assert classes["unlabelled"]
    assert classes["excess"] == pytest.approx(plain["excess"])
    assert plain["nll"] - classes["nll"] == pytest.approx(plain["floor"] - classes["floor"]) != 0
    assert "isomorphism class" in run(*line, "--unlabelled").stdout
    assert "identity features" in run("nll", graphs, "-k", 2).stderr
    assert_error(invoke("nll", graphs, "-k", 2, "--unlabelled"), "omit '--unlabelled'", after_notes=True)


def test_a_model_of_another_family_gets_a_finding_and_a_note_on_the_one_to_use(model: Path, bundled: Path) -> None:
    run("generate", "--family", "tree", "-n", 12, "--nodes", "5:8", "-o", "tree.h5")
    line = ("nll", "tree.h5", "--model", model, "-k", 30, "--split", "all")
    none = run(*line, "--json")
    shutil.copytree(model, bundled / "powerlaw-tree", ignore=shutil.ignore_patterns("state.json"))
    shown = run(*line)
    value = json.loads(none.stdout)

    assert value["nll"] > value["baseline"] + 1
    assert "above the ER baseline, which does better" in value["remark"]
    assert value["remark"] in words(shown.stdout)
    assert "was trained on 'ego' graphs, but these are 'powerlaw-tree' graphs" in none.stderr
    assert "graphite-gen train --family powerlaw-tree" in none.stderr
    assert "Use '--model powerlaw-tree'" in shown.stderr


def test_defaults_are_the_librarys() -> None:
    defaults = {option.name: option.default for option in nll.params}

    assert (defaults["chains"], defaults["steps"]) == (CHAINS, STEPS)


def test_an_autoregressive_model_is_scored_and_checked_without_annealing(graphs: Path) -> None:
    run("train", "--family", "ego", *TINY, "--name", "ar")
    line = ("nll", graphs, "--model", "ar", "--samples", 30, "--check", "--check-graphs", 3)
    auto = run(*line, "--method", "auto", "--json")
    found = json.loads(auto.stdout)

    assert found["method"] == "is"
    assert "'--method auto' is importance sampling" in auto.stderr
    assert len(found["check"]["per_graph"]) == 3
    assert_error(invoke("nll", graphs, "--model", "ar", "--method", "ais"), "anneal", after_notes=True)
    for option in ("--chains", "--steps"):
        assert_error(invoke(*line, option, 5), f"'{option}' has no effect on an autoregressive model", code=2)
