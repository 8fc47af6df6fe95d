"""The paper's Table 1, reproduced by its protocol and put right.

For each family 300 graphs with 10 to 20 nodes are drawn and split in thirds; VGAE, Graphite-VAE, GAE and Graphite-AE
are trained on the first, chosen on the second and scored on the third. Variational models are scored by their
importance-sampled NLL, autoencoders by their reconstruction error, both in nats per graph.

Convention ``paper`` trains and scores all cells of the padded matrix, as the published table seems to; ``pairs`` trains
a true bound and scores a law over graphs, so that the ER baseline and the floor can stand beside it.
"""

from __future__ import annotations

import argparse
import itertools
import math
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import torch
from tables import publish

from graphite_gen.api import fit
from graphite_gen.batch import collate
from graphite_gen.dataset import generate
from graphite_gen.errors import FamilyError
from graphite_gen.families import family
from graphite_gen.graph import SimpleGraph
from graphite_gen.objectives import reconstruction
from graphite_gen.sizes import SizeLaw

FAMILIES = ("erdos-renyi", "ego", "regular", "geometric", "powerlaw-tree", "barabasi")
KINDS = ("gae", "graphite-ae", "vgae", "graphite-vae")
PAPER = {
    "gae": (221.79, 197.3, 198.5, 514.26, 519.44, 236.29),
    "graphite-ae": (195.56, 182.79, 191.41, 181.14, 201.22, 192.38),
    "vgae": (273.82, 273.76, 275.29, 274.09, 278.86, 274.4),
    "graphite-vae": (270.22, 270.70, 266.54, 269.71, 263.92, 268.73),
}


def score(name: str, kind: str, preset: str, convention: str, run: int, samples: int) -> dict[str, Any]:
    """Train and score one model of one run."""
    torch.set_num_threads(1)
    law = family(name)
    data = generate(law, 300, (10, 20), seed=run)
    test = data.split("test")
    model = fit(data, name=kind, preset_name=preset, seed=run, kind=kind, convention=convention)
    if model.trained.config.is_variational:
        nats = model.nll(test, samples=samples, seed=run, convention=convention).nll
    else:
        nats = reconstruction_error(model.trained.network, test, convention, run)
    sizes = SizeLaw.of(data.split("train"))
    try:
        floor = float(np.mean([-law.log_prob(graph) for graph in test]))
    except FamilyError:
        floor = math.nan

    return {
        "family": name,
        "kind": kind,
        "preset": preset,
        "convention": convention,
        "run": run,
        "nats": nats,
        "baseline": float(np.mean([sizes.baseline(graph) for graph in test])),
        "floor": floor,
    }


@torch.no_grad()
def reconstruction_error(network: Any, graphs: list[SimpleGraph], convention: str, seed: int) -> float:
    """The mean reconstruction error of graphs, in nats."""
    batch = collate(graphs, network.config.max_nodes)
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(*batch.mask.shape, network.noise_features, generator=generator)

    return -float(reconstruction(network, batch, noise, convention).mean())


def cell(values: list[float]) -> str:
    """Mean ± standard error over runs."""
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan

    return f"{np.mean(values):.2f} ± {error:.2f}"


def table(found: list[dict[str, Any]], preset: str, convention: str) -> list[list[str]]:
    """The rows of one table."""

    def values(key: str, **wanted: str) -> list[float]:
        return [row[key] for row in found if all(row[name] == value for name, value in wanted.items())]

    here = {"preset": preset, "convention": convention}
    rows = [
        [kind, *(cell(values("nats", family=name, kind=kind, **here)) for name in FAMILIES)]
        for kind in KINDS
        if values("nats", kind=kind, **here)
    ]
    if convention == "paper":
        return rows + [[f"{kind}, published", *(f"{value:.2f}" for value in PAPER[kind])] for kind in KINDS]
    for key, label in (("baseline", "ER baseline"), ("floor", "floor")):
        rows.append([label, *(cell(values(key, family=name, kind="vgae", **here)) for name in FAMILIES)])

    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", choices=("paper", "default"), default="paper")
    parser.add_argument("--convention", choices=("pairs", "paper", "both"), default="both")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="two runs, two families: to see that it works")
    arguments = parser.parse_args()

    conventions = ("pairs", "paper") if arguments.convention == "both" else (arguments.convention,)
    runs = 2 if arguments.quick else arguments.runs
    names = FAMILIES[:2] if arguments.quick else FAMILIES
    jobs = list(itertools.product(names, KINDS, [arguments.preset], conventions, range(runs), [arguments.samples]))
    with ProcessPoolExecutor(max_workers=2) as pool:
        found = list(pool.map(score, *zip(*jobs, strict=True), chunksize=4))
    for convention in conventions:
        title = f"Nats per graph, preset '{arguments.preset}', convention '{convention}', {runs} runs"
        publish(
            f"density_{arguments.preset}_{convention}",
            title,
            ["model", *FAMILIES],
            table(found, arguments.preset, convention),
            {"settings": vars(arguments), "runs": [row for row in found if row["convention"] == convention]},
        )


if __name__ == "__main__":
    main()
