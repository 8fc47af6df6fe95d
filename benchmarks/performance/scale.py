"""Time and memory by the number of nodes of a network: a decoder pass, a training step, sampled edges, a sampled graph.

Each figure comes from its own process with one thread: CPU seconds (the minimum over a few rounds) and peak memory. The
allocator is set to keep freed memory: by default glibc returns arrays above 32 MB to the system after every use, and
zeroing the pages again costs more than the computation.

A dense implementation, with a matrix of all pairs, is measured up to the size it can handle. A second table compares
the cost of a training step on a citation network with PyTorch Geometric's VGAE.
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

ROOT = Path(__file__).resolve().parents[2]
DEGREE = 10
LATENT, WIDTH = 16, 32
DENSE_LIMIT = 10_000
OBSERVED = 10_000
# As in the example of PyTorch Geometric: its widths, and all edges visible to the encoder and scored.
PLAIN = {"width": WIDTH, "latent": LATENT, "hops": 1, "targets": "all", "edge_dropout": 0.0}
VARIANTS: dict[str, dict[str, Any] | None] = {
    "our VGAE, Monte Carlo loss": {**PLAIN, "kind": "vgae", "subsample": 1.0},
    "our VGAE, exact loss": {**PLAIN, "kind": "vgae", "subsample": 0.0},
    "our Graphite-VAE, Monte Carlo loss": {**PLAIN, "subsample": 1.0},
    "our Graphite-VAE, exact loss": {**PLAIN, "subsample": 0.0},
    "our Graphite-VAE as 'link' trains it": {},
    "PyTorch Geometric's VGAE": None,
}
KEEPING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(10**12)}


def timed(rounds: int, task: Callable[[], Any]) -> dict[str, float]:
    """Return CPU and wall seconds of a task: the minimum over rounds, after a warm-up if there are several."""
    seconds = []
    for _ in range(rounds + (rounds > 1)):
        started = time.process_time(), time.perf_counter()
        task()
        seconds.append((time.process_time() - started[0], time.perf_counter() - started[1]))
    cpu, wall = min(seconds[rounds > 1 :])

    return {"cpu_seconds": cpu, "wall_seconds": wall}


def synthetic(nodes: int) -> Any:
    """Return the edges of a uniform sparse graph of average degree ten, i < j, each once, with shape (2, E)."""
    import torch

    from graphite_gen.network.losses import uniform_pairs

    pairs = uniform_pairs(nodes, nodes * DEGREE // 2, torch.Generator().manual_seed(nodes))

    return torch.unique(pairs, dim=1)


def featureless(nodes: int) -> tuple[Any, Any]:
    """Return a Graphite-VAE and its inputs: sixteen features per node, so that the weights do not grow with N."""
    import torch
    from scipy import sparse

    from graphite_gen.network.autoencoder import build_link_network
    from graphite_gen.network.hyperparameters import LinkSettings
    from graphite_gen.network.node_inputs import SparseInputs

    x = torch.randn(nodes, 16, generator=torch.Generator().manual_seed(1)).numpy()
    settings = LinkSettings(kind="graphite-vae", width=WIDTH, latent=LATENT, hops=1, subsample=1.0)

    return build_link_network(settings, 16, seed=0), SparseInputs.from_features(sparse.csr_array(x))


def decoder_pass(nodes: int, rounds: int, dense: bool) -> dict[str, float]:
    """Time latents to the logits of all pairs, in low-rank form or as a matrix."""
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
    """Time forward, backward and update, with the Monte Carlo loss or with a matrix of all pairs."""
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
    """Time sampling the edges of a clustered graph with hubs, of average degree ten."""
    import numpy as np
    import torch

    from graphite_gen.network.edge_sampler import thinned_edges
    from graphite_gen.network.pair_logits import PairLogits

    generator = torch.Generator().manual_seed(4)
    centres = 0.7 * torch.randn(200, LATENT, generator=generator)
    factor = centres[torch.arange(nodes) % 200] + 0.2 * torch.randn(nodes, LATENT, generator=generator)
    bias = 0.5 * torch.randn(nodes, generator=generator)
    some = torch.randperm(nodes, generator=generator)[:2000]
    part = PairLogits(factor[some], torch.ones(LATENT), bias[some], torch.zeros(()))
    odds = part.tile(slice(None), slice(None)).double().exp().fill_diagonal_(0).sum() / (len(some) * (len(some) - 1))
    # For rare edges the probability is about the odds.
    logits = PairLogits(factor, torch.ones(LATENT), bias, torch.log(DEGREE / nodes / odds).float())

    def run() -> int:
        if dense:
            matrix = logits.tile(slice(None), slice(None))
            return int((torch.rand(matrix.shape, generator=generator) < matrix.sigmoid()).triu(1).sum())
        return thinned_edges(logits, np.random.default_rng(5)).shape[1]

    return timed(rounds, run)


def sampled_graph(nodes: int, rounds: int, dense: bool) -> dict[str, float]:
    """Time a sample of the same size from a model of a uniform graph, trained for one epoch."""
    from dataclasses import replace

    from graphite_gen.graph import SimpleGraph
    from graphite_gen.network.generation import fit_network_model, sample_networks
    from graphite_gen.network.hyperparameters import GENERATION
    from graphite_gen.network.network import Network

    observed = Network(SimpleGraph.from_pairs(nodes, synthetic(nodes).T.numpy()))
    model = fit_network_model(observed, replace(GENERATION, epochs=1))

    return timed(rounds, lambda: list(sample_networks(model, 1)))


def enlarged_graph(nodes: int, rounds: int, dense: bool) -> dict[str, float]:
    """Time a sample from a trained model of a clustered power-law graph of at most 10,000 nodes."""
    import networkx as nx

    from graphite_gen.graph import SimpleGraph
    from graphite_gen.network.generation import fit_network_model, sample_networks
    from graphite_gen.network.network import Network

    size = min(nodes, OBSERVED)
    observed = nx.powerlaw_cluster_graph(size, DEGREE // 2, 0.5, seed=0)
    model = fit_network_model(Network(SimpleGraph.from_pairs(size, list(observed.edges))))

    return timed(rounds, lambda: list(sample_networks(model, 1, nodes=nodes)))


TASKS = {
    "decoder pass": decoder_pass,
    "training step": training_step,
    "sampled edges": sampled_edges,
    "sampling, model of a network of that size": sampled_graph,
    "sampling, model of at most 10,000 nodes": enlarged_graph,
}
# One round is enough for the largest graph.
LONG = ("sampled edges", "sampling, model of a network of that size", "sampling, model of at most 10,000 nodes")
# Tasks without a dense implementation.
NEVER_DENSE = ("sampling, model of a network of that size", "sampling, model of at most 10,000 nodes")


def citation_step(file: Path, variant: str, rounds: int) -> dict[str, float]:
    """Time a training step on a citation network, ours or of PyTorch Geometric's VGAE."""
    import torch

    from graphite_gen.network.autoencoder import build_link_network
    from graphite_gen.network.fitting import hide_edges, link_loss
    from graphite_gen.network.hyperparameters import LinkSettings
    from graphite_gen.network.network import read_network
    from graphite_gen.network.node_inputs import inputs_of
    from graphite_gen.nn.operators import SparseGraph

    data = read_network(file)
    edges = torch.as_tensor(data.edges.T.copy(), dtype=torch.long)
    if VARIANTS[variant] is None:
        from benchmarks.peers import build_peer

        return timed(rounds, build_peer("pyg-vgae", data, edges, True, seed=0).step)
    inputs = inputs_of(data)
    settings = LinkSettings(**VARIANTS[variant])
    network = build_link_network(settings, inputs.width, seed=0)
    whole = SparseGraph.from_edges(edges, data.nodes).normalised()
    generator = torch.Generator().manual_seed(0)
    # As in 'train_autoencoder'.
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01, fused=True)

    def run() -> None:
        optimiser.zero_grad()
        seen, hidden = hide_edges(edges, whole, settings.edge_dropout, generator)
        posterior = network.encode(seen, inputs)
        link_loss(network, settings, posterior, inputs, edges, hidden, generator).backward()
        optimiser.step()

    return timed(rounds, run)


def measure(job: dict[str, Any]) -> dict[str, float]:
    """Run one measurement in this process."""
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


def in_process(**job: Any) -> dict[str, Any]:
    """Run one measurement in its own process, so that its peak memory is its own."""
    command = [sys.executable, "-m", "benchmarks.performance.scale", "--job", json.dumps(job)]
    out = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT, env=os.environ | KEEPING)

    return job | json.loads(out.stdout)


def exponent(runs: list[dict[str, Any]]) -> float:
    """Return the least-squares slope of log time over log N, without small graphs, where overhead dominates."""
    points = [(math.log(run["nodes"]), math.log(run["cpu_seconds"])) for run in runs if run["nodes"] >= DENSE_LIMIT]
    if len(points) < 2:
        return math.nan
    x, y = (sum(values) / len(points) for values in zip(*points, strict=True))

    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def scale(sizes: list[int], rounds: int) -> None:
    from benchmarks.tables import publish

    runs = []
    for task in TASKS:
        for nodes in sizes:
            again = 1 if task in LONG and nodes >= 10**6 else rounds
            runs.append(in_process(task=task, nodes=nodes, rounds=again, dense=False))
            if nodes <= DENSE_LIMIT and task not in NEVER_DENSE:
                runs.append(in_process(task=task, nodes=nodes, rounds=again, dense=True))
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
    publish("scale", title, ["", "implementation", *(f"{n:,}" for n in sizes), "exponent"], rows, {"runs": runs})


def citation(file: Path, rounds: int) -> None:
    from benchmarks.tables import publish

    runs = [in_process(file=str(file.resolve()), way=variant, rounds=rounds) for variant in VARIANTS]
    rows = [[run["way"], f"{run['cpu_seconds']:.3f}", f"{run['peak_megabytes']:,.0f}"] for run in runs]
    header = ["", "CPU seconds per step", "peak MB"]
    details = {"runs": [{**run, "file": file.name} for run in runs]}
    publish("scale_citation", f"A training step on {file.stem}, one thread", header, rows, details)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--largest", type=int, default=6, help="log10 of the largest number of nodes; 0 omits the first table"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--citation", type=Path, help="a citation network, such as pubmed.h5, for the second table")
    parser.add_argument("--quick", action="store_true", help="up to ten thousand nodes, one round")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(measure(json.loads(arguments.job))))
        return
    largest, rounds = (4, 1) if arguments.quick else (arguments.largest, arguments.rounds)
    if largest:
        scale([10**power for power in range(3, largest + 1)], rounds)
    if arguments.citation is not None:
        citation(arguments.citation, rounds)


if __name__ == "__main__":
    main()
