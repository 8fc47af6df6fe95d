"""Training, sampling and NLL with one process and with two of torchrun: time, and agreement of the results."""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.robustness.launched import wait_for, worker
from benchmarks.tables import publish
from graphite_gen.training.checkpoint import load_checkpoint, read_tensors

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Size:
    """The amount of work: training epochs and graphs per epoch, graphs to sample and to score, proposals per graph."""

    epochs: int
    epoch_graphs: int
    sampled: int
    scored: int
    proposals: int


SIZES = {False: Size(2, 3000, 4000, 100, 100), True: Size(2, 300, 200, 6, 10)}


def words(args: tuple[object, ...], processes: int, restarts: int = 0) -> list[str]:
    """The arguments of a command with one process, or with two under torchrun."""
    start = () if processes == 1 else (*TORCHRUN, "--max-restarts", restarts)

    return [sys.executable, *map(str, (*start, "-m", "graphite_gen", *args))]


def start(folder: Path, args: tuple[object, ...], processes: int, restarts: int = 0) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}

    return subprocess.Popen(
        words(args, processes, restarts),
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(folder: Path, *args: object, processes: int = 1) -> tuple[float, float, str]:
    """Wall-clock and CPU seconds of a command with all its processes, and its stdout."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = start(folder, args, processes)
    stdout, stderr = process.communicate()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert process.returncode == 0, stderr

    return (
        time.perf_counter() - started,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        stdout,
    )


def side_by_side(folder: Path, first: tuple[object, ...], second: tuple[object, ...]) -> float:
    """Wall-clock seconds of two independent commands at the same time."""
    started = time.perf_counter()
    both = [start(folder, args, 1) for args in (first, second)]
    for process in both:
        process.communicate()

    return time.perf_counter() - started


def difference(folder: Path, first: str, second: str) -> float:
    """The largest difference between the weights of two runs, both the last and the best ones."""
    found = 0.0
    for file in ("model.safetensors", "optimizer.safetensors"):
        ours, theirs = (read_tensors(folder / "checkpoints" / name / file)[0] for name in (first, second))
        weights = [name for name in ours if not name.startswith(("exp_avg", "step"))]
        found = max(found, *(float((ours[name] - theirs[name]).abs().max()) for name in weights if ours[name].numel()))

    return found


# Time ---------------------------------------------------------------------------------------------------------


def timed(folder: Path, size: Size, ceiling: bool) -> tuple[list[list[Any]], list[list[Any]]]:
    """Table rows with the time of each command, and rows with the agreement of one and two processes."""
    model, costs, checks = ("--model", "bundled:barabasi", "--threads", 1), [], []

    def train(name: str) -> tuple[object, ...]:
        settings = ("--epochs", size.epochs, "--epoch-graphs", size.epoch_graphs, "--graphs", size.epoch_graphs)
        return ("train", "--family", "barabasi", *settings, "--threads", 1, "--name", name)

    def sample(name: str) -> tuple[object, ...]:
        return ("sample", *model, "-n", size.sampled, "-o", f"{name}.h5")

    def score(_: str) -> tuple[object, ...]:
        return ("nll", "test.h5", "--split", "all", *model, "-k", size.proposals, "--json")

    run(folder, "generate", "--family", "barabasi", "-n", size.scored, "-o", "test.h5")
    outputs = {}
    for name, line in (("train", train), ("sample", sample), ("nll", score)):
        alone, alone_cpu, outputs[name, 1] = run(folder, *line("one"))
        shared, shared_cpu, outputs[name, 2] = run(folder, *line("two"), processes=2)
        most = 2 * alone / side_by_side(folder, line("left"), line("right")) if ceiling else "–"
        costs.append([name, alone, shared, alone / shared, most, alone_cpu, shared_cpu])

    apart = difference(folder, "one", "two")
    checks.append(["train: weights of one and of two", f"{apart:.1e}", apart <= TOLERANCE])
    same = (folder / "one.h5").read_bytes() == (folder / "two.h5").read_bytes()
    checks.append(["sample: files of one and of two", "same bytes" if same else "different", same])
    nll = [json.loads(outputs["nll", processes])["nll"] for processes in (1, 2)]
    checks.append(["nll: figures of one and of two", f"{abs(nll[0] - nll[1]):.1e} nats", abs(nll[0] - nll[1]) < 1e-9])

    return costs, checks


# Faults -------------------------------------------------------------------------------------------------------


def faults(folder: Path) -> list[list[Any]]:
    """Table rows of runs that were stopped and resumed with another world size, or killed."""
    run(folder, "generate", "--family", "ego", "-n", 60, "--nodes", "5:8", "-o", "own.g6")
    line = ("train", "own.g6", "--epochs", 20, "--epoch-graphs", 60, "--batch-size", 8, "--validate-every", 1)
    line = (*line, "--patience", 0, "--threads", 1)
    run(folder, *line, "--name", "undisturbed")

    return [
        _resumed(folder, line, 2, 1),
        _resumed(folder, line, 1, 2),
        *_killed(folder, line),
        _restarted(folder, line),
    ]


def _resumed(folder: Path, line: tuple[object, ...], first: int, second: int) -> list[Any]:
    name = f"{first}-{second}"
    process = start(folder, (*line, "--name", name), first)
    wait_for(_state(folder, name), process)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    epochs = json.loads(_state(folder, name).read_text())["progress"]["epoch"]
    run(folder, *line[:2], "--name", name, "--resume", "--threads", 1, processes=second)
    apart = difference(folder, "undisturbed", name)

    title = f"train: stopped with {first} after {epochs} of 20 epochs, resumed with {second}"
    return [title, f"{apart:.1e}", apart <= TOLERANCE and 0 < epochs < 20]


def _killed(folder: Path, line: tuple[object, ...]) -> list[list[Any]]:
    process = start(folder, (*line, "--name", "killed"), 2)
    wait_for(_state(folder, "killed"), process)
    os.kill(worker(process, 1), signal.SIGKILL)
    _, stderr = process.communicate()
    messages = [text for text in stderr.splitlines() if text.startswith("Error:")]
    load_checkpoint(folder / "checkpoints" / "killed")
    run(folder, *line[:2], "--name", "killed", "--resume", "--threads", 1, processes=2)
    apart = difference(folder, "undisturbed", "killed")

    return [
        [
            "train: message after a worker was killed",
            " ".join(messages),
            len(messages) == 1 and "--resume" in messages[0],
        ],
        ["train: that run, resumed", f"{apart:.1e}", apart <= TOLERANCE],
    ]


def _restarted(folder: Path, line: tuple[object, ...]) -> list[Any]:
    process = start(folder, (*line, "--name", "restarted"), 2, restarts=1)
    wait_for(_state(folder, "restarted"), process)
    os.kill(worker(process, 1), signal.SIGKILL)
    process.communicate()
    apart = difference(folder, "undisturbed", "restarted")

    return [
        "train: a process killed under '--max-restarts 1'",
        f"{apart:.1e}",
        not process.returncode and apart <= TOLERANCE,
    ]


def _state(folder: Path, name: str) -> Path:
    """The file that a run writes last when it saves."""
    return folder / "checkpoints" / name / "state.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small size, to check that the results agree")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        costs, checks = timed(Path(folder), SIZES[arguments.quick], ceiling=not arguments.quick)
        checks += faults(Path(folder))
    details = {**vars(arguments), "processors": os.cpu_count(), "checks": checks}
    if not arguments.quick:
        publish(
            "distributed",
            "One process and two of torchrun on one host, one thread each, including start-up. Side by side: the "
            "speed-up of two independent commands, which bounds the others",
            ["", "one, s", "two, s", "speed-up", "side by side", "CPU of one, s", "CPU of two, s"],
            costs,
            details,
        )
        publish(
            "distributed_checks",
            "Agreement of results after a change of the world size, a stop or a kill; largest differences of weights",
            ["", "found", "as documented"],
            [[title, found, "yes" if fine else "NO"] for title, found, fine in checks],
            details,
        )
    for title, found, fine in checks:
        print(f"{'ok ' if fine else 'NO '} {title}: {found}")
    if not all(fine for *_, fine in checks):
        sys.exit(1)


if __name__ == "__main__":
    main()
