"""Throughput of sampling and writing graphs, compared with networkx in the same run.

Every figure is the median of several rounds in which the tasks alternate, so that other load affects all of them.
"""

from __future__ import annotations

import argparse
import io
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import torch

from benchmarks.tables import publish
from graphite_gen.families import family
from graphite_gen.families.simulate import generate
from graphite_gen.graph import SimpleGraph
from graphite_gen.io import write_graphs
from graphite_gen.rng import stream
from graphite_gen.sampling import Sampler
from graphite_gen.training.checkpoint import bundled_folder, bundled_names, load_checkpoint


def ego(n: int, seed: int) -> nx.Graph:
    """Sample the paper's ego network with networkx: an Erdős–Rényi graph and one node connected to all."""
    graph = nx.gnp_random_graph(n - 1, 0.5, seed=seed)
    graph.add_edges_from((n - 1, node) for node in range(n - 1))

    return graph


def tree(n: int, seed: int) -> nx.Graph:
    """Sample a power-law tree with networkx, with another seed if no degree sequence is found."""
    while True:
        try:
            return nx.random_powerlaw_tree(n, gamma=3, seed=seed, tries=1000)
        except nx.NetworkXError:
            seed += 1_000_003


GENERATORS: dict[str, Callable[[int, int], nx.Graph]] = {
    "erdos-renyi": lambda n, seed: nx.gnp_random_graph(n, 0.5, seed=seed),
    "ego": ego,
    "regular": lambda n, seed: nx.random_regular_graph(4, n, seed=seed),
    "geometric": lambda n, seed: nx.random_geometric_graph(n, 0.5, seed=seed),
    "powerlaw-tree": tree,
    "barabasi": lambda n, seed: nx.barabasi_albert_graph(n, 4, seed=seed),
}


def rates(rounds: int, tasks: dict[str, tuple[int, Callable[[], Any]]]) -> dict[str, float]:
    """Return graphs per second of each task: the median over rounds in which the tasks alternate.

    Arguments:
        rounds: Repetitions of each task.
        tasks: The number of graphs of each task, and the task.
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, (_, task) in tasks.items():
            started = time.perf_counter()
            task()
            seconds[name].append(time.perf_counter() - started)

    return {name: count / statistics.median(seconds[name]) for name, (count, _) in tasks.items()}


def sampling(name: str, count: int, rounds: int, folder: Path) -> dict[str, float]:
    """Time the samplers of a family: networkx, ours, and the bundled models."""
    model, autoregressive = (load_checkpoint(bundled_folder() / found) for found in (f"{name}-one-shot", name))
    process = family(name)
    sizes = stream(0, "benchmark").integers(10, 20, size=count, endpoint=True).tolist()
    generator = GENERATORS[name]
    # networkx needs many attempts per tree, so it is timed on a hundredth of the graphs.
    theirs = sizes[: count // 100] if name == "powerlaw-tree" else sizes

    return rates(
        rounds,
        {
            "networkx": (len(theirs), lambda: [generator(n, seed) for seed, n in enumerate(theirs)]),
            "generate": (count, lambda: [process.sample(n, stream(0, "b", i)) for i, n in enumerate(sizes)]),
            "autoregressive": (count, lambda: [graph.to_networkx() for graph in Sampler(autoregressive, count)]),
            "model_to_networkx": (count, lambda: [graph.to_networkx() for graph in Sampler(model, count)]),
            "model_to_hdf5": (count, lambda: write_graphs(Sampler(model, count), folder / "a.h5", force=True)),
        },
    )


def writing(graphs: list[SimpleGraph], rounds: int, folder: Path) -> dict[str, float]:
    """Time writing the same graphs with this package and with networkx."""
    theirs = [graph.to_networkx() for graph in graphs]

    def networkx_graphml() -> None:
        for graph in theirs:
            nx.write_graphml(graph, io.BytesIO())

    def networkx_graph6() -> None:
        for graph in theirs:
            nx.to_graph6_bytes(graph, header=False)

    tasks: dict[str, Callable[[], Any]] = {
        "networkx_graphml": networkx_graphml,
        "graphml": lambda: write_graphs(graphs, folder / "a.graphml", force=True),
        "networkx_graph6": networkx_graph6,
        "graph6": lambda: write_graphs(graphs, folder / "a.g6", force=True),
        "hdf5": lambda: write_graphs(graphs, folder / "b.h5", force=True),
    }

    return rates(rounds, {name: (len(graphs), task) for name, task in tasks.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000, help="graphs per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1, help="threads of torch; networkx has one")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)

    details: dict[str, Any] = {"settings": vars(arguments)}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rows = []
        for name in (name for name in GENERATORS if f"{name}-one-shot" in bundled_names()):
            found = details[name] = sampling(name, arguments.count, arguments.rounds, folder)
            keys = ("networkx", "generate", "autoregressive", "model_to_networkx", "model_to_hdf5")
            figures = [round(found[key]) for key in keys]
            rows.append([name, *figures, f"{found['model_to_hdf5'] / found['networkx']:.1f}×"])
        header = [
            "family",
            "networkx generator",
            "our generator",
            "autoregressive → networkx",
            "one-shot → networkx",
            "one-shot → HDF5",
            "HDF5 / networkx",
        ]
        publish(
            "throughput_sampling",
            "Graphs per second on one core, 10 to 20 nodes, bundled models",
            header,
            rows,
            details,
        )

        graphs = generate(family("barabasi"), min(arguments.count, 3000), seed=1).graphs
        found = writing(graphs, arguments.rounds, folder)
        rows = [
            ["GraphML", round(found["networkx_graphml"]), round(found["graphml"]), _times(found, "graphml")],
            ["graph6", round(found["networkx_graph6"]), round(found["graph6"]), _times(found, "graph6")],
            ["HDF5", "–", round(found["hdf5"]), "–"],
        ]
        header = ["format", "networkx", "ours", "ratio"]
        publish("throughput_writing", "Graphs written per second, barabasi, 10 to 20 nodes", header, rows, found)


def _times(found: dict[str, float], name: str) -> str:
    return f"{found[name] / found[f'networkx_{name}']:.1f}×"


if __name__ == "__main__":
    main()
