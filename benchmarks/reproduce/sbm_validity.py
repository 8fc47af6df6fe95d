"""Calibration of the SBM validity test: which of the published graphs pass, and which graphs of the process itself.

Graphs of the process (the recipe of sbm-L) have known blocks, so that the test can be run with the true blocks and with
those that are found. The published test scores 85.9 % on the published training graphs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import logs
from benchmarks.reproduce.published_sets import DATA, sbm_with_blocks
from benchmarks.tables import publish
from graphite_gen.data.dataset import split_of
from graphite_gen.evaluation import Proportion
from graphite_gen.evaluation.validity import AGREEMENT, BLOCK_SIZES, BLOCKS, find_blocks, is_sbm, sbm_agreement
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs


def reason(graph: SimpleGraph, labels: np.ndarray) -> str:
    """Return why a graph with these blocks fails the test, or 'valid'."""
    sizes = np.bincount(labels)
    if len(sizes) not in BLOCKS:
        return "number of blocks"
    if any(size not in BLOCK_SIZES for size in sizes.tolist()):
        return "block sizes"
    if sbm_agreement(graph, labels) > AGREEMENT:
        return "valid"
    member = np.eye(len(sizes))[labels]

    return "densities" if (member.T @ graph.adjacency() @ member > 0).all() else "blocks without an edge between them"


def measure(name: str, graphs: Sequence[SimpleGraph], blocks: Sequence[np.ndarray] | None = None) -> dict[str, Any]:
    """Return the proportion of valid graphs, the reasons of the others, and the seconds per graph."""
    started = time.process_time()
    valid = sum(map(is_sbm, graphs))
    seconds = (time.process_time() - started) / len(graphs)
    found = [find_blocks(graph) for graph in graphs]
    reasons = [reason(graph, labels) for graph, labels in zip(graphs, found, strict=True)]
    row = {
        "graphs": name,
        "valid": Proportion.of(valid, len(graphs)).to_json(),
        "reasons": {text: reasons.count(text) for text in sorted(set(reasons))},
        "seconds": seconds,
        "true_blocks": None,
    }
    if blocks is not None:
        right = sum(reason(*pair) == "valid" for pair in zip(graphs, blocks, strict=True))
        row["true_blocks"] = Proportion.of(right, len(graphs)).to_json()

    return row


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=DATA, help="the folder of 'sbm.h5'")
    parser.add_argument("--graphs", type=int, default=1000, help="graphs of the process")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    graphs = list(read_graphs(options.data / "sbm.h5"))
    found = [
        measure(f"published, {split}", [graph for graph in graphs if split_of(graph) == split])
        for split in ("train", "validation", "test")
    ]
    rng = np.random.default_rng(options.seed)
    drawn, blocks = zip(*(sbm_with_blocks(rng) for _ in range(options.graphs)), strict=True)
    found.append(measure("the process itself", drawn, blocks))

    header = ["graphs", "number", "valid", "valid, true blocks", "reasons of the others", "CPU ms per graph"]
    rows = [
        [
            row["graphs"],
            row["valid"]["total"],
            _interval(row["valid"]),
            "–" if row["true_blocks"] is None else _interval(row["true_blocks"]),
            ", ".join(f"{text} {count}" for text, count in row["reasons"].items() if text != "valid"),
            f"{1000 * row['seconds']:.0f}",
        ]
        for row in found
    ]
    title = "The SBM validity test on the published graphs and on graphs of the process, with 95 % intervals"
    publish("sbm_validity", title, header, rows, {"settings": logs.settings(options), "sets": found})


def _interval(proportion: dict[str, Any]) -> str:
    return f"{proportion['value']:.1%} ({proportion['low']:.1%} to {proportion['high']:.1%})"


if __name__ == "__main__":
    main()
