"""Walks that may go far, as a graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .sparse import SparseGraph, symmetric_product

__all__ = ["PageRankGraph"]


@dataclass(frozen=True)
class PageRankGraph:
    r"""Personalised PageRank over a normalised graph, never written out (Klicpera et al., 2019).

    .. math:: H_0 = H, \quad H_{k+1} = (1 - \alpha) \tilde{A} H_k + \alpha H

    One product reaches as far as its steps; how far it listens is the teleport probability's to say. Without steps it
    is the identity.

    Attributes:
        graph: The normalised graph :math:`\tilde{A}`.
        teleport: The probability :math:`\alpha` of starting again.
        steps: The number of steps.
    """

    graph: SparseGraph
    teleport: float
    steps: int

    def __matmul__(self, h: Tensor) -> Tensor:
        # A polynomial of a symmetric matrix is symmetric too: no state in between is kept for the gradient.
        return symmetric_product(self._walk, h)

    def _walk(self, h: Tensor) -> Tensor:
        states = h
        for _ in range(self.steps):
            # The product and the mixture in one pass over the states.
            states = torch.addmm(h, self.graph.matrix, states, beta=self.teleport, alpha=1 - self.teleport)

        return states
