from __future__ import annotations

from pathlib import Path

import numpy as np

from graphite_gen.api import load
from graphite_gen.io import read_graphs

from .conftest import assert_error, invoke, run, run_json


def test_graphs_and_the_recovery_of_edges_are_those_of_the_library(model: Path, graphs: Path) -> None:
    found = run_json("reconstruct", graphs, "--model", model, "-o", "out.graphml", "--seed", 1)

    wanted = load(model).reconstruct(read_graphs(graphs), seed=1)
    assert found == wanted.to_json()
    assert found["graphs"] == 12
    for one, other in zip(read_graphs("out.graphml"), wanted.graphs, strict=True):
        assert np.array_equal(one.edges, other.edges)
    assert read_graphs("out.graphml").provenance.source == "reconstruct"


def test_a_table_is_shown_without_an_output(model: Path, graphs: Path) -> None:
    lines = run("reconstruct", graphs, "--model", model).stdout.splitlines()

    assert [line.split("  ")[0] for line in lines] == [
        "12 graphs",
        "reconstruction",
        "latents from the prior",
        "random pairs",
    ]
    assert [path.name for path in Path().iterdir()] == [graphs.name]


def test_an_existing_file_is_refused_before_the_work(model: Path, graphs: Path) -> None:
    assert_error(invoke("reconstruct", graphs, "--model", model, "-o", graphs), "exists", "--force")
    assert_error(invoke("reconstruct", graphs, "--model", model, "--output-format", "g6"), "'-o'", code=2)
