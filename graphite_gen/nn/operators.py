"""Graph operators (eqs. 3 and 8), anything that multiplies node states: dense, sparse or low-rank."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

__all__ = [
    "Graph",
    "LowRankGraph",
    "PageRankGraph",
    "SparseGraph",
    "csr_product",
    "csr_tensor",
    "differentiable_product",
    "gcn_normalise",
    "masked",
]


class Graph(Protocol):
    """An operator on node states: a dense or sparse tensor, or one of the classes below."""

    def __matmul__(self, h: Tensor, /) -> Tensor:
        """Message passing :math:`A H`, with shape :math:`(*, N, d)`."""
        ...


def masked(h: Tensor, mask: Tensor | None) -> Tensor:
    """States of shape :math:`(*, N, d)`, zero at padding nodes; None if all nodes are real."""
    return h if mask is None else h * mask.unsqueeze(-1).to(h)


def gcn_normalise(adj: Tensor, mask: Tensor) -> Tensor:
    r"""Propagation matrix of a GCN (eq. 3), with self-loops as in Kipf & Welling (2017).

    .. math:: \tilde{A} = D^{-1/2} (A + I) D^{-1/2}

    Weights have shape :math:`(*, N, N)`, the mask of real nodes :math:`(*, N)`; rows and columns of padding are zero.
    """
    adj = adj + torch.diag_embed(mask.to(adj))
    # Weights may be negative: degrees sum absolute values, so that the root exists.
    scale = adj.abs().sum(-1).clamp_min(torch.finfo(adj.dtype).tiny).rsqrt() * mask.to(adj)

    return scale.unsqueeze(-1) * adj * scale.unsqueeze(-2)


@dataclass(frozen=True)
class LowRankGraph:
    r"""The graph :math:`\hat{A} = F F^T`, stored as its factor.

    A product :math:`\hat{A} H` is computed as :math:`F (F^T H)` in :math:`O(N k d)`, never as a dense matrix. The
    factor has shape :math:`(*, N, k)` and is zero at padding nodes.
    """

    factor: Tensor

    @classmethod
    def from_latents(cls, z: Tensor, mask: Tensor | None, *, per_node: bool = False) -> LowRankGraph:
        r"""Intermediate graph of the decoder (Grover et al., 2019, eq. 8).

        .. math:: \hat{A} = Z Z^T / \|Z\|^2 + 1 1^T

        Latents have shape :math:`(*, N, D)`. The rank-one term is one more column of the factor, equal to the mask.
        With ``per_node`` each row of :math:`Z` is divided by its own norm, which makes the first term a cosine, as in
        the authors' code, instead of by the norm of the matrix. Without a mask all nodes are real.
        """
        ones = masked(z.new_ones(*z.shape[:-1], 1), mask)
        z = masked(z, mask)
        norm = z.square().sum(-1 if per_node else (-2, -1), keepdim=True).clamp_min(torch.finfo(z.dtype).tiny).sqrt()

        return cls(torch.cat([z / norm, ones], dim=-1))

    def normalised(self) -> LowRankGraph:
        r"""Symmetric degree normalisation :math:`D^{-1/2} \hat{A} D^{-1/2}` (eq. 3), by rescaling rows of the factor.

        The entries of eq. 8 are non-negative, so the degrees of real nodes are positive.
        """
        degrees = self.factor @ self.factor.sum(-2).unsqueeze(-1)
        scale = torch.where(degrees > 0, degrees.clamp_min(torch.finfo(degrees.dtype).tiny).rsqrt(), 0)

        return LowRankGraph(scale * self.factor)

    def __matmul__(self, h: Tensor) -> Tensor:
        return self.factor @ (self.factor.mT @ h)


@dataclass(frozen=True)
class SparseGraph:
    r"""A symmetric sparse matrix; a product costs :math:`O((N + E) d)`.

    Stored as CSR: on a CPU its products take a tenth of the time of COO, and less than gather and scatter. No gradient
    flows to the weights. The whole diagonal is stored, zeros included, so that adding self-loops keeps the sparsity
    pattern.
    """

    matrix: Tensor

    @classmethod
    def from_edges(cls, edges: Tensor, nodes: int, weights: Tensor | None = None) -> SparseGraph:
        """Adjacency matrix of undirected edges :math:`(2, E)`, each once and in either direction."""
        if weights is None:
            weights = torch.ones(edges.shape[1], device=edges.device)
        diagonal = torch.arange(nodes, device=edges.device)
        rows = torch.cat([edges[0], edges[1], diagonal])
        columns = torch.cat([edges[1], edges[0], diagonal])
        values = torch.cat([weights, weights, weights.new_zeros(nodes)])
        # Sorted columns within a row, for locality of memory access.
        order = torch.argsort(rows * nodes + columns)
        ends = torch.bincount(rows, minlength=nodes).cumsum(0)

        return cls(csr_tensor(torch.cat([ends.new_zeros(1), ends]), columns[order], values[order], nodes))

    def normalised(self) -> SparseGraph:
        """Propagation matrix of a GCN (eq. 3); the sparse form of :func:`gcn_normalise`."""
        ends, columns, values = self.matrix.crow_indices(), self.matrix.col_indices(), self.matrix.values()
        rows = torch.repeat_interleave(ends.diff())
        values = values + (rows == columns).to(values)
        degrees = values.new_zeros(len(ends) - 1).index_add_(0, rows, values.abs())
        scale = degrees.clamp_min(torch.finfo(values.dtype).tiny).rsqrt()

        return SparseGraph(csr_tensor(ends, columns, scale[rows] * values * scale[columns], len(scale)))

    def __matmul__(self, h: Tensor) -> Tensor:
        multiply = partial(csr_product, self.matrix)

        return differentiable_product(multiply, multiply, h)


def csr_product(matrix: Tensor, h: Tensor) -> Tensor:
    """Product of a CSR matrix with shape :math:`(M, N)` and states of shape :math:`(N, d)`."""
    # addmm_ on zeros: torch's own CSR product allocates the result twice, at up to three times the cost.
    return h.new_zeros(matrix.shape[0], h.shape[1]).addmm_(matrix, h)


def csr_tensor(ends: Tensor, columns: Tensor, values: Tensor, width: int) -> Tensor:
    """CSR matrix of row pointers :math:`(N + 1,)`, column indices :math:`(M,)` and values :math:`(M,)`, unchecked."""
    with warnings.catch_warnings():
        # Torch warns that CSR tensors are in beta; only products with dense matrices are used here.
        warnings.filterwarnings("ignore", message="Sparse")

        return torch.sparse_csr_tensor(ends, columns, values, (len(ends) - 1, width), check_invariants=False)


_Map = Callable[[Tensor], Tensor]


class _Product(torch.autograd.Function):
    """Product with a constant matrix: the gradient is the product of the gradient with the transpose."""

    @staticmethod
    def forward(ctx: Any, multiply: _Map, transposed: _Map, h: Tensor) -> Tensor:
        ctx.maps = transposed, multiply

        return multiply(h)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        transposed, multiply = ctx.maps

        return None, None, differentiable_product(transposed, multiply, gradient)


differentiable_product: Callable[[_Map, _Map, Tensor], Tensor] = _Product.apply


@dataclass(frozen=True)
class PageRankGraph:
    r"""Personalised PageRank propagation, APPNP (Klicpera et al., 2019).

    .. math:: H_0 = H, \quad H_{k+1} = (1 - \alpha) \tilde{A} H_k + \alpha H

    One product is ``steps`` propagation steps over a normalised graph; without steps it is the identity.
    """

    graph: SparseGraph
    teleport: float
    steps: int

    def __matmul__(self, h: Tensor) -> Tensor:
        # A polynomial of a symmetric matrix is symmetric, so no intermediate state is kept for the gradient.
        return differentiable_product(self._propagate, self._propagate, h)

    def _propagate(self, h: Tensor) -> Tensor:
        # Two buffers in turn: new ones for every step cost a quarter of the time.
        states, *buffers = h, *(torch.empty_like(h) for _ in range(min(self.steps, 2)))
        for step in range(self.steps):
            target = buffers[step % 2]
            states = torch.addmm(h, self.graph.matrix, states, beta=self.teleport, alpha=1 - self.teleport, out=target)

        return states
