"""How time and memory grow with the nodes of one graph: a decoder pass, a training step, sampled edges and a graph.

Each figure is taken in a process of its own, on one thread: CPU seconds, of which the least of a few rounds counts, and
the peak of its memory. The process keeps the memory it once had: glibc would hand arrays above 32 MB back to the system
after every use, and pages fetched anew are filled with zeros, which costs more than what is done with them.

The dense way, a matrix of all pairs, stands beside it as far as it goes. A second table has the cost of a training step
on a citation graph beside PyTorch Geometric's VGAE.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEGREE = 10
LATENT, WIDTH = 16, 32
DENSE_LIMIT = 10_000
OBSERVED = 10_000
# The example of PyTorch Geometric, as far as it goes: its widths, all edges seen and scored.
PLAIN = {"width": WIDTH, "latent": LATENT, "hops": 1, "targets": "all", "edge_dropout": 0.0}
WAYS: dict[str, dict[str, Any] | None] = {
    "our VGAE, Monte Carlo loss": {**PLAIN, "kind": "vgae", "subsample": 1.0},
    "our VGAE, exact loss": {**PLAIN, "kind": "vgae", "subsample": 0.0},
    "our Graphite-VAE, Monte Carlo loss": {**PLAIN, "subsample": 1.0},
    "our Graphite-VAE, exact loss": {**PLAIN, "subsample": 0.0},
    "our Graphite-VAE as 'link' trains it": {},
    "PyTorch Geometric's VGAE": None,
}
KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(10**12)}


def timed(rounds: int, task: Callable[[], Any]) -> dict[str, float]:
    """CPU and wall seconds of a task: the least of some rounds, after one that does not count if there are several."""
    seconds = []
    for _ in range(rounds + (rounds > 1)):
        started = time.process_time(), time.perf_counter()
        task()
        seconds.append((time.process_time() - started[0], time.perf_counter() - started[1]))
    cpu, wall = min(seconds[rounds > 1 :])

    return {"cpu_seconds": cpu, "wall_seconds": wall}


def synthetic(nodes: int) -> Any:
    """Edges of a uniform sparse graph of average degree ten, i < j and each once, with shape (2, E)."""
    import torch

    from graphite_gen.network.losses import uniform_pairs

    pairs = uniform_pairs(nodes, nodes * DEGREE // 2, torch.Generator().manual_seed(nodes))

    return torch.unique(pairs, dim=1)


def featureless(nodes: int) -> tuple[Any, Any]:
    """A Graphite-VAE and its inputs: sixteen numbers a node, so that weights do not grow with the graph."""
    import torch
    from scipy import sparse

    from graphite_gen.network.autoencoder import build_link_network
    from graphite_gen.network.hyperparameters import LinkSettings
    from graphite_gen.network.node_inputs import SparseInputs

    x = torch.randn(nodes, 16, generator=torch.Generator().manual_seed(1)).numpy()
    settings = LinkSettings(kind="graphite-vae", width=WIDTH, latent=LATENT, hops=1, subsample=1.0)

    return build_link_network(settings, 16, seed=0), SparseInputs.from_features(sparse.csr_array(x))


def decoder_pass(nodes: int, rounds: int, dense: bool) -> dict[str, float]:
    """Latents to the logits of all pairs, in low-rank form or as a matrix."""
    import torch

    network, inputs = featureless(nodes)
    z = torch.randn(nodes, LATENT, generator=torch.Generator().manual_seed(2))

    def run() -> None:
        with torch.no_grad():
            logits = network.decode(z, inputs)
            if dense:
                logits.tile(slice(None), slice(None))

    return timed(rounds, run)


def training_step(nodes: int, rounds: int, dense: bool) -> dict[str, float]:
    """Forward, backward and update, with the Monte Carlo loss or with a matrix of all pairs."""
    import torch
    from torch.nn import functional as F

    from graphite_gen.network.losses import sampled_loss
    from graphite_gen.nn.operators import SparseGraph

    network, inputs = featureless(nodes)
    edges = synthetic(nodes)
    graph = SparseGraph.from_edges(edges, nodes).normalised()
    generator = torch.Generator().manual_seed(3)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    target = torch.zeros(nodes, nodes) if dense else None
    if target is not None:
        target[edges[0], edges[1]] = target[edges[1], edges[0]] = 1

    def run() -> None:
        posterior = network.encode(graph, inputs)
        logits = network.decode(posterior.sample(torch.randn(nodes, LATENT, generator=generator)), inputs)
        if target is None:
            nats = sampled_loss(logits, edges, edges.shape[1], generator)
        else:
            nats = (
                F.binary_cross_entropy_with_logits(logits.tile(slice(None), slice(None)), target, reduction="sum") / 2
            )
        optimiser.zero_grad()
        (nats + posterior.kl_to_standard()).backward()
        optimiser.step()

    return timed(rounds, run)


def sampled_edges(nodes: int, rounds: int, dense: bool) -> dict[str, float]:
    """The edges of a graph of average degree ten, of clustered nodes with hubs among them."""
    import numpy as np
    import torch

    from graphite_gen.network.edge_sampler import EdgeSampler
    from graphite_gen.network.pair_logits import PairLogits

    generator = torch.Generator().manual_seed(4)
    centres = 0.7 * torch.randn(200, LATENT, generator=generator)
    factor = centres[torch.arange(nodes) % 200] + 0.2 * torch.randn(nodes, LATENT, generator=generator)
    bias = 0.5 * torch.randn(nodes, generator=generator)
    some = torch.randperm(nodes, generator=generator)[:2000]
    part = PairLogits(factor[some], torch.ones(LATENT), bias[some], torch.zeros(()))
    odds = part.tile(slice(None), slice(None)).double().exp().fill_diagonal_(0).sum() / (len(some) * (len(some) - 1))
    # Where edges are rare, their expected number is that of the odds.
    logits = PairLogits(factor, torch.ones(LATENT), bias, torch.log(DEGREE / nodes / odds).float())

    def run() -> int:
        if dense:
            matrix = logits.tile(slice(None), slice(None))
            return int((torch.rand(matrix.shape, generator=generator) < matrix.sigmoid()).triu(1).sum())
        return EdgeSampler(logits).sample(np.random.default_rng(5)).shape[1]

    return timed(rounds, run)


def sampled_graph(nodes: int, rounds: int, dense: bool) -> dict[str, float]:
    """All that 'sample' does for a graph from a model of one of the same size, hardly trained, of a uniform graph."""
    from dataclasses import replace

    from graphite_gen.graph import SimpleGraph
    from graphite_gen.network.generation import LargeGraphSampler, fit_network_model
    from graphite_gen.network.hyperparameters import GENERATION
    from graphite_gen.network.network import Network

    observed = Network(SimpleGraph.from_pairs(nodes, synthetic(nodes).T.numpy()))
    model = fit_network_model(observed, replace(GENERATION, epochs=1))

    return timed(rounds, lambda: list(LargeGraphSampler(model, 1)))


def enlarged_graph(nodes: int, rounds: int, dense: bool) -> dict[str, float]:
    """The same from a trained model of a graph with hubs and triangles, of 10,000 nodes at most."""
    import networkx as nx

    from graphite_gen.graph import SimpleGraph
    from graphite_gen.network.generation import LargeGraphSampler, fit_network_model
    from graphite_gen.network.network import Network

    size = min(nodes, OBSERVED)
    observed = nx.powerlaw_cluster_graph(size, DEGREE // 2, 0.5, seed=0)
    model = fit_network_model(Network(SimpleGraph.from_pairs(size, list(observed.edges))))

    return timed(rounds, lambda: list(LargeGraphSampler(model, 1, nodes=nodes)))


TASKS = {
    "decoder pass": decoder_pass,
    "training step": training_step,
    "sampled edges": sampled_edges,
    "graph, from a model of as many nodes": sampled_graph,
    "graph, from a model of at most 10,000": enlarged_graph,
}
# The largest graph takes long enough to draw for one round to tell.
LONG = ("sampled edges", "graph, from a model of as many nodes", "graph, from a model of at most 10,000")
# What has no dense way to stand beside it.
NEVER_DENSE = ("graph, from a model of as many nodes", "graph, from a model of at most 10,000")


def citation_step(file: Path, way: str, rounds: int) -> dict[str, float]:
    """A training step on a citation graph: one of ours, or PyTorch Geometric's VGAE."""
    import torch

    from graphite_gen.network.autoencoder import build_link_network
    from graphite_gen.network.fitting import hide_edges, link_loss
    from graphite_gen.network.hyperparameters import LinkSettings
    from graphite_gen.network.network import read_network
    from graphite_gen.network.node_inputs import inputs_of
    from graphite_gen.nn.operators import SparseGraph

    data = read_network(file)
    edges = torch.as_tensor(data.edges.T.copy(), dtype=torch.long)
    if WAYS[way] is None:
        from peers import build_peer

        return timed(rounds, build_peer("pyg-vgae", data, edges, True, seed=0).step)
    inputs = inputs_of(data)
    settings = LinkSettings(**WAYS[way])
    network = build_link_network(settings, inputs.width, seed=0)
    whole = SparseGraph.from_edges(edges, data.nodes).normalised()
    generator = torch.Generator().manual_seed(0)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)

    def run() -> None:
        optimiser.zero_grad()
        seen, hidden = hide_edges(edges, whole, settings.edge_dropout, generator)
        posterior = network.encode(seen, inputs)
        link_loss(network, settings, posterior, inputs, edges, hidden, generator).backward()
        optimiser.step()

    return timed(rounds, run)


def measure(job: dict[str, Any]) -> dict[str, float]:
    """One figure, in this process."""
    import torch

    torch.set_num_threads(1)
    before = _megabytes()
    if "file" in job:
        seconds = citation_step(Path(job["file"]), job["way"], job["rounds"])
    else:
        seconds = TASKS[job["task"]](job["nodes"], job["rounds"], job["dense"])

    return {**seconds, "peak_megabytes": _megabytes(), "program_megabytes": before}


def _megabytes() -> float:
    # Linux counts in kilobytes, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def apart(**job: Any) -> dict[str, Any]:
    """One figure, in a process of its own, so that its memory is its own too."""
    command = [sys.executable, __file__, "--job", json.dumps(job)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | KEEPING)

    return job | json.loads(out.stdout)


def exponent(runs: list[dict[str, Any]]) -> float:
    """The slope of log time over log nodes by least squares; small graphs, where calls cost most, are left out."""
    points = [(math.log(run["nodes"]), math.log(run["cpu_seconds"])) for run in runs if run["nodes"] >= DENSE_LIMIT]
    if len(points) < 2:
        return math.nan
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))

    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def scale(sizes: list[int], rounds: int) -> None:
    from tables import publish

    runs = []
    for task in TASKS:
        for nodes in sizes:
            again = 1 if task in LONG and nodes >= 10**6 else rounds
            runs.append(apart(task=task, nodes=nodes, rounds=again, dense=False))
            if nodes <= DENSE_LIMIT and task not in NEVER_DENSE:
                runs.append(apart(task=task, nodes=nodes, rounds=again, dense=True))
    rows = []
    for task in TASKS:
        for dense in (False, True)[: 1 if task in NEVER_DENSE else 2]:
            found = {run["nodes"]: run for run in runs if run["task"] == task and run["dense"] is dense}
            cells = [
                f"{found[n]['cpu_seconds']:.3g} s, {found[n]['peak_megabytes']:,.0f} MB" if n in found else "–"
                for n in sizes
            ]
            slope = "–" if dense else f"{exponent(list(found.values())):.2f}"
            rows.append([task, "dense" if dense else "ours", *cells, slope])
    title = f"CPU seconds on one thread and peak memory of the process, average degree {DEGREE}, by the number of nodes"
    publish("scale", title, ["", "way", *(f"{n:,}" for n in sizes), "exponent"], rows, {"runs": runs})


def citation(file: Path, rounds: int) -> None:
    from tables import publish

    runs = [apart(file=str(file), way=way, rounds=rounds) for way in WAYS]
    rows = [[run["way"], f"{run['cpu_seconds']:.3f}", f"{run['peak_megabytes']:,.0f}"] for run in runs]
    header = ["", "CPU seconds per step", "peak MB"]
    details = {"runs": [{**run, "file": file.name} for run in runs]}
    publish("scale_citation", f"A training step on {file.stem}, one thread", header, rows, details)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=6, help="the largest graph has 10 to this power nodes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--citation", type=Path, help="a citation graph, such as pubmed.h5, for the second table")
    parser.add_argument("--quick", action="store_true", help="up to ten thousand nodes, one round")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(json.loads(arguments.job))))
        return
    largest, rounds = (4, 1) if arguments.quick else (arguments.largest, arguments.rounds)
    scale([10**power for power in range(3, largest + 1)], rounds)
    if arguments.citation is not None:
        citation(arguments.citation, rounds)


if __name__ == "__main__":
    main()
