"""Cost of 'evaluate' on many small graphs and on large ones, and of a report of a bundled model."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.tables import publish
from graphite_gen.evaluation import evaluate
from graphite_gen.families.simulate import generate

# Number of graphs in each of three sets, and nodes per graph.
SETS = {"1,000 graphs of 20 nodes": (1000, 20), "200 graphs of 200 nodes": (200, 200)}


def timed(task: Callable[[], Any]) -> tuple[float, float]:
    """Return CPU and wall seconds of a task in this process."""
    cpu, wall = time.process_time(), time.perf_counter()
    task()

    return time.process_time() - cpu, time.perf_counter() - wall


def time_evaluation(graphs: int, nodes: int) -> tuple[float, float]:
    """Return the seconds to compare samples with a reference and training graphs, in all conventions."""
    samples, reference, train = (generate("barabasi", graphs, (nodes, nodes), seed=seed).graphs for seed in range(3))

    return timed(lambda: evaluate(samples, reference, train, seed=0))


def report(model: str) -> tuple[float, float]:
    """Return wall seconds and megabytes of a report."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        command = [sys.executable, "-m", "graphite_gen", "report", f"bundled:{model}", "-o", str(page)]
        started = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)

        return time.perf_counter() - started, page.stat().st_size / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="barabasi", help="the bundled model to report on")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    rows = []
    for name, (graphs, nodes) in SETS.items():
        cpu, wall = time_evaluation(graphs, nodes)
        rows.append([f"evaluate, three sets of {name}", f"{cpu:.1f}", f"{wall:.1f}", "–"])
    seconds, megabytes = report(arguments.model)
    rows.append([f"report bundled:{arguments.model}", "–", f"{seconds:.1f}", f"{megabytes:.2f}"])
    publish("evaluation_cost", "Cost of evaluation, one thread", ["", "CPU s", "wall s", "MB"], rows, vars(arguments))


if __name__ == "__main__":
    main()
