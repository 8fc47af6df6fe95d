"""The weight of the autoencoder's loss in the hybrid classifier, chosen on splits without public test nodes.

The labels of the public test nodes are removed first. Each run then has random training, validation and test nodes
among the others (``--split fresh``), the same for all weights, and other seeds than the tables. The chosen weight has
the highest accuracy, averaged over the networks.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import logs, tables
from benchmarks.reproduce.citation import DATASETS, percent
from graphite_gen.network.hyperparameters import ClassifierSettings
from graphite_gen.network.network import Network, read_network
from graphite_gen.network.node_classification import run_classification

LOG = tables.FOLDER / "classifier_weight.jsonl"
KEYS = ("dataset", "weight", "run")
WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0)
SEED = 1000
Job = tuple[str, float, int]


def without_test_labels(graph: Network) -> Network:
    """Return the network without the labels of the test nodes of its own split."""
    assert graph.labels is not None
    assert graph.split is not None
    labels = graph.labels.copy()
    labels[graph.split.test] = -1

    return replace(graph, labels=labels, split=None)


def measure(folder: Path, job: Job, *, quick: bool) -> dict[str, Any]:
    """Train a hybrid with a weight on one split, and return its accuracy on the held-out nodes."""
    dataset, weight, run = job
    graph = without_test_labels(read_network(folder / f"{dataset}.h5"))
    settings = ClassifierSettings(reconstruction=weight, **({"epochs": 3} if quick else {}))
    score = run_classification(graph, settings, run, SEED, features=True, split="fresh")

    return {**dict(zip(KEYS, job, strict=True)), "accuracy": score.accuracy, "provenance": tables.provenance()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="the folder of cora.h5, citeseer.h5 and pubmed.h5")
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS), help="only these")
    parser.add_argument("--runs", type=int, default=10, help="splits of each network")
    logs.add_options(parser, LOG)
    arguments = logs.parse(parser, LOG)

    torch.set_num_threads(1)
    jobs = [(name, weight, run) for run in range(arguments.runs) for name in arguments.datasets for weight in WEIGHTS]
    if not arguments.tables:
        logs.run_all(jobs, KEYS, lambda job: measure(arguments.data, job, quick=arguments.quick), arguments.log)
    rows = logs.read_log(arguments.log)
    found = {
        (name, weight): np.array([row["accuracy"] for row in rows if (row["dataset"], row["weight"]) == (name, weight)])
        for name in arguments.datasets
        for weight in WEIGHTS
    }
    means = {weight: float(np.mean([found[name, weight].mean() for name in arguments.datasets])) for weight in WEIGHTS}
    body = [
        [f"{weight:g}", *(percent(found[name, weight]) for name in arguments.datasets), f"{100 * means[weight]:.2f}"]
        for weight in WEIGHTS
    ]
    header = ["weight", *(name.capitalize() for name in arguments.datasets), "mean"]
    title = "Accuracy, %, by the weight of the autoencoder's loss, on random splits without public test nodes"
    if arguments.quick or list(arguments.datasets) != list(DATASETS):
        print(f"\n{title}\n\n" + "\n".join(tables.lines(header, body)))
    else:
        tables.publish("classifier_weight", title, header, body, {"log": arguments.log.name, "seed": SEED})


if __name__ == "__main__":
    main()
