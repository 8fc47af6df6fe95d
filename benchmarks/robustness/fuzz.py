"""Fuzzing of every reader with corrupted files.

An input passes if it is refused with a one-line error or read correctly. It fails on a traceback, more than 5 seconds
or 1 GB, a crash, or a result that differs from what was written and from what independent readers find.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.robustness.fuzzing.readers import readers
from benchmarks.robustness.fuzzing.supervision import FAILURES, Outcome, outcomes, run_one
from benchmarks.tables import publish

KEPT = 20


def tally(found: Sequence[Outcome]) -> dict[str, Any]:
    """Count the outcomes of a reader's inputs."""
    endings = Counter(outcome.ending for outcome in found)

    return {
        "inputs": len(found),
        **{ending: endings[ending] for ending in ("refused", "read", "cut", *FAILURES)},
        "errors": Counter(outcome.detail for outcome in found if outcome.ending == "refused"),
        "failures": [vars(outcome) for outcome in found if outcome.ending in FAILURES][:KEPT],
    }


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=200_000, help="total number of inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", metavar="READER", help="only readers whose names contain this")
    parser.add_argument("--quick", action="store_true", help="one percent of the inputs")
    parser.add_argument(
        "--replay", type=int, metavar="INDEX", help="read one input in this process and show its outcome"
    )
    options = parser.parse_args(arguments)

    torch.set_num_threads(1)
    # In memory if possible: these are millions of small files.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as place:
        known = readers(Path(place))
        folder = Path(place) / "input"
        if options.replay is not None:
            reader = next(each for each in known if options.only in each.name)
            print(run_one(reader, options.seed, options.replay, folder, debug=True))
            return
        total = sum(reader.weight for reader in known)
        inputs = options.inputs // (100 if options.quick else 1)
        rows, details = [], {}
        started = time.perf_counter()
        for reader in known:
            if options.only is not None and options.only not in reader.name:
                continue
            begun = time.perf_counter()
            found = list(outcomes(reader, options.seed, math.ceil(inputs * reader.weight / total), folder))
            counts = tally(found)
            seconds = time.perf_counter() - begun
            print(f"{reader.name}: {len(found)} inputs, {seconds:.1f} s", flush=True)
            for failure in counts["failures"]:
                print("  ", failure, flush=True)
            details[reader.name] = counts | {"seconds": round(seconds, 1)}
            rows.append([reader.name, *(counts[key] for key in ("inputs", "refused", "read", "cut", *FAILURES))])

    rows.append(["all", *(sum(column) for column in zip(*(row[1:] for row in rows), strict=True))])
    header = [
        "reader",
        "inputs",
        "refused",
        "read",
        "truncated, accepted",
        "tracebacks",
        "over 5 s",
        "over 1 GB",
        "crashes",
        "corrupt",
    ]
    wall = round(time.perf_counter() - started)
    publish(
        "fuzz",
        "Fuzzing: outcome for corrupted inputs, by reader",
        header,
        rows,
        {**vars(options), "seconds": wall, "readers": details},
    )


if __name__ == "__main__":
    main()
