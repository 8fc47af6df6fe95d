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

__all__ = ["load_network_model", "save_network_model"]

_DECODER = "decoder."
_NODES = ("mu", "log_sigma", "evidence", "degrees", "biases")


def save_network_model(model: NetworkModel, folder: Path) -> None:
    """Write a model as a checkpoint folder."""
    nodes = (model.posterior.mu, model.posterior.log_sigma, model.evidence, model.degrees, model.biases)
    decoder = {f"{_DECODER}{name}": value for name, value in model.decoder.state_dict().items()}
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
        decoder | dict(zip(_NODES, nodes, strict=True)),
    )
    # Marks the training as finished.
    state = {"progress": {"finished": True}, "turn": next_turn(folder)}
    write_atomically(folder / "state.json", (json.dumps(state) + "\n").encode())


def load_network_model(folder: Path) -> NetworkModel:
    """Read a model of one network."""
    config, tensors = read_model(folder)
    if not is_network_model(config):
        raise CheckpointError(f"'{folder}' is a model of many graphs: load it with 'graphite_gen.load'.")
    path = folder / "model.safetensors"
    try:
        settings = LinkSettings.from_json(config["model"])
        check_fits(lambda: build_pair_decoder(settings), _decoder_weights(tensors), path)
        model = NetworkModel(
            str(config["name"]),
            settings,
            build_pair_decoder(settings).requires_grad_(False),
            _posterior(tensors),
            evidence=tensors.pop("evidence"),
            degrees=tensors.pop("degrees"),
            biases=tensors.pop("biases"),
            seed=int(config["seed"]),
            provenance=typed(Provenance, config["provenance"]),
        )
    except (ConfigError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"'{folder}' is damaged: {str(error)[:400]}. Train the model again.") from error
    load_weights(model.decoder, _decoder_weights(tensors), path)
    _check_nodes(model, path)

    return model


def _decoder_weights(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(_DECODER): value for name, value in tensors.items() if name not in _NODES}


def _posterior(tensors: dict[str, Tensor]) -> NodeNormal:
    mu, log_sigma = tensors.pop("mu"), tensors.pop("log_sigma")

    return NodeNormal(mu, log_sigma, torch.ones(len(mu), dtype=torch.bool))


def _check_nodes(model: NetworkModel, path: Path) -> None:
    width = model.settings.projection_width
    found = [model.posterior.mu, model.posterior.log_sigma, model.evidence, model.degrees, model.biases]
    wanted = [(model.nodes, model.settings.latent)] * 2 + [(model.nodes, width), (model.nodes,), (model.nodes,)]
    if [tuple(each.shape) for each in found] != wanted:
        raise CheckpointError(f"'{path}' does not fit its 'config.json'. Train the model again.")
    numbers = model.nodes and all(each.isfinite().all() for each in found) and (model.degrees >= 0).all()
    if not numbers or not model.edges:
        raise CheckpointError(f"'{path}' has invalid degrees or values that are not finite. Train the model again.")
