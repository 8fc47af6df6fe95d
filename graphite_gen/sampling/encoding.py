"""Encoding graphs: the posterior of their latents (eq. 7), reproducible and independent of node numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch

from ..autoregressive.ordering import ordering_matrix, sample_orderings
from ..config import ModelConfig
from ..data.batch import GraphBatch, collate, consecutive_batches
from ..data.canonical import canonical_ranks
from ..data.encoded import EncodedGraph
from ..errors import CheckpointError, DatasetError
from ..graph import SimpleGraph
from ..memory import check_memory
from ..rng import stream
from ..training.checkpoint import TrainedModel

__all__ = ["encode_graphs"]

BATCH = 128
BATCH_CELLS = 1 << 22
# About six matrices over all pairs of nodes: the adjacency, its normalised form, and temporary copies.
CELL_BYTES = 24


def encode_graphs(model: TrainedModel, graphs: Sequence[SimpleGraph], seed: int = 0) -> Iterator[EncodedGraph]:
    """The posteriors of the latents of graphs, in the node order of each graph.

    Many encoders read random node features, so that a graph has one posterior for each draw of them: the posterior
    distribution is their mixture. Latents of different draws are not comparable, since a draw may rotate or reflect all
    of them, and are never averaged. Instead every graph is encoded with the same draw, given the seed, assigned to
    nodes by their canonical numbers (:func:`.canonical_ranks`): copies of a graph with other node numbers have the same
    latents. The node ordering of an autoregressive model is sampled by its rule in the same way.

    The standard deviations of an autoencoder, which decodes the means, are zero.

    Raises:
        CheckpointError: The model has no encoder.
        DatasetError: A graph is not of the kind that the model was trained on, or does not fit into memory.
    """
    if model.network.encoder is None:
        raise CheckpointError(f"'{model.name}' has no encoder: its latents are noise.", reason="no-encoder")
    if not graphs:
        raise DatasetError("There are no graphs to encode.", reason="empty-dataset")
    graphs = [model.read(graph, index) for index, graph in enumerate(graphs)]
    largest = max(graph.nodes for graph in graphs)
    what = f"Encoding a graph of {largest} nodes, with matrices over all pairs of nodes,"
    check_memory(largest**2 * CELL_BYTES, what, "", partial(DatasetError))

    start = 0
    for count in consecutive_batches([graph.nodes for graph in graphs], BATCH, BATCH_CELLS):
        yield from _encode_batch(model, graphs[start : start + count], seed)
        start += count


@torch.inference_mode()
def _encode_batch(model: TrainedModel, graphs: Sequence[SimpleGraph], seed: int) -> list[EncodedGraph]:
    config, network = model.config, model.network
    ranks = [_ranks(config, graph) for graph in graphs]
    batch = collate(graphs)
    orderings = np.tile(np.arange(batch.mask.shape[1]), (len(graphs), 1))
    for ordering, rank in zip(orderings, ranks, strict=True):
        ordering[: len(rank)] = np.argsort(rank)
    batch = batch.reordered(torch.from_numpy(orderings)).to(model.device)
    noise = np.zeros((*batch.mask.shape, network.noise_features), dtype=np.float32)
    for row, graph in zip(noise, graphs, strict=True):
        row[: graph.nodes] = stream(seed, "encode").standard_normal((graph.nodes, network.noise_features), np.float32)

    posterior = network.encode(batch, torch.from_numpy(noise).to(batch.adj))
    mu = posterior.mu.float().cpu().numpy()
    sigma = posterior.sigma.expand_as(posterior.mu).float().cpu().numpy()
    positions = _positions(config, batch, seed)

    return [
        EncodedGraph(
            mu[row, rank],
            sigma[row, rank] if config.is_variational else np.zeros_like(mu[row, rank]),
            None if positions is None else positions[row][rank],
            graph.features,
            graph.names,
        )
        for row, (graph, rank) in enumerate(zip(graphs, ranks, strict=True))
    ]


def _ranks(config: ModelConfig, graph: SimpleGraph) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    # Identity features distinguish nodes by the numbers of the file.
    if "identity" in config.encoder_features + config.decoder_features:
        return np.arange(graph.nodes)

    return canonical_ranks(graph)


def _positions(
    config: ModelConfig, batch: GraphBatch, seed: int
) -> list[np.ndarray[tuple[int], np.dtype[np.int32]]] | None:
    """The position of each node in an ordering sampled by the rule of an autoregressive model."""
    if not config.is_autoregressive:
        return None
    adj, sizes = ordering_matrix(batch, config), batch.sizes.cpu().numpy()
    # One graph at a time, so that the ordering of a graph does not depend on the others.
    orderings = [
        sample_orderings(adj[row : row + 1, :n, :n], sizes[row : row + 1], config.ordering, stream(seed, "ordering"))[
            0
        ][0]
        for row, n in enumerate(sizes.tolist())
    ]

    return [np.argsort(ordering).astype(np.int32) for ordering in orderings]
