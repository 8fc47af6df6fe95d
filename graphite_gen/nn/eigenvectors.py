"""Leading eigenvectors of matrices by subspace iteration."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["TINY", "leading_eigenvectors"]

# Two products with the matrix each.
SUBSPACE_STEPS = 6
RIDGE = 1e-3
TINY = 1e-20


@torch.no_grad()
def leading_eigenvectors(matrix: Tensor, basis: Tensor) -> Tensor:
    """Approximate eigenvectors of the largest absolute eigenvalues of symmetric matrices, from noise :math:`(*, N, R)`.

    Eigenvectors of similar eigenvalues stay mixed at random, and signs are random. Their norm is one, or less where the
    matrix has fewer directions.
    """
    eye = torch.eye(basis.shape[-1], dtype=basis.dtype, device=basis.device)
    for _ in range(SUBSPACE_STEPS):
        basis = matrix @ (matrix @ basis)
        gram = basis.mT @ basis
        # The ridge keeps directions small that a graph of few nodes does not have.
        scale = torch.diagonal(gram, dim1=-2, dim2=-1).mean(-1)[..., None, None].clamp_min(TINY)
        factor = torch.linalg.cholesky(gram / scale + RIDGE * eye)
        basis = torch.linalg.solve_triangular(factor.mT, basis / scale.sqrt(), upper=True, left=False)

    return basis
