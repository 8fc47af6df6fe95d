"""A small project of one's own, on the command line and in Python; tutorials, which are tested too, show the rest."""

import json
import os
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import networkx as nx
import pandas as pd
import pytest

import graphite_gen as gg
from graphite_gen.records import TrainRecord

from .cli.conftest import invoke, run, run_json

QUICK = {"width": 16, "ordering": "bfs", "batch_size": 20, "validate_every": 1, "epoch_graphs": 40}
OPTIONS = [word for name, value in QUICK.items() for word in (f"--{name.replace('_', '-')}", value)]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("single_precision")]


@pytest.fixture
def clubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[nx.Graph]:
    """Trees with names for nodes; they are also in 'clubs.csv', in a folder that has nothing else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    trees = [nx.random_labeled_tree(5 + seed % 4, seed=seed) for seed in range(40)]
    graphs = [nx.relabel_nodes(tree, {node: f"member {node}" for node in tree}) for tree in trees]
    rows = [(number, u, v) for number, graph in enumerate(graphs) for u, v in graph.edges]
    pd.DataFrame(rows, columns=["graph", "from", "to"]).to_csv("clubs.csv", index=False)

    return graphs


@contextmanager
def ctrl_c_once_there_is(path: Path) -> Iterator[None]:
    def press() -> None:
        while not path.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    # Tests in the background of a shell ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=press, daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
        signal.signal(signal.SIGINT, before)


def are_small_trees(graphs: list[nx.Graph]) -> bool:
    return all(nx.is_tree(graph) and max(dict(graph.degree).values()) <= 3 for graph in graphs)


def test_a_project_on_the_command_line(clubs: list[nx.Graph]) -> None:
    assert run_json("inspect", "clubs.csv")["graphs"] == len(clubs)

    folder = Path("checkpoints", "mine")
    with ctrl_c_once_there_is(folder / "optimizer.safetensors"):
        stopped = invoke("train", "clubs.csv", "--name", "mine", "--epochs", 3000, *OPTIONS)
    assert stopped.exit_code == 130
    *_, last = stopped.stderr.splitlines()
    # The command that the last line ends with is run as it is, with a new number of epochs.
    program, *resume = shlex.split(last.partition("Continue with: ")[2])
    assert program == "graphite-gen"
    done = len((folder / "history.jsonl").read_text().splitlines())
    assert 1 <= done < 3000
    for epochs in (done + 1, done + 3):
        assert run_json(*resume, "--epochs", epochs)["results"]["epochs"] == epochs
    assert "already finished" in run(*resume).stderr

    shown = run("sample", "-n", 20, "--tree", "--max-degree", 3, "--seed", 1, "-o", "small.csv").stderr
    assert "'mine', of graphs on 5 to 8 nodes" in shown
    assert are_small_trees(gg.from_pandas(pd.read_csv("small.csv")))
    result = run_json("evaluate", "small.csv", "--reference", "clubs.csv", "--valid-if", "tree")
    assert (result["samples"], result["vun"]["valid"]["value"]) == (20, 1)
    run("plot", "gallery", "small.csv", "--reference", "clubs.csv", "-o", "small.png")
    assert Path("small.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_project_in_python(clubs: list[nx.Graph]) -> None:
    graphs = gg.from_pandas(pd.read_csv("clubs.csv"), "from", "to")
    assert all(map(nx.utils.graphs_equal, graphs, clubs))

    def interrupt(record: TrainRecord) -> None:
        if record.epoch == 2:
            raise KeyboardInterrupt

    folder = Path("checkpoints", "mine")
    with pytest.raises(KeyboardInterrupt):
        gg.fit(clubs, folder=folder, epochs=3, seed=0, progress=interrupt, **QUICK)
    assert len(gg.fit(clubs, folder=folder, resume=True).history) == 3
    model = gg.fit(clubs, folder=folder, resume=True, epochs=5)
    assert [record.epoch for record in model.history] == [1, 2, 3, 4, 5]

    # A model that was trained in Python is found by its name, in Python and by commands.
    stars = [nx.star_graph(nodes) for nodes in range(4, 8)] * 10
    tuned = gg.fit(stars, initial="mine", folder="checkpoints/tuned", epochs=2, batch_size=20, epoch_graphs=40)
    assert tuned.config.width == QUICK["width"]
    assert tuned.nll(stars[:8], samples=20, seed=0).nll < gg.load("mine").nll(stars[:8], samples=20, seed=0).nll
    assert run_json("inspect", "tuned")["name"] == json.loads(Path("checkpoints/tuned/config.json").read_text())["name"]

    samples = model.sample(20, constraints=[gg.Tree(), gg.MaxDegree(3)], seed=1)
    assert are_small_trees(samples)
    assert gg.to_pandas(samples)["graph"].nunique() == 20
    result = gg.evaluate(samples, clubs, validity="tree")
    assert result.vun.valid.value == 1
    assert set(result.to_frame()["descriptor"]) >= {"degree", "clustering"}
    gg.plot_gallery(samples, clubs).savefig("small.png")
    assert Path("small.png").read_bytes().startswith(b"\x89PNG")
