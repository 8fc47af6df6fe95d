"""Train models with the processes of torchrun and with one process, and print how far the results differ."""

from typing import Any

import torch
from tiny import random_graph

from graphite_gen.cli.sharing import connect_ranks, end_worker, end_workers
from graphite_gen.distributed import SINGLE_PROCESS, ProcessGroup
from graphite_gen.graph import SimpleGraph
from graphite_gen.training import step as steps
from graphite_gen.training.trainer import Trainer, configure

QUICK: dict[str, Any] = {"epochs": 2, "epoch_graphs": 0, "batch_size": 7, "validate_every": 1}
QUICK |= {"validation_samples": 2, "warmup_steps": 3, "width": 16}
PLAIN = [random_graph(nodes, seed) for nodes in (3, 5, 8) for seed in range(6)]
# So small that some parameters have a gradient on some ranks only, and some batches have no part for a rank.
SMALL = [random_graph(nodes, seed) for nodes in (1, 2, 2, 4) for seed in range(4)]
WEIGHTED = [random_graph(nodes, seed, weighted=True) for nodes in (3, 5, 6) for seed in range(5)]

CASES: dict[str, tuple[str, list[SimpleGraph], dict[str, Any]]] = {
    "default": ("default", PLAIN, {}),
    "default without encoder": ("default", PLAIN, {"encoder": "none"}),
    "small graphs": ("default", SMALL, {"batch_size": 2}),
    "one-shot": ("one-shot", PLAIN, {"samples": 3, "samples_from": 0.5}),
    "paper": ("paper", PLAIN, {}),
    "autoencoder": ("one-shot", PLAIN, {"kind": "graphite-ae"}),
    "weighted": ("one-shot", WEIGHTED, {}),
}


def trained(name: str, graphs: list[SimpleGraph], changes: dict[str, Any], group: ProcessGroup) -> torch.Tensor:
    """The weights, and the figures of every epoch relative to their size."""
    config, settings = configure(name, graphs, **(QUICK | changes))
    run = Trainer("tiny", config, settings, graphs, graphs[::2] * 20, group=group)
    figures = [value / 10 for record in run for value in (record.validation or 0.0, record.loss, record.kl)]

    return torch.cat([torch.tensor(figures), *(tensor.flatten() for tensor in run.network.state_dict().values())])


if __name__ == "__main__":
    torch.set_num_threads(1)
    steps.PART_CELLS = 64
    group = connect_ranks()
    for title, case in CASES.items():
        together = trained(*case, group)
        alone = group.broadcast(trained(*case, SINGLE_PROCESS) if group.is_rank_zero else together)
        if group.is_rank_zero:
            print(f"{title}: {float((together - alone).abs().max()):.3g}", flush=True)
    if not group.is_rank_zero:
        end_worker(is_failed=False)
    end_workers(0)
