"""Sparse rows out of the three arrays that a file holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["csr_rows"]


def csr_rows(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: Sequence[int]) -> sparse.csr_array:
    """The matrix of such arrays, which are checked first: SciPy writes where they tell it to, and looks at few of them.

    Arguments:
        data: Numbers, with shape :math:`(S,)`.
        indices: Their columns, with shape :math:`(S,)`.
        indptr: Where rows start and the last one ends, with shape :math:`(n + 1,)`.
        shape: The number of rows and of columns.

    Raises:
        ValueError: They are no matrix.
    """
    rows, columns = (int(each) for each in shape)
    if any(part.ndim != 1 for part in (data, indices, indptr)) or data.dtype.kind not in "biuf":
        raise ValueError("not arrays of numbers of one dimension")
    if any(part.dtype.kind not in "iu" for part in (indices, indptr)):
        raise ValueError("rows and columns that are no whole numbers")
    if len(indptr) != rows + 1 or len(data) != len(indices) or not 0 <= columns < 2**31:
        raise ValueError(f"arrays of other lengths than a shape of {rows} rows and {columns} columns has")
    starts = indptr.astype(np.int64)
    if starts[0] != 0 or starts[-1] != len(data) or (starts[1:] < starts[:-1]).any():
        raise ValueError("rows that do not follow each other")
    if len(indices) and not 0 <= indices.min() <= indices.max() < columns:
        raise ValueError(f"a column out of range; they are 0 to {columns - 1}")

    return sparse.csr_array((data, indices.astype(np.int64), starts), shape=(rows, columns))
