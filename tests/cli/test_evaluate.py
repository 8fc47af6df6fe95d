from dataclasses import replace
from pathlib import Path

import click
import pytest

from graphite_gen.cli.commands.evaluate import evaluate
from graphite_gen.evaluation import VALIDITY
from graphite_gen.io import read_graphs, write_graphs

from .conftest import assert_error, invoke, run, run_json

COMPARE = ("evaluate", "a.h5", "--reference", "b.h5")


@pytest.fixture(autouse=True)
def sets(own_folder: Path) -> None:
    for name, family, seed in (("a", "ego", 0), ("b", "ego", 1), ("other", "erdos-renyi", 2)):
        run("generate", "--family", family, "--graphs", 60, "--nodes", "8:10", "--seed", seed, "-o", f"{name}.h5")


def test_the_table_and_the_json_agree() -> None:
    shown, value = run(*COMPARE).stdout, run_json(*COMPARE)

    assert (value["samples"], value["reference"], value["train"]) == (60, 20, 20)
    assert value["family"] == "ego"
    assert all(line in shown.splitlines() for line in value["findings"])
    assert f"{value['ratio']:.2f}" in shown
    assert {(row["samples"]["convention"], row["samples"]["descriptor"]) for row in value["mmd"]} == {
        (convention, name)
        for convention in ("tv", "emd", "rbf")
        for name in ("degree", "clustering", "orbit", "spectrum")
    }
    for word in ("valid", "unique", "novel", "V.U.N.", "discrepancy", "path length", "95 % interval"):
        assert word in shown


def test_scripts_can_fail_on_bad_samples() -> None:
    limits = ("--reference", "b.h5", "--fail-above", "ratio=2.5", "--fail-below", "valid=0.9")
    run("evaluate", "a.h5", *limits)
    bad = invoke("evaluate", "other.h5", *limits)

    assert_error(bad, "ratio is ", "valid is ", after_notes=True)
    assert "ratio" in bad.stdout


def test_a_file_of_training_graphs_overrides_the_split() -> None:
    value = run_json(*COMPARE, "--train", "a.h5", "--valid-if", "tree")

    assert value["train"] == 20
    assert value["vun"]["novel"]["value"] < 1
    assert value["family"] is None
    assert value["vun"]["valid"]["value"] == 0


def test_vun_is_known_only_if_validity_and_novelty_were_tested() -> None:
    for name in ("a", "b"):
        graphs = [replace(graph, attributes={}) for graph in read_graphs(f"{name}.h5")]
        write_graphs(graphs, f"{name}.g6")
    compare = ("evaluate", "a.g6", "--reference", "b.g6", "--train", "a.g6")

    assert "V.U.N." not in run(*compare).stdout
    assert "V.U.N." in run(*compare, "--valid-if", "connected").stdout
    assert_error(invoke(*compare, "--fail-below", "vun=0.5"), "'vun' is not known", "'--valid-if'", after_notes=True)


def test_properties_are_those_of_the_library() -> None:
    option = next(option for option in evaluate.params if option.name == "valid_if")
    assert isinstance(option.type, click.Choice)
    assert set(option.type.choices) == {*VALIDITY}


def test_samples_of_a_model_of_one_network_are_compared_with_it(groups: Path) -> None:
    run("train", "--single", groups, "--epochs", 5, "--threads", 1)
    run("sample", "-o", "similar.graphml")

    shown, value = (
        run("evaluate", "similar.graphml", "--reference", groups),
        run_json("evaluate", "similar.graphml", "--reference", groups),
    )

    assert "Kolmogorov-Smirnov" in shown.stdout
    assert value["samples"] == 1
    assert {"nodes", "clustering", "assortativity"} <= {row["name"] for row in value["statistics"]}


def test_attributes_are_in_the_table_and_in_the_json(molecules: tuple[Path, Path]) -> None:
    compare = ("evaluate", molecules[0], "--reference", molecules[1], "--given-attribute", "class")
    shown, value = run(*compare), run_json(*compare)
    rows = {(row["attribute"], row["measure"], *row["labels"]): row for row in value["attributes"]}
    carbon = rows["element", "proportion", "C"]

    # Numbers of nodes that are no labels are features.
    assert {name for name, *_ in rows} == {"charge", "element", "place", "bond", "weight"}
    assert carbon["difference"] == pytest.approx(carbon["samples"] / carbon["reference"] - 1)
    line = next(line for line in shown.stdout.splitlines() if line.startswith("element: proportion C"))
    for name, difference in (("samples", "difference"), ("half", "half_difference")):
        assert f"{carbon[name]:.4g} ({carbon[difference]:+.1%})" in line
    assert rows["weight", "mean"]["samples"] < rows["weight", "mean"]["reference"]
    assert {"element: edges per graph C - N", "weight: density"} <= {
        line.split("  ")[0] for line in shown.stdout.splitlines()
    }
    assert "uniqueness and novelty are structural" in shown.stderr
    assert [row["label"] for row in value["accuracy"]["classes"]] == ["a", "b"]
    assert f"{value['accuracy']['samples']['count']} of 16" in shown.stdout


def test_one_label_can_be_chosen_and_many_labels_are_shortened(molecules: tuple[Path, Path]) -> None:
    compare = ("evaluate", "many.jsonl", "--reference", "many.jsonl", "--convention", "rbf")
    graphs = [
        replace(graph, node_attributes={**graph.node_attributes, "number": [6 * (k % 8) + i for i in range(6)]})
        for k, graph in enumerate(read_graphs(molecules[0]))
    ]
    write_graphs(graphs, "many.jsonl")
    chosen = run(*compare, "--node-label", "number", "--edge-label", "bond")

    named = {line.split(":")[0] for line in chosen.stdout.splitlines() if ": " in line}
    assert {name for name in named if " " not in name} == {"number", "charge", "place", "bond", "weight"}
    assert sum(line.startswith("number: proportion") for line in chosen.stdout.splitlines()) == 10
    assert "10 most frequent" in chosen.stderr
    assert "most frequent" not in run("evaluate", molecules[0], "--reference", molecules[1]).stderr


def test_a_network_with_labels_is_compared_by_them(groups: Path) -> None:
    value = run_json("evaluate", groups, "--reference", groups, "--node-label", "label")

    measures = {row["measure"]: row for row in value["attributes"] if not row["labels"]}
    assert measures["TV of edges"]["samples"] == 0
    assert measures["assortativity"]["reference"] > 0.5
