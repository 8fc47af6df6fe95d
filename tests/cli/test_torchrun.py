"""'train' under torchrun on loopback: killed, started again, stopped and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.robustness.launched import wait_for, worker
from graphite_gen.training.checkpoint import read_tensors

from .conftest import Invoke, under_torchrun

pytestmark = pytest.mark.slow

LINE = ("train", "own.g6", "--width", 16, "--batch-size", 8, "--epochs", 12, "--epoch-graphs", 32, "--threads", 1)
LINE = (*LINE, "--validate-every", 1, "--patience", 0)


@pytest.fixture(autouse=True)
def own_graphs(own_folder: Path, invoke: Invoke) -> None:
    """A file of graphs to train on, of which four are for validation."""
    assert invoke("generate", "--family", "ego", "-n", 40, "--nodes", "5:8", "-o", "own.g6").exit_code == 0


def start(*args: object, restarts: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        under_torchrun(*args, restarts=restarts), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def weights(name: str) -> dict[str, torch.Tensor]:
    """The latest weights of a run and, as it goes on from them, its moments."""
    return read_tensors(Path("checkpoints") / name / "optimizer.safetensors")[0]


def same_weights(first: str, second: str) -> bool:
    ours, theirs = weights(first), weights(second)

    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs '/proc'")
def test_a_run_whose_processes_are_killed_is_continued_to_the_same_end(invoke: Invoke) -> None:
    process = start(*LINE, restarts=1)
    wait_for(Path("checkpoints/own/state.json"), process)
    os.kill(worker(process, 1), signal.SIGKILL)
    _, stderr = process.communicate(timeout=120)

    # torchrun's own lines aside.
    told = [line for line in stderr.splitlines() if line.startswith(("Error:", "Resuming"))]
    assert process.returncode == 0, stderr
    assert "A process of this run was lost" in told[0]
    assert told[0].endswith("torchrun --nproc-per-node 2 -m graphite_gen train own.g6 --name own --resume --threads 1")
    assert told[1].startswith("Resuming 'own' after ")
    assert [folder.name for folder in Path("checkpoints").iterdir()] == ["own"]
    assert invoke(*LINE, "--name", "alone").exit_code == 0
    assert same_weights("own", "alone")


FAILING = """
import os
from graphite_gen.cli.main import run
from graphite_gen.errors import TrainingError
from graphite_gen.training.trainer import Trainer

step = Trainer._step

def fail(trainer, *args):
    if os.environ["RANK"] == "1" and trainer._progress.step == 3:
        raise TrainingError("This host has no room.")
    return step(trainer, *args)

Trainer._step = fail
run()
"""


def test_what_goes_wrong_in_another_process_reaches_the_user() -> None:
    Path("failing.py").write_text(FAILING)
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "failing.py", *map(str, LINE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)

    assert done.returncode != 0
    assert [line for line in done.stderr.splitlines() if line.startswith("Error:")] == ["Error: This host has no room."]


def test_a_run_of_two_that_was_stopped_goes_on_with_one_and_the_other_way(invoke: Invoke) -> None:
    process = start(*LINE, "--name", "two")
    wait_for(Path("checkpoints/two/state.json"), process)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=120)
    assert stderr.count("Interrupted. Continue with: torchrun --nproc-per-node 2 -m graphite_gen train") == 1

    resumed = invoke(*LINE[:2], "--name", "two", "--resume", "--threads", 1)
    assert resumed.exit_code == 0, resumed.stderr
    assert 0 < int(resumed.stderr.partition("after ")[2].split()[0]) < 12
    assert invoke(*LINE, "--name", "one").exit_code == 0
    assert same_weights("two", "one")


def test_one_large_graph_is_left_to_one_process(groups: Path) -> None:
    done = subprocess.run(under_torchrun("train", "--single", groups), capture_output=True, text=True, timeout=60)

    assert done.returncode != 0
    assert done.stderr.count("'--single' trains in one process. Run") == 1
    assert not Path("checkpoints").exists()
