"""Disjoint unions of graphs as one sparse matrix, to count for many graphs in one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..graph import SimpleGraph

__all__ = ["Union", "unions"]

# The maximum number of two-step walks in a union, which bounds the memory of the squared matrix.
MAX_WALKS = 1 << 22


@dataclass(frozen=True)
class Union:
    """The disjoint union of graphs, with consecutive node numbers.

    Attributes:
        adjacency: The symmetric 0/1 matrix of all nodes in CSR form, of 64-bit integers, with shape :math:`(M, M)`.
        starts: The first node of each graph and the total number of nodes, with shape :math:`(G + 1,)`.
    """

    adjacency: Any
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, graphs: Sequence[SimpleGraph]) -> Union:
        starts = np.concatenate([[0], np.cumsum([graph.nodes for graph in graphs])]).astype(np.int64)
        parts = [graph.edges + start for graph, start in zip(graphs, starts, strict=False)]
        i, j = np.concatenate([np.zeros((0, 2), dtype=np.int64), *parts]).T
        ones = np.ones(2 * len(i), dtype=np.int64)
        places = np.concatenate([i, j]), np.concatenate([j, i])

        return cls(sparse.csr_array((ones, places), shape=(starts[-1], starts[-1])), starts)

    def split(self, values: NDArray[Any]) -> list[NDArray[Any]]:
        """The rows of each graph."""
        return np.split(values, self.starts[1:-1])


def unions(graphs: Sequence[SimpleGraph]) -> Iterator[Union]:
    """Unions of consecutive graphs, each with at most :data:`MAX_WALKS` two-step walks."""
    held: list[SimpleGraph] = []
    walks = 0
    for graph in graphs:
        more = int((graph.degrees() ** 2).sum()) + graph.nodes
        if held and walks + more > MAX_WALKS:
            yield Union.of(held)
            held, walks = [], 0
        held.append(graph)
        walks += more
    if held:
        yield Union.of(held)
