"""Features of node pairs that are computed from the observed edges, and their linear combination with logits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from .baselines import spectral_embedding
from .pair_logits import PairLogits
from .pair_scores import CommonNeighbours, PairScores, WalkSeries, adjacency_of, pagerank
from .splits import Pairs

__all__ = ["CombinedLogits", "PairFeatures", "fit_combination"]

TELEPORTS = (0.03, 0.1, 0.25)
INDICES = ("common-neighbours", "adamic-adar", "resource-allocation")
# PageRank of pairs that no walk of the series connects, in logarithms.
LEAST = 1e-9


@dataclass(frozen=True, eq=False)
class PairFeatures:
    r"""Twelve features of each pair in a graph: what the heuristics of link prediction are made of.

    Logarithms of personalised PageRank at three teleport probabilities, of common neighbours, Adamic-Adar index,
    resource allocation and of both degrees; whether the nodes are connected, and whether one or both are isolated; and
    the cosine of their spectral embeddings. ``degrees`` and ``components`` have shape :math:`(n,)`, ``directions``
    :math:`(n, d)`.
    """

    walks: WalkSeries
    common: CommonNeighbours
    degrees: Tensor
    components: Tensor
    directions: PairLogits

    @classmethod
    def from_edges(cls, nodes: int, edges: Pairs) -> PairFeatures:
        """Features in the graph of the edges, with shape :math:`(E, 2)`; those of the edges reveal them."""
        adjacency = adjacency_of(nodes, edges)
        z = torch.from_numpy(spectral_embedding(nodes, edges)).to(torch.get_default_dtype())

        return cls(
            pagerank(nodes, edges, *TELEPORTS),
            CommonNeighbours.from_edges(nodes, edges, *INDICES),
            torch.from_numpy(np.diff(adjacency.indptr)).to(z),
            torch.from_numpy(connected_components(adjacency, directed=False)[1]),
            PairLogits.inner_product(torch.nn.functional.normalize(z, dim=1)),
        )

    def of(self, pairs: Tensor) -> Iterator[Tensor]:
        """Features of pairs :math:`(2, M)`, each with shape :math:`(M,)`."""
        i, j = pairs
        yield from self._logarithms(self.walks.of(pairs), self.common.of(pairs))
        yield from self._of_ends(self.degrees[i], self.degrees[j], self.components[i], self.components[j])
        yield self.directions.of(pairs)

    def tile(self, rows: slice, columns: slice) -> Iterator[Tensor]:
        """Features of a block of pairs, each with shape :math:`(R, C)`."""
        near, far = (rows, None), (None, columns)
        yield from self._logarithms(self.walks.tile(rows, columns), self.common.tile(rows, columns))
        yield from self._of_ends(self.degrees[near], self.degrees[far], self.components[near], self.components[far])
        yield self.directions.tile(rows, columns)

    @staticmethod
    def _logarithms(walks: Tensor, common: Tensor) -> Iterator[Tensor]:
        yield from (each.clamp_min(LEAST).log() for each in walks)
        # Resource allocation is small: neighbours share one unit.
        yield from ((scale * each).log1p() for each, scale in zip(common, (1, 1, 10), strict=True))

    @staticmethod
    def _of_ends(d: Tensor, e: Tensor, component: Tensor, other: Tensor) -> Iterator[Tensor]:
        low, high = torch.minimum(d, e), torch.maximum(d, e)
        yield low.log1p()
        yield high.log1p()
        yield (low == 0).to(low)
        yield (high == 0).to(low)
        yield (component == other).to(low)


@dataclass(frozen=True, eq=False)
class CombinedLogits:
    r"""Logits of pairs: those of an autoencoder and the pair features, in a linear combination.

    .. math:: l^*_{ij} = w_0 l_{ij} + \sum_k w_k f_k(i, j) + b

    ``weights`` has shape :math:`(1 + F,)`, the first for the autoencoder.
    """

    logits: PairScores
    features: PairFeatures
    weights: Tensor
    bias: Tensor

    def of(self, pairs: Tensor) -> Tensor:
        """Logits of the given pairs :math:`(2, M)`, with shape :math:`(M,)`."""
        return self._sum(self.logits.of(pairs), self.features.of(pairs))

    def tile(self, rows: slice, columns: slice) -> Tensor:
        """A block of the logit matrix; its diagonal has no meaning."""
        return self._sum(self.logits.tile(rows, columns), self.features.tile(rows, columns))

    def _sum(self, logits: Tensor, features: Iterator[Tensor]) -> Tensor:
        total = self.weights[0] * logits + self.bias
        for weight, feature in zip(self.weights[1:], features, strict=True):
            total = total.add_(weight * feature)

        return total


def fit_combination(columns: Tensor, is_edge: Tensor) -> tuple[Tensor, Tensor]:
    r"""Logistic regression with a standard normal prior on the weights of standardised columns.

    Arguments:
        columns: Logits and features of pairs, with shape :math:`(1 + F, M)`.
        is_edge: Which pairs are edges, with shape :math:`(M,)`.

    Returns:
        Weights of the columns as given, with shape :math:`(1 + F,)`, and the bias, a scalar.
    """
    x = columns.double().numpy().T
    mean, scale = x.mean(0), x.std(0)
    scale = np.where(scale > 1e-9 * (1 + np.abs(mean)), scale, np.inf)
    x = np.column_stack([(x - mean) / scale, np.ones(len(x))])
    sign = np.where(is_edge.numpy(), 1.0, -1.0)

    def objective(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = sign * (x @ w)
        prior = np.append(w[:-1], 0)
        slope = -sign * np.exp(-np.logaddexp(0, margin))
        return float(np.logaddexp(0, -margin).sum() + prior @ prior / 2), slope @ x + prior

    w = minimize(objective, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x
    weights = w[:-1] / scale

    return torch.from_numpy(weights).to(columns), torch.tensor(w[-1] - weights @ mean).to(columns)
