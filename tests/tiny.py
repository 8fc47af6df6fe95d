"""Small graphs and small untrained models, for tests."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphite_gen.batch import GraphBatch, collate
from graphite_gen.checkpoint import TrainedModel
from graphite_gen.config import ModelConfig, TrainConfig, preset
from graphite_gen.graph import SimpleGraph
from graphite_gen.models import GraphNetwork, build_network
from graphite_gen.records import Provenance
from graphite_gen.sizes import SizeLaw

SMALL: dict[str, Any] = {
    "width": 8,
    "latent": 2,
    "head_rank": 4,
    "rounds": 2,
    "encoder_layers": 2,
    "random_features": 3,
    "max_nodes": 8,
}


def star(nodes: int, centre: int = 0) -> SimpleGraph:
    return SimpleGraph.from_pairs(nodes, [(centre, other) for other in range(nodes) if other != centre])


def path(nodes: int) -> SimpleGraph:
    return SimpleGraph.from_pairs(nodes, [(i, i + 1) for i in range(nodes - 1)])


def random_graph(
    nodes: int, seed: int, density: float = 0.5, *, weighted: bool = False, features: int = 0
) -> SimpleGraph:
    rng = np.random.default_rng([seed, nodes])
    edges = np.array([pair for pair in combinations(range(nodes), 2) if rng.random() < density], dtype=np.int32)

    return SimpleGraph(
        nodes,
        edges.reshape(-1, 2),
        rng.normal(size=len(edges)) if weighted else None,
        rng.normal(size=(nodes, features)).astype(np.float32) if features else None,
    )


def all_graphs(nodes: int) -> list[SimpleGraph]:
    """Every labelled graph on some nodes."""
    pairs = list(combinations(range(nodes), 2))

    return [
        SimpleGraph.from_pairs(nodes, [pair for pair, bit in zip(pairs, bits, strict=True) if bit])
        for bits in product((0, 1), repeat=len(pairs))
    ]


def small_config(name: str = "default", **changes: Any) -> ModelConfig:
    return preset(name, **(SMALL | changes))[0]


def small_network(name: str = "default", seed: int = 0, scale: float = 1.0, **changes: Any) -> GraphNetwork:
    """An untrained network, all of whose weights and biases matter."""
    network = build_network(small_config(name, **changes))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(scale * 0.5 * torch.randn(parameter.shape, generator=generator))

    return network.eval()


def small_model(name: str = "default", graphs: list[SimpleGraph] | None = None, **changes: Any) -> TrainedModel:
    graphs = [random_graph(nodes, nodes) for nodes in (3, 4, 4, 5)] if graphs is None else graphs

    return TrainedModel("tiny", small_network(name, **changes), SizeLaw.of(graphs), TrainConfig(), Provenance())


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def small_batch(padding: int = 2, **kind: Any) -> GraphBatch:
    """Graphs on three, five and four nodes, all with dummy nodes."""
    graphs = [random_graph(nodes, 1, **kind) for nodes in (3, 5, 4)]

    return collate(graphs, 5 + padding)


def permuted_rows(values: Tensor, order: list[int], axis: int) -> Tensor:
    """Move entry i of an axis to ``order[i]``; entries beyond the order stay."""
    nodes = values.shape[axis]
    inverse = torch.argsort(torch.tensor(order + list(range(len(order), nodes))))

    return values.index_select(axis, inverse)
