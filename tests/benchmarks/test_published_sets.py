"""The benchmark of published datasets continues its log and keeps earlier rows until a dataset is run again."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import graphite_gen as gg
from graphite_gen.data.dataset import split_of
from graphite_gen.evaluation import VALIDITY, describe, estimate_mmd
from graphite_gen.families.simulate import generate
from graphite_gen.io import read_graphs, write_graphs

TINY = {"epochs": 1, "epoch_graphs": 8, "batch_size": 4, "width": 8, "rounds": 1, "ordering": "bfs"}


@pytest.fixture
def sets(results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from benchmarks.reproduce import published_sets

    monkeypatch.setattr(published_sets, "LOG", tmp_path / "log.jsonl")

    return published_sets


@pytest.fixture
def trained(sets: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of models that were trained, by a tiny model in this process instead of the command."""
    names = []

    def train(out: Path, name: str, source: list[Path], settings: list[str], **_: Any) -> dict[str, Any]:
        names.append(name)
        gg.fit(source[0], folder=out / name, seed=0, force=True, **TINY)
        results = {"seconds": 6.0}

        return {
            **{"folder": str(out / name), "settings": settings, "results": results, "cpu_seconds": 30.0},
            **{"commit": "abc1234", "date": "2026-01-01", "machine": {}},
        }

    monkeypatch.setattr(sets, "train", train)

    return names


@pytest.mark.usefixtures("single_precision")
def test_finished_datasets_are_not_run_again_and_replace_earlier_rows(
    sets: Any, trained: list[str], tmp_path: Path
) -> None:
    write_graphs(generate("powerlaw-tree", 18, nodes=(5, 7), seed=0), tmp_path / "tree.h5")
    earlier = [
        {
            **{"set": name, "constraint": "", "budget": "", "seed": 0, "earlier": True, "samples": 1, "rate": 1.0},
            **{"vun": dict.fromkeys(("valid", "unique", "novel")), "training_seconds": 60, "commit": "unknown"},
            **{"mmd": _mmds(), "train_mmd": _mmds()},
        }
        for name in ("tree", "planar")
    ]
    for row in earlier:
        row["vun"]["vun"] = {"value": 0.5, "low": 0.4, "high": 0.6}
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(row) + "\n" for row in earlier), encoding="utf-8")
    options = [str(tmp_path), "--samples", "12", "--models", str(tmp_path / "models"), "--sets", "tree"]

    sets.main([*options, "--tables"])
    assert not (tmp_path / "results").exists()

    sets.main(options)
    sets.main(options)

    assert trained == ["tree-default-0"]
    found = json.loads((tmp_path / "results" / "published_sets.json").read_text(encoding="utf-8"))
    assert [row[:3] for row in found["rows"]] == [
        ["tree", "abc1234", "default"],
        ["planar", "earlier", "epochs set by hand"],
    ]
    row = found["details"]["sets"][0]
    assert row["vun"]["valid"]["total"] == 12
    assert row["training_minutes"] == pytest.approx(0.5)
    assert len(list(read_graphs(tmp_path / "models" / "tree-default-0-samples.h5"))) == 12

    sets.main([*options, "--constrained"])
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [(row["constraint"], row["vun"]["valid"]["value"]) for row in rows[3:]] == [("tree", 1)]

    sets.main([*options, "--again"])
    assert len(log.read_text(encoding="utf-8").splitlines()) == 5


def _mmds() -> dict[str, dict[str, float]]:
    return {name: {"mean": 0.0} for name in ("degree", "clustering", "orbit")}


@pytest.mark.parametrize("name", ["lobster", "grid", "planar-L", "lobster-L", "sbm-L"])
def test_generated_datasets_are_valid_and_have_splits(sets: Any, name: str, tmp_path: Path) -> None:
    file = sets.prepare(name, tmp_path, tmp_path, sizes=(6, 2, 4))
    graphs = list(read_graphs(file))

    assert [split_of(graph) for graph in graphs] == ["train"] * 6 + ["validation"] * 2 + ["test"] * 4
    valid = np.mean(list(map(VALIDITY[sets.SETS[name].validity], graphs)))
    # The SBM test rejects about a tenth of the graphs of its own model.
    assert valid == 1 if name != "sbm-L" else valid >= 0.5
    assert sets.prepare(name, tmp_path, tmp_path, sizes=(6, 2, 4)) == file


def test_grids_are_the_published_ones(sets: Any) -> None:
    grids = sets.grids()

    assert len(grids) == 100
    assert {len(graph) for graph in grids} == {a * b for a in range(10, 20) for b in range(10, 20)}
    assert all(map(nx.is_connected, grids))


def test_groups_are_as_large_as_the_test_split(sets: Any) -> None:
    graphs = generate("ego", 23, seed=0).graphs
    drawn, test = graphs[:18], graphs[18:]

    found = sets.grouped_mmds(drawn, test)

    rows = describe(drawn, ["degree"])["degree"]
    other = describe(test, ["degree"])["degree"]
    values = [estimate_mmd(rows[start : start + 5], other, "degree", "emd").value for start in (0, 5, 10)]
    assert found["degree"]["mean"] == pytest.approx(np.mean(values))
    assert found["degree"]["all"] == pytest.approx(estimate_mmd(rows, other, "degree", "emd").value)
