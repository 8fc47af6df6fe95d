"""Cost of the autoregressive decoder by the number of nodes: training and sampling, in CPU seconds per graph.

The graphs are uniform random graphs of mean degree four. For each size a model with default settings is trained on the
same number of *nodes* per epoch, in the batches that 'train' makes, and samples as many graphs, in the batches that
'sample' makes: small graphs share a batch, so the figures are the cost per graph of a data set, not that of one graph
alone. Training is the fastest epoch after the first, without validation; the few steps teach the model its density, and
the mean degree of its samples is in the table. Exponents are least-squares slopes of log CPU seconds against log n.
Measurements are in a log, which is continued.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import torch

import graphite_gen as gg
from benchmarks import logs, tables

LOG = tables.FOLDER / "decoder_scaling.jsonl"
KEYS = ("nodes", "total", "epochs", "ordering", "threads", "commit")
SIZES = (40, 80, 160, 320, 640, 1280, 2000)
DEGREE = 4
Clock = tuple[float, float]


def random_graphs(nodes: int, count: int) -> list[nx.Graph]:
    """Return uniform random graphs of mean degree four, all marked for training."""
    graphs = [nx.gnm_random_graph(nodes, DEGREE * nodes // 2, seed=seed) for seed in range(count)]
    for graph in graphs:
        graph.graph["split"] = "train"

    return graphs


def now() -> Clock:
    """Return CPU and wall time."""
    return time.process_time(), time.perf_counter()


def shortest(marks: Sequence[Clock], count: int) -> dict[str, float]:
    """Return CPU and wall seconds per graph of the interval with the least CPU time."""
    spans = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(marks)]
    cpu, wall = min(spans)

    return {"cpu_seconds": cpu / count, "wall_seconds": wall / count}


def measure(job: tuple[int, int, int, str, int, str], rounds: int) -> dict[str, Any]:
    """Return the cost of training and sampling at one size."""
    nodes, total, epochs, ordering, threads, _ = job
    torch.set_num_threads(threads)
    count = max(1, total // nodes)
    # The first mark is at the end of the first epoch, which includes the set-up.
    marks: list[Clock] = []
    steps: list[int] = []

    def progress(record: gg.TrainRecord) -> None:
        marks.append(now())
        steps.append(record.step)

    settings = {"ordering": ordering, "epochs": epochs, "epoch_graphs": count}
    model = gg.fit(random_graphs(nodes, count), seed=0, progress=progress, **settings)
    drawn: list[nx.Graph] = []
    samplings = [now()]
    for seed in range(rounds):
        drawn += model.sample(count, nodes=nodes, seed=seed)
        samplings.append(now())
    found = {
        **dict(zip(KEYS, job, strict=True)),
        "graphs": count,
        "steps_per_epoch": steps[-1] / len(steps),
        "parameters": sum(parameter.numel() for parameter in model.trained.network.parameters()),
        "training": shortest(marks, count),
        "sampling": shortest(samplings, count),
        "sampled_degree": float(np.mean([2 * graph.number_of_edges() / len(graph) for graph in drawn])),
        "rounds": rounds,
        **{key: value for key, value in tables.provenance().items() if key != "commit"},
    }
    print(found, flush=True)

    return found


def exponent(rows: Sequence[dict[str, Any]], what: str) -> float:
    """Return the slope of log CPU seconds per graph against log n."""
    seconds = [row[what]["cpu_seconds"] for row in rows]

    return float(np.polyfit(np.log([row["nodes"] for row in rows]), np.log(seconds), 1)[0])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--total", type=int, default=10_240, help="nodes of all graphs of an epoch, and of all samples")
    parser.add_argument("--epochs", type=int, default=6, help="epochs of training, at least 2")
    parser.add_argument("--ordering", default="bfs", help="the node ordering; its own cost is included")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of sampling, of which the fastest counts")
    parser.add_argument("--threads", type=int, default=1)
    logs.add_options(parser, LOG)
    options = logs.parse(parser, LOG, arguments)
    if options.quick:
        options.nodes, options.total, options.epochs, options.rounds = [20, 40], 80, 2, 1
    if options.epochs < 2:
        parser.error("--epochs should be at least 2: the first epoch includes the set-up")

    # Another commit is measured again.
    same = (options.total, options.epochs, options.ordering, options.threads, tables.provenance()["commit"])
    jobs = [(nodes, *same) for nodes in options.nodes]
    if not options.tables:
        logs.run_all(jobs, KEYS, lambda job: measure(job, options.rounds), options.log)
    rows = [row for row in logs.read_log(options.log) if tuple(row[key] for key in KEYS) in set(jobs)]
    rows = sorted(rows, key=lambda row: int(row["nodes"]))
    if not rows:
        parser.error("the log has no measurements of this commit with these settings")
    cells = [
        [
            f"{row['nodes']:,}",
            row["graphs"],
            f"{row['graphs'] / row['steps_per_epoch']:.1f}",
            f"{row['training']['cpu_seconds']:.4f}",
            f"{row['sampling']['cpu_seconds']:.4f}",
            f"{row['sampling']['wall_seconds']:.4f}",
            row["sampled_degree"],
        ]
        for row in rows
    ]
    details: dict[str, Any] = {"settings": logs.settings(options), "sizes": rows}
    if len(rows) > 1:
        kinds = ("training", "sampling")
        details["exponents"] = {what: exponent(rows, what) for what in kinds}
        # Fixed costs per batch flatten the curve at small sizes: the slopes between neighbouring sizes show it.
        details["local_exponents"] = {what: [exponent(pair, what) for pair in pairwise(rows)] for what in kinds}
        cells.append(["exponent", "", "", *(f"{value:.2f}" for value in details["exponents"].values()), "", ""])
    header = ["n", "graphs", "graphs per training batch", "training, CPU s", "sampling, CPU s", "sampling, wall s"]
    header += ["sampled mean degree"]
    title = f"Cost of the autoregressive decoder per graph of mean degree {DEGREE}, {options.threads} thread(s)"
    if options.log == LOG:
        tables.publish("decoder_scaling", title, header, cells, details)
    else:
        print(*tables.lines(header, cells), sep="\n")


if __name__ == "__main__":
    main()
