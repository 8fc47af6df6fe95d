"""Random orders of arrival, and the way back to the numbers that nodes have."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .feasibility import DemandLimits
from .requirements import Demands

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
        sizes: NDArray[np.int64],
        keys: NDArray[np.float64],
        device: torch.device,
        demands: Sequence[Demands] | None = None,
        *,
        by_degree: bool = False,
    ) -> None:
        """Order nodes by random keys.

        Arguments:
            sizes: The number of nodes of each graph, with shape :math:`(B,)`.
            keys: Noise in [0, 1), with shape :math:`(B, N)`.
            device: Where to compute.
            demands: What each graph is held to; None for nothing.
            by_degree: Whether nodes that may have more neighbours come first: among unequal degrees that leads into
                dead ends less often than a random order does, though not never.
        """
        keys = keys + 2 * (np.arange(keys.shape[1]) >= sizes[:, None])
        for row, demand in zip(keys, demands or (), strict=False):
            if demand.connected:
                # Nodes that may have one neighbour alone would leave nothing to connect to: they come last.
                row[: demand.nodes] += demand.highest <= 1
            if by_degree:
                row[: demand.nodes] -= demand.highest
        order = np.argsort(keys, axis=1)
        self.order = torch.from_numpy(order).to(device)
        self.sizes = torch.from_numpy(sizes).to(device)
        self.limits = None
        if demands is not None:
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
