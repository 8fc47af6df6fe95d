from __future__ import annotations

import json
import shutil
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from graphite_gen.api import load
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs
from graphite_gen.training.checkpoint import read_tensors, write_tensors

from .conftest import TINY, Invoke, is_one_line, program


def test_samples_are_the_librarys_and_carry_their_origin(invoke: Invoke, model: Path) -> None:
    result = invoke("sample", "--model", model, "-n", 7, "--seed", 3, "-o", "out.jsonl")
    reader = read_graphs("out.jsonl")
    expected = load(model).sample(7, seed=3)

    assert result.exit_code == 0
    assert result.stdout == ""
    assert (reader.provenance.source, reader.provenance.model, reader.provenance.seed) == ("sample", "ego", 3)
    for found, wanted in zip(reader, expected, strict=True):
        assert nx.utils.graphs_equal(nx.Graph(found.edges.tolist()), nx.Graph(sorted(map(sorted, wanted.edges))))


def test_a_longer_sample_begins_with_the_shorter_one(invoke: Invoke, model: Path) -> None:
    few = invoke("sample", "--model", model, "-n", 3, "--format", "g6", "-o", "-")
    many = invoke("sample", "--model", model, "-n", 300, "--format", "g6", "-o", "-")

    assert many.stdout.startswith(few.stdout)
    assert len(many.stdout.splitlines()) == 300


def test_a_hundred_graphs_are_drawn_unless_told(invoke: Invoke, model: Path) -> None:
    result = invoke("sample", "--model", model, "--format", "g6", "-o", "-")

    assert len(result.stdout.splitlines()) == 100
    assert "[default: 100; 1 from a model of one large graph]" in " ".join(invoke("sample", "--help").stdout.split())


@pytest.mark.parametrize(("nodes", "sizes"), [("6", {6}), ("4:5", {4, 5})])
def test_nodes_set_the_sizes(invoke: Invoke, model: Path, nodes: str, sizes: set[int]) -> None:
    assert invoke("sample", "--model", model, "-n", 40, "--nodes", nodes, "-o", "out.g6").exit_code == 0

    assert {graph.nodes for graph in read_graphs("out.g6")} == sizes


def test_connected_samples_are_connected_and_the_rate_is_told(invoke: Invoke, model: Path) -> None:
    result = invoke("sample", "--model", model, "-n", 30, "--connected", "-o", "out.graphml")
    kept, drawn = (int(word) for word in result.stderr.splitlines()[-1].split()[:3:2])

    assert kept <= 30 <= drawn
    assert all(nx.is_connected(graph.to_networkx()) for graph in read_graphs("out.graphml"))


@pytest.mark.parametrize("format", ["h5", "graphml", "jsonl", "gml"])
def test_files_say_what_held_of_their_graphs_and_how(invoke: Invoke, model: Path, format: str) -> None:
    line = ("sample", "--model", model, "-n", 12, "--tree", "--max-degree", 3, "-o", f"out.{format}")
    assert invoke(*line).exit_code == 0

    for graph in map(SimpleGraph.to_networkx, read_graphs(f"out.{format}")):
        assert nx.is_tree(graph)
        assert max(dict(graph.degree).values()) <= 3
        assert graph.graph["constraints"] == "tree, max-degree 3"
        assert graph.graph["enforced"] in ("exact", "masks")


def test_degrees_are_listed_or_in_a_file_and_set_the_size(invoke: Invoke, model: Path) -> None:
    Path("degrees.txt").write_text("3 2 2\n2, 1\n")
    assert invoke("sample", "--model", model, "-n", 9, "--degrees", "degrees.txt", "-o", "a.g6").exit_code == 0
    assert invoke("sample", "--model", model, "-n", 9, "--degrees", "3,2,2,2,1", "-o", "b.g6").exit_code == 0

    assert Path("a.g6").read_bytes() == Path("b.g6").read_bytes()
    assert all(graph.degrees().tolist() == [3, 2, 2, 2, 1] for graph in read_graphs("a.g6"))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("--tree --edges 12 --nodes 10", "at least 12 edges are required, and at most 9 are possible"),
        ("--regular 3 --nodes 9", "the degrees sum to 27, which is odd"),
        ("--regular 9 --nodes 9", "a node has at most 8 neighbours, and 9 are required"),
        ("--degrees 3,3,1,1 --nodes 4", "not graphical"),
        ("--degrees 2,2,2 --nodes 4", "length 3"),
        ("--edges 11 --nodes 5", "at least 11 edges are required, and at most 10 are possible"),
        ("--planar --edges 10 --nodes 5", "at least 10 edges are required, and at most 9 are possible"),
        ("--connected --edges 3 --nodes 5", "at least 4 edges are required, and at most 3 are possible"),
        ("--connected --max-degree 1 --nodes 5", "at least 4 edges are required, and at most 2 are possible"),
        ("--regular 3 --max-degree 2", "a node would have at least 3 and at most 2 neighbours"),
        ("--regular 9", "nor on any of 4 sizes up to 8"),
    ],
)
def test_what_no_graph_can_be_is_refused_in_one_line(invoke: Invoke, model: Path, line: str, reason: str) -> None:
    result = invoke("sample", "--model", model, *line.split(), "-o", "a.g6")

    assert result.exit_code == 1
    assert is_one_line(result.stderr.splitlines()[-1] + "\n")
    assert reason in result.stderr
    assert not Path("a.g6").exists()


@pytest.mark.parametrize("degrees", ["nowhere.txt", "3,x", ",", "-1"])
def test_degrees_that_are_no_numbers_are_wrong_usage(invoke: Invoke, model: Path, degrees: str) -> None:
    assert invoke("sample", "--model", model, "--degrees", degrees, "-o", "a.g6").exit_code == 2


def test_latents_are_node_attributes(invoke: Invoke, model: Path) -> None:
    line = ("sample", "--model", model, "-n", 3, "--with-latents", "--largest-component", "-o", "out.h5")
    assert invoke(*line).exit_code == 0

    for graph in read_graphs("out.h5"):
        assert set(graph.node_attributes) == {f"z{d}" for d in range(8)}
        assert len(graph.node_attributes["z0"]) == graph.nodes


@pytest.mark.parametrize("format", ["g6", "s6", "edgelist"])
def test_latents_are_refused_where_they_would_be_dropped(invoke: Invoke, format: str) -> None:
    result = invoke("sample", "--model", "nobody", "--with-latents", "-o", f"out.{format}")

    assert result.exit_code == 1
    assert is_one_line(result.stderr)
    assert f"'{format}' cannot hold latents" in result.stderr
    assert not Path(f"out.{format}").exists()


def test_the_model_is_the_last_one_trained_here(invoke: Invoke, model: Path) -> None:
    shutil.copytree(model, "checkpoints/older")
    shutil.copytree(model, "checkpoints/newer", copy_function=shutil.copy)
    Path("checkpoints/newer/state.json").touch()
    result = invoke("sample", "-n", 1, "--format", "g6", "-o", "-")

    assert "'checkpoints/newer'" in result.stderr
    assert "last one trained" in result.stderr
    assert "'checkpoints/older'" in invoke("sample", "--model", "older", "-n", 1, "-o", "a.g6").stderr


def test_the_bundled_model_is_used_where_none_was_trained(
    invoke: Invoke, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(model, tmp_path / "bundled" / "barabasi")
    monkeypatch.setattr("graphite_gen.training.checkpoint.bundled_folder", lambda: tmp_path / "bundled")
    result = invoke("sample", "-n", 1, "--format", "g6", "-o", "-")

    assert result.exit_code == 0
    assert "bundled" in result.stderr
    assert "barabasi" in result.stderr


def test_features_condition_a_model_that_was_trained_with_them(invoke: Invoke) -> None:
    rng = np.random.default_rng(0)
    with Path("own.jsonl").open("w") as file:
        for _ in range(20):
            rows = ", ".join(f'{{"id": {i}, "features": [{rng.normal():.3f}, 1.0]}}' for i in range(4))
            file.write(f'{{"nodes": [{rows}], "links": [{{"source": 0, "target": {rng.integers(1, 4)}}}]}}\n')
    assert invoke("train", "own.jsonl", "--epochs", 1, "--width", 8, "--epoch-graphs", 0).exit_code == 0
    without = invoke("sample", "-n", 2, "-o", "a.jsonl")
    assert without.exit_code == 1
    assert "--features" in without.stderr
    assert invoke("sample", "-n", 25, "--features", "own.jsonl", "-o", "a.jsonl").exit_code == 0

    drawn, given = list(read_graphs("a.jsonl")), list(read_graphs("own.jsonl"))
    assert all(np.allclose(graph.features, given[i % 20].features) for i, graph in enumerate(drawn))


@pytest.mark.parametrize(
    "line",
    [
        ("-n", "0", "-o", "a.g6"),
        ("--nodes", "0", "-o", "a.g6"),
        ("-n", "3"),
        ("--nodes", "5", "--features", "x", "-o", "-"),
    ],
)
def test_wrong_usage_is_exit_two(invoke: Invoke, line: tuple[str, ...]) -> None:
    assert invoke("sample", *line).exit_code == 2


def test_what_cannot_be_done_is_one_line(invoke: Invoke, model: Path) -> None:
    Path("empty").mkdir()
    Path("there.g6").write_text("?\n")
    for line in (
        ("--model", "nobody", "-o", "a.g6"),
        ("--model", "empty", "-o", "a.g6"),
        ("--model", model, "-o", "there.g6"),
        ("--model", model, "-o", "-", "--format", "h5"),
        ("--model", model, "-o", "a.g6", "--union"),
        ("--model", model, "-o", "a.g6", "--nodes", "10:100000"),
    ):
        result = invoke("sample", *line)
        assert result.exit_code == 1
        assert is_one_line("\n".join(result.stderr.splitlines()[-1:]) + "\n")
        assert "Traceback" not in result.stderr
    assert not Path("a.g6").exists()


def test_an_autoencoder_has_no_prior(invoke: Invoke) -> None:
    assert invoke("train", "--family", "ego", *TINY, "--kind", "gae").exit_code == 0
    result = invoke("sample", "-o", "a.g6")

    assert result.exit_code == 1
    assert "autoencoder" in result.stderr


def test_samples_pipe_into_networkx(model: Path) -> None:
    process = program("sample", "--model", model, "-n", 5, "--format", "s6", "-o", "-", "--threads", 1)
    out, err = process.communicate(timeout=60)

    assert process.returncode == 0
    assert len([nx.from_sparse6_bytes(line.encode()) for line in out.splitlines()]) == 5
    assert len(err.splitlines()) == 1


def test_options_that_exclude_each_other_are_refused(invoke: Invoke, model: Path) -> None:
    result = invoke("sample", "--model", model, "--connected", "--largest-component", "-o", "a.g6")

    assert result.exit_code == 2
    assert not Path("a.g6").exists()


def test_a_model_whose_training_is_not_finished_is_used_but_said_to_be(invoke: Invoke, model: Path) -> None:
    unfinished = Path("unfinished")
    shutil.copytree(model, unfinished)
    tensors, metadata = read_tensors(unfinished / "optimizer.safetensors")
    state = json.loads(metadata["state"])
    state["progress"]["finished"] = False
    write_tensors(unfinished / "optimizer.safetensors", tensors, {"state": json.dumps(state)})

    assert "not finished" in invoke("sample", "--model", unfinished, "-n", "1", "-o", "a.g6").stderr
    assert "not finished" not in invoke("sample", "--model", model, "-n", "1", "-o", "b.g6").stderr


def test_sizes_beyond_training_are_drawn_with_a_word_of_warning(invoke: Invoke, model: Path) -> None:
    assert "expect little" in invoke("sample", "--model", model, "-n", 1, "--nodes", 30, "-o", "a.g6").stderr
