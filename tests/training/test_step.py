"""A batch in parts: their gradients are those of the whole, whoever computes which."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tiny import random_graph
from torch import Tensor

from graphite_gen.config import TrainConfig
from graphite_gen.data.batch import collate
from graphite_gen.distributed import SINGLE_PROCESS
from graphite_gen.graph import SimpleGraph
from graphite_gen.training import step as steps
from graphite_gen.training.model import GraphNetwork, build_network
from graphite_gen.training.step import PartLoss, SharedLoss, Step, StepLoss, draw_step, shares
from graphite_gen.training.trainer import configure

GRAPHS = [random_graph(nodes, seed) for nodes in (1, 2, 3, 5, 6, 9) for seed in range(3)]
WEIGHTED = [random_graph(nodes, seed, 1.0, weighted=True) for nodes in (2, 3, 5) for seed in range(3)]
SMALL: dict[str, Any] = {"width": 8, "head_rank": 4}

KINDS = {
    "default": ("default", GRAPHS, {}),
    "default with an encoder": ("default", GRAPHS, {"encoder": "residual"}),
    "one-shot": ("one-shot", GRAPHS, {"samples": 1}),
    "several samples": ("one-shot", GRAPHS, {"samples": 3}),
    "paper": ("paper", GRAPHS, {}),
    "all cells": ("paper", GRAPHS, {"convention": "paper"}),
    "gae": ("one-shot", GRAPHS, {"kind": "gae"}),
    "graphite-ae": ("one-shot", GRAPHS, {"kind": "graphite-ae"}),
    "weighted": ("default", WEIGHTED, {}),
}


def drawn(kind: str, number: int = 5) -> tuple[GraphNetwork, TrainConfig, Step]:
    name, graphs, changes = KINDS[kind]
    config, training = configure(name, graphs, None, **(SMALL | changes))
    network = build_network(config, 1)
    batch = collate(graphs, config.max_nodes)

    return network, training, draw_step(network, batch, training, number, 0.8)


def gradients(network: GraphNetwork, training: TrainConfig, parts: list[Step], processes: int) -> list[Tensor | None]:
    """What a crew of so many would give its network, summed here instead of between processes."""
    loss = StepLoss(network, training.convention)
    for own in shares([part.work for part in parts], processes):
        total, _ = loss([parts[number] for number in own], 7)
        total.backward()
    loss.hand_over()

    return [parameter.grad for parameter in network.parameters()]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a batch of a few small graphs has several."""
    monkeypatch.setattr(steps, "PART_CELLS", 40)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_parts_have_the_gradients_of_the_whole_batch(kind: str, processes: int) -> None:
    network, training, step = drawn(kind)
    parts = step.parts()
    _, sums = StepLoss(network, training.convention)(parts, 7)
    # The oracle is autograd on the undivided batch.
    loss, kl = PartLoss(network, training.convention)(step)
    expected = torch.autograd.grad(loss.sum() / 7, list(network.parameters()), allow_unused=True)

    found = gradients(network, training, parts, processes)

    assert len(parts) >= 2
    assert sums.tolist() == pytest.approx([float(loss.detach().sum()), float(kl.detach().sum())])
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours is None) == (theirs is None)
        assert ours is None or torch.allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.usefixtures("single_precision")
@pytest.mark.parametrize("kind", ["default", "several samples", "paper"])
def test_in_single_precision_no_number_of_processes_leaves_a_trace(kind: str) -> None:
    network, training, step = drawn(kind)
    alone = gradients(network, training, step.parts(), 1)

    for processes in (2, 3, 50):
        shared = gradients(network, training, step.parts(), processes)
        for ours, theirs in zip(shared, alone, strict=True):
            assert (ours is None) == (theirs is None)
            assert ours is None or (theirs is not None and torch.equal(ours, theirs))


@pytest.mark.usefixtures("single_precision")
@pytest.mark.parametrize("kind", ["default with an encoder", "several samples", "paper"])
def test_the_only_part_is_not_gathered_and_gives_the_same(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network, training, step = drawn(kind)
    gathered = gradients(network, training, [step], 1)
    monkeypatch.setattr(Step, "parts", lambda self: [self])

    SharedLoss(network, training.convention, SINGLE_PROCESS).backward(step, 7)

    for parameter, theirs in zip(network.parameters(), gathered, strict=True):
        assert (parameter.grad is None) == (theirs is None)
        assert theirs is None or torch.equal(parameter.grad, theirs)


def test_what_matters_to_no_graph_is_left_alone() -> None:
    pairs: list[SimpleGraph] = [random_graph(2, seed) for seed in range(4)]
    config, training = configure("default", pairs, None, **SMALL)
    network = build_network(config, 1)

    gradients(network, training, draw_step(network, collate(pairs), training, 0, 0.0).parts(), 2)

    # With one node to look back at there is no third to go over.
    untouched = {name for name, parameter in network.named_parameters() if parameter.grad is None}
    assert untouched == {"decoder.pairs.kernels.weight", "decoder.pairs.kernels.bias"}


@pytest.mark.parametrize("kind", ["default", "one-shot", "several samples"])
def test_every_graph_is_in_one_part(kind: str) -> None:
    *_, step = drawn(kind)
    marked = Step(**{**vars(step), "log_orders": torch.arange(len(GRAPHS))})

    parts = marked.parts()

    assert sorted(torch.cat([part.log_orders for part in parts]).tolist()) == list(range(len(GRAPHS)))
    for part in parts:
        assert torch.equal(part.batch.adj, step.batch.adj[part.log_orders])
        assert torch.equal(part.epsilon, step.epsilon[..., part.log_orders, :, :])


def test_work_is_shared_out_evenly() -> None:
    rng = np.random.default_rng(0)
    for processes in (1, 2, 5):
        work = rng.uniform(0, 1, 20).tolist()
        taken = shares(work, processes)
        loads = [sum(work[number] for number in own) for own in taken]

        assert sorted(number for own in taken for number in own) == list(range(20))
        assert max(loads) - min(loads) <= max(work)
