from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

from graphite_gen.api import load
from graphite_gen.io import read_graphs

from .conftest import assert_error, invoke, run


def test_the_path_is_that_of_the_library(model: Path, graphs: Path) -> None:
    run("interpolate", graphs, graphs, "--last", 5, "-n", 4, "--model", model, "-o", "path.jsonl")

    ends = list(read_graphs(graphs))
    wanted = load(model).interpolate(ends[0], ends[5], 4, seed=0)
    found = list(read_graphs("path.jsonl"))
    assert [graph.edges.tolist() for graph in found] == [sorted(map(sorted, graph.edges)) for graph in wanted]
    assert [graph.attributes["t"] for graph in found] == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_constraints_hold_on_the_path(model: Path, graphs: Path) -> None:
    run("interpolate", graphs, graphs, "--last", 5, "-n", 4, "--model", model, "--tree", "-o", "path.g6")

    assert all(nx.is_tree(graph.to_networkx()) for graph in read_graphs("path.g6"))


def test_graphs_that_do_not_exist_are_one_line(model: Path, graphs: Path) -> None:
    common = ("interpolate", graphs, graphs, "--model", model)
    assert_error(invoke(*common, "-o", graphs), "exists")
    assert_error(invoke(*common, "-n", 1, "-o", "path.g6"), "1", code=2)
