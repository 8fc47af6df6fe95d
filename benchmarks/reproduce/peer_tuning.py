"""Settings of PyTorch Geometric's graph autoencoders, chosen on splits that no table uses, like ours.

Width, learning rate, dropout and edge dropout are chosen for each model, with and without node features, by AUC + AP on
the validation edges of Cora (connected splits, seed 100). The epoch is selected by the same edges, as
everywhere. The chosen settings are ``TUNED`` in ``benchmarks/peers.py``.
"""

from __future__ import annotations

import argparse
import itertools
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import logs, tables
from benchmarks.peers import PEERS, PeerSettings
from benchmarks.reproduce.citation import peer
from graphite_gen.network.link_prediction import run_split
from graphite_gen.network.network import read_network
from graphite_gen.rng import derive_seed

LOG = tables.FOLDER / "peer_tuning.jsonl"
KEYS = ("dataset", "model", "features", "hidden", "learning_rate", "dropout", "edge_dropout", "run")
DATASETS = ("cora",)
SEED = 100
# Hidden units, with half as many latent dimensions; learning rate, dropout and edge dropout.
GRID = tuple(itertools.product((32, 64), (0.01, 0.003), (0.0, 0.5), (0.0, 0.5)))
Choice = tuple[int, float, float, float]
Job = tuple[str, str, bool, int, float, float, float, int]


def settings_of(choice: Choice) -> PeerSettings:
    """Return the settings of a point of the grid."""
    hidden, rate, dropout, edge_dropout = choice

    return PeerSettings(hidden, hidden // 2, rate, dropout, edge_dropout)


def measure(folder: Path, job: Job, *, quick: bool) -> dict[str, Any]:
    """Train a model on one split, and return its validation scores; the test edges are not used."""
    dataset, model, features, *choice, run = job
    graph = read_network(folder / f"{dataset}.h5")
    own = replace(settings_of(tuple(choice)), **({"epochs": 3} if quick else {}))
    parts = run_split(graph, "connected", SEED, run)
    _, epoch, figure = peer(graph, parts, features, model, derive_seed(SEED, "peer", run), own)

    return {
        **dict(zip(KEYS, job, strict=True)),
        "validation_score": figure,
        "epoch": epoch,
        "settings": asdict(own),
        "provenance": tables.provenance(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of cora.h5")
    parser.add_argument("--runs", type=int, default=2, help="splits of each network  [2]")
    logs.add_options(parser, LOG)
    arguments = logs.parse(parser, LOG)

    torch.set_num_threads(1)
    models = [(model, features) for model in PEERS if ":" not in model for features in (False, True)]
    grid = GRID[:1] if arguments.quick else GRID
    jobs = [
        (dataset, *model, *choice, run)
        for run, dataset, model, choice in itertools.product(range(arguments.runs), DATASETS, models, grid)
    ]
    if not arguments.tables:
        logs.run_all(jobs, KEYS, lambda job: measure(arguments.data, job, quick=arguments.quick), arguments.log)
    rows = [row for row in logs.read_log(arguments.log) if row["run"] < arguments.runs]
    scored = {tuple(row[key] for key in KEYS[1:7]) for row in rows}
    missing = [choice for model in models for choice in grid if (*model, *choice) not in scored]
    if missing:
        parser.error(f"{len(missing)} of {len(models) * len(grid)} settings have no score in '{arguments.log}'")

    def mean(model: tuple[str, bool], choice: Choice) -> float:
        wanted = (*model, *choice)
        return float(np.mean([r["validation_score"] for r in rows if tuple(r[key] for key in KEYS[1:7]) == wanted]))

    found = {(model, choice): mean(model, choice) for model in models for choice in grid}
    best = {model: max(grid, key=lambda choice, model=model: found[model, choice]) for model in models}
    body = []
    for choice in grid:
        cells = [f"{50 * found[model, choice]:.2f}" + " (chosen)" * (best[model] == choice) for model in models]
        body.append([*(f"{value:g}" for value in choice), *cells])
    header = ["hidden units", "learning rate", "dropout", "edge dropout"]
    header += [PEERS[model] + "*" * features for model, features in models]
    title = "Mean of AUC and AP on validation edges of Cora, %, by settings of PyTorch Geometric's models"
    if arguments.quick or arguments.log != LOG:
        print(f"\n{title}\n\n" + "\n".join(tables.lines(header, body)))
    else:
        tables.publish("peer_tuning", title, header, body, {"log": arguments.log.name, "seed": SEED})


if __name__ == "__main__":
    main()
