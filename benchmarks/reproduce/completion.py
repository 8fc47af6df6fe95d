"""Hidden pairs of Barabási-Albert graphs, ranked by the models and by networkx's link prediction scores.

A fifth of the pairs of every graph is hidden at random. Models rank them by the probability of an edge given the other
pairs; networkx scores them on the graph of known edges. All methods rank the same pairs of the same fresh graphs. A
graph whose hidden pairs are all edges or all non-edges has no AUC and counts in the pooled AUC only.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from time import process_time
from typing import Any

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.tables import publish
from graphite_gen.api import load
from graphite_gen.completion import CHAIN_STEPS, PartialGraph, complete
from graphite_gen.evaluation.ranking import area_under_curve
from graphite_gen.families import family
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph
from graphite_gen.rng import stream
from graphite_gen.training.checkpoint import TrainedModel

TEST_SEED = 3000
HIDDEN = 0.2
AUTOREGRESSIVE, ONE_SHOT = "autoregressive model", "one-shot Graphite-VAE"
PEERS = {"preferential attachment": nx.preferential_attachment, "Adamic-Adar": nx.adamic_adar_index}


def hide(graph: SimpleGraph, index: int) -> PartialGraph:
    """Return the graph with a fifth of its pairs unknown."""
    pairs = np.argwhere(np.triu(np.ones((graph.nodes, graph.nodes)), 1))
    chosen = stream(TEST_SEED, "hidden", index).permutation(len(pairs))[: round(HIDDEN * len(pairs))]

    return PartialGraph.from_pairs(graph, pairs[chosen].tolist())


def by_model(model: TrainedModel, partial: PartialGraph, steps: int) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """Return the probabilities of the unknown pairs, with diagnostics."""
    result = complete(model, partial, 0, steps=steps)
    scores = {(score.source, score.target): score.probability for score in result.scores}
    facts = {name: getattr(result, name) for name in ("error", "disagreement", "spread", "log_evidence")}

    return np.array([scores[i, j] for i, j in partial.unknown.tolist()]), facts


def by_networkx(score: Any, partial: PartialGraph) -> NDArray[np.float64]:
    """Return one of networkx's scores of the unknown pairs, computed on the known edges."""
    known = partial.graph.to_networkx()

    return np.array(
        [value for _, _, value in score(known, list(map(tuple, partial.unknown.tolist())))], dtype=np.float64
    )


def auc(scores: NDArray[np.float64], edges: NDArray[np.bool_]) -> float:
    """Return the probability that an edge ranks above a non-edge; ties count half. NaN if one of them is missing."""
    if edges.all() or not edges.any():
        return float("nan")

    return area_under_curve(scores[edges], scores[~edges])


@dataclass(frozen=True)
class Task:
    """A graph with hidden pairs, and the models that rank them, by name or path."""

    index: int
    graph: SimpleGraph
    models: dict[str, str]
    steps: int


@dataclass(frozen=True)
class Ranking:
    """The scores of the hidden pairs of a graph by method, which pairs are edges, and diagnostics of the models."""

    scores: dict[str, NDArray[np.float64]]
    edges: NDArray[np.bool_]
    facts: dict[str, dict[str, Any]]

    @property
    def aucs(self) -> dict[str, float]:
        return {name: auc(scores, self.edges) for name, scores in self.scores.items()}


def rank(task: Task) -> Ranking:
    """Rank the hidden pairs of a graph with every method."""
    torch.set_num_threads(1)
    partial = hide(task.graph, task.index)
    scores, facts = {}, {}
    for name, path in task.models.items():
        model = load(path).trained
        assert model.config.is_autoregressive == (name == AUTOREGRESSIVE)
        start = process_time()
        scores[name], facts[name] = by_model(model, partial, task.steps)
        facts[name]["seconds"] = process_time() - start
    for name, score in PEERS.items():
        scores[name] = by_networkx(score, partial)

    return Ranking(scores, task.graph.adjacency()[tuple(partial.unknown.T)], facts)


def summary(rankings: list[Ranking]) -> list[dict[str, Any]]:
    """Return the figures of each method."""
    edges = np.concatenate([ranking.edges for ranking in rankings])
    aucs = {name: np.array([ranking.aucs[name] for ranking in rankings]) for name in rankings[0].scores}
    figures: list[dict[str, Any]] = []
    for name, values in aucs.items():
        mean, error = _mean(values)
        gain, gain_error = _mean(aucs[AUTOREGRESSIVE] - values)
        known = [ranking.facts[name] for ranking in rankings if name in ranking.facts]
        figures.append(
            {
                "method": name,
                "auc": mean,
                "auc_se": error,
                "pooled_auc": auc(np.concatenate([ranking.scores[name] for ranking in rankings]), edges),
                "autoregressive_gain": gain,
                "autoregressive_gain_se": gain_error,
                **{f"median_{fact}": float(np.median([facts[fact] for facts in known])) for fact in (known or [{}])[0]},
            }
        )

    return figures


def _mean(values: NDArray[np.float64]) -> tuple[float, float]:
    """Return the mean over the graphs that have a value, and its standard error."""
    values = values[~np.isnan(values)]

    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5)


def _without_nan(values: dict[str, float]) -> dict[str, float | None]:
    """Return the values with None for NaN, which JSON lacks."""
    return {name: None if np.isnan(value) else value for name, value in values.items()}


def shown(rankings: Iterable[Ranking]) -> Iterable[Ranking]:
    """Print each ranking as it is finished."""
    for index, ranking in enumerate(rankings):
        print(index, {name: round(value, 3) for name, value in ranking.aucs.items()}, flush=True)
        yield ranking


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=30)
    parser.add_argument(
        "--steps", type=int, default=CHAIN_STEPS, help="steps of the Markov chains of the autoregressive model"
    )
    parser.add_argument("--autoregressive", default="bundled:barabasi", help="the autoregressive model")
    parser.add_argument("--one-shot", default="bundled:barabasi-one-shot", help="the one-shot model")
    parser.add_argument("--workers", type=int, default=1, help="processes, of one thread each")
    arguments = parser.parse_args()

    models = {AUTOREGRESSIVE: arguments.autoregressive, ONE_SHOT: arguments.one_shot}
    graphs = generate(family("barabasi"), arguments.graphs, seed=TEST_SEED).graphs
    tasks = [Task(index, graph, models, arguments.steps) for index, graph in enumerate(graphs)]
    with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
        rankings = list(shown(pool.map(rank, tasks)))

    figures = summary(rankings)
    rows = [
        [
            row["method"],
            f"{row['auc']:.3f} ± {row['auc_se']:.3f}",
            f"{row['pooled_auc']:.3f}",
            "–"
            if row["method"] == AUTOREGRESSIVE
            else f"{row['autoregressive_gain']:.3f} ± {row['autoregressive_gain_se']:.3f}",
        ]
        for row in figures
    ]
    title = (
        f"AUC of hidden pairs, {len(tasks)} barabasi graphs on 10 to 20 nodes with {HIDDEN:.0%} of their pairs hidden, "
        f"mean over graphs and all pairs pooled"
    )
    details = {
        "settings": vars(arguments),
        "test_seed": TEST_SEED,
        "methods": figures,
        "per_graph": [{"auc": _without_nan(ranking.aucs), "facts": ranking.facts} for ranking in rankings],
    }
    publish("completion", title, ["ranked by", "AUC", "pooled AUC", "autoregressive gains"], rows, details)


if __name__ == "__main__":
    main()
