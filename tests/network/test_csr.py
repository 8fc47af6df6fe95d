"""Arrays from files become sparse rows only if they are some; SciPy would write outside its memory for others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from graphite_gen.network.annotations import csr_rows

X = sparse.csr_array(np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 3.0]]))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8])
def test_sound_arrays_are_the_matrix_they_came_from(dtype: type) -> None:
    assert (csr_rows(X.data, X.indices.astype(dtype), X.indptr.astype(dtype), X.shape) != X).nnz == 0


@pytest.mark.parametrize(
    ("indices", "indptr", "shape"),
    [
        ([1, 0, 2], [0, 16777217, 16777216, -1811939328], (3, 3)),
        ([1, 0, 2], [0, 1, 0, 3], (3, 3)),
        ([1, 0, 2], [1, 1, 1, 3], (3, 3)),
        ([1, 0, 2], [0, 1, 1, 2], (3, 3)),
        ([1, 0, 3], [0, 1, 1, 3], (3, 3)),
        ([1, 0, -1], [0, 1, 1, 3], (3, 3)),
        ([1, 0], [0, 1, 1, 3], (3, 3)),
        ([1, 0, 2], [0, 1, 1, 3], (2, 3)),
        ([1, 0, 2], [0, 1, 1, 3], (10**12, 3)),
        ([1.0, 0.0, 2.0], [0, 1, 1, 3], (3, 3)),
        ([[1, 0, 2]], [0, 1, 1, 3], (3, 3)),
        ([1, 0, 2], [0, 1, 1, 3], (3, 3, 3)),
    ],
)
def test_arrays_that_are_no_matrix_are_refused(indices: list[int], indptr: list[int], shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        csr_rows(X.data, np.array(indices), np.array(indptr), shape)


def test_numbers_are_numbers() -> None:
    with pytest.raises(ValueError, match="numbers"):
        csr_rows(np.array(["a", "b", "c"]), X.indices, X.indptr, X.shape)
