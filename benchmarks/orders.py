"""Which order of arrival serves which family: short trainings that differ in nothing else.

Every rule is trained for the same few epochs and scored on the same fresh graphs, by one order and by several: the
first says how well the model has learned the rule, the second how near its law is to the truth.
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np
import torch
from autoregressive import JUDGED, entropies
from logs import Row, read_log, run_all
from tables import FOLDER, publish

from graphite_gen.api import NODES, fit
from graphite_gen.config import ORDERINGS
from graphite_gen.families import FAMILIES, family
from graphite_gen.families.simulate import generate, training_set
from graphite_gen.likelihood import NLLOptions, estimate_nll
from graphite_gen.sampling import Sampler

TEST_SEED = 1000
LOG = FOLDER / "orders.jsonl"


def measure(name: str, order: str, epochs: int, graphs: int) -> Row:
    """Train one family by one rule and score it."""
    law = family(name)
    data = training_set(law, preset_name="default", count=None, nodes=NODES, seed=0)
    model = fit(data, name=f"{name}-{order}", ordering=order, epochs=epochs, coarse=0.0).trained
    test = generate(law, graphs, seed=TEST_SEED).graphs
    estimate = estimate_nll(model, test, NLLOptions(16))
    excess = np.array([row.nll for row in estimate.per_graph]) - entropies(law, test)
    one = np.array([-row.elbo for row in estimate.per_graph]) - entropies(law, test)
    drawn = list(Sampler(model, JUDGED.get(name, 256), seed=1))

    return {
        "family": name,
        "order": order,
        "epochs": epochs,
        "one": float(one.mean()),
        "excess": float(excess.mean()),
        "excess_error": float(excess.std(ddof=1) / math.sqrt(len(excess))),
        "valid": sum(map(law.contains, drawn)) / len(drawn),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--orders", nargs="+", default=list(ORDERINGS), choices=list(ORDERINGS))
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--graphs", type=int, default=60)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    jobs = itertools.product(arguments.families, arguments.orders, [arguments.epochs])
    run_all(jobs, ("family", "order", "epochs"), lambda job: measure(*job, arguments.graphs), LOG)
    found = [row for row in read_log(LOG) if row["epochs"] == arguments.epochs]
    rows = [
        [
            row["family"],
            row["order"],
            f"{row['excess']:.2f} ± {row['excess_error']:.2f}",
            row["one"],
            f"{row['valid']:.0%}",
        ]
        for row in sorted(found, key=lambda row: (row["family"], row["excess"]))
    ]
    title = (
        f"Orders of arrival after {arguments.epochs} epochs: nats above the floor on {arguments.graphs} fresh graphs"
    )
    publish("orders", title, ["family", "order", "by 16 orders", "by one", "valid"], rows, {"runs": found})


if __name__ == "__main__":
    main()
