"""What the nodes of a large graph bring along: anything that weights can be multiplied by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from ..errors import DatasetError
from ..operators.sparse import compressed_rows, rows_product
from .data import SingleGraph

__all__ = ["IdentityInputs", "NodeInputs", "SparseInputs", "dropout", "inputs_of"]


class NodeInputs(Protocol):
    """The input features :math:`H^0`, known by their products with weights."""

    @property
    def width(self) -> int:
        """The number of columns :math:`F`."""
        ...

    def __matmul__(self, weight: Tensor, /) -> Tensor:
        """The product :math:`H^0 W` with weights of shape :math:`(F, d)`, with shape :math:`(N, d)`."""
        ...

    def dropped(self, rate: float, generator: torch.Generator) -> NodeInputs:
        """The same with entries set to zero at random, the others scaled up to keep the mean."""
        ...


@dataclass(frozen=True)
class IdentityInputs:
    """The paper's :math:`H^0 = I`, for graphs without features: the product is the weights themselves."""

    nodes: int

    @property
    def width(self) -> int:
        """As many columns as nodes."""
        return self.nodes

    def __matmul__(self, weight: Tensor) -> Tensor:
        return weight

    def dropped(self, rate: float, generator: torch.Generator) -> NodeInputs:
        """The same: without its one, a node would have nothing."""
        return self


@dataclass(frozen=True)
class SparseInputs:
    """Sparse features and their transpose, which gradients are multiplied by.

    Attributes:
        matrix: The features as compressed rows, with shape :math:`(N, F)`.
        transposed: The same for the transpose, with shape :math:`(F, N)`.
        order: Where each value of the transpose stands among those of the matrix.
    """

    matrix: Tensor
    transposed: Tensor
    order: Tensor

    @classmethod
    def from_features(cls, features: sparse.csr_array, dtype: torch.dtype | None = None) -> SparseInputs:
        """The features of a graph, each row scaled to length one.

        Rows then count alike, however long a text they come from; a node without features stays at zero.
        """
        x = sparse.csr_array(features, dtype=np.float64)
        x.sum_duplicates()
        norms = np.sqrt(x.multiply(x).sum(axis=1))
        values = x.data / np.repeat(np.where(norms > 0, norms, 1), np.diff(x.indptr))
        places = sparse.csr_array((np.arange(x.nnz), x.indices, x.indptr), shape=x.shape).T.tocsr()
        order = torch.from_numpy(places.data)
        data = torch.from_numpy(values).to(dtype or torch.get_default_dtype())

        return cls(_rows(x, data), _rows(places, data[order]), order)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.matrix.shape[1])

    def __matmul__(self, weight: Tensor) -> Tensor:
        product: Tensor = _Product.apply(self.matrix, self.transposed, weight)  # type: ignore[no-untyped-call]

        return product

    def dropped(self, rate: float, generator: torch.Generator) -> NodeInputs:
        """The same with stored entries dropped at random."""
        if rate == 0:
            return self
        values = dropout(self.matrix.values(), rate, generator)

        return SparseInputs(_with(self.matrix, values), _with(self.transposed, values[self.order]), self.order)


def inputs_of(graph: SingleGraph, features: bool | None = None) -> NodeInputs:
    """What the nodes of a graph bring along: its features, or the identity.

    Arguments:
        graph: The graph.
        features: Whether to use its features; None does where there are any.

    Raises:
        DatasetError: Features are asked for, and it has none.
    """
    if graph.features is None or not graph.features.shape[1]:
        if features:
            raise DatasetError("The graph has no features: pass them with '--node-features', or '--no-features'.")
        return IdentityInputs(graph.nodes)

    return IdentityInputs(graph.nodes) if features is False else SparseInputs.from_features(graph.features)


def dropout(h: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Entries set to zero at random, the others scaled up to keep the mean."""
    if rate == 0:
        return h
    kept = torch.rand(h.shape, generator=generator, dtype=h.dtype, device=h.device) >= rate

    return h * kept / (1 - rate)


def _rows(x: sparse.csr_array, values: Tensor) -> Tensor:
    ends, columns = (torch.from_numpy(each.astype(np.int64)) for each in (x.indptr, x.indices))

    return compressed_rows(ends, columns, values, x.shape[1])


def _with(matrix: Tensor, values: Tensor) -> Tensor:
    return compressed_rows(matrix.crow_indices(), matrix.col_indices(), values, matrix.shape[1])


class _Product(torch.autograd.Function):
    """The product by a sparse matrix, whose transpose is at hand for the gradient."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, weight: Tensor) -> Tensor:
        ctx.transposed = transposed

        return rows_product(matrix, weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, rows_product(ctx.transposed, gradient)
