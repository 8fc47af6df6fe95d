"""Graphs as things to multiply by: dense, sparse or low-rank."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

__all__ = [
    "Graph",
    "LowRankGraph",
    "PageRankGraph",
    "SparseGraph",
    "compressed_rows",
    "gcn_normalise",
    "rows_product",
    "symmetric_product",
]


class Graph(Protocol):
    """Anything that node states can be multiplied by: a dense or sparse tensor, or a low-rank graph."""

    def __matmul__(self, h: Tensor, /) -> Tensor:
        """Pass messages: :math:`A H`, with shape :math:`(*, N, d)`."""
        ...


def gcn_normalise(adj: Tensor, mask: Tensor) -> Tensor:
    r"""The propagation matrix of a GCN (eq. 3), with self-loops as in Kipf & Welling (2017).

    .. math:: \tilde{A} = D^{-1/2} (A + I) D^{-1/2}

    Arguments:
        adj: Adjacency or weight matrices, with shape :math:`(*, N, N)`.
        mask: True for real nodes, with shape :math:`(*, N)`.

    Returns:
        The normalised matrices; rows and columns of dummy nodes are zero.
    """
    adj = adj + torch.diag_embed(mask.to(adj))
    # Weights may be negative: a degree is the sum of their sizes, so that its root exists.
    scale = adj.abs().sum(-1).clamp_min(torch.finfo(adj.dtype).tiny).rsqrt() * mask.to(adj)

    return scale.unsqueeze(-1) * adj * scale.unsqueeze(-2)


@dataclass(frozen=True)
class LowRankGraph:
    r"""The graph :math:`\hat{A} = F F^T` of a factor, never written out.

    A product :math:`\hat{A} H` is computed as :math:`F (F^T H)` in :math:`O(N k d)`.

    Attributes:
        factor: The factor :math:`F`, zero at dummy nodes, with shape :math:`(*, N, k)`.
    """

    factor: Tensor

    @classmethod
    def from_latents(cls, z: Tensor, mask: Tensor, *, per_node: bool = False) -> LowRankGraph:
        r"""The decoder's intermediate graph (Grover et al., 2019, eq. 8).

        .. math:: \hat{A} = Z Z^T / \|Z\|^2 + 1 1^T

        The rank-one term is one more column of the factor, equal to the mask.

        Arguments:
            z: The node latents :math:`Z`, with shape :math:`(*, N, D)`.
            mask: True for real nodes, with shape :math:`(*, N)`.
            per_node: Whether each node has its own norm, which makes the first term a cosine, as in the authors' code;
                else the norm is that of the matrix.

        Returns:
            A graph of rank :math:`D + 1`; padding has no neighbours.
        """
        ones = mask.unsqueeze(-1).to(z).expand(*z.shape[:-1], 1)
        z = z * ones
        norm = z.square().sum(-1 if per_node else (-2, -1), keepdim=True).clamp_min(torch.finfo(z.dtype).tiny).sqrt()

        return cls(torch.cat([z / norm, ones], dim=-1))

    def normalised(self) -> LowRankGraph:
        r"""Symmetric degree normalisation :math:`D^{-1/2} \hat{A} D^{-1/2}` (eq. 3): the factor's rows rescaled.

        The entries of eq. 8 are not negative, so degrees are positive wherever a node is real.
        """
        degrees = self.factor @ self.factor.sum(-2).unsqueeze(-1)
        scale = torch.where(degrees > 0, degrees.clamp_min(torch.finfo(degrees.dtype).tiny).rsqrt(), 0)

        return LowRankGraph(scale * self.factor)

    def __matmul__(self, h: Tensor) -> Tensor:
        return self.factor @ (self.factor.mT @ h)


@dataclass(frozen=True)
class SparseGraph:
    r"""A symmetric sparse matrix to multiply by, in :math:`O((N + E) d)`.

    Rows are compressed: measured on a CPU, such a product takes a tenth of the time of one by coordinates, and less of
    that of gathering and scattering. No gradient flows to the weights.

    Attributes:
        matrix: The symmetric matrix as compressed rows, with shape :math:`(N, N)`. Every cell of the diagonal is
            stored, zero or not, so that self-loops change values and never the structure.
    """

    matrix: Tensor

    @classmethod
    def from_edges(cls, edges: Tensor, nodes: int, weights: Tensor | None = None) -> SparseGraph:
        """The adjacency matrix of an undirected graph, on the device of its edges.

        Arguments:
            edges: The two ends of every edge, each edge once and in either order, with shape :math:`(2, E)`.
            nodes: The number of nodes :math:`N`.
            weights: Weights of the edges, with shape :math:`(E,)`; ones by default.
        """
        if weights is None:
            weights = torch.ones(edges.shape[1], device=edges.device)
        diagonal = torch.arange(nodes, device=edges.device)
        rows = torch.cat([edges[0], edges[1], diagonal])
        columns = torch.cat([edges[1], edges[0], diagonal])
        values = torch.cat([weights, weights, weights.new_zeros(nodes)])
        # In the order of columns within a row, neighbours that are near in memory are read together.
        order = torch.argsort(rows * nodes + columns)
        ends = torch.bincount(rows, minlength=nodes).cumsum(0)

        return cls(compressed_rows(torch.cat([ends.new_zeros(1), ends]), columns[order], values[order], nodes))

    def normalised(self) -> SparseGraph:
        r"""The propagation matrix of a GCN (eq. 3), with self-loops as in Kipf & Welling (2017).

        .. math:: \tilde{A} = D^{-1/2} (A + I) D^{-1/2}

        As for dense matrices, a degree is the sum of the weights' sizes, so that its root exists.
        """
        ends, columns, values = self.matrix.crow_indices(), self.matrix.col_indices(), self.matrix.values()
        rows = torch.repeat_interleave(ends.diff())
        values = values + (rows == columns).to(values)
        degrees = values.new_zeros(len(ends) - 1).index_add_(0, rows, values.abs())
        scale = degrees.clamp_min(torch.finfo(values.dtype).tiny).rsqrt()

        return SparseGraph(compressed_rows(ends, columns, scale[rows] * values * scale[columns], len(scale)))

    def __matmul__(self, h: Tensor) -> Tensor:
        return symmetric_product(lambda states: rows_product(self.matrix, states), h)


def symmetric_product(multiply: Callable[[Tensor], Tensor], h: Tensor) -> Tensor:
    """A product by a symmetric matrix, which is its own transpose: the gradient is the same product.

    Arguments:
        multiply: The product, which no gradient flows through.
        h: Node states, with shape :math:`(N, d)`.
    """
    product: Tensor = _SymmetricProduct.apply(multiply, h)  # type: ignore[no-untyped-call]

    return product


def rows_product(matrix: Tensor, h: Tensor) -> Tensor:
    """The product of a matrix of compressed rows with shape :math:`(M, N)` and states of shape :math:`(N, d)`."""
    # Added to zeros: torch's own product of the two makes room for the result twice, at up to three times the cost.
    return h.new_zeros(matrix.shape[0], h.shape[1]).addmm_(matrix, h)


def compressed_rows(ends: Tensor, columns: Tensor, values: Tensor, width: int) -> Tensor:
    """A sparse matrix as compressed rows, which nothing is checked of.

    Arguments:
        ends: Where each row begins, and the last one ends, with shape :math:`(N + 1,)`.
        columns: The column of each value, with shape :math:`(M,)`.
        values: The values, row by row, with shape :math:`(M,)`.
        width: The number of columns.
    """
    with warnings.catch_warnings():
        # Torch calls compressed rows a beta, once a process; a product by a dense matrix is all that is asked of them.
        warnings.filterwarnings("ignore", message="Sparse")

        return torch.sparse_csr_tensor(ends, columns, values, (len(ends) - 1, width), check_invariants=False)


class _SymmetricProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, multiply: Callable[[Tensor], Tensor], h: Tensor) -> Tensor:
        ctx.multiply = multiply

        return multiply(h)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, Tensor]:
        return None, symmetric_product(ctx.multiply, gradient)


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
