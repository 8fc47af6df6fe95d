import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.reproduce import geometric_bounds as script
from graphite_gen.families import family
from graphite_gen.families.simulate import generate


def test_stored_bounds_belong_to_the_test_graphs_and_are_tight() -> None:
    rows = script.read_rows()
    graphs = generate(family("geometric"), len(rows), seed=1000).graphs
    gaps = np.array([row["upper"] - row["lower"] for row in rows])

    assert [row["index"] for row in rows] == list(range(len(rows)))
    assert [row["digest"] for row in rows] == [script.digest(graph) for graph in graphs]
    assert [row["nodes"] for row in rows] == [graph.nodes for graph in graphs]
    assert -0.1 < gaps.mean() < 0.3
    assert np.abs(gaps).max() < 3


def test_digest_depends_on_labels() -> None:
    graph = generate(family("geometric"), 1, seed=1000).graphs[0]

    assert script.digest(graph) == script.digest(graph.permuted(range(graph.nodes)))
    assert script.digest(graph) != script.digest(graph.permuted(range(graph.nodes)[::-1]))


def test_interrupted_run_is_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    indices = []

    def bound(index: int, graph: Any) -> dict[str, Any]:
        indices.append(index)
        return {"index": index, "nodes": graph.nodes, "lower": 1.0, "upper": 2.0}

    monkeypatch.setattr(script, "FILE", tmp_path / "bounds.json")
    monkeypatch.setattr(script, "bound", bound)
    for count in ("2", "5"):
        monkeypatch.setattr(sys, "argv", ["geometric_bounds.py", "--graphs", count, "--minutes", "1e9"])
        script.main()

    assert indices == [0, 1, 2, 3, 4]
    assert [row["index"] for row in json.loads(script.FILE.read_text())["graphs"]] == indices
