import shutil
from dataclasses import replace
from pathlib import Path

import h5py
import networkx as nx
import numpy as np
import pytest
import torch

from graphite_gen.io import read_graphs, write_graphs
from graphite_gen.training.checkpoint import load_checkpoint, save_checkpoint

from .conftest import assert_error, invoke, run, run_json


def test_the_summary_of_a_file(graphs: Path) -> None:
    value, found = run_json("inspect", graphs), list(read_graphs(graphs))

    assert (value["format"], value["graphs"]) == ("h5", 12)
    assert value["nodes"] == {"min": 5, "max": 8, "mean": np.mean([graph.nodes for graph in found])}
    assert value["edges"]["mean"] == pytest.approx(np.mean([len(graph.edges) for graph in found]))
    assert 0 < value["density"]["min"] <= value["density"]["max"] <= 1
    assert value["splits"] == {"train": 4, "validation": 4, "test": 4}
    assert value["provenance"]["family"] == "ego"
    text = run("inspect", graphs).stdout
    assert "train 4, validation 4, test 4" in text
    assert "family ego (p=0.5), seed 1" in text


def test_weights_names_and_features_are_counted() -> None:
    Path("own.jsonl").write_text(
        '{"nodes": [{"id": "a", "features": [1, 2]}, {"id": "b", "features": [3, 4]}], '
        '"links": [{"source": "a", "target": "b", "weight": 2.5, "colour": "red"}]}\n'
    )
    value = run_json("inspect", "own.jsonl")

    assert (value["weighted"], value["named"], value["features"]) == (1, 1, [2])
    assert value["attributes"]["edge"] == ["colour"]
    assert "2 per node" in run("inspect", "own.jsonl").stdout


def test_directed_graphs_are_described() -> None:
    write_graphs([nx.DiGraph([(0, 1), (1, 0), (1, 2), (3, 2)]), nx.DiGraph([(0, 1)])], "arcs.jsonl")
    value = run_json("inspect", "arcs.jsonl")

    assert (value["directed"], value["acyclic"]) == (2, 1)
    assert value["reciprocity"] == {"min": 0.0, "max": 0.5, "mean": 0.25}
    assert value["density"] == {"min": 1 / 3, "max": 0.5, "mean": pytest.approx(5 / 12)}
    shown = [line.split(None, 1) for line in run("inspect", "arcs.jsonl").stdout.splitlines()]
    assert ["directed", "yes"] in shown
    assert ["reciprocity", "0.000 to 0.500, mean 0.250"] in shown
    assert ["acyclic", "1 of 2 graphs"] in shown
    write_graphs([nx.path_graph(3)], "plain.jsonl")
    assert run_json("inspect", "plain.jsonl")["directed"] == 0
    assert "directed" not in run("inspect", "plain.jsonl").stdout


def test_features_of_a_network_are_counted_and_latents_recognised(groups: Path) -> None:
    with h5py.File("one.h5", "w") as file:
        file["edge_index"] = np.array([[0, 1], [1, 2]], dtype=np.int32)
        file["features"] = np.ones((3, 7))
    assert run_json("inspect", "one.h5")["features"] == [7]

    run("embed", groups, "-o", "z.h5", "--epochs", 1, "--latent", 2, "--threads", 1)
    assert_error(invoke("inspect", "z.h5"), "'graphite-gen embed'")


def test_the_summary_of_a_model_by_path_or_name(model: Path) -> None:
    shutil.copytree(model, "checkpoints/mine")
    value = run_json("inspect", "mine")

    assert value == {**run_json("inspect", model), "folder": "checkpoints/mine"}
    assert value["config"]["width"] == 16
    assert value["nodes"] == {"min": 5, "max": 8}
    assert value["results"]["training_graphs"] == 60
    text = run("inspect", "mine").stdout
    assert "60 graphs from family ego (p=0.5)" in text
    assert "graphite-vae" in text
    figures = value["results"]
    assert f"KL {figures['kl']:.2f} nats per graph, {figures['active_units']} of 8 units active" in " ".join(
        text.split()
    )


def test_inactive_latents_are_reported(model: Path, graphs: Path) -> None:
    trained = load_checkpoint(model)
    with torch.no_grad():
        for parameter in trained.network.encoder.stack.out.parameters():
            parameter.zero_()
    results = {**trained.results, "kl": 0.0, "active_units": 0, "mutual_information": 0.0}
    save_checkpoint(replace(trained, results=results), Path("checkpoints/inactive"))

    assert "The latents carry no information: KL 0.00" in " ".join(run("inspect", "inactive").stdout.split())
    save_checkpoint(replace(trained, results={**results, "kl": None}), Path("checkpoints/unknown"))
    assert "units active" not in run("inspect", "unknown").stdout
    assert "carry no information: KL 0.00" in run("encode", graphs, "--model", "inactive", "-o", "z.h5").stderr
    assert "carry no information" not in run("encode", graphs, "--model", model, "-o", "z.h5", "--force").stderr


def test_without_an_argument_all_models_are_listed(model: Path, bundled: Path) -> None:
    assert "train" in run("inspect").stderr
    shutil.copytree(model, bundled / "ego")
    shutil.copytree(model, "checkpoints/mine")
    Path("checkpoints/broken").mkdir()
    Path("checkpoints/broken/config.json").write_text("{")

    rows, shown = run_json("inspect"), run("inspect")
    assert [(row["place"], Path(row["folder"]).name) for row in rows] == [("local", "mine"), ("bundled", "ego")]
    assert "broken" in shown.stderr
    assert "mine" in shown.stdout


def test_a_folder_of_graphs_is_summarised_and_the_models_of_a_folder_are_listed(graphs: Path, model: Path) -> None:
    run("convert", graphs, "many/{index}.csv")

    assert run_json("inspect", "many/")["graphs"] == 12
    assert [row["name"] for row in run_json("inspect", model.parent)] == ["ego"]
