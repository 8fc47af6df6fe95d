"""The optimiser of a run: AdamW, and Muon for the weight matrices of autoregressive models."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from ..config import TrainConfig
from .model import GraphNetwork
from .muon import Muon

__all__ = ["MOMENTS", "Optimiser"]

MOMENTS = ("step", "exp_avg", "exp_avg_sq", "momentum_buffer")
"""What the optimisers store for each parameter."""

# The learning rate of Muon in units of that of AdamW: its updates are orthogonal matrices, with entries of about
# one over the root of the width.
MUON_RATE = 10 / 3
# Smaller matrices have too few directions to be worth it.
LEAST_SIDE = 8


class Optimiser:
    """AdamW (Loshchilov & Hutter, 2019), with Muon (Jordan et al., 2024) for the matrices of autoregressive models.

    Muon makes the singular values of an update nearly equal.
    """

    def __init__(self, network: GraphNetwork, training: TrainConfig) -> None:
        matrices = _matrices(network) if network.config.is_autoregressive else []
        others = [parameter for parameter in network.parameters() if all(parameter is not one for one in matrices)]
        rate, decay = training.learning_rate, training.weight_decay
        self._all: list[tuple[torch.optim.Optimizer, float]] = [
            (torch.optim.AdamW(others, lr=rate, weight_decay=decay), 1.0)
        ]
        if matrices:
            self._all.append((Muon(matrices, lr=MUON_RATE * rate, weight_decay=decay), MUON_RATE))

    def step(self, rate: float) -> None:
        """Update the parameters with a learning rate, which is that of AdamW."""
        for optimiser, factor in self._all:
            for group in optimiser.param_groups:
                group["lr"] = factor * rate
            optimiser.step()

    def moments(self, parameter: Tensor) -> dict[str, Tensor]:
        """What is stored for a parameter, to resume from; nothing before the first step."""
        states = (optimiser.state.get(parameter, {}) for optimiser, _ in self._all)

        return {name: torch.as_tensor(value) for state in states for name, value in state.items()}

    def restore(self, parameter: Tensor, moments: Mapping[str, Tensor]) -> None:
        """Store such moments again."""
        optimiser = next(
            optimiser
            for optimiser, _ in self._all
            if any(parameter is one for group in optimiser.param_groups for one in group["params"])
        )
        # Adam counts its steps on the CPU whatever the device.
        optimiser.state[parameter] = {
            name: value if name == "step" else value.to(parameter) for name, value in moments.items()
        }


def _matrices(network: GraphNetwork) -> list[Tensor]:
    """The weights of linear layers."""
    layers = (layer for layer in network.modules() if isinstance(layer, nn.Linear))

    return [layer.weight for layer in layers if min(layer.weight.shape) >= LEAST_SIDE]
