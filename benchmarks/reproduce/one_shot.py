"""Held-out NLL of the bundled one-shot models beside the ER baseline and the paper's architecture.

The paper's architecture (preset ``paper``) is trained on the same graphs with the same ELBO, and all models are scored
on the same fresh graphs.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import torch

from benchmarks.tables import publish
from graphite_gen.api import NODES, fit
from graphite_gen.errors import FamilyError
from graphite_gen.families import PAPER_FAMILIES, family
from graphite_gen.families.simulate import generate, training_set
from graphite_gen.likelihood import NLLOptions, estimate_nll
from graphite_gen.training.checkpoint import bundled_folder, load_checkpoint

TEST_SEED = 1000


def measure(name: str, graphs: int, samples: int, epochs: int) -> dict[str, Any]:
    """Return the figures of one family."""
    torch.set_num_threads(1)
    process = family(name)
    test = generate(process, graphs, seed=TEST_SEED).graphs
    default = estimate_nll(load_checkpoint(bundled_folder() / f"{name}-one-shot"), test, NLLOptions(samples))
    data = training_set(process, preset_name="default", count=None, nodes=NODES, seed=0)
    plain = fit(data, name="paper", preset="paper", seed=0, epochs=epochs, validate_every=2)
    paper = estimate_nll(plain.trained, test, NLLOptions(samples))
    paired = np.array([a.nll - b.nll for a, b in zip(paper.per_graph, default.per_graph, strict=True)])
    try:
        entropy: float | None = float(np.mean([-process.log_prob(graph) for graph in test]))
    except FamilyError:
        entropy = None

    return {
        "family": name,
        "floor": entropy,
        "default": default.nll,
        "standard_error": default.standard_error,
        "baseline": default.baseline,
        "paper": paper.nll,
        "gain_over_paper": float(paired.mean()),
        "gain_error": float(paired.std(ddof=1) / len(paired) ** 0.5),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=300)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=12, help="epochs of the paper's architecture")
    arguments = parser.parse_args()

    settings = (arguments.graphs, arguments.samples, arguments.epochs)
    with ProcessPoolExecutor(max_workers=2) as pool:
        found = list(pool.map(measure, PAPER_FAMILIES, *([value] * len(PAPER_FAMILIES) for value in settings)))
    rows = [
        [
            row["family"],
            "–" if row["floor"] is None else row["floor"],
            f"{row['default']:.2f} ± {row['standard_error']:.2f}",
            row["baseline"],
            row["paper"],
            f"{row['gain_over_paper']:.2f} ± {row['gain_error']:.2f}",
        ]
        for row in found
    ]
    header = ["family", "entropy", "one-shot", "ER baseline", "paper's architecture", "one-shot gains"]
    title = f"Held-out NLL, nats per graph over pairs i<j, {arguments.graphs} fresh graphs, K = {arguments.samples}"
    publish("one_shot", title, header, rows, {"settings": vars(arguments), "test_seed": TEST_SEED, "families": found})


if __name__ == "__main__":
    main()
