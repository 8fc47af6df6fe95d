"""The gradients of a batch do not depend on its parts, nor on the ranks that compute them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tiny import random_graph
from torch import Tensor

from graphite_gen.config import TrainConfig
from graphite_gen.data.batch import collate
from graphite_gen.data.schema import AttributeSchema
from graphite_gen.distributed import ProcessGroup
from graphite_gen.graph import SimpleGraph
from graphite_gen.training import step as steps
from graphite_gen.training.model import GraphNetwork, build_network
from graphite_gen.training.objectives import draft_cost
from graphite_gen.training.step import Step, assign_parts, backward, draw_step, step_loss
from graphite_gen.training.trainer import configure

GRAPHS = [random_graph(nodes, seed) for nodes in (1, 2, 3, 5, 6, 9) for seed in range(3)]
WEIGHTED = [random_graph(nodes, seed, 1.0, weighted=True) for nodes in (2, 3, 5) for seed in range(3)]
SMALL: dict[str, Any] = {"width": 8}


def attributed(nodes: int, seed: int) -> SimpleGraph:
    graph, rng = random_graph(nodes, seed), np.random.default_rng(seed)
    kinds = rng.integers(2, size=len(graph.edges)).tolist()
    counts = rng.integers(1, 9, size=len(graph.edges)).astype(np.float64)

    return replace(
        graph, weights=counts, node_attributes={"side": [i % 2 for i in range(nodes)]}, edge_attributes={"kind": kinds}
    )


PLAIN = [attributed(nodes, seed) for nodes in (1, 2, 5, 6) for seed in range(3)]
SCHEMA = AttributeSchema.of(PLAIN, node_label="side", edge_label="kind", weighted=True)
ATTRIBUTED = [SCHEMA.encode(graph) for graph in PLAIN]

KINDS = {
    "default": ("default", GRAPHS, {"ordering": "bfs"}),
    "default without encoder": ("default", GRAPHS, {"encoder": "none", "ordering": "bfs"}),
    "one-shot": ("one-shot", GRAPHS, {"samples": 1}),
    "several samples": ("one-shot", GRAPHS, {"samples": 3}),
    "paper": ("paper", GRAPHS, {}),
    "all cells": ("paper", GRAPHS, {"convention": "paper"}),
    "gae": ("one-shot", GRAPHS, {"kind": "gae"}),
    "graphite-ae": ("one-shot", GRAPHS, {"kind": "graphite-ae"}),
    "weighted": ("one-shot", WEIGHTED, {}),
    "attributes": ("default", ATTRIBUTED, {"ordering": "bfs"}),
}


def drawn(kind: str, number: int = 5) -> tuple[GraphNetwork, TrainConfig, Step]:
    name, graphs, changes = KINDS[kind]
    config, training = configure(name, graphs, schema=SCHEMA if kind == "attributes" else None, **(SMALL | changes))
    network = build_network(config, 1)
    batch = collate(graphs, config.max_nodes)

    return network, training, draw_step(network, batch, training, number, 0.8)


class FakeGroup(ProcessGroup):
    """One rank of a group that reduces nothing."""

    def all_reduce(self, tensor: Tensor) -> None:
        pass

    def all_reduce_sum(self, values: Sequence[float]) -> list[float]:
        return list(values)


def gradients(
    network: GraphNetwork, training: TrainConfig, step: Step, world_size: int
) -> tuple[list[Tensor | None], list[float]]:
    """The gradients and sums of a batch, added up over ranks that compute them one after the other."""
    total: list[Tensor | None] = [None] * len(list(network.parameters()))
    sums = [0.0, 0.0]
    for rank in range(world_size):
        found = backward(network, step, training.convention, 7, FakeGroup(rank, world_size))
        sums = [ours + theirs for ours, theirs in zip(sums, found, strict=True)]
        own = [parameter.grad for parameter in network.parameters()]
        total = [b if a is None else a if b is None else a + b for a, b in zip(total, own, strict=True)]

    return total, sums


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split batches of a few small graphs too."""
    monkeypatch.setattr(steps, "PART_CELLS", 40)
    monkeypatch.setattr(steps, "ROW_CELLS", 5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_parts_have_the_gradients_of_the_whole_batch(kind: str, world_size: int) -> None:
    network, training, step = drawn(kind)
    # The oracle is autograd on the undivided batch.
    loss, kl = step_loss(network, step, training.convention)
    expected = torch.autograd.grad(loss.sum() / 7, list(network.parameters()), allow_unused=True)

    found, sums = gradients(network, training, step, world_size)

    assert len(step.parts()) >= 2
    assert sums == pytest.approx([float(loss.detach().sum()), float(kl.detach().sum())])
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours is None) == (theirs is None)
        assert ours is None or torch.allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("world_size", [1, 2])
def test_a_parameter_that_no_graph_depends_on_has_no_gradient(world_size: int) -> None:
    single: list[SimpleGraph] = [random_graph(1, seed) for seed in range(4)]
    config, training = configure("default", single, **SMALL, ordering="bfs")
    network = build_network(config, 1)

    gradients(network, training, draw_step(network, collate(single), training, 0, 0.0), world_size)

    # A graph of one node has no pairs.
    without = {name for name, parameter in network.named_parameters() if parameter.grad is None}
    assert {"decoder.hidden.weight", "decoder.out.weight"} <= without
    assert world_size > 1 or "decoder.new_in.weight" not in without


@pytest.mark.parametrize("kind", ["default", "one-shot", "several samples"])
def test_every_graph_is_in_one_part(kind: str) -> None:
    *_, step = drawn(kind)
    marked = Step(**{**vars(step), "log_orders": torch.arange(len(GRAPHS))})

    parts = marked.parts()

    assert sorted(torch.cat([part.log_orders for part in parts]).tolist()) == list(range(len(GRAPHS)))
    for part in parts:
        assert torch.equal(part.batch.adj, step.batch.adj[part.log_orders])
        assert torch.equal(part.epsilon, step.epsilon[..., part.log_orders, :, :])


def test_parts_are_assigned_evenly() -> None:
    rng = np.random.default_rng(0)
    for world_size in (1, 2, 5):
        costs = rng.uniform(0, 1, 20).tolist()
        assigned = assign_parts(costs, world_size)
        totals = [sum(costs[part] for part in parts) for parts in assigned]

        assert sorted(part for parts in assigned for part in parts) == list(range(20))
        assert max(totals) - min(totals) <= max(costs)


@pytest.mark.parametrize("kind", ["default", "one-shot", "paper"])
def test_free_bits_are_nats_per_node_that_cost_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "LEAST_PART", 0.0)
    network, _, step = drawn(kind)
    sizes = step.batch.sizes
    loss, kl = step_loss(network, replace(step, free_bits=0.0), "pairs")

    for free in (1e-6, 100.0):
        found, same = step_loss(network, replace(step, free_bits=free), "pairs")
        expected = torch.maximum(free * sizes - kl, torch.zeros(())) * step.kl_weight
        assert torch.equal(same, kl)
        assert torch.allclose(found - loss, expected.to(loss))
        assert (expected > 0).all() == (free == 100)


def test_every_latent_dimension_has_to_carry_a_part_of_the_free_bits() -> None:
    network, _, step = drawn("default")
    step = replace(step, kl_weight=0.3)
    sizes, zero = step.batch.sizes, torch.zeros(())
    loss, kl = step_loss(network, replace(step, free_bits=0.0), "pairs")
    each = network.encode(step.batch, step.noise).kl_by_dimension()

    assert network.config.latent > 1
    assert 0 < steps.LEAST_PART < 1
    for free in (0.01, 100.0):
        found, _ = step_loss(network, replace(step, free_bits=free), "pairs")
        short = torch.maximum(steps.LEAST_PART * free * sizes.unsqueeze(-1) / network.config.latent - each, zero).sum(
            -1
        )
        expected = step.kl_weight * (torch.maximum(free * sizes - kl, zero) + short)
        assert torch.allclose(found - loss, expected.to(loss))


def test_reconstruction_by_the_draft_is_part_of_the_loss_in_training_only_with_an_encoder() -> None:
    network, training, step = drawn("default")
    without, _ = step_loss(network, replace(step, reconstruction=0.0), "pairs")
    found, _ = step_loss(network, replace(step, reconstruction=2.0), "pairs")
    cost = draft_cost(network, step.batch, network.encode(step.batch, step.noise))

    assert step.reconstruction == training.reconstruction > 0
    assert torch.allclose(found - without, 2 * cost.to(found))
    assert drawn("default without encoder")[2].reconstruction == 0


@pytest.mark.parametrize(("name", "shares"), [("default", (1, 1, 1, 1, 1)), ("one-shot", (1, 1, 0.5, 0, 0))])
def test_free_bits_fall_to_zero_in_one_shot_models_only(name: str, shares: tuple[float, ...]) -> None:
    network, training, step = drawn(name)
    found = [draw_step(network, step.batch, training, 0, fraction).free_bits for fraction in (0.0, 0.3, 0.45, 0.6, 1.0)]

    assert training.free_bits > 0
    assert found == pytest.approx([training.free_bits * share for share in shares])
