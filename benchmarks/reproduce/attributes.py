"""Graphs with attributes: excess NLL where the entropy is exact, statistics of samples, and samples given conditions.

Each dataset is trained by ``graphite-gen train`` with its default settings. NLLs are of fresh graphs, and samples are
compared with as many fresh graphs. Finished datasets are in a log, which is continued.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
from scipy.stats import ks_2samp

import graphite_gen as gg
from benchmarks import logs, tables
from benchmarks.commands import minutes, train
from benchmarks.scoring import mean_and_error
from graphite_gen.data.properties import is_acyclic, reciprocity
from graphite_gen.families import family
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph, as_simple_graph
from graphite_gen.io import write_graphs
from graphite_gen.rng import stream

LOG = tables.FOLDER / "attributes.jsonl"
KEYS = ("set", "budget", "seed")
DEFAULT_BUDGET = "default"
TRAINING, TEST_SEED = 6000, 2000
NODES = (10, 20)


def reciprocal(rng: np.random.Generator) -> nx.DiGraph:
    """Sample a digraph in which nodes differ in popularity and a third of the links are answered."""
    nodes = int(rng.integers(NODES[0], NODES[1] + 1))
    popularity = rng.gamma(1.0, size=nodes)
    graph = nx.DiGraph()
    graph.add_nodes_from(range(nodes))
    for i in range(nodes):
        for j in range(nodes):
            answered = graph.has_edge(j, i)
            chance = 0.1 * popularity[j] / popularity.mean() + (0.3 if answered else 0.0)
            if i != j and rng.random() < chance:
                graph.add_edge(i, j)

    return graph


def mixture(rng: np.random.Generator) -> nx.Graph:
    """Sample a graph of one of two families, which is its class."""
    name = ("barabasi", "geometric")[int(rng.integers(2))]
    graph = family(name).sample(int(rng.integers(NODES[0], NODES[1] + 1)), rng).to_networkx()
    graph.graph["class"] = name

    return graph


@dataclass(frozen=True)
class AttributedSet:
    """A dataset: a family, or a recipe that is written to a file, with the options of 'train'."""

    family: str | None = None
    recipe: Callable[[np.random.Generator], nx.Graph] | None = None
    options: tuple[str, ...] = ()


SETS = {
    "labelled-sbm": AttributedSet("labelled-sbm"),
    "weighted-barabasi": AttributedSet("weighted-barabasi"),
    "random-dag": AttributedSet("random-dag"),
    "reciprocal": AttributedSet(recipe=reciprocal),
    "mixture": AttributedSet(recipe=mixture, options=("--condition", "class", "--condition", "edges")),
}


def fresh_graphs(name: str, count: int, seed: int) -> list[SimpleGraph]:
    """Sample graphs of a dataset."""
    own = SETS[name]
    if own.family is not None:
        return generate(own.family, count, NODES, seed).graphs
    assert own.recipe is not None
    rng = stream(seed, "attributes", name)

    return [as_simple_graph(own.recipe(rng)) for _ in range(count)]


def measure(job: tuple[str, str, int], options: argparse.Namespace) -> dict[str, Any]:
    """Train on a dataset, and score fresh graphs and samples."""
    name, budget, seed = job
    own = SETS[name]
    settings = ["--seed", str(seed), *own.options, *([] if budget == DEFAULT_BUDGET else ["--budget", budget])]
    source: list[Any] = ["--family", own.family] if own.family else [options.models / f"{name}-{options.graphs}.jsonl"]
    if own.family is None and not source[0].exists():
        options.models.mkdir(parents=True, exist_ok=True)
        write_graphs(fresh_graphs(name, options.graphs, seed), source[0])
    elif own.family is not None and options.quick:
        settings += ["--graphs", str(options.graphs)]
    trained = train(options.models, f"{name}-{budget}-{seed}", source, settings, threads=1, again=options.again)
    model = gg.load(trained["folder"])
    test = fresh_graphs(name, options.test_graphs, TEST_SEED)
    scored = test[: options.scored]
    estimate = model.nll(scored, seed=seed, samples=options.samples)
    found: dict[str, Any] = {"nll": estimate.nll, "parts": dict(estimate.parts), "baselines": dict(estimate.baselines)}
    found["baseline"] = estimate.baseline
    if own.family is not None:
        true = np.array([-family(own.family).log_prob(graph) for graph in scored])
        nlls = np.array([row.nll for row in estimate.per_graph])
        found["excess"], found["excess_error"] = mean_and_error(nlls - true)
    drawn = [as_simple_graph(graph) for graph in model.sample(len(test), seed=seed + 1)]
    found["samples"] = compare(drawn, test, own)
    if name == "random-dag":
        constrained = model.sample(len(test), seed=seed + 2, constraints=[gg.Dag()])
        found["dag"] = float(np.mean([nx.is_directed_acyclic_graph(graph) for graph in constrained]))
    if name == "mixture":
        found["conditions"] = conditions(model, test, seed)

    return {
        **dict(zip(KEYS, job, strict=True)),
        **found,
        "ordering": model.config.ordering,
        "training_minutes": minutes(trained),
        "test_graphs": len(test),
        **{key: trained[key] for key in ("commit", "date", "machine")},
    }


def compare(drawn: Sequence[SimpleGraph], test: Sequence[SimpleGraph], own: AttributedSet) -> dict[str, float]:
    """Return relative differences of statistics between samples and fresh graphs, and KS distances."""
    sides = drawn, test

    def differs(statistic: Callable[[SimpleGraph], float]) -> float:
        first, second = (float(np.mean([statistic(graph) for graph in side])) for side in sides)
        return first / second - 1 if second else first

    found = {"edges": differs(lambda graph: len(graph.edges))}
    if own.family == "labelled-sbm":
        label = family(own.family).node_label
        assert label is not None
        shares = [_proportions([value for graph in side for value in graph.node_attributes[label]]) for side in sides]
        mixing = [_proportions([pair for graph in side for pair in _label_pairs(graph, label)]) for side in sides]
        for what, (first, second) in (("labels", shares), ("label pairs", mixing)):
            found[f"{what}, largest difference"] = max(abs(first.get(key, 0) - second[key]) for key in second)
    if own.family == "weighted-barabasi":
        weights = [np.concatenate([graph.weights for graph in side if graph.weights is not None]) for side in sides]
        found["weights, KS"] = float(ks_2samp(*weights).statistic)
    if test[0].directed:
        found["acyclic samples"] = float(np.mean([is_acyclic(graph) for graph in drawn]))
        for end, what in enumerate(("out-degrees", "in-degrees")):
            degrees = [
                np.concatenate([np.bincount(g.edges[:, end], minlength=g.nodes) for g in side]) for side in sides
            ]
            found[f"{what}, KS"] = float(ks_2samp(*degrees).statistic)
        if own.family is None:
            found["reciprocity"] = differs(reciprocity)

    return found


def _proportions(values: Sequence[Any]) -> dict[Any, float]:
    names, counts = np.unique(np.array(values), return_counts=True)

    return dict(zip(names.tolist(), (counts / counts.sum()).tolist(), strict=True))


def _label_pairs(graph: SimpleGraph, label: str) -> list[str]:
    labels = graph.node_attributes[label]

    return ["-".join(sorted((labels[i], labels[j]))) for i, j in graph.edges.tolist()]


def conditions(model: gg.Model, test: Sequence[SimpleGraph], seed: int) -> dict[str, Any]:
    """Return how many samples of a class belong to its family, and the error of a given number of edges."""
    barabasi, count = family("barabasi"), len(test)
    found: dict[str, Any] = {}
    every = []
    for name in ("barabasi", "geometric"):
        drawn = model.sample(count, seed=seed + 3, given={"class": name})
        every += drawn
        # Geometric graphs are almost never Barabási-Albert graphs.
        found[f"{name} by 'contains'"] = float(
            np.mean([barabasi.contains(graph) == (name == "barabasi") for graph in drawn])
        )
    scored = gg.evaluate(every, test, given_attribute="class", replicates=2, seed=seed).accuracy
    assert scored is not None
    found["assigned to their class by a classifier"] = scored.samples.value
    found["fresh graphs, likewise"] = scored.reference.value
    errors = []
    for edges in (30, 40, 50, 60):
        drawn = model.sample(count // 4, seed=seed + 4, given={"edges": edges})
        errors += [abs(graph.size() - edges) / edges for graph in drawn]
    found["edges, mean relative error"] = float(np.mean(errors))

    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS), help="all by default")
    parser.add_argument("--budget", default=DEFAULT_BUDGET, help="as of 'train'; by default that of the command")
    parser.add_argument("--graphs", type=int, default=TRAINING, help="training graphs of datasets that are no family")
    parser.add_argument("--test-graphs", type=int, default=1000, help="fresh graphs, and samples")
    parser.add_argument("--scored", type=int, default=300, help="fresh graphs whose NLL is estimated")
    parser.add_argument("--samples", type=int, default=100, help="node orderings per graph")
    parser.add_argument("--again", action="store_true", help="train and score again what is in the log")
    parser.add_argument("--models", type=Path, default=Path("build/attributes"), help="folder of models and files")
    parser.add_argument("--seed", type=int, default=0)
    logs.add_options(parser, LOG)
    options = logs.parse(parser, LOG, arguments)
    options.models = options.models.resolve()
    if options.quick:
        options.graphs, options.test_graphs, options.scored, options.samples = 64, 8, 4, 4

    jobs = [(name, options.budget, options.seed) for name in options.sets]
    if not options.tables:
        logs.run_all(jobs, KEYS, lambda job: measure(job, options), options.log, again=options.again)
    rows = list({tuple(row[key] for key in KEYS): row for row in logs.read_log(options.log)}.values())
    header = ["dataset", "commit", "ordering", "excess NLL", "NLL: parts (baseline)", "samples against fresh graphs"]
    header += ["given conditions", "CPU minutes"]
    lines = [
        [
            row["set"],
            row["commit"],
            row["ordering"],
            "–" if "excess" not in row else f"{row['excess']:.3f} ± {row['excess_error']:.3f}",
            _parts(row),
            _listed(row["samples"] | ({"with --dag, acyclic": row["dag"]} if "dag" in row else {})),
            _listed(row.get("conditions", {})) or "–",
            f"{row['training_minutes']:.1f}",
        ]
        for row in rows
    ]
    if options.log == LOG:
        title = "Graphs with attributes: NLL of fresh graphs in nats, relative differences of samples, KS distances"
        tables.publish("attributes", title, header, lines, {"settings": logs.settings(options), "rows": rows})
    else:
        print(*tables.lines(header, lines), sep="\n")


def _parts(row: dict[str, Any]) -> str:
    parts = row["parts"] or {"structure": row["nll"]}
    bases = row["baselines"] or {"structure": row["baseline"]}

    return ", ".join(f"{name} {own:.2f} ({bases[name]:.2f})" for name, own in parts.items())


def _listed(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in values.items())


if __name__ == "__main__":
    main()
