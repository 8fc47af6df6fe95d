import json
import shutil
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from tiny import random_graph, small_model

from graphite_gen.api import load
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs, write_graphs
from graphite_gen.training.checkpoint import read_tensors, save_checkpoint, write_tensors

from .conftest import assert_error, invoke, run


def test_samples_are_those_of_the_library_with_provenance(model: Path) -> None:
    result = run("sample", "--model", model, "--seed", 3, "-o", "out.jsonl")
    reader = read_graphs("out.jsonl")
    expected = load(model).sample(100, seed=3)

    assert result.stdout == ""
    assert (reader.provenance.source, reader.provenance.model, reader.provenance.seed) == ("sample", "ego", 3)
    for found, wanted in zip(reader, expected, strict=True):
        assert nx.utils.graphs_equal(nx.Graph(found.edges.tolist()), nx.Graph(sorted(map(sorted, wanted.edges))))


@pytest.mark.parametrize(("nodes", "sizes"), [("6", {6}), ("4:5", {4, 5})])
def test_nodes_set_the_sizes_and_new_ones_are_noted(model: Path, nodes: str, sizes: set[int]) -> None:
    result = run("sample", "--model", model, "-n", 40, "-o", "out.g6", "--nodes", nodes)

    assert {graph.nodes for graph in read_graphs("out.g6")} == sizes
    assert ("may be poor" in result.stderr) == (4 in sizes)


def test_connected_samples_are_connected_and_the_rate_is_noted(model: Path) -> None:
    result = run("sample", "--model", model, "-n", 30, "--connected", "-o", "out.graphml")
    kept, drawn = (int(word) for word in result.stderr.splitlines()[-1].split()[:3:2])

    assert kept <= 30 <= drawn
    assert all(nx.is_connected(graph.to_networkx()) for graph in read_graphs("out.graphml"))


def test_files_record_the_constraints_and_how_they_were_enforced(model: Path) -> None:
    run("sample", "--model", model, "-n", 12, "--tree", "--max-degree", 3, "-o", "out.graphml")

    for graph in map(SimpleGraph.to_networkx, read_graphs("out.graphml")):
        assert nx.is_tree(graph)
        assert max(dict(graph.degree).values()) <= 3
        assert graph.graph["constraints"] == "tree, max-degree 3"
        assert graph.graph["enforced"] in ("exact", "masks")


def test_degrees_come_from_a_list_or_a_file_and_set_the_size(model: Path) -> None:
    Path("degrees.txt").write_text("3 2 2\n2, 1\n")
    run("sample", "--model", model, "-n", 9, "--degrees", "degrees.txt", "-o", "a.g6")
    run("sample", "--model", model, "-n", 9, "--degrees", "3,2,2,2,1", "-o", "b.g6")

    assert Path("a.g6").read_bytes() == Path("b.g6").read_bytes()
    assert all(graph.degrees().tolist() == [3, 2, 2, 2, 1] for graph in read_graphs("a.g6"))


def test_latents_are_node_attributes(model: Path) -> None:
    run("sample", "--model", model, "-n", 3, "--with-latents", "--largest-component", "-o", "out.h5")

    for graph in read_graphs("out.h5"):
        assert set(graph.node_attributes) == {f"z{d}" for d in range(8)}
        assert len(graph.node_attributes["z0"]) == graph.nodes


def test_features_condition_a_model_trained_with_features() -> None:
    save_checkpoint(small_model(node_features=2), Path("featured"))
    given = [random_graph(4, seed, features=2) for seed in range(20)]
    write_graphs(given, "own.jsonl")
    line = ("sample", "--model", "./featured", "-n", 25, "-o", "a.jsonl")

    assert_error(invoke(*line), "--features", after_notes=True)
    run(*line, "--features", "own.jsonl")
    for index, graph in enumerate(read_graphs("a.jsonl")):
        assert np.allclose(graph.features, given[index % 20].features)


def test_a_note_tells_of_unfinished_training(model: Path) -> None:
    shutil.copytree(model, "unfinished")
    tensors, metadata = read_tensors(Path("unfinished/optimizer.safetensors"))
    state = json.loads(metadata["state"])
    state["progress"]["finished"] = False
    write_tensors(Path("unfinished/optimizer.safetensors"), tensors, {"state": json.dumps(state)})

    for folder in ("./unfinished", model):
        notes = run("sample", "--model", folder, "-n", 1, "--force", "-o", "a.g6").stderr
        assert ("not finished" in notes) == (folder != model)


def test_unlikely_constraints_and_long_samples_are_announced(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlikely = run("sample", "--model", model, "-n", 9, "--nodes", 20, "--edges", 190, "-o", "out.g6").stderr
    assert "'edges 190' is very unlikely under 'ego'" in unlikely
    assert "far from these" in unlikely
    assert "unlikely" not in run("sample", "--model", model, "--nodes", 2, "--connected", "-o", "two.g6").stderr

    monkeypatch.setattr("graphite_gen.cli.console.LONG", 0.0)
    for nodes, found in ((8, False), (250, True)):
        err = run("sample", "--model", model, "-n", 70, "--nodes", nodes, "-o", f"{nodes}.s6").stderr
        assert (f"70 graphs of up to {nodes} nodes will take about" in err) == found


@pytest.mark.parametrize(
    "args", [("-o", "a.xyz"), ("-o", "a.edgelist", "-n", 2), ("-o", "a.g6", "--union"), ("-o", "no/a.g6")]
)
def test_the_output_is_checked_before_a_model_is_loaded(args: tuple[object, ...], model: Path) -> None:
    assert_error(invoke("sample", "--model", model, *args), "'")
