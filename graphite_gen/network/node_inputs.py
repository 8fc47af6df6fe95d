"""Node inputs of a network: sparse features, or the identity, as left factors of a matrix product."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from ..errors import DatasetError
from ..nn.operators import csr_product, csr_tensor, differentiable_product
from .network import Network

__all__ = ["IdentityInputs", "NodeInputs", "SparseInputs", "dropout", "inputs_of"]


NodeInputs: TypeAlias = "IdentityInputs | SparseInputs"
"""The input features :math:`H^0`, :math:`(N, F)`, used through products with weights, and with dropout."""


@dataclass(frozen=True)
class IdentityInputs:
    """The paper's :math:`H^0 = I`, for networks without features: the product is the weights themselves.

    Rows of the isolated nodes, with shape :math:`(M,)`, are zero, so that these share their latents. With embeddings of
    their own, the sampled non-edges would teach them to have no edges at all.
    """

    nodes: int
    isolated: Tensor | None = None

    @property
    def width(self) -> int:
        return self.nodes

    def __matmul__(self, weight: Tensor) -> Tensor:
        return weight if self.isolated is None else weight.index_fill(0, self.isolated, 0)

    def dropped(self, rate: float, generator: torch.Generator) -> NodeInputs:
        """The inputs unchanged: a row has only one entry to drop."""
        return self


@dataclass(frozen=True)
class SparseInputs:
    """Sparse features in CSR form, with shape :math:`(N, F)`, and their transpose, which the gradient needs.

    ``order`` has the position of each value of the transpose among those of the matrix.
    """

    matrix: Tensor
    transposed: Tensor
    order: Tensor

    @classmethod
    def from_features(cls, features: sparse.csr_array, dtype: torch.dtype | None = None) -> SparseInputs:
        """Scaled features: sparse columns, such as words and categories, are scaled to rows of unit norm.

        A column that is nonzero for more than two thirds of the nodes is a dense measurement, such as an age, and is
        standardised to mean 0 and standard deviation 1. (In Pubmed the most frequent word is in three of five papers.)
        If there are any, rows are not scaled to unit norm: the other columns are divided by their largest absolute
        value, and the whole matrix by the root mean square norm of its rows.
        """
        x = sparse.csr_array(features, dtype=np.float64)
        x.sum_duplicates()
        counts = np.bincount(x.indices[x.data != 0], minlength=x.shape[1])
        is_dense = 3 * counts > 2 * x.shape[0]
        x = _scale_mixed(x, is_dense) if is_dense.any() else _scale_rows(x)
        places = sparse.csr_array((np.arange(x.nnz), x.indices, x.indptr), shape=x.shape).T.tocsr()
        order = torch.from_numpy(places.data)
        data = torch.from_numpy(x.data).to(dtype or torch.get_default_dtype())

        return cls(_rows(x, data), _rows(places, data[order]), order)

    @property
    def width(self) -> int:
        return int(self.matrix.shape[1])

    def __matmul__(self, weight: Tensor) -> Tensor:
        return differentiable_product(partial(csr_product, self.matrix), partial(csr_product, self.transposed), weight)

    def dropped(self, rate: float, generator: torch.Generator) -> NodeInputs:
        if rate == 0:
            return self
        values = dropout(self.matrix.values(), rate, generator)

        return SparseInputs(_with(self.matrix, values), _with(self.transposed, values[self.order]), self.order)


def inputs_of(graph: Network, features: bool | None = None, edges: NDArray[np.integer] | None = None) -> NodeInputs:
    """Node inputs of a network: its features if it has any, or the identity without isolated nodes.

    ``edges`` are the training edges, with shape :math:`(E, 2)`; None for all edges.
    """
    if graph.features is not None and graph.features.shape[1] and features is not False:
        inputs = SparseInputs.from_features(graph.features)
        if not inputs.matrix.values().any():
            raise DatasetError("All nodes have the same features: use features=False.", reason="uninformative-features")
        return inputs
    if features:
        raise DatasetError("The graph has no node features, and features=True.", reason="no-features")
    degrees = np.bincount((graph.edges if edges is None else edges).ravel(), minlength=graph.nodes)
    isolated = torch.from_numpy(np.flatnonzero(degrees == 0))

    return IdentityInputs(graph.nodes, isolated if len(isolated) else None)


def dropout(h: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Dropout with an explicit random generator."""
    if rate == 0:
        return h
    kept = torch.rand(h.shape, generator=generator, dtype=h.dtype, device=h.device) >= rate

    return h * kept / (1 - rate)


def _scale_rows(x: sparse.csr_array) -> sparse.csr_array:
    """Rows of unit norm; empty rows stay zero."""
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    # Exact scaling by powers of two, so that squares neither overflow nor underflow.
    exponents = np.frexp(abs(x).max(axis=1).toarray())[1]
    near_one = sparse.csr_array((np.ldexp(x.data, -exponents[rows]), x.indices, x.indptr), shape=x.shape)
    norms = np.sqrt(near_one.multiply(near_one).sum(axis=1))
    near_one.data /= np.where(norms > 0, norms, 1)[rows]

    return near_one


def _scale_mixed(x: sparse.csr_array, is_dense: NDArray[np.bool_]) -> sparse.csr_array:
    """Standardised dense columns beside scaled sparse ones."""
    nodes, dense = x.shape[0], np.flatnonzero(is_dense)
    largest = abs(x).max(axis=0).toarray()
    others = np.where(is_dense[x.indices], 0, x.data / np.where(largest > 0, largest, 1)[x.indices])
    numbers = _standardised(x[:, dense].toarray())
    starts = len(dense) * np.arange(nodes + 1)
    whole = sparse.csr_array((others, x.indices, x.indptr), shape=x.shape) + sparse.csr_array(
        (numbers.ravel(), np.tile(dense, nodes), starts), shape=x.shape
    )
    length = np.sqrt(np.square(whole.data).sum() / nodes)
    whole.data /= length if length > 0 else 1

    return whole


def _standardised(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns of mean 0 and standard deviation 1; constant columns become 0."""
    # First scaled to [0, 1], so that squares neither overflow nor underflow.
    columns = columns / np.abs(columns).max(axis=0)
    spans = np.ptp(columns, axis=0)
    varies = spans > 0
    columns = (columns - columns.min(axis=0)) / np.where(varies, spans, 1)
    columns -= columns.mean(axis=0)

    return columns / np.where(varies, columns.std(axis=0), 1)


def _rows(x: sparse.csr_array, values: Tensor) -> Tensor:
    ends, columns = (torch.from_numpy(each.astype(np.int64)) for each in (x.indptr, x.indices))

    return csr_tensor(ends, columns, values, x.shape[1])


def _with(matrix: Tensor, values: Tensor) -> Tensor:
    return csr_tensor(matrix.crow_indices(), matrix.col_indices(), values, matrix.shape[1])
