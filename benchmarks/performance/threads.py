"""Time of one training epoch by number of threads and OpenMP wait policy, on a quiet machine or beside another job.

The settings are measured in turns, so that other work on the machine affects all of them alike. Prints JSON, and stores
it as ``benchmarks/results/threads_quiet.json`` or ``threads_busy.json`` with '--save'.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = [(threads, policy) for threads in (1, 2) for policy in ("PASSIVE", "ACTIVE")]


def seconds(threads: int, policy: str, epoch_graphs: int) -> float:
    """The training time of an epoch, without the start of the program and the drawing of its graphs."""
    settings = ("--epochs", "1", "--epoch-graphs", str(epoch_graphs), "--graphs", "2000", "--threads", str(threads))
    environment = {**os.environ, "OMP_WAIT_POLICY": policy}
    environment.pop("OMP_NUM_THREADS", None)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "graphite_gen", "train", "--family", "barabasi", *settings]
        subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
        (history,) = Path(folder, "checkpoints").glob("*/history.jsonl")
        return float(json.loads(history.read_text().splitlines()[-1])["seconds"])


@contextmanager
def other_job(is_busy: bool) -> Iterator[None]:
    """Another process that computes without end, if the machine is to be busy."""
    if not is_busy:
        yield
        return
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.5)
        yield
    finally:
        process.kill()
        process.wait()


def machine() -> dict[str, Any]:
    """Where and with which code this was measured."""
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
    info = Path("/proc/cpuinfo")
    names = [line.partition(": ")[2] for line in info.read_text().splitlines() if line.startswith("model name")]

    return {
        "commit": commit.strip(),
        "date": datetime.date.today().isoformat(),
        "cpu": names[0] if names else platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each setting")
    parser.add_argument("--epoch-graphs", type=int, default=2000, help="graphs of the epoch")
    parser.add_argument("--busy", action="store_true", help="measure beside a process that computes without end")
    parser.add_argument("--save", action="store_true", help="store the result under benchmarks/results")
    arguments = parser.parse_args()

    result: dict[str, Any] = {**machine(), "settings": vars(arguments)}
    times: dict[str, list[float]] = {f"{threads} {policy}": [] for threads, policy in SETTINGS}
    with other_job(arguments.busy):
        for _ in range(arguments.rounds):
            for threads, policy in SETTINGS:
                times[f"{threads} {policy}"].append(seconds(threads, policy, arguments.epoch_graphs))
    result["seconds"] = times
    result["median"] = {name: statistics.median(values) for name, values in times.items()}
    text = json.dumps(result, indent=2)
    print(text)
    if arguments.save:
        name = "threads_busy" if arguments.busy else "threads_quiet"
        (ROOT / "benchmarks" / "results" / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
