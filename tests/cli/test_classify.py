import re
from pathlib import Path

import networkx as nx
import pytest

from .conftest import assert_error, invoke, read_csv, run, run_json

QUICK = ("--epochs", 30, "--runs", 2, "--threads", 1)


def test_json_has_a_row_for_every_model(groups: Path) -> None:
    rows = run_json("classify", groups, *QUICK)

    assert [row["model"] for row in rows] == ["graphite", "gcn"]
    for row in rows:
        assert {"features", "accuracy_se"} <= row.keys()
        # Half of each class is for training, and two thirds of the rest for test.
        assert (row["runs"], row["test_nodes"]) == (2, 10)
        assert row["accuracy"] > 1 / 3


def test_posterior_parameters_are_classified_on_request(groups: Path) -> None:
    (row,) = run_json("classify", groups, "--kind", "graphite-paper", "--latent", 4, *QUICK)

    assert row["model"] == "graphite-paper"
    assert row["accuracy"] > 1 / 3
    assert_error(invoke("classify", groups, "--kind", "gcn", "--latent", 4), "--latent", code=2)


def test_classes_are_written_for_every_node_and_known_labels_are_kept(groups: Path) -> None:
    # Labels unrelated to the graph: the model would predict many of them differently.
    given = {f"n{i}": "ab"[(i * 7 // 3) % 2] for i in range(24)}
    lines = [f"{node},{label},{['train', 'val', 'test'][i % 3]}" for i, (node, label) in enumerate(given.items())]
    Path("y.csv").write_text("\n".join(["id,club,split", *lines]))
    kinds = ("--kind", "gcn", "--kind", "graphite")
    result = run("classify", groups, *kinds, "--node-labels", "y.csv", "-o", "out.csv", *QUICK)

    assert "accuracy" in result.stdout
    assert "24 labelled, 6 predicted by gcn" in result.stderr
    rows = read_csv("out.csv")
    assert list(rows[0]) == ["node", "label", "known", "probability"]
    assert [row["node"] for row in rows] == list(nx.read_graphml(groups))
    for row in rows:
        known = row["node"] in given
        assert row["known"] == str(known).lower()
        assert row["label"] in ([given[row["node"]]] if known else ["a", "b"])
        assert row["probability"] == "1" if known else 0.5 <= float(row["probability"]) <= 1


# A random split has half of each class, then a third and two thirds of the rest.
@pytest.mark.parametrize(("split", "counts"), [("own", ["8", "7", "7"]), ("fresh", ["15", "4", "10"])])
def test_the_split_is_noted(groups: Path, split: str, counts: list[str]) -> None:
    lines = ["id,club,split", *(f"n{i},{'ab'[i % 2]},{['train', 'val', 'test', ''][i % 4]}" for i in range(29))]
    Path("y.csv").write_text("\n".join(lines))
    result = run("classify", groups, "--node-labels", "y.csv", "--split", split, "--epochs", 1, "--threads", 1)

    note = next(line for line in result.stderr.splitlines() if line.startswith("Nodes"))
    assert re.findall(r"\d+", note) == counts
    assert f"{counts[2]} test nodes" in result.stderr


def test_two_labels_of_an_attribute_are_enough(own_folder: Path) -> None:
    graph = nx.karate_club_graph()
    for node in (0, 33):
        graph.nodes[node]["side"] = graph.nodes[node]["club"]
    nx.write_graphml(graph, "karate.graphml")
    quick = ("--epochs", 60, "--runs", 1, "--kind", "gcn", "--threads", 1)

    result = run("classify", "karate.graphml", "--label-attribute", "side", "-o", "out.csv", *quick)

    assert "2 for training, 0 for validation, 0 for test" in result.stderr
    assert "the accuracy is not known" in result.stderr
    clubs = nx.get_node_attributes(graph, "club")
    right = [row["label"] == clubs[int(row["node"])] for row in read_csv("out.csv")]
    assert sum(right) > 28
    (row,) = run_json("classify", "karate.graphml", "--label-attribute", "club", *quick)
    assert row["accuracy"] > 0.5


def test_with_classes_on_stdout_the_accuracy_is_on_stderr(groups: Path) -> None:
    result = run("classify", groups, "-o", "-", *QUICK)

    assert result.stdout.count("\n") == 31
    assert "Accuracy of graphite, 2 runs: " in result.stderr
