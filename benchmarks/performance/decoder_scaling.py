"""Cost of the autoregressive decoder by the number of nodes: a training step and a sample, in seconds per graph.

The graphs are uniform random graphs of mean degree four, and the model has the architecture of the preset 'default'. A
few training steps set its density, so that samples are about as sparse; their mean degree is in the table. Exponents
are least-squares slopes of log seconds against log n.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import torch

from benchmarks.performance.scale import timed
from benchmarks.tables import publish
from graphite_gen.config import ModelConfig, TrainConfig, preset
from graphite_gen.data.sizes import SizeDistribution
from graphite_gen.graph import SimpleGraph
from graphite_gen.records import Provenance
from graphite_gen.sampling import Sampler
from graphite_gen.training.checkpoint import TrainedModel
from graphite_gen.training.trainer import BATCH_CELLS, Trainer, adapt_config

SIZES = (40, 80, 160, 320, 640, 1280, 2000)
DEGREE = 4


def random_graphs(nodes: int, count: int) -> list[SimpleGraph]:
    """Return uniform random graphs of mean degree four."""
    edges = DEGREE * nodes // 2

    return [SimpleGraph.from_networkx(nx.gnm_random_graph(nodes, edges, seed=seed)) for seed in range(count)]


def measure(nodes: int, ordering: str, rounds: int, most: int, warmup: int) -> dict[str, Any]:
    """Return the cost of a training step, with batches as 'train' makes them, and of as many samples."""
    count = max(1, min(most, BATCH_CELLS // nodes**2))
    graphs = random_graphs(nodes, count)
    trainer = started(graphs, *preset("default", ordering=ordering, batch_size=count, epochs=1, epoch_graphs=count))
    for step in range(warmup):
        trainer._step(list(range(count)), step / warmup)
    training = timed(rounds, lambda: trainer._gradients(list(range(count)), 0.0))
    network = trainer.network.eval()
    model = TrainedModel("scaling", network, SizeDistribution.of(graphs), trainer.training, Provenance())
    drawn: list[SimpleGraph] = []
    sampling = timed(rounds, lambda: drawn.extend(Sampler(model, count, nodes=nodes)))

    return {
        "nodes": nodes,
        "graphs": count,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "training": {key: value / count for key, value in training.items()},
        "sampling": {key: value / count for key, value in sampling.items()},
        "sampled_degree": float(np.mean([2 * len(graph.edges) / graph.nodes for graph in drawn])),
    }


def started(graphs: Sequence[SimpleGraph], config: ModelConfig, training: TrainConfig) -> Trainer:
    """Return a new run without a folder."""
    return Trainer("scaling", adapt_config(config, graphs), training, graphs, [])


def exponent(rows: Sequence[dict[str, Any]], what: str) -> float:
    """Return the slope of log CPU seconds per graph against log n."""
    seconds = [row[what]["cpu_seconds"] for row in rows]

    return float(np.polyfit(np.log([row["nodes"] for row in rows]), np.log(seconds), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--ordering", default="bfs", help="the node ordering; its own cost is included")
    parser.add_argument("--batch", type=int, default=64, help="the most graphs of a batch, fewer if they are large")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warmup", type=int, default=20, help="training steps before the measurement")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    found = []
    for nodes in arguments.nodes:
        found.append(measure(nodes, arguments.ordering, arguments.rounds, arguments.batch, arguments.warmup))
        print(found[-1], flush=True)
    rows = [
        [
            f"{row['nodes']:,}",
            row["graphs"],
            f"{row['training']['cpu_seconds']:.4f}",
            f"{row['sampling']['cpu_seconds']:.4f}",
            f"{row['sampling']['wall_seconds']:.4f}",
            row["sampled_degree"],
        ]
        for row in found
    ]
    details: dict[str, Any] = {"settings": vars(arguments), "sizes": found}
    if len(found) > 1:
        details["exponents"] = {what: exponent(found, what) for what in ("training", "sampling")}
        rows.append(["exponent", "", *(f"{value:.2f}" for value in details["exponents"].values()), "", ""])
    header = ["n", "graphs per batch", "training, CPU s", "sampling, CPU s", "sampling, wall s", "sampled mean degree"]
    title = f"Cost of the autoregressive decoder per graph of mean degree {DEGREE}, {arguments.threads} thread(s)"
    publish("decoder_scaling", title, header, rows, details)


if __name__ == "__main__":
    main()
