from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.reproduce import published_sets as sets
from graphite_gen.evaluation import describe, estimate_mmd
from graphite_gen.families.simulate import generate
from graphite_gen.io import write_graphs


@pytest.fixture(autouse=True)
def quick_training(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = {"epochs": 1, "epoch_graphs": 8, "batch_size": 4, "width": 8, "rounds": 1}
    for name in sets.SETTINGS:
        monkeypatch.setitem(sets.SETTINGS, name, tiny)


@pytest.mark.usefixtures("single_precision")
def test_datasets_run_one_at_a_time_and_results_are_kept(results: Path, tmp_path: Path) -> None:
    for name in ("ego_small", "tree"):
        write_graphs(generate("powerlaw-tree", 18, nodes=(5, 7), seed=0), tmp_path / f"{name}.h5")
    options = [str(tmp_path), "--samples", "12", "--models", str(tmp_path / "models")]

    sets.main([*options, "--sets", "tree"])
    sets.main([*options, "--sets", "ego_small"])

    found = json.loads((results / "published_sets.json").read_text(encoding="utf-8"))
    assert [row[0] for row in found["rows"]] == ["ego_small", "tree", "tree + tree"]
    free, held = found["details"]["sets"][1:]
    assert held["vun"]["valid"]["value"] == 1
    assert free["vun"]["valid"]["total"] == 12
    assert found["details"]["sets"][0]["vun"]["valid"] is None

    sets.main([*options, "--sets", "tree"])
    again = json.loads((results / "published_sets.json").read_text(encoding="utf-8"))["details"]["sets"]
    # The model was not trained again.
    assert [row["training_seconds"] for row in again[1:]] == [row["training_seconds"] for row in (free, held)]
    assert again[1]["mmd"] == free["mmd"]


def test_groups_are_as_large_as_the_test_split() -> None:
    graphs = generate("ego", 23, seed=0).graphs
    drawn, test = graphs[:18], graphs[18:]

    found = sets.grouped_mmds(drawn, test)

    rows = describe(drawn, ["degree"])["degree"]
    other = describe(test, ["degree"])["degree"]
    values = [estimate_mmd(rows[start : start + 5], other, "degree", "emd").value for start in (0, 5, 10)]
    assert found["degree"]["mean"] == pytest.approx(np.mean(values))
    assert found["degree"]["all"] == pytest.approx(estimate_mmd(rows, other, "degree", "emd").value)
