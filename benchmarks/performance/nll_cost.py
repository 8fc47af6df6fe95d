"""Time and memory of ``graphite-gen nll``: the command itself, in a process of its own, on one thread."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

FAMILY = "barabasi"
PROGRAM = (sys.executable, "-m", "graphite_gen")


def run(*options: str | Path) -> dict[str, float]:
    """Run the program; return wall seconds, CPU seconds and peak memory in megabytes."""
    started = time.monotonic()
    process = subprocess.Popen([*PROGRAM, *map(str, options)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"'graphite-gen {options[0]}' failed.")
    # Linux counts memory in kilobytes, macOS in bytes.
    unit = 1 << (20 if sys.platform == "darwin" else 10)

    return {
        "seconds": time.monotonic() - started,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "megabytes": usage.ru_maxrss * unit / 1e6,
    }


def score(graphs: int, samples: int) -> dict[str, Any]:
    """Return the cost of scoring graphs with K samples each."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "test.h5"
        run("generate", "--family", FAMILY, "--graphs", str(graphs), "--seed", "1000", "-o", file)
        options = ("--model", f"bundled:{FAMILY}", "--split", "all", "--samples", str(samples), "--threads", "1")
        cost = run("nll", file, *options)

    return {"samples": samples, "graphs": graphs, **cost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=100, help="graphs with K = 1,000")
    parser.add_argument("--large-graphs", type=int, default=10, help="graphs with K = 100,000")
    arguments = parser.parse_args()

    # A child's peak memory counts that of its parent at the fork, so torch is imported afterwards.
    found = [score(arguments.graphs, 1000), score(arguments.large_graphs, 100_000)]
    from benchmarks.tables import publish

    rows = [
        [f"{row['samples']:,}", row["graphs"], *(f"{row[key]:.0f}" for key in ("cpu_seconds", "seconds", "megabytes"))]
        for row in found
    ]
    title = f"Cost of 'graphite-gen nll' with importance sampling, bundled:{FAMILY}, 10 to 20 nodes, one thread"
    if arguments.large_graphs < arguments.graphs:
        title += f"; K = 100,000 on {arguments.large_graphs} graphs, as {arguments.graphs} would take over ten minutes"
    header = ["K", "graphs", "CPU seconds", "seconds, shared machine", "peak MB"]
    publish("nll_cost", title, header, rows, {"settings": vars(arguments), "runs": found})


if __name__ == "__main__":
    main()
