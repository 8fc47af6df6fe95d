"""Small graphs and small untrained models for tests."""

from itertools import combinations, product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from graphite_gen.config import ModelConfig, TrainConfig, preset
from graphite_gen.data.batch import GraphBatch, collate
from graphite_gen.data.sizes import SizeDistribution
from graphite_gen.graph import SimpleGraph
from graphite_gen.nn.operators import Graph
from graphite_gen.records import Provenance
from graphite_gen.training.checkpoint import TrainedModel
from graphite_gen.training.model import GraphNetwork, build_network

SMALL: dict[str, Any] = {
    "width": 8,
    "latent": 2,
    "head_rank": 4,
    "rounds": 2,
    "encoder_layers": 2,
    "random_features": 3,
    "max_nodes": 8,
}
AUTOREGRESSIVE: dict[str, Any] = {"decoder": "autoregressive", "encoder": "none"}


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


def small_config(name: str = "one-shot", **changes: Any) -> ModelConfig:
    return preset(name, **(SMALL | changes))[0]


def small_network(name: str = "one-shot", seed: int = 0, scale: float = 1.0, **changes: Any) -> GraphNetwork:
    """An untrained network, all of whose weights and biases matter."""
    network = build_network(small_config(name, **changes))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(scale * 0.5 * torch.randn(parameter.shape, generator=generator))

    return network.eval()


def small_model(name: str = "one-shot", graphs: list[SimpleGraph] | None = None, **changes: Any) -> TrainedModel:
    graphs = [random_graph(nodes, nodes) for nodes in (3, 4, 4, 5)] if graphs is None else graphs

    return TrainedModel(
        "tiny", small_network(name, **changes), SizeDistribution.of(graphs), TrainConfig(), Provenance()
    )


def autoregressive_model(order: str = "bfs", scale: float = 0.2, **changes: Any) -> TrainedModel:
    """An untrained autoregressive model that ignores its latents, so that every ordering has an exact probability."""
    model = small_model(**(AUTOREGRESSIVE | {"ordering": order, "latent": 1} | changes))
    decoder = model.network.decoder
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.mul_(scale)
        # Entries of the low-rank graph and messages over it depend on latents.
        for weights in (decoder.products.weight, decoder.others.weight[:, : decoder.width], decoder.draft_weight):
            weights.zero_()

    return model


def coin_model(log_odds: float, **changes: Any) -> TrainedModel:
    """A model whose edges have given log-odds whatever the latents, so that its posterior is the prior."""
    model = small_model(**changes)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.zero_()
        model.network.decoder.head.size[-1].bias.fill_(log_odds)

    return model


def mild_model(name: str = "one-shot", **changes: Any) -> TrainedModel:
    """A model whose posterior is close enough to its prior for a few thousand samples."""
    model = small_model(name, scale=0.7, **changes)
    with torch.no_grad():
        for parameter in model.network.encoder.stack.out.parameters():
            parameter.mul_(0.3)

    return model


def poor_model(**changes: Any) -> TrainedModel:
    """A model whose encoder is overconfident: a poor proposal."""
    model = mild_model(**changes)
    with torch.no_grad():
        model.network.encoder.stack.out.bias[model.config.latent :] = -1.8

    return model


@torch.no_grad()
def exact_nll(model: TrainedModel, graph: SimpleGraph, points: int = 40) -> float:
    """The NLL by Gauss-Hermite quadrature over all latents; for few nodes and latents only."""
    size = graph.nodes * model.config.latent
    at, weights = np.polynomial.hermite_e.hermegauss(points)
    grid = torch.from_numpy(
        np.stack(np.meshgrid(*[at] * size, indexing="ij"), -1).reshape(-1, graph.nodes, size // graph.nodes)
    )
    log_weights = np.log(weights / weights.sum())
    prior = torch.from_numpy(sum(np.meshgrid(*[log_weights] * size, indexing="ij")).reshape(-1))
    batch = collate([graph])
    likelihood = model.network.decode(grid.to(batch.adj).unsqueeze(1), batch.x, batch.mask).log_prob(batch.adj)[:, 0]

    return -float((likelihood.double() + prior).logsumexp(0))


def as_matrix(graph: Graph, nodes: int, dtype: torch.dtype | None = None) -> Tensor:
    """A graph operator as a dense matrix."""
    return graph @ torch.eye(nodes, dtype=dtype)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def small_batch(padding: int = 2, **kind: Any) -> GraphBatch:
    """Graphs on three, five and four nodes, all with padding."""
    graphs = [random_graph(nodes, 1, **kind) for nodes in (3, 5, 4)]

    return collate(graphs, 5 + padding)


def permuted_rows(values: Tensor, order: list[int], axis: int) -> Tensor:
    """Move entry i of an axis to ``order[i]``; entries beyond the order stay."""
    nodes = values.shape[axis]
    inverse = torch.argsort(torch.tensor(order + list(range(len(order), nodes))))

    return values.index_select(axis, inverse)
