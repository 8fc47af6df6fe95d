"""Peak memory of tasks: ``python memory_tasks.py`` prints the bytes of each.

It needs a separate process: one that has run other tasks reuses memory it has freed.
"""

import gc
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from graphite_gen import memory
from graphite_gen.api import load
from graphite_gen.config import preset
from graphite_gen.data.sizes import SizeDistribution
from graphite_gen.evaluation.descriptors import spectra
from graphite_gen.graph import SimpleGraph
from graphite_gen.likelihood import NLLOptions, estimate_nll
from graphite_gen.network.hyperparameters import LARGE_GENERATION
from graphite_gen.network.link_prediction import train_on_all
from graphite_gen.network.network import Network
from graphite_gen.records import Provenance
from graphite_gen.sampling import Sampler
from graphite_gen.training.checkpoint import TrainedModel
from graphite_gen.training.model import build_network
from graphite_gen.training.trainer import prepare


def sparse(nodes: int) -> SimpleGraph:
    pairs = np.random.default_rng(0).integers(0, nodes, (3 * nodes, 2))

    distinct = np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], 1), axis=0)

    return SimpleGraph.from_pairs(nodes, distinct)


def train_step(name: str, nodes: int, graphs: int) -> None:
    settings = {"epochs": 1, "batch_size": graphs} | ({"ordering": "bfs"} if name == "default" else {})
    run = prepare("x", [sparse(nodes)] * graphs, [], settings, preset_name=name)
    # Late in a run a step uses the most memory.
    run._step(list(range(graphs)), 0.9)


def autoregressive() -> TrainedModel:
    """An untrained model of sparse graphs."""
    config, training = preset("default", ordering="bfs")
    network = build_network(config).eval()
    network.decoder.start_at(-4.0)

    return TrainedModel("x", network, SizeDistribution.of([sparse(200)]), training, Provenance())


TASKS: dict[str, Callable[[], object]] = {
    "one-shot step": lambda: train_step("one-shot", 1000, 1),
    "autoregressive step": lambda: train_step("default", 300, 4),
    "autoregressive block": lambda: list(Sampler(autoregressive(), 128, nodes=200)),
    "one-shot block": lambda: list(Sampler(load("bundled:ego-one-shot").trained, 128, nodes=200)),
    "one-shot graph": lambda: list(Sampler(load("bundled:ego-one-shot").trained, 1, nodes=2500)),
    "one-shot NLL": lambda: estimate_nll(load("bundled:ego-one-shot").trained, [sparse(800)], NLLOptions(8)),
    "autoregressive NLL": lambda: estimate_nll(autoregressive(), [sparse(100)], NLLOptions(20)),
    "single graph": lambda: train_on_all(
        Network(sparse(30_000)), replace(LARGE_GENERATION, epochs=1), 0, features=False
    ),
    "spectrum": lambda: spectra([sparse(1500)]),
}


def taken(task: Callable[[], object]) -> int:
    """The peak memory, in bytes, of a task in a child process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        before = memory._table("/proc/self/status")["VmRSS"]
        task()
        os.write(writer, str(1024 * (memory._table("/proc/self/status")["VmHWM"] - before)).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    os.waitpid(child, 0)

    return int(text)


if __name__ == "__main__":
    torch.set_num_threads(1)
    # Parts of torch are loaded at the first optimiser step, which does not count.
    train_step("paper", 3, 1)
    print(json.dumps({name: taken(task) for name, task in TASKS.items()}))
