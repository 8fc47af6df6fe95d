"""Link prediction on networks that Python packages ship: the model, without node features, and every baseline.

FOLDER has network files in any format that is read; ``benchmarks.package_networks`` makes one from networks that Python
packages ship. Every method sees the same splits. Networks with few edges get more runs, since their test sets are
small. Where too few edges can be held out without disconnecting the network, there are no connected splits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import logs, tables
from benchmarks.reproduce.citation import percent
from graphite_gen.errors import DatasetError
from graphite_gen.network.baselines import BASELINES, CHEAP
from graphite_gen.network.hyperparameters import LinkSettings
from graphite_gen.network.link_prediction import run_baseline, run_link, run_split
from graphite_gen.network.network import Network, read_network
from graphite_gen.network.splits import SPLITS

LOG = tables.FOLDER / "unseen_networks.jsonl"
KEYS = ("network", "split", "model", "run", "seed")
MODEL = "graphite-vae"
METRICS = {"auc": "AUC", "mrr": "MRR"}
# Their splits of another seed were looked at while pair features were developed.
DEVELOPMENT = frozenset({"football", "celegans", "road", "synonyms", "grid-poland"})
# Networks with fewer edges have more runs, by this factor.
FEW, FACTOR = 1000, 4
Job = tuple[str, str, str, int, int]


def splits_of(graph: Network, seed: int) -> list[str]:
    """Return the ways in which enough edges can be held out."""

    def works(form: str) -> bool:
        try:
            run_split(graph, form, seed, 0)
        except DatasetError as error:
            if error.reason != "split-disconnects":
                raise
            return False
        return True

    return [form for form in SPLITS if works(form)]


def measure(graph: Network, job: Job, *, quick: bool) -> dict[str, Any]:
    """Score the model or a baseline on one split."""
    _, split, model, run, seed = job
    started = time.process_time()
    if model == MODEL:
        settings = LinkSettings(kind=model, **({"epochs": 3} if quick else {}))
        score = run_link(graph, settings, run, seed, features=False, split=split)
    else:
        score = run_baseline(graph, model, run, seed, split=split)

    return {
        **dict(zip(KEYS, job, strict=True)),
        "nodes": graph.nodes,
        "edges": len(graph.edges),
        **{key: getattr(score, key) for key in ("auc", "ap", "mrr", "validation_auc")},
        "cpu_seconds": time.process_time() - started,
        "provenance": tables.provenance(),
    }


def table(rows: list[dict[str, Any]], models: list[str], key: str) -> Iterator[list[str]]:
    """Yield a row per network and split: its size, the scores, and the model's minus that of the best baseline.

    Networks that the model was developed on have an asterisk; those without all scores are left out.
    """
    found: dict[tuple[str, str], dict[str, dict[int, float]]] = {}
    sizes = {}
    for row in rows:
        if row["model"] in models:
            name = row["network"], row["split"]
            found.setdefault(name, {}).setdefault(row["model"], {})[row["run"]] = row[key]
            sizes[name] = row["nodes"], row["edges"]
    for name in sorted(found, key=lambda name: (name[1], sizes[name])):
        scores = found[name]
        if scores.keys() != set(models):
            continue
        means = {model: np.mean(list(runs.values())) for model, runs in scores.items() if model != MODEL}
        best = max(means, key=lambda model: means[model])
        ours, theirs = scores[MODEL], scores[best]
        # Paired by run, since all methods share their splits.
        differences = np.array([ours[run] - theirs[run] for run in sorted(ours.keys() & theirs.keys())])
        cells = [percent_of(scores.get(model, {})) for model in models]
        network, split = name
        yield [
            network + "*" * (network in DEVELOPMENT),
            split,
            *(f"{size:,}" for size in sizes[name]),
            str(len(ours)),
            *cells,
            best,
            signed(differences),
        ]


def percent_of(runs: dict[int, float]) -> str:
    """Format a mean over runs in percent."""
    return f"{100 * np.mean(list(runs.values())):.2f}" if runs else "–"


def signed(differences: np.ndarray) -> str:
    """Format a mean difference in percent with its sign and standard error."""
    text = percent(differences).partition(" (")[0]

    return text if text.startswith("-") else f"+{text}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder of network files")
    parser.add_argument("--runs", type=int, default=5, help=f"splits, or {FACTOR} times as many below {FEW} edges  [5]")
    parser.add_argument("--seed", type=int, default=0, help="seed of the splits  [0]")
    parser.add_argument("--walks", action="store_true", help="also DeepWalk and node2vec, which need gensim")
    logs.add_options(parser, LOG)
    arguments = logs.parse(parser, LOG)

    torch.set_num_threads(1)
    models = [MODEL, *(BASELINES if arguments.walks else CHEAP)]
    if not arguments.tables:
        for path in sorted(arguments.folder.iterdir()):
            graph = read_network(path, simplify=True)
            runs = arguments.runs * (FACTOR if len(graph.edges) < FEW else 1)
            jobs = [
                (path.stem, split, model, run, arguments.seed)
                for split in splits_of(graph, arguments.seed)
                for model in models
                for run in range(runs)
            ]
            logs.run_all(jobs, KEYS, lambda job, graph=graph: measure(graph, job, quick=arguments.quick), arguments.log)
    rows = [row for row in logs.read_log(arguments.log) if row["seed"] == arguments.seed]
    header = ["network", "split", "nodes", "edges", "runs", *models, "best baseline", "difference"]
    for key, name in METRICS.items():
        title = f"Test {name}, %, on networks that Python packages ship (*: of development), without node features"
        body = list(table(rows, models, key))
        if arguments.quick or arguments.log != LOG:
            print(f"\n{title}\n\n" + "\n".join(tables.lines(header, body)))
        else:
            suffix = "" if key == "auc" else f"_{key}"
            details = {"log": arguments.log.name, "seed": arguments.seed}
            tables.publish(f"unseen_networks{suffix}", title, header, body, details)


if __name__ == "__main__":
    main()
