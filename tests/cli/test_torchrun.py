import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.robustness.launched import wait_for, worker
from graphite_gen.training.checkpoint import read_tensors

from .conftest import run, under_torchrun

pytestmark = pytest.mark.slow

LINE = ("train", "own.g6", "--width", 16, "--batch-size", 8, "--epochs", 12, "--epoch-graphs", 32, "--threads", 1)
LINE = (*LINE, "--validate-every", 1, "--patience", 0)


@pytest.fixture(autouse=True)
def own_graphs(own_folder: Path) -> None:
    """A file of graphs to train on, of which four are for validation."""
    run("generate", "--family", "ego", "-n", 40, "--nodes", "5:8", "-o", "own.g6")


def start(*args: object, restarts: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        under_torchrun(*args, restarts=restarts), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def weights(name: str) -> dict[str, torch.Tensor]:
    """The latest weights of a run and, as it goes on from them, its moments."""
    return read_tensors(Path("checkpoints") / name / "optimizer.safetensors")[0]


def difference(first: str, second: str) -> float:
    """The largest difference between the weights or moments of two runs."""
    ours, theirs = weights(first), weights(second)
    assert ours.keys() == theirs.keys()

    return max(float((ours[name] - theirs[name]).abs().max()) for name in ours if ours[name].numel())


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs '/proc'")
def test_a_run_that_torchrun_restarts_after_a_kill_ends_with_the_same_weights() -> None:
    process = start(*LINE, restarts=1)
    wait_for(Path("checkpoints/own/state.json"), process)
    os.kill(worker(process, 1), signal.SIGKILL)
    _, stderr = process.communicate(timeout=120)

    # Without the lines of torchrun itself.
    messages = [line for line in stderr.splitlines() if line.startswith(("Error:", "Resuming"))]
    assert process.returncode == 0, stderr
    assert "A worker died" in messages[0]
    command = "torchrun --nproc-per-node 2 -m graphite_gen train own.g6 --name own --resume --threads 1"
    assert messages[0].endswith(command)
    assert messages[1].startswith("Resuming 'own' after ")
    assert [folder.name for folder in Path("checkpoints").iterdir()] == ["own"]
    # Bit for bit with the same world size.
    assert start(*LINE, "--name", "undisturbed").wait(120) == 0
    assert difference("own", "undisturbed") == 0
    run(*LINE, "--name", "alone")
    assert difference("own", "alone") < 1e-5


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


def test_an_error_of_a_worker_is_reported_by_rank_zero() -> None:
    Path("failing.py").write_text(FAILING)
    words = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "failing.py", *map(str, LINE)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)

    assert done.returncode != 0
    assert [line for line in done.stderr.splitlines() if line.startswith("Error:")] == ["Error: This host has no room."]


def test_a_run_of_two_processes_that_was_stopped_is_resumed_by_one() -> None:
    process = start(*LINE, "--name", "two")
    wait_for(Path("checkpoints/two/state.json"), process)
    process.send_signal(signal.SIGTERM)
    _, stderr = process.communicate(timeout=120)
    assert stderr.count("Interrupted. Continue with: torchrun --nproc-per-node 2 -m graphite_gen train") == 1

    resumed = run(*LINE[:2], "--name", "two", "--resume", "--threads", 1)
    assert 0 < int(resumed.stderr.partition("after ")[2].split()[0]) < 12
    run(*LINE, "--name", "one")
    assert difference("two", "one") < 1e-5


def test_a_network_is_trained_by_one_process(groups: Path) -> None:
    done = subprocess.run(under_torchrun("train", "--single", groups), capture_output=True, text=True, timeout=60)

    assert done.returncode != 0
    assert done.stderr.count("'--single' trains in one process. Run") == 1
    assert not Path("checkpoints").exists()
