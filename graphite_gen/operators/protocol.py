"""What a layer asks of a graph."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor

__all__ = ["Graph"]


class Graph(Protocol):
    """Anything that node states can be multiplied by: a dense or sparse tensor, or a low-rank graph."""

    def __matmul__(self, h: Tensor, /) -> Tensor:
        """Pass messages: :math:`A H`, with shape :math:`(*, N, d)`."""
        ...
