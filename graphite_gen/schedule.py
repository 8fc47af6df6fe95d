"""How many pairs a staged model decides at once.

Nodes arrive in blocks, and the pairs of an arriving node are decided in groups. Pairs of one stage are independent
given all that was decided before it. One stage is the paper's factorised observation (eq. 10); the finest schedule
decides one pair at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .errors import ConfigError

__all__ = ["FINEST", "Schedule"]


@dataclass(frozen=True)
class Schedule:
    """The stages in which the pairs of a graph are decided.

    Up to as many stages as nodes, nodes arrive in that many blocks and the pairs of a block are decided at once. Beyond
    that nodes arrive one at a time, and the pairs of each are decided in as many groups as the stages allow.

    Attributes:
        stages: How many, at most; 0 decides one pair at a time.
    """

    stages: int = 0

    def __post_init__(self) -> None:
        if self.stages < 0:
            raise ConfigError(f"{self.stages} stages were asked for. Ask for at least 1, or for 'all'.")

    def block(self, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many nodes arrive together in graphs of these sizes."""
        if not self.stages:
            return np.ones_like(sizes)
        return np.maximum(1, -(-sizes // self.stages))

    def reach(self, sizes: NDArray[np.int64], rows: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
        r"""How many pairs of its own row each pair sees decided.

        Arguments:
            sizes: The number of nodes of each graph, with shape :math:`(B,)`.
            rows: The arriving node of each graph, which has that many pairs, with shape :math:`(B,)`.
            nodes: The number of places :math:`T`.

        Returns:
            For pair :math:`i` of a row the number of pairs, from the first on, that came in earlier stages, with shape
            :math:`(B, T)`.
        """
        places = np.arange(nodes)[None]
        if not self.stages:
            return np.broadcast_to(places, (len(sizes), nodes))
        groups = np.maximum(1, self.stages // np.maximum(sizes, 1))
        length = np.maximum(1, -(-rows // groups))[:, None]

        return places // length * length


FINEST = Schedule()
