"""What the nodes of a large graph bring along: anything that weights can be multiplied by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from ..errors import DatasetError
from ..nn.operators import csr_product, csr_tensor
from .network import Network

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
    """The paper's :math:`H^0 = I`, for graphs without features: the product is the weights themselves.

    Of a node without an edge nothing is known, not even which one it is: its row is zero, so that all of them have the
    same latents. With a row of its own, pairs that it is drawn for would teach it that no edge of its own can be.

    Attributes:
        nodes: The number of nodes :math:`N`.
        alone: The nodes without an edge, if there are any, with shape :math:`(M,)`.
    """

    nodes: int
    alone: Tensor | None = None

    @property
    def width(self) -> int:
        """As many columns as nodes."""
        return self.nodes

    def __matmul__(self, weight: Tensor) -> Tensor:
        return weight if self.alone is None else weight.index_fill(0, self.alone, 0)

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
        """The features of a graph, at a scale that weights are learned at.

        Words and categories, which most nodes lack, are scaled to rows of length one: rows then count alike, however
        long a text they come from, and a node without features stays at zero.

        A column that is not zero for more than two thirds of the nodes is a measurement, such as an age, of which rows
        of length one would leave little: it is standardised to mean 0 and deviation 1, and is 0 if it is constant. (In
        Pubmed a word is in three of five papers.) Beside measurements, rows stay as long as they are. The other columns
        are then divided by their largest value, which leaves 0 and 1 as they are, and the whole by the root mean
        square of its rows' lengths. Zeros of the other columns are not stored.
        """
        x = sparse.csr_array(features, dtype=np.float64)
        x.sum_duplicates()
        counts = np.bincount(x.indices[x.data != 0], minlength=x.shape[1])
        is_measured = 3 * counts > 2 * x.shape[0]
        x = _with_measurements(x, is_measured) if is_measured.any() else _rows_of_length_one(x)
        places = sparse.csr_array((np.arange(x.nnz), x.indices, x.indptr), shape=x.shape).T.tocsr()
        order = torch.from_numpy(places.data)
        data = torch.from_numpy(x.data).to(dtype or torch.get_default_dtype())

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


def inputs_of(graph: Network, features: bool | None = None, edges: NDArray[np.integer] | None = None) -> NodeInputs:
    """What the nodes of a graph bring along: its features, or the identity.

    Arguments:
        graph: The graph.
        features: Whether to use its features; None does where there are any.
        edges: The edges that may be known, with shape :math:`(E, 2)`; None for all of them.

    Raises:
        DatasetError: Features are asked for, and it has none; or all nodes have the same.
    """
    if graph.features is not None and graph.features.shape[1] and features is not False:
        inputs = SparseInputs.from_features(graph.features)
        if not inputs.matrix.values().any():
            raise DatasetError(
                "All nodes have the same features, which tell nothing: pass others, or '--no-features' (in Python, "
                "features=False)."
            )
        return inputs
    if features:
        raise DatasetError(
            "The graph has no features: give its nodes 'features', pass a file with '--node-features', or pass "
            "'--no-features' (in Python, features=False)."
        )
    degrees = np.bincount((graph.edges if edges is None else edges).ravel(), minlength=graph.nodes)
    alone = torch.from_numpy(np.flatnonzero(degrees == 0))

    return IdentityInputs(graph.nodes, alone if len(alone) else None)


def dropout(h: Tensor, rate: float, generator: torch.Generator) -> Tensor:
    """Entries set to zero at random, the others scaled up to keep the mean."""
    if rate == 0:
        return h
    kept = torch.rand(h.shape, generator=generator, dtype=h.dtype, device=h.device) >= rate

    return h * kept / (1 - rate)


def _rows_of_length_one(x: sparse.csr_array) -> sparse.csr_array:
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    # Powers of two change no digit, and keep squares from being infinite or lost.
    exponents = np.frexp(_largest(x.data, rows, x.shape[0]))[1]
    near_one = sparse.csr_array((np.ldexp(x.data, -exponents[rows]), x.indices, x.indptr), shape=x.shape)
    norms = np.sqrt(near_one.multiply(near_one).sum(axis=1))
    near_one.data /= np.where(norms > 0, norms, 1)[rows]

    return near_one


def _with_measurements(x: sparse.csr_array, is_measured: NDArray[np.bool_]) -> sparse.csr_array:
    nodes, measured = x.shape[0], np.flatnonzero(is_measured)
    largest = _largest(x.data, x.indices, x.shape[1])
    others = np.where(is_measured[x.indices], 0, x.data / np.where(largest > 0, largest, 1)[x.indices])
    numbers = _standardised(x[:, measured].toarray())
    starts = len(measured) * np.arange(nodes + 1)
    whole = sparse.csr_array((others, x.indices, x.indptr), shape=x.shape) + sparse.csr_array(
        (numbers.ravel(), np.tile(measured, nodes), starts), shape=x.shape
    )
    length = np.sqrt(np.square(whole.data).sum() / nodes)
    whole.data /= length if length > 0 else 1

    return whole


def _standardised(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Columns of mean 0 and deviation 1, or of zeros if all of a column is the same."""
    # First from 0 to 1, so that no square is infinite or lost.
    columns = columns / np.abs(columns).max(axis=0)
    spans = np.ptp(columns, axis=0)
    varies = spans > 0
    columns = (columns - columns.min(axis=0)) / np.where(varies, spans, 1)
    columns -= columns.mean(axis=0)

    return columns / np.where(varies, columns.std(axis=0), 1)


def _largest(values: NDArray[np.float64], places: NDArray[np.integer[Any]], count: int) -> NDArray[np.float64]:
    """The largest size of the values at each place, with shape :math:`(count,)`."""
    largest = np.zeros(count)
    np.maximum.at(largest, places, np.abs(values))

    return largest


def _rows(x: sparse.csr_array, values: Tensor) -> Tensor:
    ends, columns = (torch.from_numpy(each.astype(np.int64)) for each in (x.indptr, x.indices))

    return csr_tensor(ends, columns, values, x.shape[1])


def _with(matrix: Tensor, values: Tensor) -> Tensor:
    return csr_tensor(matrix.crow_indices(), matrix.col_indices(), values, matrix.shape[1])


class _Product(torch.autograd.Function):
    """The product by a sparse matrix, whose transpose is at hand for the gradient."""

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, weight: Tensor) -> Tensor:
        ctx.transposed = transposed

        return csr_product(matrix, weight)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[None, None, Tensor]:
        return None, None, csr_product(ctx.transposed, gradient)
