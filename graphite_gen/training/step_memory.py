"""The memory of a training step, estimated from the sizes of the graphs and of the model."""

from __future__ import annotations

from typing import Any

import torch

from ..autoregressive.distribution import CHUNK_PAIRS
from ..config import ModelConfig, TrainConfig
from ..errors import TrainingError
from ..memory import check_memory
from .model import build_network
from .step import BATCH_CELLS

__all__ = ["check_step_memory", "step_bytes"]

# Measured bytes of a one-shot step, per matrix cell, and per node and unit of the width.
CELL_BYTES, NODE_BYTES = 50, 80
# Measured bytes of an autoregressive step per matrix cell, and for cells that are scored together, whose activations
# are kept for the gradients, per cell and per cell and unit of the width.
AUTOREGRESSIVE_BYTES, SCORED_BYTES, SCORED_WIDTH_BYTES = 160, 3000, 56
# Weights, their average and best values, gradients and moments, in single precision.
PARAMETER_BYTES = 24


def step_bytes(config: ModelConfig, training: TrainConfig) -> int:
    """The memory of a step on the largest batch."""
    return _model_bytes(config) + _batch_bytes(config, training, _graphs(config, training))


def check_step_memory(config: ModelConfig, training: TrainConfig) -> None:
    """Raise TrainingError, with the largest batch size that fits, if a step does not fit in memory."""
    graphs = _graphs(config, training)

    def fitting(available: int) -> int:
        return max(0, available - _model_bytes(config)) // _batch_bytes(config, training, 1)

    def remedy(available: int) -> str:
        fits = fitting(available)
        return f"A batch size of {fits} would fit." if fits else "Train on smaller graphs, or a narrower model."

    def error(text: str, *, available: int, **facts: Any) -> TrainingError:
        fits = fitting(available)
        return TrainingError(text, reason="training-memory" if fits else "", fitting=fits, available=available, **facts)

    what = f"A step on {graphs} graphs of {config.max_nodes} nodes"
    check_memory(step_bytes(config, training), what, remedy, error)


def _graphs(config: ModelConfig, training: TrainConfig) -> int:
    """The number of graphs of the largest size in a batch."""
    # Batches of convention 'paper' are padded after they are split.
    if training.convention == "paper":
        return training.batch_size
    cells = config.max_nodes**2 * (1 if config.is_autoregressive else training.samples)

    return max(1, min(training.batch_size, BATCH_CELLS // cells))


def _batch_bytes(config: ModelConfig, training: TrainConfig, graphs: int) -> int:
    """The memory of the activations of graphs of the largest size."""
    nodes = graphs * config.max_nodes
    cells = nodes * config.max_nodes
    if not config.is_autoregressive:
        return training.samples * (CELL_BYTES * cells + NODE_BYTES * config.width * nodes)
    scored = min(cells, 2 * CHUNK_PAIRS)

    return AUTOREGRESSIVE_BYTES * cells + (SCORED_BYTES + SCORED_WIDTH_BYTES * config.width) * scored


def _model_bytes(config: ModelConfig) -> int:
    # Shapes without memory.
    with torch.device("meta"):
        network = build_network(config)

    return PARAMETER_BYTES * sum(parameter.numel() for parameter in network.parameters())
