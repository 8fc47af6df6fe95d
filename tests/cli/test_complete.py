from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import networkx as nx
import pytest
from tiny import autoregressive_model

from graphite_gen.cli import console
from graphite_gen.cli.diagnosis import completion_diagnosis
from graphite_gen.completion import Completion
from graphite_gen.io import read_graphs
from graphite_gen.training.checkpoint import save_checkpoint

from .conftest import Invoke, is_one_line

FAST = ("--particles", 8, "--threads", 1)


@pytest.fixture
def partial(own_folder: Path) -> Path:
    """A star with two unknown and one absent edge, between named nodes."""
    graph = nx.Graph([("hub", name) for name in "abcd"])
    graph.add_edge("a", "b", state="unknown")
    graph.add_edge("c", "d", state="unknown")
    graph.add_edge("a", "c", state="absent")
    path = own_folder / "partial.graphml"
    nx.write_graphml(graph, path)

    return path


def test_known_pairs_stay_in_every_completed_graph(invoke: Invoke, model: Path, partial: Path) -> None:
    result = invoke("complete", partial, "-n", 5, "--model", model, *FAST, "-o", "out.graphml")

    assert result.exit_code == 0, result.stderr
    assert "10 pairs: 2 unknown, 4 present, 4 absent." in result.stderr
    reader = read_graphs("out.graphml")
    assert (reader.provenance.source, reader.provenance.model) == ("complete", "ego")
    graphs = [graph.to_networkx() for graph in reader]
    assert len(graphs) == 5
    for graph in graphs:
        assert set(graph) == {"hub", *"abcd"}
        assert set(graph["hub"]) == set("abcd")
        assert {frozenset(edge) for edge in graph.edges} - {frozenset(("hub", n)) for n in "abcd"} <= {
            frozenset("ab"),
            frozenset("cd"),
        }


def test_stdout_has_the_format_of_the_input(invoke: Invoke, model: Path, partial: Path) -> None:
    default, dash = (invoke("complete", partial, "-n", 2, "--model", model, *FAST, *to) for to in ((), ("-o", "-")))

    assert default.exit_code == 0, default.stderr
    assert dash.stdout == default.stdout
    Path("again.graphml").write_text(default.stdout, encoding="utf-8")
    assert len(list(read_graphs("again.graphml"))) == 2


def test_scores_are_ranked_as_csv_and_as_json(invoke: Invoke, model: Path, partial: Path) -> None:
    line = ("complete", partial, "--model", model, *FAST, "--unlisted", "unknown", "--scores")
    result, again = invoke(*line, "-"), invoke(*line, "s.json", "-o", "o.jsonl")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    table = json.loads(Path("s.json").read_text(encoding="utf-8"))

    assert result.exit_code == again.exit_code == 0, again.stderr
    assert {frozenset((row["source"], row["target"])) for row in rows} == {
        frozenset(pair) for pair in ("ab", "cd", "ad", "bc", "bd")
    }
    chances = [float(row["probability"]) for row in rows]
    assert chances == sorted(chances, reverse=True)
    assert [(row["source"], row["target"]) for row in table] == [(row["source"], row["target"]) for row in rows]
    assert set(table[0]) == {"source", "target", "probability", "standard_error"}


def test_added_nodes_are_marked_and_named(invoke: Invoke, model: Path, graphs: Path) -> None:
    line = ("complete", graphs, "--graph", 1, "--add-nodes", 2, "-n", 3, "--model", model, *FAST, "-o", "out.jsonl")
    before = list(read_graphs(graphs))[1]
    assert invoke(*line).exit_code == 0

    for graph in read_graphs("out.jsonl"):
        assert graph.nodes == before.nodes + 2
        assert graph.node_attributes["added"] == [False] * before.nodes + [True] * 2
        old = [edge for edge in graph.edges.tolist() if edge[1] < before.nodes]
        assert old == before.edges.tolist()


def test_steps_are_refused_by_a_one_shot_model(invoke: Invoke, model: Path, partial: Path) -> None:
    result = invoke("complete", partial, "--model", model, "--steps", 8)

    assert result.exit_code == 2
    assert "'--steps' has no effect" in result.stderr


def test_the_seed_determines_the_samples(invoke: Invoke, model: Path, partial: Path) -> None:
    line = ("complete", partial, "--model", model, *FAST, "--unlisted", "unknown", "--format", "g6", "-o", "-")
    one, two, other = (invoke(*line, "--seed", seed).stdout for seed in (1, 1, 2))

    assert one == two != other


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--graph 3", "graph 3"),
        ("--scores ranking.txt", "'.json'"),
        ("--scores partial.graphml", "'.json'"),
        ("--scores missing/s.csv", "'missing'"),
        ("-o missing/o.jsonl", "'missing'"),
        ("-o partial.graphml/o.jsonl", "'partial.graphml' is a file"),
        ("--scores partial.graphml/s.csv", "'partial.graphml' is a file"),
        ("-o partial.graphml", "--force"),
        ("--format h5", "HDF5"),
        ("--add-nodes 5000", "200"),
        ("--input-format g6", "partial.graphml"),
    ],
)
def test_mistakes_are_reported_on_one_line(
    invoke: Invoke, model: Path, partial: Path, options: str, message: str
) -> None:
    result = invoke("complete", partial, "--model", model, *FAST, *options.split())

    assert result.exit_code == 1
    assert is_one_line(result.stderr)
    assert message in result.stderr


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "b", {})], "--unlisted"),
        ([("a", "b", {"state": "perhaps"})], "'perhaps'"),
        ([("a", "a", {"state": "unknown"})], "'a'"),
    ],
)
def test_graphs_that_cannot_be_completed_are_reported_on_one_line(
    invoke: Invoke, model: Path, edges: list[tuple[str, str, dict[str, str]]], message: str
) -> None:
    nx.write_graphml(nx.Graph(edges), "bad.graphml")
    result = invoke("complete", "bad.graphml", "--model", model, *FAST)

    assert result.exit_code == 1
    assert is_one_line(result.stderr)
    assert message in result.stderr


def test_weighted_graphs_need_a_flag_to_ignore_weights(invoke: Invoke, model: Path) -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 2.0), (1, 2, 1.5)])
    nx.write_graphml(graph, "weighted.graphml")
    line = ("complete", "weighted.graphml", "--unlisted", "unknown", "--model", model, *FAST, "--format", "g6")

    refused = invoke(*line)
    assert refused.exit_code == 1
    assert "'--ignore-weights'" in refused.stderr.splitlines()[-1]
    assert invoke(*line, "--ignore-weights").exit_code == 0


def test_a_file_of_many_graphs_needs_an_index(invoke: Invoke, model: Path, graphs: Path) -> None:
    result = invoke("complete", graphs, "--model", model, "--unlisted", "unknown", *FAST)

    assert result.exit_code == 1
    assert "'--graph" in result.stderr


@pytest.mark.parametrize(("output", "scores"), [("-", "-"), ("a.csv", "./a.csv")])
def test_graphs_and_scores_go_to_different_files(invoke: Invoke, partial: Path, output: str, scores: str) -> None:
    assert invoke("complete", partial, "-o", output, "--format", "jsonl", "--scores", scores).exit_code == 2


@pytest.mark.parametrize("options", [("-o", "no/o.jsonl"), ("--scores", "no/s.csv"), ("-o", "partial.graphml")])
def test_outputs_are_checked_before_the_work(
    invoke: Invoke, partial: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    def work(*_: object, **__: object) -> None:
        raise AssertionError("the work began")

    monkeypatch.setattr("graphite_gen.completion.estimator", work)
    result = invoke("complete", partial, *options)

    assert result.exit_code == 1
    assert is_one_line(result.stderr)


@pytest.mark.parametrize(
    ("method", "error", "disagreement", "spread", "word"),
    [
        ("chains", 0.01, 0.02, 0.1, "Converged"),
        ("chains", 0.2, 0.02, 0.1, "--steps"),
        ("chains", 0.01, 0.6, 0.1, "--steps"),
        ("chains", 0.01, 0.02, 3.0, "--particles"),
        ("enumeration", 0.01, 0.02, 0.1, "Converged"),
        ("enumeration", 0.2, 0.02, 0.1, "--steps"),
        ("enumeration", 0.01, 0.02, 3.0, "--steps"),
        ("latents", 0.2, 0.02, 0.1, "--particles"),
        ("latents", 0.01, 0.02, 3.0, "--particles"),
    ],
)
def test_runs_that_disagree_have_not_converged(
    method: str, error: float, disagreement: float, spread: float, word: str
) -> None:
    found = Completion((), (), -5.0, spread, error, disagreement, -6.0, method)

    text = completion_diagnosis(found)

    assert word in text
    assert text.startswith("Converged" if word == "Converged" else "Not converged")
    assert ("all completions enumerated" in text) == (method == "enumeration")


def test_long_work_prints_progress_to_a_pipe(invoke: Invoke, partial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(autoregressive_model(), Path("tiny"))
    line = ("complete", partial, "--model", "./tiny", "-n", 1, "--force", "-o", "out.jsonl")
    quick = invoke(*line)
    monkeypatch.setattr(console, "PATIENCE", 0)
    monkeypatch.setattr(console, "LATER", 0)
    long = invoke(*line)

    assert (quick.exit_code, long.exit_code) == (0, 0), long.stderr
    assert "Completing" not in quick.stderr
    lines = [text for text in long.stderr.splitlines() if text.startswith("Completing")]
    assert [text.split(" after ")[0] for text in lines] == [f"Completing: {done} of 4" for done in (1, 2, 3)]


def test_advice_names_the_format_option_of_the_input(invoke: Invoke, model: Path) -> None:
    Path("bad.graphml").write_text("no graph\n")
    result = invoke("complete", "bad.graphml", "--model", model)

    assert result.exit_code == 1
    assert is_one_line(result.stderr)
    assert "--input-format" in result.stderr
