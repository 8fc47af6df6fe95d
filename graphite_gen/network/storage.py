"""Checkpoints of models of one network."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from torch import Tensor

from ..errors import CheckpointError, ConfigError
from ..nn.distributions import NodeNormal
from ..records import Provenance, typed
from ..training.checkpoint import (
    SINGLE_GRAPH,
    check_fits,
    is_network_model,
    load_weights,
    next_turn,
    read_model,
    write_atomically,
    write_model,
)
from .autoencoder import build_pair_decoder
from .generation import NetworkModel
from .hyperparameters import LinkSettings

__all__ = ["load_network", "save_network"]

_DECODER = "decoder."
_NODES = ("mu", "log_sigma", "evidence", "degrees", "biases")
# The observed edges, with shape (2, E); models of earlier versions have none.
_PAIRS = "pairs"


def save_network(model: NetworkModel, folder: str | Path) -> None:
    """Write a model as a checkpoint folder."""
    folder = Path(folder)
    nodes = (model.posterior.mu, model.posterior.log_sigma, model.evidence, model.degrees, model.biases)
    decoder = {f"{_DECODER}{name}": value for name, value in model.decoder.state_dict().items()}
    pairs = {} if model.pairs is None else {_PAIRS: model.pairs}
    write_model(
        folder,
        {
            "name": model.name,
            "scope": SINGLE_GRAPH,
            "model": model.settings.to_json(),
            "graph": {"nodes": model.nodes, "edges": model.edges},
            "seed": model.seed,
            "provenance": model.provenance.to_json(),
        },
        decoder | dict(zip(_NODES, nodes, strict=True)) | pairs,
    )
    # Marks the training as finished.
    state = {"progress": {"finished": True}, "turn": next_turn(folder)}
    write_atomically(folder / "state.json", (json.dumps(state) + "\n").encode())


def load_network(folder: str | Path) -> NetworkModel:
    """Load a model of one network from its checkpoint folder.

    Raises:
        CheckpointError: The checkpoint is missing or damaged.
    """
    folder = Path(folder)
    config, tensors = read_model(folder)
    if not is_network_model(config):
        raise CheckpointError(f"'{folder}' is a model of many graphs: load it with 'graphite_gen.load'.")
    path = folder / "model.safetensors"
    try:
        settings = LinkSettings.from_json(config["model"])
        nodes = mu, log_sigma, evidence, degrees, biases = [tensors.pop(name) for name in _NODES]
        pairs = tensors.pop(_PAIRS, None)
        weights = {name.removeprefix(_DECODER): value for name, value in tensors.items()}
        check_fits(lambda: build_pair_decoder(settings), weights, path)
        model = NetworkModel(
            str(config["name"]),
            settings,
            build_pair_decoder(settings).requires_grad_(False),
            NodeNormal(mu, log_sigma, torch.ones(len(mu), dtype=torch.bool)),
            evidence,
            degrees,
            biases,
            seed=int(config["seed"]),
            provenance=typed(Provenance, config["provenance"]),
            pairs=pairs,
        )
    except (ConfigError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"'{folder}' is damaged: {str(error)[:400]}. Train the model again.") from error
    load_weights(model.decoder, weights, path)
    shapes = [(model.nodes, width) for width in (settings.latent, settings.latent, settings.projection_width)]
    if [tuple(each.shape) for each in nodes] != [*shapes, (model.nodes,), (model.nodes,)]:
        raise CheckpointError(f"'{path}' does not fit its 'config.json'. Train the model again.")
    numbers = model.nodes and all(each.isfinite().all() for each in nodes) and (degrees >= 0).all()
    if not numbers or not model.edges:
        raise CheckpointError(f"'{path}' has invalid degrees or values that are not finite. Train the model again.")
    if pairs is not None and not _are_edges(pairs, degrees):
        raise CheckpointError(f"'{path}' has edges that do not fit its degrees. Train the model again.")

    return model


def _are_edges(pairs: Tensor, degrees: Tensor) -> bool:
    """Whether these are distinct edges i < j of a graph with the given degrees."""
    if pairs.dtype != torch.int64 or pairs.dim() != 2 or len(pairs) != 2:
        return False
    (i, j), nodes = pairs, len(degrees)
    if pairs.numel() and (int(pairs.min()) < 0 or int(pairs.max()) >= nodes or not bool((i < j).all())):
        return False
    counts = torch.bincount(pairs.flatten(), minlength=nodes)

    return len(torch.unique(i * nodes + j)) == len(i) and bool((counts == degrees).all())
