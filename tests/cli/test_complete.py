import csv
import io
import json
from pathlib import Path

import networkx as nx
import pytest
from tiny import autoregressive_model, random_graph

from graphite_gen.cli import console
from graphite_gen.cli.diagnosis import completion_diagnosis
from graphite_gen.completion import Completion
from graphite_gen.io import read_graphs, write_graphs
from graphite_gen.training.checkpoint import save_checkpoint

from .conftest import invoke, run

FAST = ("--particles", 8, "--threads", 1)


@pytest.fixture
def partial(own_folder: Path) -> Path:
    """A star with two unknown and one absent edge, between named nodes."""
    graph = nx.Graph([("hub", name) for name in "abcd"])
    graph.add_edges_from([("a", "b"), ("c", "d")], state="unknown")
    graph.add_edge("a", "c", state="absent")
    nx.write_graphml(graph, own_folder / "partial.graphml")

    return own_folder / "partial.graphml"


def test_known_pairs_stay_in_every_completed_graph(model: Path, partial: Path) -> None:
    result = run("complete", partial, "-n", 5, "--model", model, *FAST, "-o", "out.graphml")
    reader = read_graphs("out.graphml")
    graphs = [graph.to_networkx() for graph in reader]

    assert "10 pairs: 2 unknown, 4 present, 4 absent." in result.stderr
    assert (reader.provenance.source, reader.provenance.model) == ("complete", "ego")
    assert len(graphs) == 5
    for graph in graphs:
        assert set(graph) == {"hub", *"abcd"}
        assert set(graph["hub"]) == set("abcd")
        assert {tuple(sorted(edge)) for edge in graph.edges if "hub" not in edge} <= {("a", "b"), ("c", "d")}


def test_one_graph_is_chosen_its_weights_ignored_and_the_format_changed(model: Path) -> None:
    write_graphs([random_graph(nodes, 0, 1.0, weighted=True) for nodes in (3, 4)], "two.jsonl")
    line = ("complete", "two.jsonl", "--graph", 1, "--ignore-weights", "--add-nodes", 3, "--format", "g6")
    first, *_ = run(*line, "--model", model, *FAST).stdout_bytes.splitlines()

    assert len(nx.from_graph6_bytes(first)) == 4 + 3


def test_stdout_has_the_format_of_the_input(model: Path, partial: Path) -> None:
    default, dash = (run("complete", partial, "-n", 2, "--model", model, *FAST, *to) for to in ((), ("-o", "-")))

    assert dash.stdout == default.stdout != ""
    Path("again.graphml").write_text(default.stdout, encoding="utf-8")
    assert len(list(read_graphs("again.graphml"))) == 2


def test_scores_are_ranked_as_csv_and_as_json(model: Path, partial: Path) -> None:
    line = ("complete", partial, "--model", model, *FAST, "--unlisted", "unknown", "--scores")
    rows = list(csv.DictReader(io.StringIO(run(*line, "-").stdout)))
    run(*line, "s.json", "-o", "one.jsonl", "--seed", 0)
    run(*line, "t.json", "-o", "two.jsonl", "--seed", 1)
    table = json.loads(Path("s.json").read_text(encoding="utf-8"))

    assert Path("one.jsonl").read_text() != Path("two.jsonl").read_text()
    pairs = [(row["source"], row["target"]) for row in rows]
    assert set(map(frozenset, pairs)) == set(map(frozenset, ("ab", "cd", "ad", "bc", "bd")))
    chances = [float(row["probability"]) for row in rows]
    assert chances == sorted(chances, reverse=True)
    assert [(row["source"], row["target"]) for row in table] == pairs
    assert set(table[0]) == {"source", "target", "probability", "standard_error"}


@pytest.mark.parametrize(
    ("method", "error", "disagreement", "spread", "word"),
    [
        ("chains", 0.01, 0.02, 0.1, "Converged"),
        ("chains", 0.2, 0.02, 0.1, "--steps"),
        ("chains", 0.01, 0.6, 0.1, "--steps"),
        ("chains", 0.01, 0.02, 3.0, "--particles"),
        ("enumeration", 0.01, 0.02, 0.1, "Converged"),
        ("enumeration", 0.01, 0.02, 3.0, "--steps"),
        ("latents", 0.2, 0.02, 0.1, "--particles"),
        ("latents", 0.01, 0.02, 3.0, "--particles"),
    ],
)
def test_runs_that_disagree_have_not_converged(
    method: str, error: float, disagreement: float, spread: float, word: str
) -> None:
    text = completion_diagnosis(Completion((), (), -5.0, spread, error, disagreement, -6.0, method))

    assert word in text
    assert text.startswith("Converged" if word == "Converged" else "Not converged")
    assert ("all completions enumerated" in text) == (method == "enumeration")


def test_settings_of_the_estimator_are_passed_to_the_library(partial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}
    monkeypatch.setattr("graphite_gen.completion.complete", lambda *args, **settings: seen.update(settings))
    options = ("--particles", 9, "--steps", 8, "--runs", 3, "--seed", 5)
    save_checkpoint(autoregressive_model(), Path("tiny"))
    invoke("complete", partial, "--model", "./tiny", *options)

    del seen["progress"]
    assert seen == {"particles": 9, "steps": 8, "runs": 3, "seed": 5}


def test_long_work_prints_progress_to_a_pipe(partial: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save_checkpoint(autoregressive_model(), Path("tiny"))
    line = ("complete", partial, "--model", "./tiny", "-n", 1, "--force", "-o", "out.jsonl")
    assert "Completing" not in run(*line).stderr
    monkeypatch.setattr(console, "PATIENCE", 0)
    monkeypatch.setattr(console, "LATER", 0)

    lines = [text for text in run(*line).stderr.splitlines() if text.startswith("Completing")]
    assert [text.split(" after ")[0] for text in lines] == [f"Completing: {done} of 4" for done in (1, 2, 3)]
