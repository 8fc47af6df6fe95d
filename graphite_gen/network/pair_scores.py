"""Scores of node pairs without a trained model: walks, common neighbours, and products of embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import eigsh
from torch import Tensor

from ..nn.operators import csr_product, csr_tensor
from .arcs import Arcs
from .splits import Pairs

__all__ = ["CommonNeighbours", "PairScores", "WalkSeries", "adjacency_of", "katz", "pagerank"]

# Steps of a walk after which the remaining terms are left out.
STEPS = 30
# The relative accuracy of the largest eigenvalue: more takes minutes on paths and roads, whose eigenvalues are dense.
ACCURACY = 1e-4
# Entries of a block of walk states at once, in whole columns: a few megabytes stay near the processor.
NUMBERS = 1 << 20
# Pairs whose common neighbours are in memory at once.
PAIRS = 1 << 16


class PairScores(Protocol):
    """A symmetric score of all node pairs, higher for likelier edges."""

    def of(self, pairs: Tensor, /) -> Tensor:
        """Scores of the given pairs :math:`(2, M)`, with shape :math:`(M,)`."""
        ...

    def tile(self, rows: slice, columns: slice, /) -> Tensor:
        """A block of the matrix of scores; its diagonal has no meaning."""
        ...


def adjacency_of(nodes: int, edges: Pairs) -> sparse.csr_array:
    """The adjacency matrix of edges with shape :math:`(E, 2)`."""
    i, j = np.concatenate([edges, edges[:, ::-1]]).T

    return sparse.csr_array((np.ones(len(i)), (i, j)), shape=(nodes, nodes))


@dataclass(frozen=True, eq=False)
class WalkSeries:
    r"""A weighted sum over walks of all lengths, computed exactly for a block of sources at a time.

    .. math:: \sum_k c_k W^k

    ``walk`` is the symmetric CSR matrix :math:`W`, with shape :math:`(n, n)`, and ``weights`` are the coefficients
    :math:`c`, with shape :math:`(K + 1,)`, or :math:`(T, K + 1)` for several series, which share the walks and have a
    dimension of their own in the scores.
    """

    walk: Tensor
    weights: Tensor

    def of(self, pairs: Tensor) -> Tensor:
        """Scores of pairs :math:`(2, M)`, with shape :math:`(M,)` or :math:`(T, M)`."""
        scores = self.weights.new_zeros(*self.weights.shape[:-1], pairs.shape[1])
        # Walks cost far more than pairs, and the series is symmetric: they start at the end that is in more pairs.
        counts = torch.bincount(pairs.flatten(), minlength=len(self.walk))
        near, far = torch.where(counts[pairs[1]] > counts[pairs[0]], pairs.flip(0), pairs)
        sources, own = torch.unique(near, return_inverse=True)
        order = own.argsort(stable=True)
        width = max(1, NUMBERS // max(len(self.walk), 1))
        ends = torch.bincount(own, minlength=len(sources)).cumsum(0).tolist()
        first = 0
        for start in range(0, len(sources), width):
            here = sources[start : start + width]
            last = ends[start + len(here) - 1]
            chosen = order[first:last]
            at = far[chosen], own[chosen] - start
            states = self._begin(here)
            total = self.weights[..., :1] * states[at]
            for k in range(1, self.weights.shape[-1]):
                states = csr_product(self.walk, states)
                total += self.weights[..., k : k + 1] * states[at]
            scores[..., chosen] = total
            first = last

        return scores

    def tile(self, rows: slice | NDArray[np.int64], columns: slice) -> Tensor:
        """A block of the matrix of scores, with shape :math:`(R, C)` or :math:`(T, R, C)`."""
        states = self._begin(torch.arange(len(self.walk))[rows])
        weights = self.weights[..., None, None]
        total = weights[..., 0, :, :] * states[columns]
        for k in range(1, self.weights.shape[-1]):
            states = csr_product(self.walk, states)
            total += weights[..., k, :, :] * states[columns]

        return total.mT

    def _begin(self, sources: Tensor) -> Tensor:
        states = self.weights.new_zeros(len(self.walk), len(sources))
        states[sources, torch.arange(len(sources))] = 1

        return states


def pagerank(nodes: int, edges: Pairs, *teleports: float) -> WalkSeries:
    r"""Personalised PageRank with symmetric normalisation, for one teleport probability or several.

    .. math:: \alpha \sum_k (1 - \alpha)^k \tilde{A}^k, \quad \tilde{A} = D^{-1/2} (A + I) D^{-1/2}
    """
    adjacency = adjacency_of(nodes, edges) + sparse.eye_array(nodes, format="csr")
    scale = sparse.diags_array(1 / np.sqrt(adjacency.sum(axis=1)))
    alpha = np.asarray(teleports)[:, None]
    weights = torch.from_numpy(alpha * (1 - alpha) ** np.arange(STEPS + 1)).to(torch.get_default_dtype())

    return WalkSeries(_tensor_of((scale @ adjacency @ scale).tocsr()), weights if len(teleports) > 1 else weights[0])


def katz(nodes: int, edges: Pairs) -> WalkSeries:
    r"""The Katz index :math:`\sum_{k \geq 1} \beta^k A^k` with half the largest :math:`\beta` that converges."""
    adjacency = adjacency_of(nodes, edges)
    if nodes > 2 and len(edges):
        start = np.ones(nodes)
        largest = float(eigsh(adjacency, k=1, which="LA", v0=start, tol=ACCURACY, return_eigenvectors=False)[0])
    else:
        largest = 1.0
    weights = torch.ones(STEPS + 1)
    weights[0] = 0

    return WalkSeries(_tensor_of(adjacency / (2 * largest)), weights)


def _tensor_of(matrix: sparse.csr_array) -> Tensor:
    ends, columns = (torch.from_numpy(each.astype(np.int64)) for each in (matrix.indptr, matrix.indices))

    return csr_tensor(ends, columns, torch.from_numpy(matrix.data).to(torch.get_default_dtype()), matrix.shape[1])


@dataclass(frozen=True, eq=False)
class CommonNeighbours:
    r"""Sums of weights over common neighbours, :math:`\sum_{k \in N(i) \cap N(j)} w_k`.

    ``weights`` has shape :math:`(n,)`, or :math:`(n, T)` for several indices, which have a dimension of their own in
    the scores. The edges are kept as a matrix for blocks, and as arcs for pairs: of these only the end with fewer
    neighbours is visited, since those of a hub could be all nodes.
    """

    adjacency: sparse.csr_array
    weights: NDArray[np.float64]
    arcs: Arcs

    @classmethod
    def from_edges(cls, nodes: int, edges: Pairs, *indices: str) -> CommonNeighbours:
        """One index or several: ``common-neighbours``, ``adamic-adar`` or ``resource-allocation``."""
        adjacency = adjacency_of(nodes, edges)
        # Common neighbours have degree at least 2.
        degrees = np.maximum(np.diff(adjacency.indptr), 2)
        known = {
            "common-neighbours": np.ones(nodes),
            # Adamic & Adar (2003), and Zhou, Lü & Zhang (2009).
            "adamic-adar": 1 / np.log(degrees),
            "resource-allocation": 1 / degrees,
        }
        weights = np.stack([known[name] for name in indices], axis=1)

        return cls(adjacency, weights if len(indices) > 1 else weights[:, 0], Arcs.of(edges.T, nodes))

    def of(self, pairs: Tensor) -> Tensor:
        """Scores of pairs :math:`(2, M)`, with shape :math:`(M,)` or :math:`(T, M)`."""
        scores = np.empty((*self.weights.shape[1:], pairs.shape[1]))
        for start in range(0, pairs.shape[1], PAIRS):
            i, j = pairs[:, start : start + PAIRS].numpy()
            pair, node = self.arcs.common_neighbours(i, j)
            for weights, row in zip(np.atleast_2d(self.weights.T), np.atleast_2d(scores), strict=True):
                row[start : start + PAIRS] = np.bincount(pair, weights=weights[node], minlength=len(i))

        return torch.from_numpy(scores).to(torch.get_default_dtype())

    def tile(self, rows: slice | NDArray[np.int64], columns: slice) -> Tensor:
        """A block of the matrix of scores, with shape :math:`(R, C)` or :math:`(T, R, C)`."""
        near, far = self.adjacency[rows], self.adjacency[columns].T.tocsr()
        tiles = [(near @ sparse.diags_array(each) @ far).toarray() for each in np.atleast_2d(self.weights.T)]
        found = torch.from_numpy(np.stack(tiles)).to(torch.get_default_dtype())

        return found if self.weights.ndim > 1 else found[0]
