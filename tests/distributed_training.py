"""What processes of torchrun train together and what one of them trains alone, to the last bit."""

from __future__ import annotations

import threading
from typing import Any

import torch
from tiny import random_graph

from graphite_gen.distributed import SINGLE_PROCESS, ProcessGroup, dismiss, join, leave
from graphite_gen.graph import SimpleGraph
from graphite_gen.training import step as steps
from graphite_gen.training.trainer import Trainer, configure

QUICK: dict[str, Any] = {
    "epochs": 2,
    "epoch_graphs": 0,
    "batch_size": 7,
    "validate_every": 1,
    "validation_samples": 2,
    "warmup_steps": 3,
    "width": 16,
}
PLAIN = [random_graph(nodes, seed) for nodes in (3, 5, 8) for seed in range(6)]
# So small that some of their weights matter to some processes only, in batches that not all have a part of.
SMALL = [random_graph(nodes, seed) for nodes in (1, 2, 2, 4) for seed in range(4)]
WEIGHTED = [random_graph(nodes, seed, weighted=True) for nodes in (3, 5, 6) for seed in range(5)]

CASES: dict[str, tuple[str, list[SimpleGraph], dict[str, Any]]] = {
    "default": ("default", PLAIN, {}),
    "default with an encoder": ("default", PLAIN, {"encoder": "residual"}),
    "small graphs": ("default", SMALL, {"batch_size": 2}),
    "one-shot": ("one-shot", PLAIN, {"samples": 3, "samples_from": 0.5}),
    "paper": ("paper", PLAIN, {}),
    "autoencoder": ("one-shot", PLAIN, {"kind": "graphite-ae"}),
    "weighted": ("default", WEIGHTED, {}),
}


def trained(name: str, graphs: list[SimpleGraph], changes: dict[str, Any], group: ProcessGroup) -> Trainer:
    config, settings = configure(name, graphs, None, **(QUICK | changes))
    run = Trainer("tiny", config, settings, graphs, graphs[::2] * 20, group=group)
    list(run)

    return run


def state(run: Trainer) -> bytes:
    """The weights to the last bit, and the figures of every epoch but for the order of their sums."""
    figures = [(record.validation, round(record.loss, 9), round(record.kl, 9)) for record in run.history]

    return b"".join(tensor.numpy().tobytes() for tensor in run.network.state_dict().values()) + repr(figures).encode()


def main() -> None:
    torch.set_num_threads(1)
    steps.PART_CELLS = 64
    group = join()
    for title, case in CASES.items():
        together = state(trained(*case, group))
        (alone,) = group.everywhere([state(trained(*case, SINGLE_PROCESS))] if group.is_rank_zero else [])
        differs = group.any(together != alone)
        if group.is_rank_zero:
            print(f"{title}: {'different' if differs else 'same'}", flush=True)
    # As the program ends: the others with the one that leads, without clearing up, in which torch may abort.
    if not group.is_rank_zero:
        threading.Event().wait()
    dismiss()
    leave()


if __name__ == "__main__":
    main()
