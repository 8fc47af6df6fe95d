from __future__ import annotations

import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from graphite_gen.io import read_graphs

from .conftest import Invoke, assert_error, only_json


def test_the_summary_of_a_file(invoke: Invoke, graphs: Path) -> None:
    value = only_json(invoke("inspect", graphs, "--json"))
    found = list(read_graphs(graphs))

    assert (value["format"], value["graphs"]) == ("h5", 12)
    assert value["nodes"] == {"min": 5, "max": 8, "mean": np.mean([graph.nodes for graph in found])}
    assert value["edges"]["mean"] == pytest.approx(np.mean([len(graph.edges) for graph in found]))
    assert 0 < value["density"]["min"] <= value["density"]["max"] <= 1
    assert value["splits"] == {"train": 4, "validation": 4, "test": 4}
    assert value["provenance"]["family"] == "ego"
    text = invoke("inspect", graphs).stdout
    assert "train 4, validation 4, test 4" in text
    assert "family ego (p=0.5), seed 1" in text


def test_weights_names_and_features_are_counted(invoke: Invoke) -> None:
    Path("own.jsonl").write_text(
        '{"nodes": [{"id": "a", "features": [1, 2]}, {"id": "b", "features": [3, 4]}], '
        '"links": [{"source": "a", "target": "b", "weight": 2.5, "colour": "red"}]}\n'
    )
    value = only_json(invoke("inspect", "own.jsonl", "--json"))

    assert (value["weighted"], value["named"], value["features"]) == (1, 1, [2])
    assert value["attributes"]["edge"] == ["colour"]
    assert "2 per node" in invoke("inspect", "own.jsonl").stdout


def test_features_of_a_network_are_counted_and_latents_recognised(invoke: Invoke, groups: Path) -> None:
    with h5py.File("one.h5", "w") as file:
        file["edge_index"] = np.array([[0, 1], [1, 2]], dtype=np.int32)
        file["features"] = np.ones((3, 7))
    assert only_json(invoke("inspect", "one.h5", "--json"))["features"] == [7]

    assert invoke("embed", groups, "-o", "z.h5", "--epochs", 1, "--latent", 2, "--threads", 1).exit_code == 0
    result = invoke("inspect", "z.h5")

    assert_error(result)
    assert "latents" in result.stderr or "embed" in result.stderr


def test_the_summary_of_a_model_by_path_or_name(invoke: Invoke, model: Path) -> None:
    shutil.copytree(model, "checkpoints/mine")
    value = only_json(invoke("inspect", "mine", "--json"))

    assert value == {**only_json(invoke("inspect", model, "--json")), "folder": "checkpoints/mine"}
    assert value["config"]["width"] == 16
    assert value["nodes"] == {"min": 5, "max": 8}
    assert value["results"]["training_graphs"] == 60
    text = invoke("inspect", "mine").stdout
    assert "60 graphs from family ego (p=0.5)" in text
    assert "graphite-vae" in text


def test_without_an_argument_all_models_are_listed(
    invoke: Invoke, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphite_gen.training.checkpoint.bundled_folder", lambda: tmp_path / "bundled")
    nothing = invoke("inspect")
    assert nothing.exit_code == 0
    assert "train" in nothing.stderr
    shutil.copytree(model, tmp_path / "bundled" / "ego")
    shutil.copytree(model, "checkpoints/mine")
    Path("checkpoints/broken").mkdir()
    Path("checkpoints/broken/config.json").write_text("{")
    result = invoke("inspect", "--json")

    assert [(row["place"], Path(row["folder"]).name) for row in only_json(result)] == [
        ("local", "mine"),
        ("bundled", "ego"),
    ]
    assert "broken" in result.stderr
    assert "mine" in invoke("inspect").stdout


@pytest.mark.parametrize("thing", ["missing.h5", "nobody", "no/such.graphml", "folder"])
def test_a_missing_file_or_model_is_reported_on_one_line(invoke: Invoke, thing: str) -> None:
    Path("folder").mkdir()
    assert_error(invoke("inspect", thing), thing)
