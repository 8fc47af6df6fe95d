"""Muon (Jordan et al., 2024): momentum whose updates are orthogonal matrices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

__all__ = ["Muon", "orthogonalised"]

MOMENTUM = 0.95
# The quintic of Jordan et al., steep at zero: singular values between 0.7 and 1.2 after five steps are good enough.
QUINTIC = (3.4445, -4.7750, 2.0315)
STEPS = 5
TINY = 1e-7


class Muon(torch.optim.Optimizer):
    """Nesterov momentum with orthogonalised updates, and decoupled weight decay, for matrices.

    The updates are those of ``torch.optim.Muon``, which takes one matrix at a time in half precision. On a CPU it is
    several times faster to take all matrices of a shape at once, in single precision.
    """

    def __init__(self, matrices: Iterable[Tensor], lr: float, weight_decay: float) -> None:
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update the matrices that have a gradient."""
        for group in self.param_groups:
            by_shape: defaultdict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    by_shape[matrix.shape].append((matrix, self._ahead(matrix, matrix.grad)))
            for (rows, columns), found in by_shape.items():
                matrices, updates = zip(*found, strict=True)
                rate = group["lr"] * max(1, rows / columns) ** 0.5
                for matrix, update in zip(matrices, orthogonalised(torch.stack(updates)), strict=True):
                    matrix.mul_(1 - group["lr"] * group["weight_decay"]).sub_(update, alpha=rate)

    def _ahead(self, matrix: Tensor, gradient: Tensor) -> Tensor:
        """The gradient with momentum, as it would be a step ahead (Nesterov)."""
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        buffer = state["momentum_buffer"].lerp_(gradient, 1 - MOMENTUM)

        return torch.lerp(gradient, buffer, MOMENTUM)


def orthogonalised(matrices: Tensor) -> Tensor:
    """Nearly orthogonal matrices with the singular vectors of those given, both with shape :math:`(M, R, C)`."""
    a, b, c = QUINTIC
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    x = matrices.mT if is_tall else matrices
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp_min(TINY)
    for _ in range(STEPS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)

    return x.mT if is_tall else x
