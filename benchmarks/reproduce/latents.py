"""What latents of the default model carry, and what they cost: hidden variables recovered, KL, paired NLL, regression.

Each dataset is trained by ``graphite-gen train`` with its default settings. Hidden variables (blocks, positions, age)
come from the generators of fresh test graphs and are used for scoring only. Finished runs are in a log, and interrupted
training is resumed.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import lgamma, log
from pathlib import Path
from typing import Any
from unittest.mock import patch

import networkx as nx
import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.metrics import normalized_mutual_info_score, r2_score
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphite_gen as gg
from benchmarks import logs, tables
from benchmarks.commands import train
from benchmarks.reproduce.autoregressive import upper_bounds
from benchmarks.reproduce.published_sets import DATA, DEFAULT_BUDGET, delaunay, prepare, sbm_with_blocks
from benchmarks.scoring import mean_and_error
from graphite_gen.autoregressive.ordering import permute_to_ordering
from graphite_gen.data.batch import collate
from graphite_gen.evaluation.activity import latent_activity
from graphite_gen.evaluation.descriptors import clustering_coefficients
from graphite_gen.families import PAPER_FAMILIES, family
from graphite_gen.families.barabasi import _degrees as set_degrees
from graphite_gen.families.barabasi import _members as set_members
from graphite_gen.families.barabasi import _target_probabilities as target_probabilities
from graphite_gen.families.geometric import Geometric
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import read_graphs
from graphite_gen.nn.operators import LowRankGraph
from graphite_gen.rng import stream
from graphite_gen.training.checkpoint import TrainedModel

LOG = tables.FOLDER / "latents.jsonl"
PICTURE = tables.DOCS / "images" / "latent-paths.png"
KEYS = ("set", "budget", "seed")
# In place of a budget: the bundled model of a family, which is one run with a given number of epochs.
BUNDLED = "bundled"
SMALL = ("community_small", "ego_small")
ENCODABLE = ("sbm", "geometric", "barabasi", "planar")
SETS = (*PAPER_FAMILIES, "sbm", "planar", *SMALL)
# Files that are generated, and their recipes in 'published_sets'.
GENERATED = {"sbm": "sbm-L", "planar": "planar-L"}
# Nodes of the graphs whose positions or ages are recovered, and the edges of a new node of barabasi graphs.
NODES, ATTACHED = 20, 4
BLOCK_SIZES, BLOCK_COUNTS, WITHIN, BETWEEN = range(20, 41), range(2, 6), 0.3, 0.005
BATCH, STEPS_OF_PATH, ALIGNMENTS = 16, 9, 30
QUICK = ["--epochs", "1", "--epoch-graphs", "32", "--batch-size", "16", "--ordering", "bfs"]
Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class LatentPath:
    """A path between graphs: the constraint that holds on it, and the property that is followed along it."""

    constraint: list[Any]
    is_valid: Callable[[nx.Graph], bool]
    name: str
    value: Callable[[nx.Graph], float]


PATHS = {
    "powerlaw-tree": LatentPath([gg.Tree()], nx.is_tree, "diameter", nx.diameter),
    "regular": LatentPath(
        [gg.Regular(4)], lambda graph: {d for _, d in graph.degree} == {4}, "clustering", nx.transitivity
    ),
    "geometric": LatentPath([], lambda graph: True, "edges", nx.Graph.size),
}


# Graphs with known hidden variables ---------------------------------------------------------------------------


def with_hidden(name: str, count: int, seed: int) -> tuple[list[SimpleGraph], list[np.ndarray]]:
    """Sample graphs and their hidden variables: blocks (sbm), positions (geometric), or ages (barabasi) of nodes."""
    rng = stream(seed, "latents", name)
    sample = {"sbm": sbm_with_blocks, "geometric": _geometric, "barabasi": _barabasi}[name]
    found = [sample(rng) for _ in range(count)]
    # Node numbers must not tell the hidden variable.
    orders = [rng.permutation(graph.nodes) for graph, _ in found]
    graphs = [graph.permuted(order) for (graph, _), order in zip(found, orders, strict=True)]

    return graphs, [hidden[np.argsort(order)] for (_, hidden), order in zip(found, orders, strict=True)]


def _geometric(rng: np.random.Generator) -> tuple[SimpleGraph, np.ndarray]:
    return Geometric().sample_with_points(NODES, rng)


def _barabasi(rng: np.random.Generator) -> tuple[SimpleGraph, np.ndarray]:
    """Nodes of networkx are numbered by age; the first ones form a star, whose nodes have the same age."""
    graph = nx.barabasi_albert_graph(NODES, ATTACHED, seed=int(rng.integers(2**31)))

    return SimpleGraph.from_networkx(graph), np.maximum(np.arange(NODES), ATTACHED)


def sbm_nats(graph: SimpleGraph, blocks: np.ndarray) -> float:
    """-log p(A, blocks | n) of the process in nats, for unordered blocks: close to -log p(A | n) where A tells them."""
    same = blocks[:, None] == blocks
    density = np.where(same, WITHIN, BETWEEN)
    adjacency = graph.adjacency()
    terms = np.where(adjacency, np.log(density), np.log1p(-density))
    sizes = np.bincount(blocks)
    each, one, total = 1 / len(BLOCK_SIZES), np.zeros(max(BLOCK_SIZES) + 1), 0.0
    one[list(BLOCK_SIZES)] = each
    for count in BLOCK_COUNTS:
        sums = np.ones(1)
        for _ in range(count):
            sums = np.convolve(sums, one)
        total += (sums[graph.nodes] if graph.nodes < len(sums) else 0.0) / len(BLOCK_COUNTS)
    # Blocks in any order give the same partition; nodes are numbered at random.
    labels = -log(len(BLOCK_COUNTS)) + len(sizes) * log(each) + lgamma(len(sizes) + 1) - log(total)
    labels -= lgamma(graph.nodes + 1) - sum(lgamma(size + 1) for size in sizes.tolist())

    return float(-np.triu(terms, 1).sum() - labels)


# Scores -------------------------------------------------------------------------------------------------------


def block_information(latents: Arrays, blocks: Arrays) -> float:
    """Return the mean normalised mutual information of true blocks and k-means clusters of the nodes of each graph."""
    found = [
        KMeans(len(set(true.tolist())), n_init=10, random_state=0).fit_predict(own)
        for own, true in zip(latents, blocks, strict=True)
    ]

    return float(np.mean([normalized_mutual_info_score(*pair) for pair in zip(blocks, found, strict=True)]))


def _rotation(points: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the rotation or reflection of points that is closest to a target (orthogonal Procrustes)."""
    u, _, v = np.linalg.svd(points.T @ target)

    return u @ v


def position_r2(latents: Arrays, points: Arrays) -> float:
    """Return the R² of held-out positions, predicted by one linear map of latents and a rotation of each graph.

    A graph does not tell rotations and reflections of the square, so each graph is aligned by one (Procrustes). The
    linear map is the same for all graphs and is fitted to the first half of them, in turn with their rotations.
    """
    half = len(latents) // 2
    mean, scale = np.concatenate(latents[:half]).mean(0), np.concatenate(latents[:half]).std(0).max()
    inputs = [(own - mean) / max(scale, 1e-12) for own in latents]
    targets = [own - 0.5 for own in points]
    known = np.concatenate(inputs[:half])
    # The first guess of the map: principal components.
    weights = np.linalg.svd(known, full_matrices=False)[2][:2].T
    for _ in range(ALIGNMENTS):
        turned = [own @ _rotation(own, x @ weights) for x, own in zip(inputs[:half], targets, strict=False)]
        weights = np.linalg.lstsq(known, np.concatenate(turned), rcond=None)[0]
    rest = [(x @ weights, own) for x, own in zip(inputs[half:], targets[half:], strict=True)]
    errors = sum(float(((own @ _rotation(own, guess) - guess) ** 2).sum()) for guess, own in rest)

    return 1 - errors / sum(float((own**2).sum()) for _, own in rest)


def standardised(latents: Arrays) -> list[np.ndarray]:
    """Standardise the latents of each graph over its nodes: in training, means tell where nodes are at any scale."""
    return [(own - own.mean(0)) / np.maximum(own.std(0), 1e-3) for own in latents]


def age_correlation(inputs: Arrays, ages: Arrays) -> float:
    """Return the mean Spearman correlation of age and a linear probe in the second half of the graphs."""
    half = len(inputs) // 2
    probe = LinearRegression().fit(np.concatenate(inputs[:half]), np.concatenate(ages[:half]))
    found = [spearmanr(probe.predict(own), age)[0] for own, age in zip(inputs[half:], ages[half:], strict=True)]

    return float(np.mean(np.nan_to_num(found)))


def expected_ages(graph: SimpleGraph) -> np.ndarray:
    """Return the mean age of each node of a barabasi graph given the graph, which no function of it can improve on.

    The histories of a graph are paths from all nodes down to a star, each step removing a last node. They are summed
    over as in the exact likelihood of the family, and once more from the stars upwards.
    """
    nodes, adjacency = graph.nodes, graph.adjacency()
    sets, weights, steps = np.array([(1 << nodes) - 1], dtype=np.uint64), np.ones(1), []
    for _ in range(nodes - ATTACHED - 1):
        row, last = np.nonzero(set_degrees(set_members(sets, nodes), adjacency) == ATTACHED)
        rests = sets[row] ^ (np.uint64(1) << last.astype(np.uint64))
        smaller, place = np.unique(rests, return_inverse=True)
        members = set_members(smaller, nodes)
        degrees = set_degrees(members, adjacency)[place]
        targets = np.nonzero(adjacency[last] & members[place])[1].reshape(-1, ATTACHED)
        known = np.take_along_axis(degrees, targets, axis=1)
        # Nodes without an edge are targets of no history.
        chances = np.where((known > 0).all(1), target_probabilities(known.clip(1), degrees.clip(0).sum(1)), 0.0)
        steps.append((weights, row, last, place, chances))
        weights = np.bincount(place, weights[row] * chances, len(smaller))
        sets, weights = smaller, weights / weights.max()
    degrees = set_degrees(set_members(sets, nodes), adjacency)
    above = ((degrees == ATTACHED).sum(1) * (degrees.clip(0).sum(1) == 2 * ATTACHED)).astype(np.float64)
    ages = np.full(nodes, float(ATTACHED))
    for number, (weights, row, last, place, chances) in enumerate(reversed(steps), start=1):
        flow = chances * above[place]
        ages += number * np.bincount(last, weights[row] * flow / (weights[row] * flow).sum(), nodes)
        above = np.bincount(row, flow, len(weights))
        above /= above.max()

    return ages


def property_r2(vectors: np.ndarray, graphs: Sequence[SimpleGraph]) -> dict[str, float]:
    """Return the cross-validated R² of properties, by ridge regression from a vector of each graph."""
    values = {
        "edges": [len(graph.edges) for graph in graphs],
        "clustering": [row.mean() for row in clustering_coefficients(graphs)],
        "diameter": [_diameter(graph) for graph in graphs],
    }
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))

    return {key: float(r2_score(known, cross_val_predict(model, vectors, known))) for key, known in values.items()}


def _diameter(graph: SimpleGraph) -> int:
    whole = graph.to_networkx()

    return int(nx.diameter(whole.subgraph(max(nx.connected_components(whole), key=len))))


def flat_graph(z: torch.Tensor, mask: torch.Tensor, per_node: bool = False) -> LowRankGraph:
    """The intermediate graph of eq. 8 without its first term: 11ᵀ."""
    ones = mask.unsqueeze(-1).to(z).expand(*z.shape[:-1], 1)

    return LowRankGraph(torch.cat([torch.zeros_like(z), ones], -1))


@torch.no_grad()
def ablations(model: TrainedModel, graphs: Sequence[SimpleGraph], seed: int = 0) -> dict[str, np.ndarray]:
    """Return by how much -log p(A|Z) rises, graph by graph, with latents of other nodes or with a constant Â.

    The latents are drawn from the posterior. Those of all nodes of a batch of graphs are shuffled. Node orderings and
    draws are the same in all cases, and so is the KL divergence: these are differences of the ELBO. An autoregressive
    decoder has learned the constant that the affine map of latents adds to eq. 8, so it keeps that: its Â is the one of
    latents that are zero.
    """
    network, config = model.network, model.config
    found: dict[str, list[np.ndarray]] = {"shuffled": [], "flat": []}
    for start in range(0, len(graphs), BATCH):
        batch = collate(graphs[start : start + BATCH])
        rng = stream(seed, "ablations", start)
        if config.is_autoregressive:
            batch, _ = permute_to_ordering(batch, config, rng)
        noise = torch.from_numpy(rng.standard_normal((*batch.mask.shape, network.noise_features))).to(batch.adj)
        epsilon = torch.from_numpy(rng.standard_normal((*batch.mask.shape, config.latent))).to(batch.adj)
        z = network.encode(batch, noise).sample(epsilon)
        other = z.clone()
        other[batch.mask] = z[batch.mask][torch.from_numpy(rng.permutation(int(batch.mask.sum())))]

        def nats(latents: torch.Tensor, batch: Any = batch) -> np.ndarray:
            if config.is_autoregressive:
                drawn = network.decode_autoregressive(latents, batch.x, batch.sizes)
                return -drawn.log_prob(batch.adj).double().numpy()
            return -network.decode(latents, batch.x, batch.mask).log_prob(batch.adj).double().numpy()

        own = nats(z)
        found["shuffled"].append(nats(other) - own)
        if config.is_autoregressive:
            weight = network.decoder.factor.weight
            kept = weight.clone()
            weight.zero_()
            found["flat"].append(nats(z) - own)
            weight.copy_(kept)
            continue
        with patch.object(LowRankGraph, "from_latents", staticmethod(flat_graph)):
            found["flat"].append(nats(z) - own)

    return {key: np.concatenate(values) for key, values in found.items()}


def follow_paths(model: gg.Model, graphs: Sequence[SimpleGraph], path: LatentPath, seed: int) -> dict[str, Any]:
    """Interpolate between pairs of graphs; return the proportion of valid graphs and the mean property along paths.

    Each path goes from the lower to the higher value of the property.
    """
    valid, curves = [], []
    for first, last in zip(graphs[::2], graphs[1::2], strict=False):
        pair = sorted((first, last), key=lambda graph: path.value(graph.to_networkx()))
        found = model.interpolate(*pair, STEPS_OF_PATH, seed=seed, constraints=path.constraint)
        valid += [path.is_valid(graph) for graph in found]
        curves.append(
            [path.value(graph) if nx.is_connected(graph) or path.name != "diameter" else 0 for graph in found]
        )

    return {"valid": float(np.mean(valid)), "property": path.name, "curve": np.mean(curves, axis=0).tolist()}


# Jobs ---------------------------------------------------------------------------------------------------------


def measure(job: tuple[str, str, int], options: argparse.Namespace) -> dict[str, Any]:
    """Train the models of a dataset, unless that is done, and return all figures about their latents."""
    name, budget, seed = job
    torch.set_num_threads(options.threads)
    settings = ["--seed", str(seed), *([] if budget == DEFAULT_BUDGET else ["--budget", budget])]
    settings += QUICK if options.quick else []
    source: list[str | Path] = ["--family", name]
    if name not in PAPER_FAMILIES:
        source = [prepare(GENERATED.get(name, name), options.data, options.models / "data", 0, options.sizes)]
    elif options.quick:
        settings += ["--graphs", "64"]

    def trained(label: str, *others: str) -> dict[str, Any]:
        # '--ordering' has no effect on a one-shot decoder.
        own = [word for word in settings if "one-shot" not in others or word not in ("--ordering", "bfs")]
        folder = f"{name}-{label}-{budget}-{seed}"
        return train(options.models, folder, source, [*own, *others], threads=options.threads, again=options.again)

    is_bundled = budget == BUNDLED
    if is_bundled:
        model = gg.load(f"bundled:{name}")
        default = {"results": model.trained.results, **tables.provenance()}
    else:
        default = trained("default")
        model = gg.load(default["folder"])
    test, hidden = fresh_graphs(name, source, options)
    encoded = model.encode(test)
    latents = [one.mean.astype(np.float64) for one in encoded]
    row: dict[str, Any] = {**latent_activity(encoded).to_json(), "training": default["results"]}
    row |= {key: default[key] for key in ("commit", "date", "machine")}
    if name in ENCODABLE:
        row |= {key: mean_and_error(values) for key, values in ablations(model.trained, test).items()}
    if name in PAPER_FAMILIES and not is_bundled:
        without = trained("none", "--encoder", "none")
        fresh = generate(family(name), options.test_graphs, seed=1000).graphs
        bounds = [
            upper_bounds(gg.load(run["folder"]).nll(fresh, samples=options.samples, curve=True))
            for run in (default, without)
        ]
        row["cost"] = mean_and_error(bounds[0] - bounds[1])
    if name == "sbm":
        row["blocks"] = block_information(standardised(latents), hidden)
        row["blocks_raw"] = block_information(latents, hidden)
        one_shot = gg.load(trained("one-shot", "--preset", "one-shot")["folder"])
        scores = one_shot.nll(test, samples=options.samples)
        entropy = float(np.mean([sbm_nats(*pair) for pair in zip(test, hidden, strict=True)]))
        row |= {"one_shot": scores.nll, "entropy": entropy, "baseline": scores.baseline}
        row["one_shot_way"] = (scores.nll - entropy) / (float(scores.baseline or 0) - entropy)
    if name == "geometric":
        row |= {"positions": position_r2(standardised(latents), hidden), "positions_raw": position_r2(latents, hidden)}
    if name == "barabasi":
        degrees = [graph.degrees()[:, None].astype(np.float64) for graph in test]
        best = [expected_ages(graph)[:, None] for graph in test]
        row |= {"age": age_correlation(latents, hidden), "age_by_degree": age_correlation(degrees, hidden)}
        row["age_at_best"] = age_correlation(best, hidden)
    if name in SMALL:
        sizes = np.array([[graph.nodes] for graph in test], dtype=np.float64)
        row |= {
            "regression": property_r2(np.stack([one.vector for one in encoded]), test),
            "by_size": property_r2(sizes, test),
        }
    if name in PATHS:
        ends = generate(family(name), 2 * options.paths, seed=1001).graphs
        row["paths"] = follow_paths(model, ends, PATHS[name], seed)

    return {**dict(zip(KEYS, job, strict=True)), **row}


def fresh_graphs(
    name: str, source: Sequence[str | Path], options: argparse.Namespace
) -> tuple[list[SimpleGraph], list[np.ndarray]]:
    """Return fresh graphs with their hidden variables; all graphs of the small sets, for cross-validation."""
    count = options.test_graphs
    if name in ("sbm", "geometric", "barabasi"):
        return with_hidden(name, min(count, 100) if name == "sbm" else count, 1000)
    if name == "planar":
        rng = stream(1000, "latents", name)
        return [delaunay(rng) for _ in range(min(count, 100))], []
    if name in SMALL:
        return list(read_graphs(source[0])), []

    return generate(family(name), count, seed=1000).graphs, []


# The table ----------------------------------------------------------------------------------------------------


def lines(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Return the lines of the table: measure, dataset, target, mean over seeds and whether the target is reached."""
    by_set = {name: own for name in SETS if (own := [row for row in rows if row["set"] == name])}
    found: list[list[str]] = []

    def add(
        measure: str,
        name: str,
        target: str,
        value: Callable[[dict[str, Any]], float],
        is_reached: Callable[[float], bool] | None = None,
        *,
        form: str = ".2f",
        beside: str = "",
    ) -> None:
        values = [value(row) for row in by_set[name]]
        mean = float(np.mean(values))
        error = f" ± {np.std(values, ddof=1) / len(values) ** 0.5:{form}}" if len(values) > 1 else ""
        reached = "" if is_reached is None else "yes" if is_reached(mean) else "no"
        found.append([measure, name, target, f"{mean:{form}}{error}{beside}", str(len(values)), reached])

    def mean_of(name: str, value: Callable[[dict[str, Any]], float]) -> float:
        return float(np.mean([value(row) for row in by_set[name]]))

    for name in by_set:
        if all("cost" in row for row in by_set[name]):
            what = "NLL minus that of the decoder without latents, nats"
            add(what, name, "≤ 0.05", lambda row: row["cost"][0], lambda x: x <= 0.05, form=".3f")
    if "sbm" in by_set:
        what = "NMI of blocks and k-means on posterior means standardised over each graph"
        beside = f" (not standardised {mean_of('sbm', lambda row: row['blocks_raw']):.2f})"
        add(what, "sbm", "≥ 0.95", lambda row: row["blocks"], lambda x: x >= 0.95, beside=beside)
        what = "one-shot NLL, part of the way from entropy to ER baseline"
        add(what, "sbm", "≤ 0.60", lambda row: row["one_shot_way"], lambda x: x <= 0.6)
    if "geometric" in by_set:
        what = f"R² of aligned positions, {NODES} nodes, from means standardised over each graph"
        raw = mean_of("geometric", lambda row: row["positions_raw"])
        beside = f" (not standardised {raw:.2f})"
        add(what, "geometric", "≥ 0.9", lambda row: row["positions"], lambda x: x >= 0.9, beside=beside)
    if "barabasi" in by_set:
        degree, best = (mean_of("barabasi", lambda row, key=key: row[key]) for key in ("age_by_degree", "age_at_best"))
        beside = f" (degree alone {degree:.2f}, mean age given the graph {best:.2f})"
        what = f"Spearman correlation of a linear probe and age, {NODES} nodes"
        add(what, "barabasi", "≥ 0.8", lambda row: row["age"], lambda x: x >= 0.8, beside=beside)
    for name in by_set:
        has_target, is_er = name in ENCODABLE, name == "erdos-renyi"
        nats = f" (mutual information at most {mean_of(name, lambda row: row['mutual_information']):.2f})"
        target = "≥ 1" if has_target else "≈ 0" if is_er else "–"
        enough = (lambda x: x >= 1) if has_target else (lambda x: x < 0.1) if is_er else None
        add("KL, nats per graph", name, target, lambda row: row["kl"], enough, beside=nats)
        several = (lambda x: x >= 2) if has_target else None
        add("active units", name, "≥ 2" if has_target else "–", lambda row: row["active_units"], several, form=".1f")
    for name in by_set:
        if name in ENCODABLE:
            for key, what in (("shuffled", "Z shuffled between nodes"), ("flat", "Â replaced by a constant times 11ᵀ")):
                # The smallest ratio of all seeds.
                ratio = min(row[key][0] / max(row[key][1], 1e-12) for row in by_set[name])
                add(
                    f"rise of the NLL given Z, {what}, nats",
                    name,
                    "> 5 standard errors",
                    lambda row, key=key: row[key][0],
                    lambda _, ratio=ratio: ratio > 5,
                    beside=f" ({ratio:.1f} standard errors)",
                )
    for name in by_set:
        if name in SMALL:
            for key in ("edges", "clustering", "diameter"):
                size = f" (number of nodes alone {mean_of(name, lambda row, key=key: row['by_size'][key]):.2f})"
                value: Callable[[dict[str, Any]], float] = lambda row, key=key: row["regression"][key]  # noqa: E731
                add(f"R² of {key} from the graph vector", name, "≥ 0.9", value, lambda x: x >= 0.9, beside=size)
    for name in by_set:
        if name in PATHS:
            if PATHS[name].constraint:
                add("valid on paths", name, "1", lambda row: row["paths"]["valid"], lambda x: x == 1)
            what = f"Spearman correlation of place on the path and mean {PATHS[name].name}"
            add(what, name, "–", lambda row: float(spearmanr(range(STEPS_OF_PATH), row["paths"]["curve"])[0]))

    return found


def draw(rows: Sequence[dict[str, Any]], target: Path) -> None:
    """Draw the mean property along paths, a line for each seed."""
    from matplotlib.figure import Figure

    names = [name for name in PATHS if any(row["set"] == name for row in rows)]
    figure = Figure(figsize=(3.2 * len(names), 2.8), layout="constrained")
    place = np.linspace(0, 1, STEPS_OF_PATH)
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for row in rows:
            if row["set"] == name:
                axes.plot(place, row["paths"]["curve"], marker="o", label=f"seed {row['seed']}")
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("place on the path")
        axes.set_ylabel(f"mean {PATHS[name].name}")
        axes.legend(frameon=False, fontsize=7)
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, dpi=110)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=DATA, help="the folder of the published files")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="which to run; all by default")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--budget", default=DEFAULT_BUDGET, help="as of 'train'; by default that of the command")
    parser.add_argument("--bundled", action="store_true", help="measure the bundled models of the six families")
    parser.add_argument("--test-graphs", type=int, default=300, help="fresh graphs to score; at most 100 large ones")
    parser.add_argument("--samples", type=int, default=100, help="proposals per graph of NLL estimates")
    parser.add_argument("--paths", type=int, default=50, help="paths between pairs of graphs")
    parser.add_argument("--sizes", type=int, nargs=3, help="training, validation and test graphs of sbm and planar")
    parser.add_argument("--again", action="store_true", help="train and score again what is in the log")
    parser.add_argument("--models", type=Path, default=Path("build/latents"), help="folder of models and files")
    parser.add_argument("--threads", type=int, default=1)
    logs.add_options(parser, LOG)
    options = logs.parse(parser, LOG, arguments)
    options.data, options.models = options.data.resolve(), options.models.resolve()
    if options.quick:
        options.seeds, options.test_graphs, options.samples, options.paths = [0], 8, 4, 2
        options.sizes = options.sizes or [8, 4, 4]

    jobs = [(name, options.budget, seed) for seed in options.seeds for name in options.sets]
    if options.bundled:
        jobs = [(name, BUNDLED, 0) for name in options.sets if name in PAPER_FAMILIES]
    if not options.tables:
        logs.run_all(jobs, KEYS, lambda job: measure(job, options), options.log, again=options.again)
    rows = list({tuple(row[key] for key in KEYS): row for row in logs.read_log(options.log)}.values())
    header = ["measure", "dataset", "target", "mean over seeds", "seeds", "reached"]
    if options.log == LOG:
        draw([row for row in rows if "paths" in row], PICTURE)
        title = "Latents of the default model: what they carry, and what they cost"
        tables.publish("latents", title, header, lines(rows), {"settings": logs.settings(options), "rows": rows})
    else:
        print(*tables.lines(header, lines(rows)), sep="\n")


if __name__ == "__main__":
    main()
