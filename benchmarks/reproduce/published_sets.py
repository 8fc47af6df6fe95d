"""Published datasets: train the default model on each and evaluate its samples with the usual metrics.

Each dataset is trained by ``graphite-gen train FILE`` with its default settings and a time budget; test graphs are used
for the metrics only. Samples are unconstrained and scored as they are. MMDs of the conventions ``tv`` and ``emd`` are
biased as in published tables, so their level depends on the number of graphs: for ``emd``, samples and training graphs
are compared with the test split in groups of its size. Finished datasets are in a log, and interrupted training is
resumed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch
from scipy.spatial import Delaunay

import graphite_gen as gg
from benchmarks import logs, tables
from benchmarks.commands import minutes, train
from graphite_gen.data.dataset import split_of
from graphite_gen.evaluation import VALIDITY, describe, estimate_mmd, evaluate
from graphite_gen.graph import SimpleGraph, as_simple_graph
from graphite_gen.io import read_graphs, write_graphs
from graphite_gen.rng import stream

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "sets"
LOG = tables.FOLDER / "published_sets.jsonl"
DESCRIPTORS = ("degree", "clustering", "orbit")
KEYS = ("set", "constraint", "budget", "seed")
DEFAULT_BUDGET = "default"
# The orderings that pilot runs compare were chosen after samples of models of the lobsters of seed 0 had been seen.
DATA_SEED = 1
# Samples are compared with at most this number of test graphs, because the cost is quadratic.
MOST_COMPARED = 1000


def lobster(rng: np.random.Generator) -> nx.Graph:
    """Sample a lobster of 10 to 100 nodes."""
    # Renamed in later versions of networkx.
    random_lobster = getattr(nx, "random_lobster_graph", None) or nx.random_lobster
    while True:
        graph = random_lobster(80, 0.7, 0.7, seed=int(rng.integers(2**31)))
        if 10 <= len(graph) <= 100:
            return graph


def delaunay(rng: np.random.Generator, nodes: int = 64) -> SimpleGraph:
    """Sample the Delaunay triangulation of uniform points."""
    corners = Delaunay(rng.random((nodes, 2))).simplices
    pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])

    return SimpleGraph.from_pairs(nodes, np.unique(np.sort(pairs, axis=1), axis=0).tolist())


def sbm_with_blocks(rng: np.random.Generator) -> tuple[SimpleGraph, np.ndarray]:
    """Sample a stochastic block model of 2 to 5 blocks of 20 to 40 nodes, and the block of each node."""
    sizes = rng.integers(20, 41, rng.integers(2, 6))
    blocks = np.repeat(np.arange(len(sizes)), sizes)
    density = np.where(blocks[:, None] == blocks, 0.3, 0.005)
    pairs = np.argwhere(np.triu(rng.random(density.shape) < density, 1))

    return SimpleGraph.from_pairs(len(blocks), pairs.tolist()), blocks


def grids() -> list[nx.Graph]:
    """Return the grids of 10 to 19 by 10 to 19 nodes, as published: all 100, of which 55 are distinct."""
    return [nx.convert_node_labels_to_integers(nx.grid_2d_graph(a, b)) for a in range(10, 20) for b in range(10, 20)]


@dataclass(frozen=True)
class Published:
    """A dataset and what is known about it.

    Attributes:
        samples: The number of samples to score.
        validity: The name of its validity test.
        recipe: Samples a graph, for datasets that are generated; 'grid' is enumerated.
        sizes: Numbers of training, validation and test graphs of generated datasets.
        vun: Published V.U.N. and MMD ratios, for the table.
        mmd: Published degree, clustering and orbit MMDs (emd).
        discrepancy: Published PolyGraph discrepancies, times 100.
    """

    samples: int
    validity: str | None = None
    recipe: Callable[[np.random.Generator], nx.Graph | SimpleGraph] | None = None
    sizes: tuple[int, int, int] = (0, 0, 0)
    vun: str = "–"
    mmd: str = "–"
    discrepancy: str = "–"


# The published recipe has 4096 validation graphs; fewer here, because they are scored many times in a run.
LARGE = (8192, 256, 4096)
# GraphRNN: You et al. (2018). GDSS: Jo et al. (2022). DiGress: Vignac et al. (2023). HSpectre: Bergmeister et al.
# (2024). DeFoG (1000 steps): Qin et al. (2025). AutoGraph: Chen et al. (2025). V.U.N. in % / MMD ratio.
SETS: dict[str, Published] = {
    "community_small": Published(1000, mmd="GDSS .045/.086/.007, GraphRNN .08/.12/.04"),
    "ego_small": Published(1000, mmd="GDSS .021/.024/.007, GraphRNN .09/.22/.003"),
    "tree": Published(400, "tree", vun="DiGress 90/1.6, HSpectre 100/4.0, DeFoG 96.5/1.6"),
    "planar": Published(400, "planar", vun="DiGress 77.5/5.1, HSpectre 95/2.1, DeFoG 99.5/1.6, AutoGraph 87.5/1.5"),
    "sbm": Published(200, "sbm", vun="DiGress 60/1.7, HSpectre 45/10.2, DeFoG 90/4.9, AutoGraph 92.5/3.4"),
    "lobster": Published(400, "lobster", lobster, (60, 20, 20)),
    "grid": Published(100, "grid", None, (64, 16, 20)),
    "planar-L": Published(400, "planar", delaunay, LARGE, discrepancy="AutoGraph 34, DiGress 45, GRAN 100"),
    "lobster-L": Published(400, "lobster", lobster, LARGE, discrepancy="AutoGraph 18, DiGress 3.2, GRAN 85"),
    "sbm-L": Published(
        200, "sbm", lambda rng: sbm_with_blocks(rng)[0], LARGE, discrepancy="AutoGraph 5.6, DiGress 17.4, GRAN 69"
    ),
}
CONSTRAINTS: dict[str, Callable[[], Any]] = {"planar": gg.Planar, "tree": gg.Tree}


def prepare(name: str, data: Path, generated: Path, seed: int = 0, sizes: Sequence[int] | None = None) -> Path:
    """Return the file of a dataset, which is generated if it is not one of the published files."""
    published = SETS[name]
    if not any(published.sizes):
        return data / f"{name}.h5"
    sizes = tuple(sizes or published.sizes)
    file = generated / f"{name}-{'-'.join(map(str, sizes))}-{seed}.h5"
    if not file.exists():
        rng = stream(seed, "published-sets", name)
        if name == "grid":
            every = grids()
            graphs = [every[index] for index in rng.permutation(len(every))[: sum(sizes)].tolist()]
        else:
            assert published.recipe is not None
            graphs = [published.recipe(rng) for _ in range(sum(sizes))]
        file.parent.mkdir(parents=True, exist_ok=True)
        write_graphs(_marked(graphs, sizes, rng), file)

    return file


def _marked(graphs: Sequence[nx.Graph | SimpleGraph], sizes: Sequence[int], rng: np.random.Generator) -> list[nx.Graph]:
    """Return the graphs with their splits, and with nodes numbered at random."""
    splits = np.repeat(["train", "validation", "test"], sizes)
    marked = []
    for graph, split in zip(graphs, splits.tolist(), strict=True):
        simple = as_simple_graph(graph)
        order = rng.permutation(simple.nodes)
        edges = np.sort(order[simple.edges], axis=1)
        whole = nx.Graph(split=split)
        whole.add_nodes_from(range(simple.nodes))
        whole.add_edges_from(edges.tolist())
        marked.append(whole)

    return marked


def grouped_mmds(graphs: Sequence[SimpleGraph], test: Sequence[SimpleGraph]) -> dict[str, dict[str, float]]:
    """Return MMDs of groups as large as the test split (mean and standard deviation) and of all graphs."""
    size = min(len(test), len(graphs))
    first, second = describe(graphs, DESCRIPTORS), describe(test, DESCRIPTORS)
    found = {}
    for name in DESCRIPTORS:
        groups = [first[name][start : start + size] for start in range(0, len(graphs) - size + 1, size)]
        values = [estimate_mmd(rows, second[name], name, "emd").value for rows in groups]
        at_once = estimate_mmd(first[name], second[name], name, "emd").value
        found[name] = {"mean": float(np.mean(values)), "deviation": float(np.std(values)), "all": at_once}

    return found


def score(name: str, folder: Path, file: Path, constraint: str, samples: int, seed: int) -> dict[str, Any]:
    """Sample from a model, with or without its constraint, and evaluate the samples."""
    graphs = list(read_graphs(file))
    known, test = ([graph for graph in graphs if split_of(graph) == split] for split in ("train", "test"))
    model = gg.load(folder)
    constraints = [CONSTRAINTS[constraint]()] if constraint else []
    # The first call includes one-off costs.
    model.sample(2, seed=seed, constraints=constraints)
    started = time.process_time(), time.perf_counter()
    drawn = [as_simple_graph(graph) for graph in model.sample(samples, seed=seed, constraints=constraints)]
    cpu, wall = time.process_time() - started[0], time.perf_counter() - started[1]
    write_graphs(drawn, folder.with_name(f"{folder.name}-samples{constraint and '-' + constraint}.h5"), force=True)
    limit = test[:MOST_COMPARED]
    compared = evaluate(
        drawn, limit, known, validity=VALIDITY.get(SETS[name].validity or ""), most=MOST_COMPARED, seed=seed
    )
    ratios = {
        convention: [
            row.ratio for row in compared.mmd if row.samples.convention == convention and row.ratio is not None
        ]
        for convention in ("tv", "emd", "rbf")
    }

    return {
        "samples": len(drawn),
        "vun": compared.vun.to_json(),
        "mmd": grouped_mmds(drawn, limit),
        "train_mmd": grouped_mmds(known[:MOST_COMPARED], limit),
        "mmd_rows": [row.to_json() for row in compared.mmd],
        "ratios": {convention: float(np.mean(values)) if values else None for convention, values in ratios.items()},
        "discrepancy": None if compared.classifier is None else compared.classifier.discrepancy,
        "rate": len(drawn) / wall,
        "cpu_rate": len(drawn) / cpu,
        "parameters": sum(parameter.numel() for parameter in model.trained.network.parameters()),
        "ordering": model.trained.config.ordering,
    }


def measure(job: tuple[str, str, str, int], options: argparse.Namespace) -> dict[str, Any]:
    """Train on a dataset, unless that is done, and return the scores of its samples."""
    name, constraint, budget, seed = job
    file = prepare(name, options.data, options.models / "data", DATA_SEED, options.sizes)
    settings = ["--seed", str(seed), *([] if budget == DEFAULT_BUDGET else ["--budget", budget])]
    # A constraint is another way to sample from the same model.
    again = options.again and not constraint
    label = f"{name}-{budget}-{seed}"
    trained = train(options.models, label, [file], settings, threads=options.threads, again=again)
    torch.set_num_threads(options.threads)
    found = score(name, Path(trained["folder"]), file, constraint, options.samples or SETS[name].samples, seed + 1)

    return {
        **dict(zip(KEYS, job, strict=True)),
        "earlier": False,
        "commit": trained["commit"],
        "date": trained["date"],
        "machine": trained["machine"],
        "sampled": tables.provenance()["commit"],
        "threads": options.threads,
        "training_minutes": minutes(trained),
        "interrupted": trained["cpu_seconds"] is None,
        "training": trained["results"],
        **found,
    }


def latest(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last row of each dataset, constraint and budget, in the order of the table.

    Rows of the earlier decoder are left out for datasets that were run again.
    """
    rerun = {(row["set"], row["constraint"]) for row in rows if not row["earlier"]}
    last = {
        (row["set"], row["constraint"], row["budget"]): row
        for row in rows
        if not row["earlier"] or (row["set"], row["constraint"]) not in rerun
    }
    order = list(SETS)

    return sorted(last.values(), key=lambda row: (order.index(row["set"]), row["constraint"], _training(row)))


def publish(rows: Sequence[dict[str, Any]], settings: dict[str, Any]) -> None:
    """Publish the table of all datasets run so far."""
    header = ["dataset", "decoder", "budget", "training, CPU minutes", "samples"]
    header += ["valid", "unique", "novel", "V.U.N.", "MMD ratio tv / rbf", "published V.U.N. % / ratio"]
    header += ["MMD emd degree / clustering / orbit", "same, training graphs", "published MMD emd"]
    header += ["discrepancy × 100", "published", "graphs/s"]
    cells = [
        [
            " + ".join(filter(None, [row["set"], row["constraint"]])),
            "earlier" if row["earlier"] else row["commit"],
            row["budget"] or "epochs set by hand",
            # The earlier decoder recorded wall time only.
            f"{_training(row):.1f}" + (" (wall)" if row["earlier"] else ""),
            row["samples"],
            *(_percent(row["vun"][key]) for key in ("valid", "unique", "novel")),
            # Without a validity test there is no V.U.N.
            _interval(row["vun"]["vun"]) + ("" if row["vun"]["valid"] else " (U.N.)"),
            " / ".join(_figure(row.get("ratios", {}).get(convention)) for convention in ("tv", "rbf")),
            SETS[row["set"]].vun,
            _three(row["mmd"], "mean"),
            _three(row["train_mmd"], "mean"),
            SETS[row["set"]].mmd,
            "–" if row.get("discrepancy") is None else f"{100 * row['discrepancy']:.1f}",
            SETS[row["set"]].discrepancy,
            row["rate"],
        ]
        for row in latest(rows)
    ]
    title = (
        "Published datasets, unconstrained samples (rows 'a + b' are constrained to b): V.U.N. with 95 % interval, MMD "
        "ratios to training graphs. Each row has the commit that it was trained with; the last line is of the table"
    )
    tables.publish("published_sets", title, header, cells, {"settings": settings, "sets": latest(rows)})


def _training(row: dict[str, Any]) -> float:
    return float(row["training_minutes"] if "training_minutes" in row else row["training_seconds"] / 60)


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def _three(mmds: dict[str, dict[str, float]], figure: str) -> str:
    return " / ".join(f"{mmds[name][figure]:.3f}" for name in DESCRIPTORS)


def _percent(proportion: dict[str, Any] | None) -> str:
    return "–" if proportion is None else f"{proportion['value']:.1%}"


def _interval(proportion: dict[str, Any]) -> str:
    return f"{proportion['value']:.1%} ({proportion['low']:.1%} to {proportion['high']:.1%})"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, nargs="?", default=DATA, help="the folder of the HDF5 files")
    parser.add_argument(
        "--sets", nargs="+", choices=list(SETS), default=list(SETS), help="which to run; all by default"
    )
    parser.add_argument("--budget", default=DEFAULT_BUDGET, help="as of 'train'; by default that of the command")
    parser.add_argument("--constrained", action="store_true", help="also sample planar and tree with their constraint")
    parser.add_argument("--again", action="store_true", help="train and score again what is in the log")
    parser.add_argument("--samples", type=int, help="graphs to sample; by default 100 to 1000, depending on the set")
    parser.add_argument("--sizes", type=int, nargs=3, help="training, validation and test graphs of generated sets")
    parser.add_argument("--models", type=Path, default=Path("build/sets"), help="folder of models and generated files")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    logs.add_options(parser, LOG)
    options = logs.parse(parser, LOG, arguments)
    options.data, options.models = options.data.resolve(), options.models.resolve()
    if options.quick:
        options.sizes, options.samples = options.sizes or [12, 4, 8], options.samples or 8

    jobs = [
        (name, constraint, options.budget, options.seed)
        for name in options.sets
        for constraint in ("", *([name] if options.constrained and name in CONSTRAINTS else []))
    ]
    settings = {"threads": options.threads, "seed": options.seed, "quick": options.quick}
    for job in [] if options.tables else jobs:
        # Published after each dataset: the next one may take hours.
        logs.run_all([job], KEYS, lambda job: measure(job, options), options.log, again=options.again)
        publish_all(options, settings)
    if options.tables:
        publish_all(options, settings)


def publish_all(options: argparse.Namespace, settings: dict[str, Any]) -> None:
    """Publish the log; a quick trial only prints its table."""
    rows = logs.read_log(options.log)
    if options.log == LOG and all(row["earlier"] for row in rows):
        print("No dataset has been run again: the table of the earlier decoder stays.")
    elif options.log == LOG:
        publish(rows, settings)
    else:
        print(*(f"{row['set']} {row['constraint']}: {_interval(row['vun']['vun'])}" for row in latest(rows)), sep="\n")


if __name__ == "__main__":
    main()
