"""Sampling speed as a ratio to an earlier commit, which is extracted from the history and measured in turns.

Both versions sample into networkx objects: their bundled models (10 to 20 nodes), and models that are trained briefly
on trees and triangulations of 64 nodes and on random graphs of 320 nodes and mean degree four. Every measurement is a
process of its own, which samples a graph first; versions alternate, so that other load affects both. The ratio is
the median over rounds of the ratio within a round. Measurements are in a log, which is continued.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx as nx

from benchmarks import logs, tables
from benchmarks.commands import EARLIER, Side, earlier_version, this_version, train
from benchmarks.reproduce.published_sets import delaunay
from graphite_gen.families import PAPER_FAMILIES
from graphite_gen.io import write_graphs
from graphite_gen.rng import stream

LOG = tables.FOLDER / "against_earlier.jsonl"
KEYS = ("task", "version", "round", "commit")
# Training graphs, samples of the earlier version, samples of this one: each measurement should take seconds.
BRIEF = {"tree, n = 64": (128, 16, 512), "planar, n = 64": (128, 16, 512), "mean degree 4, n = 320": (16, 2, 32)}
BUNDLED = (512, 4000)
# Enough to learn the density, on which the cost of a sample depends most.
SHORT = ["--epochs", "2", "--epoch-graphs", "256", "--batch-size", "32"]
LARGE = ["--epochs", "4", "--epoch-graphs", "16", "--batch-size", "4"]
ORDERING = {"earlier": ["--order", "breadth"], "this": ["--ordering", "bfs"]}

SAMPLE = """
import json, sys, time
import torch
import graphite_gen as gg

model, count, seed, threads = json.loads(sys.argv[1])
torch.set_num_threads(threads)
model = gg.load(model)
model.sample(1, seed=seed + 1)
cpu, wall = time.process_time(), time.perf_counter()
graphs = model.sample(count, seed=seed)
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
degree = sum(2 * graph.number_of_edges() for graph in graphs) / max(1, sum(map(len, graphs)))
print(json.dumps({"graphs": len(graphs), "cpu_seconds": cpu, "wall_seconds": wall, "mean_degree": degree}))
"""


def training_file(task: str, folder: Path) -> Path:
    """Return a file of training graphs for a task, without splits."""
    file = folder / f"{task.replace(' = ', '').replace(', ', '-').replace(' ', '-')}.g6"
    if not file.exists():
        count, rng = BRIEF[task][0], stream(0, "against-earlier", task)
        if task.startswith("tree"):
            graphs = [nx.from_prufer_sequence(rng.integers(0, 64, 62).tolist()) for _ in range(count)]
        elif task.startswith("planar"):
            graphs = [delaunay(rng) for _ in range(count)]
        else:
            graphs = [nx.gnm_random_graph(320, 640, seed=int(rng.integers(2**31))) for _ in range(count)]
        folder.mkdir(parents=True, exist_ok=True)
        write_graphs(graphs, file)

    return file


def model_of(task: str, version: str, side: Side, options: argparse.Namespace) -> str:
    """Return the model of a task: a bundled one, or one that is trained briefly."""
    if task in PAPER_FAMILIES:
        return task
    file = training_file(task, options.models)
    length = LARGE if "320" in task else SHORT
    commit = side.commit or tables.provenance()["commit"].replace(" ", "-")
    words = [*length, *ORDERING[version]]
    trained = train(options.models, f"{file.stem}-{commit}", [file], words, threads=options.threads, side=side)

    return str(trained["folder"])


def measure(
    job: tuple[str, str, int, str], sides: dict[str, Side], models: dict[Any, str], options: argparse.Namespace
) -> dict[str, Any]:
    """Return the speed of one version in one round."""
    task, version, number, _ = job
    counts = BUNDLED if task in PAPER_FAMILIES else BRIEF[task][1:]
    count = max(1, round(counts[version == "this"] * options.scale))
    side = sides[version]
    if (task, version) not in models:
        models[task, version] = model_of(task, version, side, options)
    found = side.evaluate(SAMPLE, models[task, version], count, number, options.threads, threads=options.threads)

    return {
        **dict(zip(KEYS, job, strict=True)),
        **found,
        "rate": found["graphs"] / found["wall_seconds"],
        "threads": options.threads,
        "provenance": tables.provenance(),
    }


def summarise(rows: Sequence[dict[str, Any]], commits: dict[str, str]) -> list[list[Any]]:
    """Return the lines of the table: medians of both versions, and the ratio with its range over rounds."""
    table = []
    for task in (*PAPER_FAMILIES, *BRIEF):
        sides = [
            {
                row["round"]: row
                for row in rows
                if (row["task"], row["version"], row["commit"]) == (task, version, commit)
            }
            for version, commit in commits.items()
        ]
        both = sorted(set(sides[0]) & set(sides[1]))
        if both:
            rates = [[side[number]["rate"] for number in both] for side in sides]
            ratios = [new / old for old, new in zip(*rates, strict=True)]
            old, new = map(statistics.median, rates)
            degrees = " / ".join(
                f"{statistics.median(side[number]['mean_degree'] for number in both):.1f}" for side in sides
            )
            ratio = f"{statistics.median(ratios):.1f}× ({min(ratios):.1f} to {max(ratios):.1f})"
            table.append([task, f"{old:.3g}", f"{new:.4g}", f"{1 / old:.3g}", f"{1 / new:.3g}", ratio, degrees])

    return table


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", nargs="+", choices=[*PAPER_FAMILIES, *BRIEF], default=[*PAPER_FAMILIES, *BRIEF])
    parser.add_argument("--commit", default=EARLIER, help="the earlier version")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the numbers of graphs")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--models", type=Path, default=Path("build/against_earlier"), help="folder of brief models")
    logs.add_options(parser, LOG)
    options = logs.parse(parser, LOG, arguments)
    options.models = options.models.resolve()
    if options.quick:
        options.rounds, options.scale = 1, 0.02

    # Measurements of other commits are not mixed, and the earlier version is measured again beside each.
    now = tables.provenance()["commit"]
    commits = {"earlier": f"{options.commit} beside {now}", "this": now}
    if not options.tables:
        jobs = [
            (task, version, number, commits[version])
            for task in options.tasks
            for number in range(options.rounds)
            for version in commits
        ]
        models: dict[Any, str] = {}
        with earlier_version(options.commit) as side:
            sides = {"earlier": side, "this": this_version()}
            logs.run_all(jobs, KEYS, lambda job: measure(job, sides, models, options), options.log)
    rows = logs.read_log(options.log)
    cells = summarise(rows, commits)
    header = ["graphs", f"graphs/s, {options.commit}", "graphs/s, now", f"s/graph, {options.commit}", "s/graph, now"]
    header += ["ratio (range over rounds)", "mean degree"]
    title = f"Sampling into networkx objects, this version against {options.commit}, {options.threads} thread(s)"
    if options.log == LOG:
        tables.publish("against_earlier", title, header, cells, {"settings": logs.settings(options), "rows": rows})
    else:
        print(*tables.lines(header, cells), sep="\n")


if __name__ == "__main__":
    main()
