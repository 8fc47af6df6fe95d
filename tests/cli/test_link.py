import json
import re
from pathlib import Path

import networkx as nx
import pytest

from graphite_gen.cli.commands.link import CHEAP

from .conftest import assert_error, invoke, read_csv, run, run_json

QUICK = ("--epochs", 5, "--latent", 4, "--threads", 1)


def test_json_has_a_row_for_every_model(groups: Path) -> None:
    rows = run_json("link", groups, "--compare", "--runs", 2, *QUICK)

    assert [row["model"] for row in rows] == [
        *("graphite-vae", "graphite-ae", "vgae", "gae"),
        *CHEAP,
    ]
    for row in rows:
        assert {"model", "features", "runs", "auc", "auc_se", "ap", "ap_se", "hits", "mrr", "negatives"} <= row.keys()
        assert (row["features"], row["runs"], row["test_edges"]) == (False, 2, len(nx.read_graphml(groups).edges) // 10)
        assert 0 <= row["auc"] <= 1
        assert row["auc_se"] >= 0


def test_the_same_seed_gives_the_same_table(groups: Path) -> None:
    first, second, third = (run("link", groups, "--runs", 1, "--seed", seed, *QUICK) for seed in (1, 1, 2))

    assert "30 nodes" in first.stderr
    assert first.stdout == second.stdout != third.stdout


def test_the_split_is_noted_and_few_test_edges_are_warned_about() -> None:
    for edges, counts in ((299, ["256", "14", "29"]), (300, ["255", "15", "30"])):
        nx.write_graphml(nx.gnm_random_graph(60, edges, seed=0), "some.graphml")
        result = run("link", "some.graphml", "--runs", 1, *QUICK)
        note = next(line for line in result.stderr.splitlines() if line.startswith("Edges of each run"))
        assert re.findall(r"\d+", note) == counts
        assert ("29 test edges" in result.stderr) == (edges < 300)


@pytest.mark.parametrize(
    ("by", "figure"), [(("--kind", "vgae", *QUICK), "probability"), (("--baseline", "pagerank"), "score")]
)
def test_missing_links_are_ranked_by_name_by_a_model_or_by_pagerank(
    groups: Path, by: tuple[object, ...], figure: str
) -> None:
    result = run("link", groups, "--predict", "out.csv", "--top", 7, *by)
    rows, known = read_csv("out.csv"), nx.read_graphml(groups)
    figures = [float(row[figure]) for row in rows]

    assert len(rows) == 7
    assert list(rows[0]) == ["source", "target", figure]
    assert all(row["source"] in known and not known.has_edge(row["source"], row["target"]) for row in rows)
    assert figures == sorted(figures, reverse=True)
    assert "Training" not in result.stderr
    run("link", groups, "--predict", "out.json", "--top", 3, *by)
    table = json.loads(Path("out.json").read_text())
    assert [row[figure] for row in table] == pytest.approx(figures[:3], rel=1e-5)


@pytest.mark.parametrize("by", [QUICK, ("--baseline", "pagerank")])
def test_a_complete_graph_is_refused_before_training(by: tuple[object, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphite_gen.network.link_prediction.train_autoencoder", None)
    nx.write_graphml(nx.complete_graph(4), "whole.graphml")

    assert_error(invoke("link", "whole.graphml", "--predict", "out.csv", *by), "complete", after_notes=True)
    assert not Path("out.csv").exists()


def test_the_only_non_edge_is_ranked() -> None:
    nx.write_graphml(nx.complement(nx.Graph({0: [], 1: [3], 2: []})), "near.graphml")
    result = run("link", "near.graphml", "--predict", "-", *QUICK)

    assert "Only 1 pair" in result.stderr
    assert len(result.stdout.splitlines()) == 2
    assert set(result.stdout.splitlines()[1].split(",")[:2]) == {"1", "3"}


def test_features_of_a_file_are_used_or_ignored(groups: Path) -> None:
    lines = ["id,a,b,c", *(f"n{i},{i // 10 == 0:d},{i // 10 == 1:d},{i // 10 == 2:d}" for i in range(30))]
    Path("x.csv").write_text("\n".join(lines))
    options = ("--node-features", "x.csv", "--runs", 1, *QUICK)
    used, _ = run_json("link", groups, *options)
    ignored, _ = run_json("link", groups, "--no-features", "--split", "random", *options)

    assert (used["features"], used["split"], used["auc_se"]) == (True, "connected", None)
    assert (ignored["features"], ignored["split"]) == (False, "random")
    # There is no connected split of a path.
    nx.write_graphml(nx.path_graph(30), "path.graphml")
    run("link", "path.graphml", "--split", "random", "--runs", 1, *QUICK)


def test_baselines_are_added_to_the_models(groups: Path) -> None:
    options = ("--runs", 1, *QUICK)
    rows = run_json("link", groups, "--baseline", "adamic-adar", *options)
    everything = {row["model"]: row["auc"] for row in run_json("link", groups, "--compare", *options)}
    strongest = max(CHEAP, key=lambda name: everything[name])

    assert [row["model"] for row in rows] == list(dict.fromkeys(["graphite-vae", "adamic-adar", strongest]))
    (_, *shown) = run_json("link", groups, "--kind", "gae", *options)
    assert [row["model"] for row in shown] == [strongest]


def test_a_better_baseline_is_said(groups: Path) -> None:
    poor = ("--runs", 2, "--epochs", 1, "--latent", 1, "--threads", 1, "--pair-features", "none")
    result = run("link", groups, *poor)
    (line,) = [line for line in result.stderr.splitlines() if "better than the model" in line]

    assert "--baseline" in line
    assert "Precision" not in result.stderr


def test_metrics_and_hard_negatives_are_chosen(groups: Path) -> None:
    columns = run("link", groups, "--metric", "mrr", "--metric", "hits@20", "--runs", 1, *QUICK).stdout.splitlines()[0]
    assert columns.split()[2:] == ["MRR,", "%", "Hits@20,", "%"]

    random, hard = (
        run_json("link", groups, "--runs", 1, *given, *QUICK)[0] for given in ((), ("--negatives", "hard", "--hard", 6))
    )
    assert (random["negatives"], hard["negatives"]) == ("random", "hard")
    assert hard["auc"] < random["auc"]
    assert list(hard["hits"]) == ["20", "50", "100"]
    assert hard["hits"]["20"] is None
    assert_error(invoke("link", groups, "--hard", 6), "no effect", code=2)
    error = invoke("link", groups, "--runs", 1, "--negatives", "hard", *QUICK)
    assert_error(error, "Pass a smaller '--hard'", after_notes=True)


def test_metrics_without_enough_non_edges_are_said_and_choose_no_baseline(groups: Path) -> None:
    options = ("--runs", 1, "--seed", 3, *QUICK)
    result = run("link", groups, "--metric", "hits@100", "--metric", "ap", *options)
    rows = {row["model"]: row["ap"] for row in run_json("link", groups, "--compare", *options)}

    assert "Hits@100: too few non-edges" in result.stderr
    assert result.stdout.splitlines()[2].split()[0] == max(CHEAP, key=lambda name: rows[name])


def test_the_precision_of_predictions_is_estimated(groups: Path) -> None:
    result = run("link", groups, "--predict", "out.csv", "--top", 7, "--kind", "gae", *QUICK)
    (line,) = [line for line in result.stderr.splitlines() if "precision at 7" in line]
    hidden, precision, count = (float(each) for each in re.findall(r"[\d.]+", line)[:3])

    assert hidden == len(nx.read_graphml(groups).edges) // 10
    assert count == 7
    assert precision == pytest.approx(100 * round(precision * 7 / 100) / 7, abs=0.1)
    # A forest has no edges to hide in a connected split.
    nx.write_graphml(nx.path_graph(30), "path.graphml")
    result = run("link", "path.graphml", "--predict", "path.csv", *QUICK)
    assert "precision is not known" in result.stderr
    assert "Pass '--split random'" in result.stderr
    assert read_csv("path.csv")


def test_a_better_baseline_ranks_the_missing_edges(groups: Path) -> None:
    poor = ("--epochs", 1, "--latent", 1, "--threads", 1, "--pair-features", "none", "--top", 5)
    nx.write_graphml(nx.convert_node_labels_to_integers(nx.grid_2d_graph(14, 14)), "grid.graphml")
    result = run("link", "grid.graphml", "--predict", "out.csv", *poor)

    assert "ranks instead of 'graphite-vae'" in result.stderr
    assert list(read_csv("out.csv")[0]) == ["source", "target", "score"]
    # A model that was asked for is used.
    run("link", "grid.graphml", "--predict", "own.csv", "--kind", "graphite-vae", *poor)
    assert list(read_csv("own.csv")[0]) == ["source", "target", "probability"]
