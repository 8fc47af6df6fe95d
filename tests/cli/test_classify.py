from __future__ import annotations

import csv
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from .conftest import Invoke, is_one_line, only_json

QUICK = ("--epochs", 30, "--runs", 2, "--threads", 1)


def test_json_has_a_row_for_every_model(invoke: Invoke, groups: Path) -> None:
    rows = only_json(invoke("classify", groups, "--json", *QUICK))

    assert [row["model"] for row in rows] == ["graphite", "gcn"]
    for row in rows:
        assert {"model", "features", "runs", "accuracy", "accuracy_se"} <= row.keys()
        assert row["runs"] == 2
        # Half of each class is for training, and two thirds of the rest for test.
        assert row["test_nodes"] == 10
        assert row["accuracy"] > 1 / 3


def test_classes_are_written_for_every_node_and_known_labels_are_kept(invoke: Invoke, groups: Path) -> None:
    # Labels unrelated to the graph: the model would predict many of them differently.
    given = {f"n{i}": "ab"[(i * 7 // 3) % 2] for i in range(24)}
    lines = ["id,club,split", *(f"n{i},{given[f'n{i}']},{['train', 'val', 'test'][i % 3]}" for i in range(24))]
    Path("y.csv").write_text("\n".join(lines))
    kinds = ("--kind", "gcn", "--kind", "graphite")
    result = invoke("classify", groups, *kinds, "--node-labels", "y.csv", "-o", "out.csv", *QUICK)

    assert result.exit_code == 0, result.stderr
    assert "accuracy" in result.stdout
    assert "24 labelled, 6 predicted by gcn" in result.stderr
    rows = list(csv.DictReader(Path("out.csv").read_text().splitlines()))
    assert list(rows[0]) == ["node", "label", "known", "probability"]
    assert [row["node"] for row in rows] == list(nx.read_graphml(groups))
    for row in rows:
        known = row["node"] in given
        assert row["known"] == str(known).lower()
        assert row["label"] in ([given[row["node"]]] if known else ["a", "b"])
        assert row["probability"] == "1" if known else 0.5 <= float(row["probability"]) <= 1


def test_the_split_is_noted(invoke: Invoke, groups: Path) -> None:
    lines = ["id,club,split", *(f"n{i},{'ab'[i % 2]},{['train', 'val', 'test', ''][i % 4]}" for i in range(29))]
    Path("y.csv").write_text("\n".join(lines))
    # A random split has half of each class, then a third and two thirds of the rest.
    for split, counts in (("own", ["8", "7", "7"]), ("fresh", ["15", "4", "10"])):
        result = invoke("classify", groups, "--node-labels", "y.csv", "--split", split, "--epochs", 1, "--threads", 1)
        assert result.exit_code == 0, result.stderr
        note = next(line for line in result.stderr.splitlines() if line.startswith("Nodes"))
        assert re.findall(r"\d+", note) == counts
        assert f"{counts[2]} test nodes" in result.stderr


def test_with_classes_on_stdout_the_accuracy_is_on_stderr(invoke: Invoke, groups: Path) -> None:
    result = invoke("classify", groups, "-o", "-", *QUICK)

    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 31
    assert "Accuracy of graphite, 2 runs: " in result.stderr


@pytest.mark.parametrize("columns", [("age",), ("age", "income")])
def test_dense_features_are_standardised(invoke: Invoke, columns: tuple[str, ...]) -> None:
    rng = np.random.default_rng(0)
    # Neighbours are of about the same age.
    people = {"age": np.sort(rng.uniform(20, 80, 200)), "income": rng.lognormal(10, 1, 200)}
    nx.write_graphml(nx.circulant_graph(200, [1, 2]), "people.graphml")
    lines = [",".join(map(str, row)) for row in zip(range(200), *(people[column] for column in columns), strict=True)]
    Path("x.csv").write_text("\n".join([",".join(("id", *columns)), *lines]))
    Path("y.csv").write_text("id,label\n" + "".join(f"{i},{age > 50}\n" for i, age in enumerate(people["age"])))
    options = ("--node-features", "x.csv", "--node-labels", "y.csv", "--epochs", 100, "--runs", 1, "--threads", 1)

    for row in only_json(invoke("classify", "people.graphml", *options, "--json")):
        assert row["accuracy"] > 0.9, row


def test_mistakes_end_in_one_line(invoke: Invoke, groups: Path) -> None:
    nx.write_graphml(nx.cycle_graph(9), "plain.graphml")
    Path("y.csv").write_text("id,club,split\nn1,a,somewhere\nn2,b,train\n")
    lone = nx.empty_graph(12)
    nx.set_node_attributes(lone, {node: "ab"[node % 2] for node in lone}, "label")
    nx.write_graphml(lone, "lone.graphml")
    for line, problem in (
        (["plain.graphml"], "--node-labels"),
        ([groups, "--node-labels", "y.csv"], "'somewhere'"),
        ([groups, "-o", "out.txt"], "'.csv'"),
        (["lone.graphml"], "no edges and no features"),
    ):
        result = invoke("classify", *line, *QUICK)
        assert result.exit_code == 1, line
        error = result.stderr.splitlines()[-1] + "\n"
        assert is_one_line(error)
        assert problem in error
    assert invoke("classify", groups, "-o", "-", "--json").exit_code == 2
