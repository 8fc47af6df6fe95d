"""The MMD ratio of 'evaluate' for samples of each family against each family: about 1 if they are the same."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np

from benchmarks.tables import publish
from graphite_gen.evaluation import evaluate
from graphite_gen.families import PAPER_FAMILIES
from graphite_gen.families.simulate import generate

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import LogNorm

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "images" / "confusion.png"


def ratios(count: int, seed: int) -> np.ndarray:
    """Return the ratio of each family's samples (columns) against each family's test graphs (rows)."""
    sets = {name: [generate(name, count, seed=seed + part).graphs for part in range(3)] for name in PAPER_FAMILIES}
    found = np.zeros((len(sets), len(sets)))
    for i, (_, test, train) in enumerate(sets.values()):
        for j, (samples, _, _) in enumerate(sets.values()):
            ratio = evaluate(samples, test, train, conventions=["rbf"], replicates=0, seed=seed).ratio
            found[i, j] = float("nan") if ratio is None else ratio

    return found


def draw(matrix: np.ndarray, names: Sequence[str]) -> None:
    """Draw the matrix as a heat map with its figures."""
    figure, axes = plt.subplots(figsize=(6.4, 5.2), dpi=110, layout="constrained")
    image = axes.imshow(matrix, cmap="cividis_r", norm=LogNorm(1, float(np.nanmax(matrix))))
    for i, row in enumerate(matrix):
        for j, value in enumerate(row):
            dark = value > np.sqrt(np.nanmax(matrix))
            text = f"{value:.2f}" if value < 10 else f"{value:.0f}"
            axes.text(j, i, text, ha="center", va="center", fontsize=10, color="white" if dark else "black")
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("samples")
    axes.set_ylabel("reference and training graphs")
    figure.colorbar(image, label="MMD ratio to training graphs")
    figure.savefig(PICTURE, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=200, help="graphs per set")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    names = list(PAPER_FAMILIES)
    matrix = ratios(options.graphs, options.seed)
    draw(matrix, names)
    title = f"Ratio of samples (columns) to training graphs, {options.graphs} graphs of each family and split"
    rows = [[name, *row] for name, row in zip(names, matrix.tolist(), strict=True)]
    publish("confusion", title, ["reference", *names], rows, vars(options))


if __name__ == "__main__":
    main()
