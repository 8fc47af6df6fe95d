"""Independent edges given what they must be: exact draws where they are known, and rows of given odds elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..autoregressive.decoder import PartialGraphs
from ..autoregressive.distribution import AutoregressiveGraphs
from ..data.properties import component_labels
from .permutation import Arrival
from .requirements import Demands

__all__ = ["GivenOdds", "draw_held", "draw_with_edges", "exact_draw", "spanning_tree"]

# Log-odds beyond this are as good as certain.
CERTAIN = 60.0
BATCH = 64

ExactDraw = Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.bool_] | None]


def draw_held(
    logits: Tensor,
    demands: Sequence[Demands],
    keys: NDArray[np.float64],
    uniform: Tensor,
    streams: Sequence[np.random.Generator],
    by_degree: bool = False,
) -> Tensor:
    """Independent edges held to what is asked of their graphs, with shape :math:`(B, N, N)`.

    Exactly where that is known, else row by row, as nodes arrive in a random order.

    Arguments:
        logits: Symmetric log-odds, with shape :math:`(B, N, N)`.
        demands: What is asked of each graph.
        keys: Noise in [0, 1) for the orders, with shape :math:`(B, N)`.
        uniform: Noise in [0, 1) for the pairs, with shape :math:`(B, N, N)`.
        streams: The randomness of exact draws, one for each graph.
        by_degree: Whether nodes that may have more neighbours arrive first.
    """
    draws = [exact_draw(demand) for demand in demands]
    if any(draw is None for draw in draws):
        sizes = np.array([demand.nodes for demand in demands])
        arrival = Arrival(sizes, keys, logits.device, demands, by_degree=by_degree)
        law = AutoregressiveGraphs(GivenOdds(), arrival.pairs(logits), logits[..., :0], arrival.sizes)
        adj = arrival.back(law.sample(uniform.to(logits), arrival.limits))
    else:
        adj = torch.zeros_like(logits)
    for row, (draw, demand, rng) in enumerate(zip(draws, demands, streams, strict=True)):
        if draw is not None:
            n = demand.nodes
            drawn = draw(logits[row, :n, :n].double().cpu().numpy(), rng)
            # Nothing is no graph of those asked for, or is found not to be one.
            adj[row] = 0
            if drawn is not None:
                adj[row, :n, :n] = torch.from_numpy(drawn).to(adj)

    return adj


def exact_draw(demands: Demands) -> ExactDraw | None:
    """How independent edges are drawn exactly given what is asked of them; None where that is not known."""
    tight = demands.tightened()
    if (tight.highest < tight.nodes - 1).any() or (tight.lowest > int(tight.connected)).any():
        return None
    if tight.connected and tight.most == tight.nodes - 1:
        return spanning_tree
    if tight.least == tight.most and not (tight.connected or tight.acyclic or tight.planar):
        return partial(draw_with_edges, edges=tight.least)

    return None


class GivenOdds:
    """Odds that are known beforehand, asked for row by row as those of a staged model are.

    They travel as latents: row i of the log-odds is what belongs to node i.
    """

    def states(self, seen: PartialGraphs) -> Tensor:
        """The log-odds of each node's pairs, with shape :math:`(B, T, N)`."""
        return seen.z

    def ask(self, h: Tensor, seen: PartialGraphs, rows: Tensor, reach: Tensor) -> GivenRows:
        """The log-odds of one arriving node per graph."""
        nodes = seen.adj.shape[-1]

        return GivenRows(h.gather(-2, rows[:, None, None].expand(-1, 1, h.shape[-1])).squeeze(-2)[:, :nodes])


@dataclass(frozen=True)
class GivenRows:
    """Log-odds that no answer changes.

    Attributes:
        logits: The log-odds, with shape :math:`(B, T)`.
    """

    logits: Tensor

    def select(self, rows: Tensor) -> GivenRows:
        """Some of the arriving nodes."""
        return GivenRows(self.logits[rows])

    def log_odds(self, answers: Tensor) -> Tensor:
        """The log-odds, whatever the answers, with shape :math:`(B, T)`."""
        return self.logits


def spanning_tree(logits: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.bool_]:
    r"""A tree in proportion to the product of its edges' odds: independent edges given that they form a tree.

    Taking away node :math:`v` with odds :math:`w_{vi}` and joining its neighbours by :math:`w_{vi} w_{vj} / \sum_k
    w_{vk}` instead changes the sum over all trees by the factor :math:`\sum_k w_{vk}` alone. So nodes are taken away
    one by one, and put back in the reverse order: of the tree without :math:`v` each edge stays if it was there before
    rather than made, and :math:`v` gets an edge to each part that is left, in proportion to its odds there. Nothing is
    ever subtracted, so odds of any size will do.

    Arguments:
        logits: Symmetric log-odds, with shape :math:`(n, n)`.
        rng: The randomness.

    Returns:
        A symmetric adjacency matrix, with shape :math:`(n, n)`.
    """
    nodes = len(logits)
    reduced = [logits]
    for v in range(nodes - 1, 0, -1):
        w = reduced[-1]
        star = w[v, :v]
        reduced.append(np.logaddexp(w[:v, :v], star[:, None] + star - np.logaddexp.reduce(star)))

    tree = np.zeros((nodes, nodes), dtype=np.bool_)
    for v in range(1, nodes):
        without, w = reduced[nodes - v], reduced[nodes - v - 1]
        pairs = np.argwhere(np.triu(tree[:v, :v], 1))
        i, j = pairs.T
        made = -rng.exponential(size=len(pairs)) >= w[i, j] - without[i, j]
        tree[i[made], j[made]] = tree[j[made], i[made]] = False
        labels = component_labels(pairs[~made], v)
        # The highest of log-odds plus Gumbel noise is a draw in proportion to the odds.
        keys = w[v, :v] - np.log(rng.exponential(size=v))
        order = np.lexsort((-keys, labels))
        chosen = order[np.unique(labels[order], return_index=True)[1]]
        tree[v, chosen] = tree[chosen, v] = True

    return tree


def draw_with_edges(
    logits: NDArray[np.float64], rng: np.random.Generator, edges: int, tries: int = 10_000
) -> NDArray[np.bool_] | None:
    r"""Independent edges given their number.

    Multiplying all odds by one number changes nothing about the law given how many edges there are. With the number
    that makes the wanted count the expected one, draws of exactly that count are common, about one in :math:`\sqrt{2
    \pi} \sigma`, and the first of them is kept.

    Arguments:
        logits: Symmetric log-odds, with shape :math:`(n, n)`.
        rng: The randomness.
        edges: How many edges there must be.
        tries: How many draws to make at most.

    Returns:
        A symmetric adjacency matrix, with shape :math:`(n, n)`; None if no draw had the right count.
    """
    nodes = len(logits)
    upper = np.triu_indices(nodes, 1)
    odds = logits[upper]
    probabilities = _sigmoid(odds + _tilt(odds, edges))
    matrix = np.zeros((nodes, nodes), dtype=np.bool_)
    for _ in range(math.ceil(tries / BATCH)):
        draws = rng.random((BATCH, len(odds))) < probabilities
        right = np.flatnonzero(draws.sum(1) == edges)
        if len(right):
            matrix[upper] = draws[right[0]]
            return matrix | matrix.T

    return None


def _tilt(odds: NDArray[np.float64], edges: int) -> float:
    """What to add to log-odds for so many edges to be expected, by bisection."""
    low, high = -odds.max(initial=0) - CERTAIN, -odds.min(initial=0) + CERTAIN
    for _ in range(100):
        middle = (low + high) / 2
        if _sigmoid(odds + middle).sum() < edges:
            low = middle
        else:
            high = middle

    return (low + high) / 2


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.5 * (1 + np.tanh(x / 2))
