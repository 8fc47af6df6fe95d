"""Graphs of a family given as a file, against ``--family``: the difference in NLL on the same fresh graphs.

Both models are trained with default settings and the same budget: one by ``graphite-gen train --family F``, one by
``graphite-gen train FILE`` on as many graphs of the family, written as graph6, which has neither splits nor the name of
the family. Finished families are in a log, which is continued.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import logs, tables
from benchmarks.commands import minutes, train
from benchmarks.reproduce.autoregressive import TEST_SEED, true_nats
from benchmarks.scoring import mean_and_error, upper_bounds
from graphite_gen.api import NODES
from graphite_gen.families import PAPER_FAMILIES, family
from graphite_gen.families.simulate import generate, training_set
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import write_graphs

LOG = tables.FOLDER / "family_as_file.jsonl"
KEYS = ("family", "budget", "graphs", "seed")
DEFAULT_BUDGET = "default"
TARGET = 0.1


def write_family(name: str, count: int | None, seed: int, folder: Path) -> Path:
    """Write graphs of a family to a file that does not say what they are."""
    file = folder / f"{name}-{count or 'all'}-{seed}.g6"
    if not file.exists():
        whole = training_set(family(name), preset_name="default", count=count, nodes=NODES, seed=seed)
        folder.mkdir(parents=True, exist_ok=True)
        # Without the validation graphs: 'train FILE' takes some of the graphs of the file.
        graphs = whole.split("train")
        write_graphs((SimpleGraph.from_pairs(graph.nodes, graph.edges.tolist()) for graph in graphs), file)

    return file


def measure(job: tuple[str, str, int | None, int], options: argparse.Namespace) -> dict[str, Any]:
    """Train both models of a family and return their NLL and its paired difference."""
    name, budget, count, seed = job
    settings = ["--seed", str(seed), *([] if budget == DEFAULT_BUDGET else ["--budget", budget])]
    file = write_family(name, count, seed, options.models / "data")
    own = settings if count is None else [*settings, "--graphs", str(count)]
    label = f"{name}-{budget}-{count or 'all'}-{seed}"
    about: dict[str, Any] = {"threads": options.threads, "again": options.again}
    sources = {
        "family": train(options.models, label, ["--family", name], own, **about),
        "file": train(options.models, f"{label}-file", [file], settings, **about),
    }
    process = family(name)
    test = generate(process, options.test_graphs, seed=TEST_SEED).graphs
    bounds = {
        source: upper_bounds(trained["folder"], test, options.samples, threads=options.threads)
        for source, trained in sources.items()
    }
    true = true_nats(process, test)
    difference, error = mean_and_error(bounds["file"] - bounds["family"])
    excesses = {source: mean_and_error(values - true) for source, values in bounds.items()}

    return {
        **dict(zip(KEYS, job, strict=True)),
        "difference": difference,
        "difference_error": error,
        "excess": {source: found[0] for source, found in excesses.items()},
        "excess_error": {source: found[1] for source, found in excesses.items()},
        "ordering": {source: ordering_of(trained["folder"]) for source, trained in sources.items()},
        "minutes": {source: minutes(trained) for source, trained in sources.items()},
        "training": {source: trained["results"] for source, trained in sources.items()},
        "test_graphs": options.test_graphs,
        "samples": options.samples,
        "threads": options.threads,
        **{key: sources["file"][key] for key in ("commit", "date", "machine")},
    }


def ordering_of(folder: str) -> str:
    """Return the node ordering of a trained model."""
    import graphite_gen as gg

    return str(gg.load(folder).trained.config.ordering)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", help="families to train; all by default")
    parser.add_argument("--budget", default=DEFAULT_BUDGET, help="as of 'train'; by default that of the command")
    parser.add_argument("--graphs", type=int, help="training graphs; by default as many as with '--family'")
    parser.add_argument("--test-graphs", type=int, default=300, help="fresh graphs to score")
    parser.add_argument("--samples", type=int, default=100, help="node orderings per graph")
    parser.add_argument("--again", action="store_true", help="train and score again what is in the log")
    parser.add_argument("--models", type=Path, default=Path("build/family_as_file"), help="folder of models and files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    logs.add_options(parser, LOG)
    options = logs.parse(parser, LOG, arguments)
    options.models = options.models.resolve()
    if options.quick:
        options.graphs, options.test_graphs, options.samples = 64, 10, 5

    jobs = [(name, options.budget, options.graphs, options.seed) for name in options.families or list(PAPER_FAMILIES)]
    if not options.tables:
        logs.run_all(jobs, KEYS, lambda job: measure(job, options), options.log, again=options.again)
    rows = list({tuple(row[key] for key in KEYS): row for row in logs.read_log(options.log)}.values())
    header = [
        "family",
        "commit",
        "budget",
        "ordering, --family / file",
        "excess, --family",
        "excess, file",
        "difference",
    ]
    header += [f"within {TARGET}", "CPU minutes"]
    lines = [
        [
            row["family"],
            row["commit"],
            row["budget"],
            f"{row['ordering']['family']} / {row['ordering']['file']}",
            *(f"{row['excess'][key]:.3f} ± {row['excess_error'][key]:.3f}" for key in ("family", "file")),
            f"{row['difference']:+.3f} ± {row['difference_error']:.3f}",
            "yes" if row["difference"] <= TARGET else "no",
            f"{row['minutes']['family']:.1f} / {row['minutes']['file']:.1f}",
        ]
        for row in rows
    ]
    if options.log == LOG:
        title = f"Graphs of a family given as a file against --family: NLL of {options.test_graphs} fresh graphs, nats"
        tables.publish("family_as_file", title, header, lines, {"settings": logs.settings(options), "rows": rows})
    else:
        print(*tables.lines(header, lines), sep="\n")


if __name__ == "__main__":
    main()
