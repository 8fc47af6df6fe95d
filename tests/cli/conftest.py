"""A tiny trained model and files of graphs; each test runs in an empty folder."""

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from graphite_gen.cli.main import main

# Small enough that a run takes a second.
TINY = ("--graphs", 60, "--epochs", 2, "--nodes", "5:8", "--width", 16, "--epoch-graphs", 0, "--threads", 1)


def program(*args: object, **kwargs: Any) -> subprocess.Popen[str]:
    """Start the program in a process of its own, which handles interrupts even if tests run in the background."""

    def heed_interrupts() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    return subprocess.Popen(
        [sys.executable, "-m", "graphite_gen", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        **kwargs,
    )


def under_torchrun(*args: object, processes: int = 2, restarts: int = 0) -> list[str]:
    """The command line of several processes on this machine."""
    options = ("--nproc-per-node", processes, "--max-restarts", restarts, "-m", "graphite_gen")

    return [sys.executable, "-m", "torch.distributed.run", *map(str, (*options, *args))]


def invoke(*args: object, **kwargs: Any) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args], **kwargs)


def run(*args: object, **kwargs: Any) -> Result:
    """Run a command that has to succeed."""
    result = invoke(*args, **kwargs)
    assert result.exit_code == 0, result.stderr

    return result


def run_json(*args: object, **kwargs: Any) -> Any:
    """The JSON that a command prints to stdout, and nothing else."""
    return json.loads(run(*args, "--json", **kwargs).stdout)


def read_csv(path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(path).read_text(encoding="utf-8").splitlines()))


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, as commands look for './checkpoints'."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)

    return folder


@pytest.fixture
def bundled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in the place of that of the bundled models, which holds none yet."""
    monkeypatch.setattr("graphite_gen.training.checkpoint.bundled_folder", lambda: tmp_path / "bundled")

    return tmp_path / "bundled"


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny model of ego networks on 5 to 8 nodes."""
    out = tmp_path_factory.mktemp("models")
    run("train", "--family", "ego", "--preset", "one-shot", *TINY, "--out", out)

    return out / "ego"


@pytest.fixture
def graphs(own_folder: Path) -> Path:
    """A file of 12 ego networks on 5 to 8 nodes, in three splits."""
    path = own_folder / "ego.h5"
    run("generate", "--family", "ego", "--graphs", 12, "--nodes", "5:8", "--seed", 1, "-o", path)

    return path


def write_groups(path: Path) -> None:
    """Write a network: thirty named nodes, labelled by their three groups."""
    import networkx as nx

    graph = nx.Graph(nx.planted_partition_graph(3, 10, 0.6, 0.05, seed=0).edges)
    for node in graph:
        graph.nodes[node]["label"] = f"group {node // 10}"
    nx.write_graphml(nx.relabel_nodes(graph, {node: f"n{node}" for node in sorted(graph)}), path)


def write_molecules(path: Path, seed: int = 0) -> None:
    """Write 16 weighted graphs with the labels 'charge', 'element' and 'bond', of two classes."""
    import networkx as nx

    from graphite_gen.graph import SimpleGraph
    from graphite_gen.io import write_graphs

    graphs = []
    for k in range(16):
        graph = nx.gnp_random_graph(6, 0.5, seed=16 * seed + k)
        graph.graph["class"] = "ab"[k % 2]
        for node, data in graph.nodes.items():
            data.update(charge=node % 2, element="CNO"[(node * (k + seed)) % 3], place=node / 2)
        for number, data in enumerate(graph.edges.values()):
            data.update(bond=["single", "double"][number % 2], weight=1.0 + number + seed)
        graphs.append(SimpleGraph.from_networkx(graph))
    write_graphs(graphs, path)


@pytest.fixture
def molecules(own_folder: Path) -> tuple[Path, Path]:
    """Two files of graphs with labels and weights."""
    paths = own_folder / "molecules.jsonl", own_folder / "test.jsonl"
    for seed, path in enumerate(paths):
        write_molecules(path, seed)

    return paths


@pytest.fixture
def groups(own_folder: Path) -> Path:
    write_groups(own_folder / "groups.graphml")

    return own_folder / "groups.graphml"


def assert_error(result: Result, *words: str, code: int = 1, after_notes: bool = False) -> None:
    """Assert that a command failed with a line that has these words, and that only usage or notes come before it."""
    *before, line = result.stderr.splitlines()
    assert result.exit_code == code, result.stderr
    assert line.startswith("Error: "), result.stderr
    assert all(word in line for word in words), line
    assert "Traceback" not in result.stderr
    assert not before or code == 2 or after_notes, result.stderr


def is_one_line(text: str) -> bool:
    """Whether an error is a single line without a traceback."""
    return text.startswith("Error: ") and text.count("\n") == 1 and "Traceback" not in text
