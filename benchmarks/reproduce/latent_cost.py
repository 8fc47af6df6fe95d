"""What informative latents cost in likelihood: the KL divergence against the excess NLL of geometric graphs.

Free bits (``train --free-bits``) are the KL divergence per node that costs nothing in training, so more of them give
latents that carry more. Models of the same length of training, node ordering and seed differ in nothing else; the
costs are differences from the model without an encoder on the same fresh graphs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import graphite_gen as gg
from benchmarks import logs, tables
from benchmarks.commands import train
from benchmarks.reproduce.latents import ablations, position_r2, standardised, with_hidden
from benchmarks.scoring import mean_and_error, upper_bounds
from graphite_gen.evaluation.activity import latent_activity
from graphite_gen.families import family
from graphite_gen.families.simulate import generate

LOG = tables.FOLDER / "latent_cost.jsonl"
PICTURE = tables.DOCS / "images" / "latent-cost.png"
KEYS = ("free_bits", "seed")
FAMILY, ORDERING = "geometric", "uniform"
# None for the model without an encoder.
FREE_BITS = (None, 0.0, 0.1, 0.3, 1.0)
QUICK = ["--epoch-graphs", "32", "--batch-size", "16", "--graphs", "64"]


def measure(job: tuple[float | None, int], options: argparse.Namespace) -> dict[str, Any]:
    """Train a model, unless that is done, and return its NLL and what its latents carry."""
    free_bits, seed = job
    settings = ["--ordering", ORDERING, "--epochs", str(options.epochs), "--seed", str(seed)]
    settings += ["--encoder", "none"] if free_bits is None else ["--free-bits", str(free_bits)]
    settings += QUICK if options.quick else []
    run = train(options.models, f"free-bits-{free_bits}-{seed}", ["--family", FAMILY], settings)
    fresh = generate(family(FAMILY), options.graphs, seed=1000).graphs
    row: dict[str, Any] = {"nats": upper_bounds(run["folder"], fresh, options.samples).tolist()}
    if free_bits is not None:
        model = gg.load(run["folder"])
        test, points = with_hidden(FAMILY, options.graphs, 1000)
        encoded = model.encode(test)
        row |= latent_activity(encoded).to_json()
        row |= {key: mean_and_error(values) for key, values in ablations(model.trained, test).items()}
        row["positions"] = position_r2(standardised([one.mean.astype(np.float64) for one in encoded]), points)

    return {**dict(zip(KEYS, job, strict=True)), **row, "epochs": options.epochs, "provenance": tables.provenance()}


def costs(rows: Sequence[dict[str, Any]], row: dict[str, Any]) -> tuple[float, float]:
    """Return the mean NLL of a model minus that of the same seed without an encoder, with its standard error."""
    base = next(other for other in rows if other["free_bits"] is None and other["seed"] == row["seed"])

    return mean_and_error(np.array(row["nats"]) - np.array(base["nats"]))


def lines(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return the lines of the table, one for each model."""
    body = []
    for row in rows:
        nats = f"{np.mean(row['nats']):.2f}"
        if row["free_bits"] is None:
            body.append(["no encoder", nats, *["–"] * 6])
            continue
        changes = (f"{row[key][0]:.2f} ± {row[key][1]:.2f}" for key in ("shuffled", "flat"))
        cost = "{:.2f} ± {:.2f}".format(*costs(rows, row))
        carried = [f"{row['kl']:.1f}", str(row["active_units"]), *changes, f"{row['positions']:.2f}"]
        body.append([f"{row['free_bits']:g}", nats, cost, *carried])

    return body


def draw(rows: Sequence[dict[str, Any]], target: Path) -> None:
    """Draw the cost in nats against the KL divergence."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5, 3.2), layout="constrained")
    axes = figure.add_subplot()
    shown = sorted((row for row in rows if row["free_bits"] is not None), key=lambda row: float(row["kl"]))
    found = [costs(rows, row) for row in shown]
    kl = [row["kl"] for row in shown]
    axes.errorbar(kl, [cost for cost, _ in found], [error for _, error in found], marker="o", markersize=3, capsize=2)
    for row, (cost, _) in zip(shown, found, strict=True):
        axes.annotate(f"{row['free_bits']:g}", (row["kl"], cost), textcoords="offset points", xytext=(4, 4), fontsize=8)
    axes.axhline(0, color="grey", linewidth=0.5)
    axes.set_xlabel("KL divergence, nats (labels: free bits per node)")
    axes.set_ylabel("NLL above that without latents, nats")
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--graphs", type=int, default=300, help="fresh graphs to score")
    parser.add_argument("--samples", type=int, default=50, help="proposals per graph of NLL estimates")
    parser.add_argument("--models", type=Path, default=Path("build/latent-cost"), help="folder of models")
    logs.add_options(parser, LOG)
    options = logs.parse(parser, LOG, arguments)
    options.models = options.models.resolve()
    if options.quick:
        options.epochs, options.graphs, options.samples = 1, 8, 4

    torch.set_num_threads(1)
    jobs = [(free_bits, seed) for seed in options.seeds for free_bits in FREE_BITS]
    if not options.tables:
        logs.run_all(jobs, KEYS, lambda job: measure(job, options), options.log)
    rows = logs.read_log(options.log)
    header = ["free bits per node", "NLL", "above no encoder", "KL", "active units", "Z shuffled, rise of NLL"]
    header += ["Â constant, rise of NLL", "R² of positions"]
    if options.log == LOG:
        draw(rows, PICTURE)
        title = f"Geometric graphs, {options.epochs} epochs, NLL in nats over {options.samples} proposals"
        tables.publish("latent_cost", title, header, lines(rows), {"settings": logs.settings(options)})
    else:
        print(*tables.lines(header, lines(rows)), sep="\n")


if __name__ == "__main__":
    main()
