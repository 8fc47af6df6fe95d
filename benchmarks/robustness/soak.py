"""Memory of long runs: a million graphs sampled, written and read, and an hour of training.

Sampling and reading run as separate processes, whose peak memory the system reports. The memory of the training run is
read every few seconds; its maximum in the last quarter is compared with that in the second quarter, after all one-time
allocations.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.tables import publish

MODEL = "barabasi-one-shot"
FEW = 10_000
FORMATS = ("h5", "g6")
READ = "import sys; from graphite_gen.io import read_graphs; print(sum(1 for _ in read_graphs(sys.argv[1])))"


def peak(command: Sequence[str]) -> tuple[float, float, str]:
    """Return the peak memory of a command in megabytes, its CPU seconds, and its stdout."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"'{' '.join(command)}' failed.")

    return usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime, text


def sample_and_read(count: int, suffix: str, folder: Path) -> tuple[float, float, float, float]:
    """Return peak megabytes and CPU seconds of sampling graphs into a file, and of reading them."""
    file = folder / f"{count}.{suffix}"
    program = [sys.executable, "-m", "graphite_gen", "sample", "--model", f"bundled:{MODEL}", "--threads", "1"]
    drawn, draw_seconds, _ = peak([*program, "-n", str(count), "-o", str(file)])
    read, read_seconds, found = peak([sys.executable, "-c", READ, str(file)])
    if int(found) != count:
        raise SystemExit(f"{count} graphs were written to .{suffix} and {int(found)} were read.")
    file.unlink()

    return drawn, draw_seconds, read, read_seconds


def train(minutes: float, folder: Path) -> tuple[list[tuple[float, float]], int]:
    """Train for some minutes; return the memory in megabytes over time, and the number of steps."""
    command = [sys.executable, "-m", "graphite_gen", "train", "--family", "barabasi", "--threads", "1"]
    command += ["--graphs", "2000", "--epochs", "1000000", "--patience", "0", "--out", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    page = os.sysconf("SC_PAGE_SIZE")
    started, seen = time.monotonic(), []
    while (elapsed := time.monotonic() - started) < 60 * minutes:
        time.sleep(min(5, 3 * minutes))
        if process.poll() is not None:
            raise SystemExit("The training run ended by itself.")
        resident = int(Path(f"/proc/{process.pid}/statm").read_text(encoding="ascii").split()[1])
        seen.append((elapsed, resident * page / 1e6))
    process.send_signal(signal.SIGINT)
    process.wait()

    return seen, json.loads((folder / "barabasi" / "state.json").read_text(encoding="utf-8"))["progress"]["step"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=1_000_000, help="graphs to sample")
    parser.add_argument("--minutes", type=float, default=60, help="minutes of training")
    parser.add_argument("--only", choices=("sampling", "training"), help="run one part only")
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if arguments.only != "training":
            soak_sampling(arguments.graphs, folder)
        if arguments.only != "sampling":
            soak_training(arguments.minutes, folder)


def soak_sampling(count: int, folder: Path) -> None:
    """Sample and read few graphs and many."""
    rows, details = [], []
    for suffix in FORMATS:
        few, many = (sample_and_read(each, suffix, folder) for each in (FEW, count))
        for task, at in ((f"sample -o graphs.{suffix}", 0), (f"read graphs.{suffix}", 2)):
            rows.append([task, f"{few[at]:.0f}", f"{many[at]:.0f}", f"{many[at] / few[at]:.2f}", f"{many[at + 1]:.0f}"])
        details.append({"format": suffix, "few": few, "many": many})
    header = ["", f"MB, {FEW:,} graphs", f"MB, {count:,} graphs", "ratio", "CPU s"]
    publish("soak_sampling", f"Peak memory of sampling and reading graphs, {MODEL}", header, rows, details)


def soak_training(minutes: float, folder: Path) -> None:
    """Measure the memory of a long training run."""
    seen, steps = train(minutes, folder)
    quarter = len(seen) // 4
    second, last = (max(held for _, held in part) for part in (seen[quarter : 2 * quarter], seen[3 * quarter :]))
    rows = [[f"{minutes:g}", steps, f"{second:.0f}", f"{last:.0f}", f"{last / second:.3f}"]]
    header = ["minutes", "steps", "MB, second quarter", "MB, last quarter", "ratio"]
    publish("soak_training", "Peak resident memory of a training run", header, rows, {"seen": seen})


if __name__ == "__main__":
    main()
