"""The encoding of a graph: the posterior of its node latents, and what its decoder needs besides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DatasetError
from ..records import count_of

__all__ = ["EncodedGraph"]


@dataclass(frozen=True, eq=False, repr=False)
class EncodedGraph:
    """Independent normal latents of the nodes of a graph; a graph is decoded from one draw of them.

    Attributes:
        mean: Posterior means, with shape :math:`(n, D)`.
        std: Posterior standard deviations, with shape :math:`(n, D)`; zero for latents that are known exactly.
        position: The position of each node in the node ordering of an autoregressive decoder, with shape :math:`(n,)`;
            None for a random ordering.
        features: The node features of a model that is conditioned on them, with shape :math:`(n, F)`, or None.
        names: The node names; None means ``0 … n-1``.
    """

    mean: NDArray[np.float32]
    std: NDArray[np.float32]
    position: NDArray[np.int32] | None = None
    features: NDArray[np.float32] | None = None
    names: tuple[Any, ...] | None = None

    def __post_init__(self) -> None:
        nodes = len(self.mean)
        if self.mean.ndim != 2 or not self.mean.size:
            raise DatasetError(f"Latents have shape {self.mean.shape}; expected (nodes, width), neither of them 0.")
        if self.std.shape != self.mean.shape:
            raise DatasetError(f"Standard deviations have shape {self.std.shape}, means {self.mean.shape}.")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.std).all() and (self.std >= 0).all()):
            raise DatasetError(
                "Latents have a mean that is not finite, or a standard deviation that is not or negative."
            )
        if self.position is not None and not np.array_equal(np.sort(self.position), np.arange(nodes)):
            raise DatasetError(f"The positions of the nodes are not a permutation of 0 to {nodes - 1}.")
        if self.features is not None and (self.features.ndim != 2 or len(self.features) != nodes):
            raise DatasetError(f"Node features have shape {self.features.shape}; expected one row for {nodes} nodes.")

    def __repr__(self) -> str:
        nodes, width = self.mean.shape

        return f"EncodedGraph({count_of(nodes, 'node')}, {count_of(width, 'latent')} each)"

    @classmethod
    def exact(cls, z: ArrayLike, **rest: Any) -> EncodedGraph:
        """Latents that are known exactly, with shape :math:`(n, D)`."""
        try:
            mean = np.asarray(z, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise DatasetError(f"Latents are not an array of numbers ({error}).") from error

        return cls(mean, np.zeros_like(mean), **rest)

    @property
    def nodes(self) -> int:
        """The number of nodes :math:`n`."""
        return len(self.mean)

    @property
    def vector(self) -> NDArray[np.float32]:
        """One vector for the graph, the same for any node numbering, with shape :math:`(2 D + 1,)`.

        The average of the posterior means over nodes, their standard deviation over nodes, and the number of nodes.
        """
        return np.concatenate([self.mean.mean(0), self.mean.std(0), [self.nodes]]).astype(np.float32)
