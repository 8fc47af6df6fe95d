"""The node orderings compared: short training runs that differ only in the ordering.

Every ordering is trained for the same few epochs and scored on the same fresh graphs, with one sampled ordering and
with sixteen: the first is the bound that was trained, the second is closer to the marginal likelihood.
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np
import torch

from benchmarks.logs import Row, read_log, run_all
from benchmarks.reproduce.autoregressive import TESTED, true_nats
from benchmarks.tables import FOLDER, publish
from graphite_gen.api import NODES, fit
from graphite_gen.config import ORDERINGS
from graphite_gen.families import FAMILIES, family
from graphite_gen.families.simulate import generate, training_set
from graphite_gen.likelihood import NLLOptions, estimate_nll
from graphite_gen.sampling import Sampler

TEST_SEED = 1000
LOG = FOLDER / "orderings.jsonl"


def measure(name: str, ordering: str, epochs: int, graphs: int) -> Row:
    """Train one family with one ordering and score it."""
    process = family(name)
    data = training_set(process, preset_name="default", count=None, nodes=NODES, seed=0)
    model = fit(data, name=f"{name}-{ordering}", ordering=ordering, epochs=epochs, coarse=0.0).trained
    test = generate(process, graphs, seed=TEST_SEED).graphs
    estimate = estimate_nll(model, test, NLLOptions(16))
    excess = np.array([row.nll for row in estimate.per_graph]) - true_nats(process, test)
    one = np.array([-row.elbo for row in estimate.per_graph]) - true_nats(process, test)
    drawn = list(Sampler(model, TESTED.get(name, 256), seed=1))

    return {
        "family": name,
        "order": ordering,
        "epochs": epochs,
        "one": float(one.mean()),
        "excess": float(excess.mean()),
        "excess_error": float(excess.std(ddof=1) / math.sqrt(len(excess))),
        "valid": sum(map(process.contains, drawn)) / len(drawn),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--orderings", nargs="+", default=list(ORDERINGS), choices=list(ORDERINGS))
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--graphs", type=int, default=60)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    jobs = itertools.product(arguments.families, arguments.orderings, [arguments.epochs])
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
        f"Node orderings after {arguments.epochs} epochs of training: excess NLL in nats on {arguments.graphs} "
        f"fresh graphs"
    )
    header = ["family", "ordering", "excess, 16 orderings", "excess, one ordering", "valid"]
    publish("orderings", title, header, rows, {"settings": vars(arguments), "runs": found})


if __name__ == "__main__":
    main()
