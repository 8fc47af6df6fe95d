import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import networkx as nx
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
NODES = 90


def run_twice(script: str, log: Path, *options: str) -> tuple[str, list[Any]]:
    """What a script prints and logs; run again, it computes a truncated entry again and ends with the same figures."""
    command = [sys.executable, "-m", f"benchmarks.reproduce.{script}", *options, "--quick", "--log", str(log)]
    before = {path: path.read_bytes() for path in (ROOT / "benchmarks" / "results").iterdir()}

    def run() -> str:
        return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout

    printed, text = run(), log.read_text(encoding="utf-8")
    log.write_text(text[: text.rindex("{") + 20], encoding="utf-8")
    # Only the times differ.
    assert run().partition("CPU")[0] == printed.partition("CPU")[0]
    assert {path: path.read_bytes() for path in (ROOT / "benchmarks" / "results").iterdir()} == before

    return printed, [json.loads(line) for line in text.splitlines()]


@pytest.mark.slow
def test_densities_are_printed_in_all_tables(tmp_path: Path) -> None:
    printed, rows = run_twice("density", tmp_path / "log.jsonl")

    assert len(rows) == 2 * 2 * 2 * 4 * 2  # presets, conventions, families, kinds, runs
    assert printed.count("Graphite gains") == 8
    assert printed.count("a fair coin per cell        | 277.26") == 2
    assert printed.count("| entropy ") == 2


@pytest.mark.slow
def test_citation_networks_are_printed_in_all_tables(tmp_path: Path) -> None:
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

    printed, rows = run_twice("citation", tmp_path / "log.jsonl", str(tmp_path), "--datasets", "cora")

    assert len(rows) == 2 * (
        12 + 8 + 12 + 4 + 4
    )  # runs; models and baselines without features, models with, classifiers
    assert all(0 <= row.get("auc", row.get("accuracy")) <= 1 for row in rows)
    # AUC, AP and MRR with two paired differences each, and the cost; there are fewer than 100 non-edges for Hits@100.
    assert printed.count("| Graphite-VAE ") == 3 * 3 + 1
    assert re.search(r"\| Graphite, published +\| 82.1", printed)


@pytest.mark.slow
def test_networks_that_resemble_one_are_printed_beside_random_graph_models(tmp_path: Path) -> None:
    path = tmp_path / "groups.graphml"
    nx.write_graphml(nx.Graph(nx.planted_partition_graph(3, NODES // 3, 0.4, 0.02, seed=0).edges), path)
    before = {path: path.read_bytes() for path in (ROOT / "benchmarks" / "results").iterdir()}
    command = [sys.executable, "-m", "benchmarks.reproduce.network_generation", str(path), "--draws", "2", "--quick"]
    printed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    table = [[cell.strip() for cell in line.split("|")[1:-1]] for line in printed.splitlines() if line.startswith("|")]
    header, _, *rows = table

    assert [row[0] for row in rows[::6]] == ["Groups", "grid", "communities"]
    assert [row[1] for row in rows[:3]] == ["observed", "graphite-gen", "configuration model"]
    assert len(rows) == 3 * 6
    # Degrees are kept, and few edges copied.
    for row in rows[1::6]:
        assert float(row[header.index("degrees, KS")].split()[0]) == 0
        assert float(row[header.index("copied edges, %")].split()[0]) <= 20
    assert {path: path.read_bytes() for path in (ROOT / "benchmarks" / "results").iterdir()} == before


@pytest.mark.slow
def test_unseen_networks_have_a_row_for_each_split_that_is_possible(tmp_path: Path) -> None:
    folder = tmp_path / "networks"
    folder.mkdir()
    nx.write_edgelist(nx.planted_partition_graph(3, NODES // 3, 0.4, 0.02, seed=0), folder / "groups.edgelist")
    nx.write_edgelist(nx.path_graph(NODES), folder / "path.edgelist")

    printed, rows = run_twice("unseen_networks", tmp_path / "log.jsonl", str(folder), "--runs", "1")

    # Small networks have four runs; no edge of a path can be held out without disconnecting it.
    assert len(rows) == 7 * 4 * 3
    found = re.findall(r"\| (groups|path) +\| (connected|random) +\| 90 +\|", printed)
    # AUC and MRR.
    assert sorted(set(found)) == [("groups", "connected"), ("groups", "random"), ("path", "random")]
    assert len(found) == 2 * 3
    assert printed.count("±") == 2 * 3


@pytest.mark.slow
def test_settings_of_peers_are_chosen_on_validation_edges(tmp_path: Path) -> None:
    pytest.importorskip("torch_geometric")
    with h5py.File(tmp_path / "cora.h5", "w") as file:
        graph = nx.planted_partition_graph(3, NODES // 3, 0.4, 0.02, seed=0)
        file["edge_index"] = np.array(sorted(graph.edges), dtype=np.int32).T
        file["features"] = np.eye(NODES, 6, dtype=np.float32)

    printed, rows = run_twice("peer_tuning", tmp_path / "log.jsonl", str(tmp_path), "--runs", "1")

    assert len(rows) == 4
    assert all(0 <= row["validation_score"] <= 2 and row["settings"]["epochs"] == 3 for row in rows)
    assert printed.count("(chosen)") == 4
