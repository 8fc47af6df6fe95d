"""Hidden pairs of Barabási-Albert graphs, ranked by the models and by networkx's scores.

A fifth of the pairs of every graph is hidden at random. Models rank them by the probability of an edge given the other
pairs; networkx scores them on the graph of the known edges. All rank the same pairs of the same fresh graphs.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from tables import FOLDER, publish

from graphite_gen.api import fit, load
from graphite_gen.checkpoint import TrainedModel
from graphite_gen.completion import CHAIN_STEPS, PartialGraph, complete
from graphite_gen.dataset import generate
from graphite_gen.families import family
from graphite_gen.graph import SimpleGraph
from graphite_gen.seeding import stream

TEST_SEED = 2000
HIDDEN = 0.2
CACHE = FOLDER.parent / ".cache" / "one-shot-barabasi"


def hide(graph: SimpleGraph, index: int) -> PartialGraph:
    """The graph with a fifth of its pairs unknown."""
    pairs = np.argwhere(np.triu(np.ones((graph.nodes, graph.nodes)), 1))
    chosen = stream(TEST_SEED, "hidden", index).permutation(len(pairs))[: round(HIDDEN * len(pairs))]

    return PartialGraph.from_pairs(graph, pairs[chosen].tolist())


def by_model(model: TrainedModel, partial: PartialGraph, steps: int) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """The probabilities of the unknown pairs, and how settled they are."""
    result = complete(model, partial, 0, steps=steps)
    scores = {(score.source, score.target): score.probability for score in result.scores}
    facts = {"error": result.error, "spread": result.spread, "log_evidence": result.log_evidence}

    return np.array([scores[i, j] for i, j in partial.unknown.tolist()]), facts


def by_networkx(score: Any, partial: PartialGraph) -> NDArray[np.float64]:
    """One of networkx's scores of the unknown pairs, on the known edges."""
    known = partial.graph.to_networkx()

    return np.array(
        [value for _, _, value in score(known, list(map(tuple, partial.unknown.tolist())))], dtype=np.float64
    )


def auc(scores: NDArray[np.float64], edges: NDArray[np.bool_]) -> float:
    """The chance that an edge ranks above an absent pair; ties count half."""
    above = scores[edges][:, None] - scores[~edges]

    return float(((above > 0) + 0.5 * (above == 0)).mean())


def one_shot_model(path: Path | None, epochs: int) -> TrainedModel:
    """The model at a path, or one trained here, once."""
    if path is None and not (CACHE / "model.safetensors").exists():
        fit("barabasi", name="one-shot-barabasi", preset_name="one-shot", epochs=epochs).save(CACHE)

    return load(path or CACHE).trained


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=CHAIN_STEPS, help="steps of the staged model's chains")
    parser.add_argument("--staged", default="bundled:barabasi", help="the staged model")
    parser.add_argument("--one-shot", type=Path, help="the one-shot model; by default one is trained and kept")
    parser.add_argument("--epochs", type=int, default=80, help="epochs of the one-shot model, where it is trained")
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    models = {
        "staged model": load(arguments.staged).trained,
        "one-shot Graphite-VAE": one_shot_model(arguments.one_shot, arguments.epochs),
    }
    assert [model.config.is_staged for model in models.values()] == [True, False]
    peers = {"preferential attachment": nx.preferential_attachment, "Adamic-Adar": nx.adamic_adar_index}

    scores: dict[str, list[NDArray[np.float64]]] = {name: [] for name in (*models, *peers)}
    facts: dict[str, list[dict[str, Any]]] = {name: [] for name in models}
    truth: list[NDArray[np.bool_]] = []
    seconds = dict.fromkeys(models, 0.0)
    for index, graph in enumerate(generate(family("barabasi"), arguments.graphs, seed=TEST_SEED).graphs):
        partial = hide(graph, index)
        truth.append(graph.adjacency()[tuple(partial.unknown.T)])
        for name, model in models.items():
            start = perf_counter()
            found, fact = by_model(model, partial, arguments.steps)
            seconds[name] += perf_counter() - start
            scores[name].append(found)
            facts[name].append(fact)
        for name, score in peers.items():
            scores[name].append(by_networkx(score, partial))
        print(index, {name: round(auc(found[-1], truth[-1]), 3) for name, found in scores.items()}, flush=True)

    rows, figures = [], []
    each = {name: np.array([auc(*pair) for pair in zip(found, truth, strict=True)]) for name, found in scores.items()}
    for name, found in scores.items():
        gain = each["staged model"] - each[name]
        row = {
            "method": name,
            "auc": float(each[name].mean()),
            "auc_se": _error(each[name]),
            "pooled_auc": auc(np.concatenate(found), np.concatenate(truth)),
            "staged_gain": float(gain.mean()),
            "staged_gain_se": _error(gain),
            "seconds_per_graph": seconds[name] / len(truth) if name in models else None,
            "error": float(np.median([fact["error"] for fact in facts[name]])) if name in models else None,
            "spread": float(np.median([fact["spread"] for fact in facts[name]])) if name in models else None,
        }
        figures.append(row)
        rows.append(
            [
                name,
                f"{row['auc']:.3f} ± {row['auc_se']:.3f}",
                f"{row['pooled_auc']:.3f}",
                "–" if name == "staged model" else f"{row['staged_gain']:.3f} ± {row['staged_gain_se']:.3f}",
            ]
        )
    title = (
        f"AUC of hidden pairs, {len(truth)} barabasi graphs on 10 to 20 nodes with {HIDDEN:.0%} of their pairs hidden, "
        f"mean over graphs and all pairs pooled"
    )
    details = {
        "settings": {key: str(value) for key, value in vars(arguments).items()},
        "test_seed": TEST_SEED,
        "methods": figures,
        "per_graph": {name: values.tolist() for name, values in each.items()},
        "diagnostics": facts,
    }
    publish("completion", title, ["ranked by", "AUC", "pooled AUC", "staged is better by"], rows, details)


def _error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)


if __name__ == "__main__":
    main()
