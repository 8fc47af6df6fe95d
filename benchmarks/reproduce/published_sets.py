"""Published datasets: train the default model on each and evaluate its samples with the usual metrics.

MMDs use the convention ``emd`` and are biased as in published tables, so their level depends on the number of graphs:
samples and training graphs are compared with the test split in groups of its size, and the mean over groups is shown,
followed by the MMD of all graphs. Datasets can be run one at a time; stored results stay in the JSON file, and
interrupted training is resumed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import tables
from graphite_gen.data.dataset import split_graphs, split_of
from graphite_gen.evaluation import VALIDITY, describe, estimate_mmd, score_vun
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs
from graphite_gen.sampling import Constraint, Planar, Sampler, Tree
from graphite_gen.training.checkpoint import TrainedModel, is_checkpoint, load_checkpoint
from graphite_gen.training.trainer import Trainer, configure

# Graphs per epoch, in batches that suit the size of the graphs.
SETTINGS: dict[str, dict[str, Any]] = {
    "community_small": {"epochs": 60, "epoch_graphs": 3000, "batch_size": 64},
    "ego_small": {"epochs": 60, "epoch_graphs": 3000, "batch_size": 64},
    "tree": {"epochs": 120, "epoch_graphs": 4000, "batch_size": 64},
    "planar": {"epochs": 200, "epoch_graphs": 4000, "batch_size": 64},
    "sbm": {"epochs": 150, "epoch_graphs": 1000, "batch_size": 16, "validate_every": 50},
}
SAMPLES = {"community_small": 1000, "ego_small": 1000, "tree": 400, "planar": 100, "sbm": 40}
CONSTRAINTS: dict[str, Constraint] = {"planar": Planar(), "tree": Tree()}

DESCRIPTORS = ("degree", "clustering", "orbit")
# Degree, clustering, orbit of GDSS (Jo et al., 2022); V.U.N. of DiGress (Vignac et al., 2023).
GDSS = {"community_small": (0.045, 0.086, 0.007), "ego_small": (0.021, 0.024, 0.007)}
DIGRESS = {"planar": 0.78, "tree": 0.90, "sbm": 0.60}


def train(name: str, graphs: Sequence[SimpleGraph], folder: Path, scale: float, seed: int) -> TrainedModel:
    """Train the default model, or resume the run in the folder if it has the same settings."""
    settings = SETTINGS[name] | {"epochs": max(1, round(SETTINGS[name]["epochs"] * scale))}
    own, validation = split_graphs(graphs, seed)
    config, training = configure("default", [*own, *validation], seed=seed, **settings)
    saved = load_checkpoint(folder) if is_checkpoint(folder) else None
    resume = saved is not None and saved.training == training
    # The ordering was chosen when the run was started.
    config = saved.config if saved is not None and resume else config
    trainer = Trainer(name, config, training, own, validation, folder=folder, resume=resume)
    for record in trainer:
        figure = "" if record.validation is None else f", validation {record.validation:.2f}"
        print(f"{name}: epoch {record.epoch}, loss {record.loss:.2f}{figure}, {record.seconds:.0f} s", file=sys.stderr)

    return trainer.model


def grouped_mmds(graphs: Sequence[SimpleGraph], test: Sequence[SimpleGraph]) -> dict[str, dict[str, float]]:
    """Return MMDs of groups as large as the test split (mean and standard deviation) and of all graphs."""
    size = min(len(test), len(graphs))
    first, second = describe(graphs, DESCRIPTORS), describe(test, DESCRIPTORS)
    found = {}
    for name in DESCRIPTORS:
        groups = [first[name][start : start + size] for start in range(0, len(graphs) - size + 1, size)]
        values = [estimate_mmd(rows, second[name], name, "emd").value for rows in groups]
        at_once = estimate_mmd(first[name], second[name], name, "emd").value
        found[name] = {"mean": float(np.mean(values)), "deviation": float(np.std(values)), "all": at_once}

    return found


def score(
    name: str,
    model: TrainedModel,
    graphs: Sequence[SimpleGraph],
    constraints: Sequence[Constraint],
    samples: int,
    seed: int,
) -> dict[str, Any]:
    """Sample from a model, with or without constraints, and evaluate the samples."""
    known = [graph for graph in graphs if split_of(graph) == "train"]
    seen = [graph for graph in graphs if split_of(graph) != "test"]
    test = [graph for graph in graphs if split_of(graph) == "test"]
    started = time.perf_counter()
    drawn = list(Sampler(model, samples, seed=seed, constraints=constraints))
    seconds = time.perf_counter() - started

    return {
        "set": name,
        "constraints": [constraint.label for constraint in constraints],
        "samples": len(drawn),
        "mmd": grouped_mmds(drawn, test),
        "train_mmd": grouped_mmds(seen, test),
        "vun": score_vun(drawn, known, VALIDITY.get(name)).to_json(),
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "training": model.training.to_json(),
        "training_seconds": model.results["seconds"],
        "epochs": model.results["epochs"],
        "best_epoch": model.results["best_epoch"],
        "validation": model.results["validation"],
        "rate": len(drawn) / seconds,
    }


def known_rows() -> list[dict[str, Any]]:
    """Return the stored results."""
    path = tables.FOLDER / "published_sets.json"

    return list(json.loads(path.read_text(encoding="utf-8"))["details"]["sets"]) if path.exists() else []


def publish(rows: Sequence[dict[str, Any]], settings: dict[str, Any]) -> None:
    """Publish the table of all datasets run so far."""
    order = list(SETTINGS)
    rows = sorted(rows, key=lambda row: (order.index(row["set"]), len(row["constraints"])))
    header = ["dataset", "MMD degree / clustering / orbit", "MMD, all samples", "MMD, training graphs", "GDSS"]
    header += ["valid", "unique", "novel", "V.U.N.", "DiGress"]
    header += ["training, s", "graphs/s"]
    cells = [
        [
            " + ".join([row["set"], *row["constraints"]]),
            _three(row["mmd"], "mean"),
            _three(row["mmd"], "all"),
            _three(row["train_mmd"], "mean"),
            " / ".join(f"{value:.3f}" for value in GDSS[row["set"]]) if row["set"] in GDSS else "–",
            *(_percent(row["vun"][key]) for key in ("valid", "unique", "novel")),
            _interval(row["vun"]["vun"]),
            f"{DIGRESS[row['set']]:.0%}" if row["set"] in DIGRESS else "–",
            round(row["training_seconds"]),
            row["rate"],
        ]
        for row in rows
    ]
    title = (
        "Published datasets: MMD (convention emd) of samples and of training graphs to the test split; "
        "V.U.N. with 95% interval"
    )
    tables.publish("published_sets", title, header, cells, {"settings": settings, "sets": rows})


def _three(mmds: dict[str, dict[str, float]], figure: str) -> str:
    return " / ".join(f"{mmds[name][figure]:.3f}" for name in DESCRIPTORS)


def _percent(proportion: dict[str, Any] | None) -> str:
    return "–" if proportion is None else f"{proportion['value']:.1%}"


def _interval(proportion: dict[str, Any]) -> str:
    return f"{proportion['value']:.1%} ({proportion['low']:.1%} to {proportion['high']:.1%})"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of the HDF5 files")
    parser.add_argument("--sets", nargs="+", choices=list(SETTINGS), help="which to run; by default those not yet run")
    parser.add_argument("--epochs-scale", type=float, default=1.0, help="factor on the number of epochs")
    parser.add_argument("--samples", type=int, help="graphs to sample; by default as in published tables")
    parser.add_argument("--models", type=Path, default=Path("build/sets"), help="folder of trained models")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)

    torch.set_num_threads(options.threads)
    rows = known_rows()
    done = {row["set"] for row in rows}
    for name in options.sets or [name for name in SETTINGS if name not in done]:
        graphs = list(read_graphs(options.data / f"{name}.h5"))
        model = train(name, graphs, options.models / name, options.epochs_scale, options.seed)
        choices = [[], [CONSTRAINTS[name]]] if name in CONSTRAINTS else [[]]
        count = options.samples or SAMPLES[name]
        found = [score(name, model, graphs, choice, count, options.seed + 1) for choice in choices]
        # Stored at once: the next dataset may take hours.
        rows = [row for row in rows if row["set"] != name] + found
        publish(rows, {"samples": SAMPLES, "seed": options.seed, "threads": options.threads})


if __name__ == "__main__":
    main()
