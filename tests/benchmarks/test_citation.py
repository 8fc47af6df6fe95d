"""The script of the citation networks in its quick mode."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import h5py
import networkx as nx
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
NODES = 90


def citation(folder: Path) -> str:
    command = [sys.executable, "-m", "benchmarks.reproduce.citation", str(folder), "--quick", "--datasets", "cora"]

    return subprocess.run(
        [*command, "--log", str(folder / "log.jsonl")], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout


@pytest.mark.slow
def test_quick_mode_prints_all_tables_and_continues_its_log(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    pytest.importorskip("gensim")
    with h5py.File(tmp_path / "cora.h5", "w") as file:
        graph = nx.planted_partition_graph(3, NODES // 3, 0.4, 0.02, seed=0)
        file["edge_index"] = np.array(sorted(graph.edges), dtype=np.int32).T
        file["labels"] = np.repeat([0, 1, 2], NODES // 3)
        file["features"] = np.eye(NODES, 6, dtype=np.float32)
        order = np.random.default_rng(0).permutation(NODES)
        for name, part in (("train", order[:15]), ("val", order[15:45]), ("test", order[45:])):
            file[f"{name}_idx"] = part
    before = {path: path.read_bytes() for path in (ROOT / "benchmarks" / "results").iterdir()}

    printed = citation(tmp_path)

    log = tmp_path / "log.jsonl"
    rows = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 2 * (6 + 5 + 6 + 4 + 4)  # runs; models and baselines without features, models with, classifiers
    assert all(0 <= row.get("auc", row.get("accuracy")) <= 1 for row in rows)
    assert printed.count("| Graphite-VAE ") == 3 + 2  # and its paired difference in two of them
    assert re.search(r"\| Graphite, published +\| 82.1", printed)

    # A truncated entry is computed again, with the same figures; only the times differ.
    text = log.read_text(encoding="utf-8")
    log.write_text(text[: text.rindex("{") + 20], encoding="utf-8")
    again = citation(tmp_path)
    assert again.partition("CPU")[0] == printed.partition("CPU")[0]

    assert {path: path.read_bytes() for path in (ROOT / "benchmarks" / "results").iterdir()} == before
