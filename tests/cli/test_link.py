from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import networkx as nx
import pytest

from .conftest import Invoke, is_one_line, only_json

QUICK = ("--epochs", 5, "--latent", 4, "--threads", 1)


def test_json_has_a_row_for_every_model(invoke: Invoke, groups: Path) -> None:
    rows = only_json(invoke("link", groups, "--compare", "--runs", 2, "--json", *QUICK))

    assert [row["model"] for row in rows] == [
        *("graphite-vae", "graphite-ae", "vgae", "gae"),
        *("spectral", "adamic-adar", "pagerank"),
    ]
    for row in rows:
        assert {"model", "features", "runs", "auc", "auc_se", "ap", "ap_se"} <= row.keys()
        assert (row["features"], row["runs"], row["test_edges"]) == (False, 2, len(nx.read_graphml(groups).edges) // 10)
        assert 0 <= row["auc"] <= 1
        assert row["auc_se"] >= 0


def test_the_same_seed_gives_the_same_table(invoke: Invoke, groups: Path) -> None:
    first, second, third = (invoke("link", groups, "--runs", 1, "--seed", seed, *QUICK) for seed in (1, 1, 2))

    assert first.exit_code == 0, first.stderr
    assert "30 nodes" in first.stderr
    assert first.stdout == second.stdout != third.stdout


def test_the_split_is_noted_and_few_test_edges_are_warned_about(invoke: Invoke) -> None:
    for edges, counts in ((299, ["256", "14", "29"]), (300, ["255", "15", "30"])):
        nx.write_graphml(nx.gnm_random_graph(60, edges, seed=0), "some.graphml")
        result = invoke("link", "some.graphml", "--runs", 1, *QUICK)
        assert result.exit_code == 0, result.stderr
        note = next(line for line in result.stderr.splitlines() if line.startswith("Edges of each run"))
        assert re.findall(r"\d+", note) == counts
        assert ("29 test edges" in result.stderr) == (edges < 300)


@pytest.mark.parametrize("split", ["connected", "random"])
@pytest.mark.parametrize("skip", ["convex", "incremental"])
def test_skips_and_splits_can_be_chosen(invoke: Invoke, groups: Path, split: str, skip: str) -> None:
    options = ("--split", split, "--skip", skip, "--targets", "all", "--edge-dropout", 0, "--subsample", 0)
    (row,) = only_json(invoke("link", groups, "--runs", 1, "--json", *options, *QUICK))

    assert row["split"] == split
    assert row["auc_se"] is None


def test_missing_links_are_written_by_name(invoke: Invoke, groups: Path) -> None:
    result = invoke("link", groups, "--predict", "out.csv", "--top", 7, *QUICK)

    assert result.exit_code == 0, result.stderr
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    known = nx.read_graphml(groups)
    assert len(rows) == 7
    assert list(rows[0]) == ["source", "target", "probability"]
    assert all(row["source"] in known and not known.has_edge(row["source"], row["target"]) for row in rows)
    probabilities = [float(row["probability"]) for row in rows]
    assert probabilities == sorted(probabilities, reverse=True)

    assert invoke("link", groups, "--predict", "out.json", "--top", 3, *QUICK).exit_code == 0
    assert len(json.loads(Path("out.json").read_text())) == 3
    again = invoke("link", groups, "--predict", "out.csv", *QUICK)
    assert again.exit_code == 1
    assert is_one_line(again.stderr)


def test_missing_links_are_ranked_by_pagerank_alone(invoke: Invoke, groups: Path) -> None:
    result = invoke("link", groups, "--predict", "out.csv", "--baseline", "pagerank", "--top", 9)

    assert result.exit_code == 0, result.stderr
    assert "Training" not in result.stderr
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    known = nx.read_graphml(groups)
    assert list(rows[0]) == ["source", "target", "score"]
    assert len(rows) == 9
    assert all(row["source"] in known and not known.has_edge(row["source"], row["target"]) for row in rows)
    scores = [float(row["score"]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert invoke("link", groups, "--predict", "out.json", "--baseline", "pagerank").exit_code == 0
    assert json.loads(Path("out.json").read_text())[0]["score"] == pytest.approx(scores[0], rel=1e-5)
    for idle in (
        *(["--epochs", 5], ["--unbalanced"], ["--no-features"], ["--skip-weight", 0.5]),
        *(["--kind", "gae"], ["--baseline", "spectral"], ["--compare"]),
    ):
        refused = invoke("link", groups, "--predict", "new.csv", "--baseline", "pagerank", *idle)
        assert refused.exit_code == 2, idle
        assert idle[0] in refused.stderr


@pytest.mark.parametrize("by", [QUICK, ("--baseline", "pagerank")])
def test_a_complete_graph_is_refused_before_training(
    invoke: Invoke, by: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphite_gen.network.link_prediction.train_autoencoder", None)
    nx.write_graphml(nx.complete_graph(4), "whole.graphml")
    result = invoke("link", "whole.graphml", "--predict", "out.csv", *by)

    assert result.exit_code == 1
    assert is_one_line(result.stderr.splitlines()[-1] + "\n")
    assert "complete" in result.stderr
    assert not Path("out.csv").exists()


def test_the_only_non_edge_is_ranked(invoke: Invoke) -> None:
    graph = nx.complete_graph(4)
    graph.remove_edge(1, 3)
    nx.write_graphml(graph, "near.graphml")
    result = invoke("link", "near.graphml", "--predict", "-", *QUICK)

    assert result.exit_code == 0, result.stderr
    assert "Only 1 pair" in result.stderr
    assert result.stdout.splitlines()[1].startswith("1,3,")


def test_features_of_a_file_are_used_or_ignored(invoke: Invoke, groups: Path) -> None:
    lines = ["id,a,b,c", *(f"n{i},{i // 10 == 0:d},{i // 10 == 1:d},{i // 10 == 2:d}" for i in range(30))]
    Path("x.csv").write_text("\n".join(lines))
    options = ("--node-features", "x.csv", "--runs", 1, "--json", *QUICK)

    assert only_json(invoke("link", groups, *options))[0]["features"] is True
    assert only_json(invoke("link", groups, "--no-features", *options))[0]["features"] is False


def test_mistakes_end_in_one_line(invoke: Invoke, groups: Path) -> None:
    nx.write_graphml(nx.path_graph(20), "path.graphml")
    nx.write_graphml(nx.empty_graph(5), "empty.graphml")
    nx.write_graphml(nx.empty_graph(1), "one.graphml")
    Path("short.csv").write_text("id,x\nn1,1\n")
    for line, problem in (
        (["none.graphml"], "does not exist"),
        (["path.graphml"], "--split random"),
        (["empty.graphml"], "0 edges"),
        (["one.graphml", "--predict", "out.csv"], "no edges"),
        ([groups, "--features"], "--node-features"),
        ([groups, "--node-features", "short.csv"], "no features of node"),
        ([groups, "--edge-dropout", 0], "--targets all"),
    ):
        result = invoke("link", *line, *QUICK)
        assert result.exit_code == 1, line
        error = result.stderr.splitlines()[-1] + "\n"
        assert is_one_line(error)
        assert problem in error
    for line in (
        ["--predict", "out.csv", "--compare"],
        ["--predict", "out.csv", "--runs", 2],
        ["--top", 3],
        ["--node-labels", "short.csv"],
    ):
        assert invoke("link", groups, *line).exit_code == 2


def test_baselines_are_added_to_the_models(invoke: Invoke, groups: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--runs", 1, "--json", *QUICK)
    rows = only_json(invoke("link", groups, "--baseline", "adamic-adar", *options))
    assert [row["model"] for row in rows] == ["graphite-vae", "adamic-adar"]
    rows = only_json(invoke("link", groups, "--kind", "gae", "--baseline", "spectral", *options))
    assert [row["model"] for row in rows] == ["gae", "spectral"]

    monkeypatch.setitem(sys.modules, "gensim.models", None)
    result = invoke("link", groups, "--baseline", "deepwalk", *options)
    assert result.exit_code == 1
    # Before anything is read or trained.
    assert is_one_line(result.stderr)
    assert "graphite-gen[walks]" in result.stderr
