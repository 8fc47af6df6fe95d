"""Random orders of arrival, and the way back to the numbers that nodes have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .demands import Demands
from .limits import DemandLimits

__all__ = ["Arrival"]


class Arrival:
    """The orders in which the nodes of a batch of graphs arrive.

    Attributes:
        order: The node at each place, dummy nodes last, with shape :math:`(B, N)`.
        sizes: The number of nodes of each graph, with shape :math:`(B,)`.
        limits: What the arriving nodes are held to; None for nothing.
    """

    def __init__(
        self,
        demands: Sequence[Demands],
        keys: NDArray[np.float64],
        *,
        held: bool,
        device: torch.device,
        by_degree: bool = False,
    ) -> None:
        """Order nodes by random keys.

        Arguments:
            demands: What is asked of each graph.
            keys: Noise in [0, 1), with shape :math:`(B, N)`.
            held: Whether the graphs are to be held to it.
            device: Where to compute.
            by_degree: Whether nodes that may have more neighbours come first: among unequal degrees that leads into
                dead ends less often than a random order does, though not never.
        """
        keys = keys.copy()
        for row, demand in zip(keys, demands, strict=True):
            row[demand.nodes :] += 2
            if held and demand.connected:
                # Nodes that may have one neighbour alone would leave nothing to connect to: they come last.
                row[: demand.nodes] += demand.highest <= 1
            if held and by_degree:
                row[: demand.nodes] -= demand.highest
        order = np.argsort(keys, axis=1)
        self.order = torch.from_numpy(order).to(device)
        self.sizes = torch.tensor([demand.nodes for demand in demands], device=device)
        self.limits = None
        if held:
            arranged = (demand.ordered(line[: demand.nodes]) for demand, line in zip(demands, order, strict=True))
            self.limits = DemandLimits(list(arranged), device)

    def nodes(self, values: Tensor) -> Tensor:
        """Values of nodes in order of arrival, with shape :math:`(B, N, *)`."""
        return values[torch.arange(len(values), device=values.device).unsqueeze(-1), self.order]

    def pairs(self, values: Tensor) -> Tensor:
        """Values of pairs in order of arrival, with shape :math:`(B, N, N)`."""
        return _permuted(values, self.order)

    def back(self, values: Tensor) -> Tensor:
        """Values of pairs in order of arrival, by the numbers of their nodes, with shape :math:`(B, N, N)`."""
        return _permuted(values, self.order.argsort(-1))


def _permuted(values: Tensor, order: Tensor) -> Tensor:
    rows = torch.arange(len(values), device=values.device)[:, None, None]

    return values[rows, order.unsqueeze(-1), order.unsqueeze(-2)]
