"""Staged decoding: how near the floor, how valid, how fast, and what fewer stages cost.

The bundled models are scored on 300 fresh graphs of each family by the multi-order bound, a plain mean of weights, and
held against the true law graph by graph; their samples are checked against the family, against each other and against
the training graphs. Geometric graphs have no exact law: theirs is the mean of the two bounds that
``geometric_bounds.py`` keeps.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import geometric_bounds
import matplotlib
import numpy as np
import torch
from tables import FOLDER, publish

from graphite_gen.api import NODES
from graphite_gen.evaluation import score_vun
from graphite_gen.families import FAMILIES, Family, family
from graphite_gen.families.simulate import generate, training_set
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import NLLOptions, estimate_nll
from graphite_gen.records import NLLEstimate
from graphite_gen.sampling import Sampler
from graphite_gen.sampling.constraints import Regular, Tree
from graphite_gen.training.checkpoint import TrainedModel, bundled_folder, load_checkpoint

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TEST_SEED = 1000
DECODING_STEPS = (1, 4, 8, 16, 32, 64, 0)
CONSTRAINTS = {"regular": Regular(4), "powerlaw-tree": Tree()}
# What a sample must be; where it is not named, a graph of the family.
VALID = {"powerlaw-tree": Tree().holds}
# Whether a graph can be placed in the unit square is a search of seconds: fewer samples must do.
JUDGED = {"geometric": 30}
PICTURE = Path(__file__).resolve().parents[1] / "docs" / "stages.png"


def entropies(law: Family, graphs: Sequence[SimpleGraph]) -> np.ndarray:
    """-log p(A|n) of each graph under its law, in nats."""
    if law.name != "geometric":
        return np.array([-law.log_prob(graph) for graph in graphs])
    bounds = {row["digest"]: (row["lower"] + row["upper"]) / 2 for row in geometric_bounds.read_rows()}
    missing = sum(geometric_bounds.digest(graph) not in bounds for graph in graphs)
    assert not missing, f"{missing} graphs have no bounds: run 'geometric_bounds.py' first"

    return np.array([bounds[geometric_bounds.digest(graph)] for graph in graphs])


def upper_bounds(estimate: NLLEstimate) -> np.ndarray:
    """-log of the plain mean weight of each graph: a bound on its NLL in expectation, as a smoothed mean is not."""
    # The last point of a graph's curve is that of all its weights.
    return np.array([row.curve[-1][1] for row in estimate.per_graph])


def rate(model: TrainedModel, count: int, decoding_steps: int | None = None, rounds: int = 3) -> float:
    """Graphs per second, the best of a few rounds."""
    best = math.inf
    for seed in range(rounds):
        started = time.perf_counter()
        for _ in Sampler(model, count, seed=seed, decoding_steps=decoding_steps):
            pass
        best = min(best, time.perf_counter() - started)

    return count / best


def measure(name: str, graphs: int, orders: int, samples: int) -> dict[str, Any]:
    """The figures of one family."""
    law, model = family(name), load_checkpoint(bundled_folder() / name)
    test = generate(law, graphs, seed=TEST_SEED).graphs
    estimate = estimate_nll(model, test, NLLOptions(orders, curve=True))
    bounds = upper_bounds(estimate)
    excess = bounds - entropies(law, test)
    one = np.array([-row.elbo for row in estimate.per_graph]) - entropies(law, test)

    drawn = list(Sampler(model, samples, seed=1))
    judged = drawn[: JUDGED.get(name)]
    is_valid = VALID.get(name, law.contains)
    train = training_set(law, preset_name="default", count=None, nodes=NODES, seed=0).split("train")
    judgement = score_vun(judged, train, is_valid)
    constraint = CONSTRAINTS.get(name)
    kept = list(Sampler(model, samples, seed=1, constraints=[constraint])) if constraint else []

    return {
        "family": name,
        "parameters": sum(parameter.numel() for parameter in model.network.parameters()),
        "order": model.config.ordering,
        "training_seconds": model.results["seconds"],
        "nll": float(bounds.mean()),
        "floor": float(entropies(law, test).mean()),
        "excess": float(excess.mean()),
        "excess_error": float(excess.std(ddof=1) / math.sqrt(len(excess))),
        "excess_one_order": float(one.mean()),
        "baseline": estimate.baseline,
        "khat": estimate.khat,
        "judged": len(judged),
        "valid": judgement.valid.value,
        "in_family": sum(map(law.contains, judged)) / len(judged),
        "distinct": judgement.unique_of_valid.value,
        "novel": judgement.novel_of_valid.value,
        "constrained": sum(map(is_valid, kept)) / len(kept) if kept else None,
        "rate": rate(model, samples),
    }


def curve(name: str, graphs: int, orders: int, samples: int) -> list[dict[str, Any]]:
    """Validity, excess and speed by the number of stages."""
    law, model = family(name), load_checkpoint(bundled_folder() / name)
    test = generate(law, graphs, seed=TEST_SEED).graphs
    rows = []
    for decoding_steps in DECODING_STEPS:
        drawn = list(Sampler(model, samples, seed=1, decoding_steps=decoding_steps)) if name not in JUDGED else []
        excess = upper_bounds(
            estimate_nll(model, test, NLLOptions(orders, curve=True, decoding_steps=decoding_steps))
        ) - entropies(law, test)
        rows.append(
            {
                "family": name,
                "stages": decoding_steps,
                "valid": sum(map(VALID.get(name, law.contains), drawn)) / len(drawn) if drawn else None,
                "excess": float(excess.mean()),
                "rate": rate(model, samples, decoding_steps, rounds=1),
            }
        )

    return rows


def draw(rows: Sequence[dict[str, Any]]) -> None:
    """The picture: what more stages buy, and what they cost."""
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.2), dpi=110)
    styles = ("o-", "s--", "^-.", "D:", "v-", "P--")
    places = [str(decoding_steps or "all") for decoding_steps in DECODING_STEPS]
    for number, (style, name) in enumerate(zip(styles, FAMILIES, strict=True)):
        own = [row for row in rows if row["family"] == name]
        for panel, key in zip(panels, ("valid", "excess", "rate"), strict=True):
            if own and not (name in ("erdos-renyi", *JUDGED) and key == "valid"):
                panel.plot(places, [row[key] for row in own], style, color=f"C{number}", label=name, markersize=4)
    for panel, title in zip(panels, ("valid samples", "nats above the floor", "graphs per second"), strict=True):
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("stages")
        panel.grid(alpha=0.3)
    panels[0].set_ylim(-0.03, 1.03)
    panels[1].set_yscale("symlog", linthresh=0.1)
    panels[2].set_yscale("log")
    panels[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(PICTURE)


def known() -> dict[str, Any]:
    """What was measured before: families can be measured one at a time."""
    path = FOLDER / "staged.json"

    return dict(json.loads(path.read_text(encoding="utf-8"))["details"]) if path.exists() else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="*", default=list(FAMILIES))
    parser.add_argument("--graphs", type=int, default=300, help="fresh graphs to score")
    parser.add_argument("--orders", type=int, default=100, help="orders per graph")
    parser.add_argument("--samples", type=int, default=1000, help="graphs to draw")
    parser.add_argument("--threads", type=int, default=2, help="threads to sample with")
    parser.add_argument("--curve-graphs", type=int, default=40, help="fresh graphs for the curve; 0 leaves it out")
    parser.add_argument("--only", choices=("rates", "curve"), help="measure this alone anew, on a quieter machine")
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    details = known()
    found = {row["family"]: row for row in details.get("families", [])}
    settings = details.get("settings", {})
    if arguments.only is None:
        settings |= {"graphs": arguments.graphs, "orders": arguments.orders, "samples": arguments.samples}
    if arguments.only != "curve":
        settings["threads"] = arguments.threads
    for name in arguments.families if arguments.only != "curve" else ():
        if arguments.only is None:
            found[name] = measure(name, arguments.graphs, arguments.orders, arguments.samples)
        elif name in found:
            found[name]["rate"] = rate(load_checkpoint(bundled_folder() / name), arguments.samples)
        else:
            parser.error(f"'{name}' has not been measured yet: leave out '--only rates'")
        print(found[name], flush=True)
    header = ["family", "floor", "NLL", "excess", "one order", "ER baseline"]
    header += ["valid", "with its constraint", "distinct", "novel", f"graphs/s, {settings['threads']} threads"]
    rows = [
        [
            row["family"],
            row["floor"],
            row["nll"],
            f"{row['excess']:.3f} ± {row['excess_error']:.3f}",
            f"{row['excess_one_order']:.3f}",
            row["baseline"],
            f"{row['valid']:.1%}",
            "–" if row["constrained"] is None else f"{row['constrained']:.1%}",
            f"{row['distinct']:.1%}",
            f"{row['novel']:.1%}",
            round(row["rate"]),
        ]
        for row in (found[name] for name in FAMILIES if name in found)
    ]
    title = (
        f"Staged models on {settings['graphs']} fresh graphs, nats per graph over pairs, {settings['orders']} orders"
    )
    curves: list[dict[str, Any]] = details.get("curve", [])
    if arguments.curve_graphs and arguments.only != "rates":
        curves = [row for row in curves if row["family"] not in arguments.families]
        curves += [row for name in arguments.families for row in curve(name, arguments.curve_graphs, 10, 256)]
        settings["curve_graphs"] = arguments.curve_graphs
        draw(curves)
    details = {"settings": settings, "families": list(found.values()), "curve": curves}
    publish("staged", title, header, rows, details)


if __name__ == "__main__":
    main()
