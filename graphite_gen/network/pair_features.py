"""Features of node pairs that are computed from the observed edges, and their linear combination with logits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch.nn.functional import logsigmoid

from .baselines import spectral_embedding
from .pair_logits import PairLogits
from .pair_scores import CommonNeighbours, PairScores, WalkSeries, adjacency_of, pagerank
from .splits import Pairs

__all__ = ["CombinedLogits", "PairFeatures", "combination_terms", "fit_combination"]

# The first is that of the baseline.
TELEPORTS = (0.1, 0.03, 0.25)
# PageRank of pairs that no walk of the series connects. It is below that of distant pairs: in road networks and power
# grids half of the hidden edges join nodes with a PageRank below 1e-9 in the graph without them.
LEAST = 1e-30
# The logarithm of the first PageRank enters once more above each of these, since the log-odds of an edge are not linear
# in it: they rise faster among close pairs.
FLOORS = (1e-6, 1e-3, 1e-2)
INDICES = ("common-neighbours", "adamic-adar", "resource-allocation")
# The prior of the weights of standardised terms. Its mean ranks by the first PageRank: two terms are the autoencoder's,
# four are that PageRank's, eleven are others. Chosen by Cora, Citeseer and the networks of development in
# docs/results/networks.md, on splits that no table uses, and by graphs of up to 60 nodes.
PRECISION = 10.0
LEAST_SCALE = 1e-2
CENTRE = (0.0,) * 2 + (1.0,) * 4 + (0.0,) * 11


@dataclass(frozen=True, eq=False)
class PairFeatures:
    r"""Fifteen features of each pair in a graph: what the heuristics of link prediction are made of.

    Logarithms of personalised PageRank, at four floors and at two other teleport probabilities, of common neighbours,
    Adamic-Adar index, resource allocation and of both degrees; whether the nodes are connected, and whether one or both
    are isolated; and the cosine of their spectral embeddings. ``degrees`` and ``components`` have shape :math:`(n,)`,
    ``directions`` :math:`(n, d)`.
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
        first, *others = (each.clamp_min(LEAST).log() for each in walks)
        yield first
        yield from (first.clamp_min(math.log(floor)) for floor in FLOORS)
        yield from others
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


def combination_terms(logits: Tensor, features: Iterable[Tensor]) -> Iterator[Tensor]:
    r"""The terms of the combination, all of one shape: the logits, their log-sigmoid, and the features.

    The log-sigmoid is bounded above. With a weight on it, the autoencoder can rule pairs out without deciding the order
    of the likeliest ones, where PageRank is better.
    """
    yield logits
    yield logsigmoid(logits)
    yield from features


@dataclass(frozen=True, eq=False)
class CombinedLogits:
    r"""Logits of pairs: those of an autoencoder and the pair features, in a linear combination.

    .. math:: l^*_{ij} = v l_{ij} + w \log \sigma(l_{ij}) + \sum_k w_k f_k(i, j) + b

    ``weights`` has shape :math:`(2 + F,)`, the first two for the autoencoder.
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
        total = self.bias.expand_as(logits).clone()
        for weight, term in zip(self.weights, combination_terms(logits, features), strict=True):
            total = total.add_(weight * term)

        return total


def fit_combination(
    terms: Tensor, is_edge: Tensor, centre: Sequence[float] = CENTRE, precision: float = PRECISION
) -> tuple[Tensor, Tensor]:
    r"""Logistic regression with a normal prior on the weights of standardised terms.

    By default the prior is centred on the ranking by PageRank. The fit stays near it with a dozen edges, or if it tells
    nearly all edges from non-edges; with many edges that it does not find, the data decide.

    Arguments:
        terms: The terms of the combination for each pair, with shape :math:`(2 + F, M)`.
        is_edge: Which pairs are edges, with shape :math:`(M,)`.
        centre: The mean of the prior, of length :math:`2 + F`.
        precision: Its precision.

    Returns:
        Weights of the terms as given, with shape :math:`(2 + F,)`, and the bias, a scalar.
    """
    x = terms.double().numpy().T
    mean, scale = x.mean(0), x.std(0)
    # Terms are logarithms, indicators and cosines. One that hardly varies would have a huge weight by the prior alone.
    scale = np.where(scale > LEAST_SCALE, scale, np.inf)
    x = np.column_stack([(x - mean) / scale, np.ones(len(x))])
    sign = np.where(is_edge.numpy(), 1.0, -1.0)
    # The bias has no prior.
    start = np.append(centre, 0)

    def objective(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = sign * (x @ w)
        away = np.append(w[:-1] - centre, 0)
        slope = -sign * np.exp(-np.logaddexp(0, margin))
        return float(np.logaddexp(0, -margin).sum() + precision * away @ away / 2), slope @ x + precision * away

    w = minimize(objective, start, jac=True, method="L-BFGS-B").x
    weights = w[:-1] / scale

    return torch.from_numpy(weights).to(terms), torch.tensor(w[-1] - weights @ mean).to(terms)
