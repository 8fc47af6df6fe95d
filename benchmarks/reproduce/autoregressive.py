"""Autoregressive models: excess NLL, validity, training time and speed.

The bundled models are scored on 300 fresh graphs of each family by importance sampling over node orderings (a plain
mean of weights), and compared with the true log-probability graph by graph. Samples are tested for validity, for
duplicates and for copies of training graphs. Geometric graphs have no exact log-probability: the mean of the two bounds
of ``geometric_bounds.py`` takes its place.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.reproduce import geometric_bounds
from benchmarks.tables import FOLDER, publish
from graphite_gen.api import NODES
from graphite_gen.evaluation import score_vun
from graphite_gen.families import PAPER_FAMILIES, Family, family
from graphite_gen.families.simulate import generate, training_set
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import NLLOptions, estimate_nll
from graphite_gen.records import NLLEstimate
from graphite_gen.sampling import Sampler
from graphite_gen.sampling.constraints import Regular, Tree
from graphite_gen.training.checkpoint import TrainedModel, bundled_folder, load_checkpoint

TEST_SEED = 1000
CONSTRAINTS = {"regular": Regular(4), "powerlaw-tree": Tree()}
# Tests of validity; the default is membership of the family.
VALID = {"powerlaw-tree": Tree().holds}
# Testing whether a graph has a unit-square embedding takes seconds, so fewer samples are tested.
TESTED = {"geometric": 30}


def true_nats(process: Family, graphs: Sequence[SimpleGraph]) -> np.ndarray:
    """Return -log p(A|n) of each graph under its true process, in nats."""
    if process.name != "geometric":
        return np.array([-process.log_prob(graph) for graph in graphs])
    bounds = {row["digest"]: (row["lower"] + row["upper"]) / 2 for row in geometric_bounds.read_rows()}
    missing = sum(geometric_bounds.digest(graph) not in bounds for graph in graphs)
    assert not missing, f"{missing} graphs have no bounds: run 'benchmarks.reproduce.geometric_bounds' first"

    return np.array([bounds[geometric_bounds.digest(graph)] for graph in graphs])


def upper_bounds(estimate: NLLEstimate) -> np.ndarray:
    """Return -log of the plain mean weight of each graph: an upper bound on its NLL in expectation."""
    # The last point of the curve uses all weights.
    return np.array([row.curve[-1][1] for row in estimate.per_graph])


def rate(model: TrainedModel, count: int, rounds: int = 3) -> float:
    """Return graphs per second, the best of a few rounds."""
    best = math.inf
    for seed in range(rounds):
        started = time.perf_counter()
        for _ in Sampler(model, count, seed=seed):
            pass
        best = min(best, time.perf_counter() - started)

    return count / best


def measure(name: str, graphs: int, orders: int, samples: int) -> dict[str, Any]:
    """Return the figures of one family."""
    process, model = family(name), load_checkpoint(bundled_folder() / name)
    test = generate(process, graphs, seed=TEST_SEED).graphs
    estimate = estimate_nll(model, test, NLLOptions(orders, curve=True))
    bounds = upper_bounds(estimate)
    nats = true_nats(process, test)
    excess = bounds - nats

    drawn = list(Sampler(model, samples, seed=1))
    tested = drawn[: TESTED.get(name)]
    is_valid = VALID.get(name, process.contains)
    train = training_set(process, preset_name="default", count=None, nodes=NODES, seed=0).split("train")
    vun = score_vun(tested, train, is_valid)
    constraint = CONSTRAINTS.get(name)
    kept = list(Sampler(model, samples, seed=1, constraints=[constraint])) if constraint else []

    return {
        "family": name,
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "order": model.config.ordering,
        "training_seconds": model.results["seconds"],
        "nll": float(bounds.mean()),
        "floor": float(nats.mean()),
        "excess": float(excess.mean()),
        "excess_error": float(excess.std(ddof=1) / math.sqrt(len(excess))),
        "baseline": estimate.baseline,
        "khat": estimate.khat,
        "tested": len(tested),
        "valid": vun.valid.value,
        "in_family": sum(map(process.contains, tested)) / len(tested),
        "distinct": vun.unique_of_valid.value,
        "novel": vun.novel_of_valid.value,
        "constrained": sum(map(is_valid, kept)) / len(kept) if kept else None,
        "rate": rate(model, samples),
    }


def known() -> dict[str, Any]:
    """Return the stored figures: families can be measured one at a time."""
    path = FOLDER / "autoregressive.json"

    return dict(json.loads(path.read_text(encoding="utf-8"))["details"]) if path.exists() else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=list(PAPER_FAMILIES))
    parser.add_argument("--graphs", type=int, default=300, help="fresh graphs to score")
    parser.add_argument("--orders", type=int, default=100, help="node orderings per graph")
    parser.add_argument("--samples", type=int, default=1000, help="graphs to sample")
    parser.add_argument("--threads", type=int, default=2, help="threads to sample with")
    parser.add_argument("--only", choices=("rates",), help="measure only this again")
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    details = known()
    found = {row["family"]: row for row in details.get("families", [])}
    settings = details.get("settings", {})
    if arguments.only is None:
        settings |= {"graphs": arguments.graphs, "orders": arguments.orders, "samples": arguments.samples}
    settings["threads"] = arguments.threads
    for name in arguments.families:
        if arguments.only is None:
            found[name] = measure(name, arguments.graphs, arguments.orders, arguments.samples)
        elif name in found:
            found[name]["rate"] = rate(load_checkpoint(bundled_folder() / name), arguments.samples)
        else:
            parser.error(f"'{name}' has not been measured yet: run without '--only rates'")
        print(found[name], flush=True)
    header = [
        "family",
        "ordering",
        "training, minutes",
        "entropy",
        "NLL",
        "excess NLL",
        "ER baseline",
    ]
    header += ["valid", "valid, constrained", "distinct", "novel", f"graphs/s, {settings['threads']} threads"]
    rows = [
        [
            row["family"],
            row["order"],
            f"{row['training_seconds'] / 60:.1f}",
            row["floor"],
            row["nll"],
            f"{row['excess']:.3f} ± {row['excess_error']:.3f}",
            row["baseline"],
            f"{row['valid']:.1%}",
            "–" if row["constrained"] is None else f"{row['constrained']:.1%}",
            f"{row['distinct']:.1%}",
            f"{row['novel']:.1%}",
            round(row["rate"]),
        ]
        for row in (found[name] for name in PAPER_FAMILIES if name in found)
    ]
    title = (
        f"Autoregressive models on {settings['graphs']} fresh graphs, nats per graph over pairs, "
        f"{settings['orders']} node orderings per graph"
    )
    publish("autoregressive", title, header, rows, {"settings": settings, "families": list(found.values())})


if __name__ == "__main__":
    main()
