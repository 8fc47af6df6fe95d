from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Invoke, is_one_line, only_json


@pytest.fixture
def sets(invoke: Invoke) -> None:
    for name, family, seed in (("a", "ego", 0), ("b", "ego", 1), ("other", "erdos-renyi", 2)):
        line = ("generate", "--family", family, "--graphs", 60, "--nodes", "8:10", "--seed", seed, "-o", f"{name}.h5")
        assert invoke(*line).exit_code == 0


@pytest.mark.usefixtures("sets")
def test_the_table_and_the_json_agree(invoke: Invoke) -> None:
    shown = invoke("evaluate", "a.h5", "--reference", "b.h5")
    value = only_json(invoke("evaluate", "a.h5", "--reference", "b.h5", "--json"))

    assert shown.exit_code == 0, shown.stderr
    assert (value["samples"], value["reference"], value["train"]) == (60, 20, 20)
    assert value["family"] == "ego"
    assert all(line in shown.stdout.splitlines() for line in value["findings"])
    assert f"{value['ratio']:.2f}" in shown.stdout
    assert {(row["samples"]["convention"], row["samples"]["descriptor"]) for row in value["mmd"]} == {
        (convention, name)
        for convention in ("tv", "emd", "rbf")
        for name in ("degree", "clustering", "orbit", "spectrum")
    }
    for word in ("valid", "unique", "novel", "V.U.N.", "discrepancy", "path length", "95 % interval"):
        assert word in shown.stdout


@pytest.mark.usefixtures("sets")
def test_scripts_can_fail_on_bad_samples(invoke: Invoke) -> None:
    limits = ("--reference", "b.h5", "--fail-above", "ratio=2.5", "--fail-below", "valid=0.9")
    good, bad = invoke("evaluate", "a.h5", *limits), invoke("evaluate", "other.h5", *limits)

    assert good.exit_code == 0, good.stderr
    assert bad.exit_code == 1
    assert all(f"{figure} is " in bad.stderr.splitlines()[-1] for figure in ("ratio", "valid"))
    assert "ratio" in bad.stdout


@pytest.mark.usefixtures("sets")
def test_a_file_of_training_graphs_overrides_the_split(invoke: Invoke) -> None:
    value = only_json(
        invoke("evaluate", "a.h5", "--reference", "b.h5", "--train", "a.h5", "--valid-if", "tree", "--json")
    )

    assert value["train"] == 20
    assert value["vun"]["novel"]["value"] < 1
    assert value["family"] is None
    assert value["vun"]["valid"]["value"] == 0


@pytest.mark.usefixtures("sets")
def test_mistakes_are_reported_on_one_line(invoke: Invoke) -> None:
    assert invoke("convert", "b.h5", "b.g6").exit_code == 0
    for options, problem in (
        (["b.g6", "--fail-above", "ratio=3"], "'--train'"),
        (["b.g6", "--fail-below", "valid=1"], "'--valid-if'"),
        (["missing.h5"], "missing.h5"),
        (["b.h5", "--family", "frobnicate"], "frobnicate"),
    ):
        result = invoke("evaluate", "a.h5", "--reference", *options)
        assert result.exit_code == 1
        assert is_one_line(result.stderr.splitlines(keepends=True)[-1])
        assert problem in result.stderr
    for line in ("--fail-above size=3", "--fail-above ratio=x", "--param m=2", "--family ego --valid-if tree"):
        assert invoke("evaluate", "a.h5", "--reference", "b.h5", *line.split()).exit_code == 2
    assert not list(Path.cwd().glob("*.json"))
