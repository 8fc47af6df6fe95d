import re
from itertools import pairwise
from pathlib import Path

import h5py
import networkx as nx
import numpy as np
import pytest

from graphite_gen.io import read_graphs
from graphite_gen.network.network import read_network

from .conftest import invoke, run


def test_directions_are_converted_and_dropped_only_by_simplify() -> None:
    graph = nx.DiGraph([("a", "b", {"weight": 2.0}), ("b", "a", {"weight": 0.5}), ("c", "a", {"weight": 1.0})])
    nx.write_graphml(graph, "a.graphml")
    steps = ("a.graphml", "b.h5", "c.csv", "d.edgelist", "e.gml", "f.tsv.gz", "g.jsonl")
    for source, target in pairwise(steps):
        run("convert", source, target)
    run("convert", "g.jsonl", "h.g6", "--simplify")

    (last,) = read_graphs("g.jsonl").to_networkx()
    (plain,) = read_graphs("h.g6")

    assert dict(last.edges) == dict(graph.edges)
    assert last.is_directed()
    assert (plain.directed, plain.edges.tolist()) == (False, [[0, 1], [0, 2]])


def test_folders_are_read_in_order_and_pipes_by_their_format(graphs: Path) -> None:
    straight = run("convert", graphs, "-", "--output-format", "g6").stdout_bytes
    run("convert", graphs, "out/{index:03d}.graphml")
    run("convert", "out", "folder.g6")
    run("convert", "-", "pipe.g6", "--input-format", "g6", input=straight)

    assert len(straight.splitlines()) == 12
    assert [graph.attributes for graph in read_graphs("out")] == [graph.attributes for graph in read_graphs(graphs)]
    assert Path("folder.g6").read_bytes() == Path("pipe.g6").read_bytes() == straight


def test_simplify_drops_loops_and_repeated_edges() -> None:
    Path("loop.edgelist").write_text("0 0\n0 1\n1 0\n1 2\n")
    run("convert", "loop.edgelist", "a.g6", "--simplify")

    assert next(read_graphs("a.g6")).edges.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("format", ["g6", "s6", "jsonl"])
def test_what_a_format_cannot_store_is_noted_once(format: str) -> None:
    Path("in.edgelist").write_text("a b 2.5\n")
    line = '{"nodes": [{"id": 0}, {"id": 1}], "edges": [{"source": 0, "target": 1, "weight": 2}]}\n'
    Path("in.jsonl").write_text(line * 3)
    notes = run("convert", "in.jsonl", f"out.{format}").stderr.splitlines()
    other = run("convert", "in.edgelist", f"other.{format}").stderr

    assert [text for text in notes if "weights" in text] == notes[:-1]
    assert len(notes) == (1 if format == "jsonl" else 2)
    assert ("weights and names" in other) == (format != "jsonl")


def test_many_graphs_in_one_gml_file_come_with_a_note_on_reading_them(graphs: Path) -> None:
    assert "networkx.read_gml" in run("convert", graphs, "a.gml").stderr
    assert "networkx.read_gml" not in run("convert", graphs, "b.gml", "--union").stderr


@pytest.mark.parametrize("suffix", ["graphml", "gml", "jsonl", "h5"])
def test_a_network_keeps_labels_and_splits_and_a_note_tells_of_its_features(suffix: str) -> None:
    edges = np.array(sorted(nx.complete_graph(12).edges), dtype=np.int32)
    with h5py.File("one.h5", "w") as file:
        file["edge_index"], file["labels"] = edges.T, np.arange(12) % 3 - 1
        file["features"] = np.ones((12, 7))
        file["train_idx"], file["val_idx"], file["test_idx"] = [1, 2, 4, 5], [11, 0], [7, 8]
    result = run("convert", "one.h5", f"out.{suffix}")
    before, after = read_network("one.h5"), read_network(f"out.{suffix}")

    assert f"Not written to 'out.{suffix}': 7 features" in result.stderr
    assert after.classes == before.classes == (0, 1)
    for found in (before, after):
        assert found.labels is not None
        assert found.labels.tolist() == [-1, 0, 1] * 4
        assert found.split is not None
        parts = (found.split.train, found.split.validation, found.split.test)
        assert [part.tolist() for part in parts] == [[1, 2, 4, 5], [0, 11], [7, 8]]
    notes = invoke("classify", f"out.{suffix}", "--epochs", 1, "--runs", 1, "--threads", 1).stderr.splitlines()
    # Training, validation and test nodes that have a label.
    assert ["4", "1", "2"] in [re.findall(r"\d+", line) for line in notes]
