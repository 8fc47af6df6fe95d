r"""Orders in which the nodes of a graph can arrive, drawn for whole batches at once.

A staged model generates the nodes one after another, but a graph does not say in which order its own came. An order
:math:`\sigma` is therefore drawn from a rule :math:`q(\sigma | A)`, whose probability is known, and with it

.. math:: \log p(A) \ge E_q[\log p(A_\sigma) - \log n! - \log q(\sigma | A)],

which is tight for a model that has learned the rule as well as the graphs. The rule depends on the graph alone, not
on how its nodes are numbered.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data.batch import GraphBatch

__all__ = ["ANY_ORDER", "arrange", "chosen_log_prob", "draw_chosen_orders", "draw_orders", "even_degree", "in_order"]

_BACKWARD = ("degeneracy", "attachment")
# How often an even order is tried for: a graph that grew evenly gives one in about four walks.
TRIALS = 12
# The part of chosen orders that follow no rule: a model may grow a graph as its rule never would.
ANY_ORDER = 0.01
# How much less a candidate that is not even counts than one that is.
UNEVEN = 0.01

_FAR = 1 << 40


def draw_orders(
    adj: NDArray[np.bool_], sizes: NDArray[np.int64], rule: str, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    r"""Draw an order for every graph.

    Of the rule ``attachment`` the probability is an estimate: that of the walk, over the part of the walks that come
    out even. Its inverse is unbiased, which is all that importance weights ask for.

    Arguments:
        adj: Symmetric adjacency matrices, False at dummy nodes, with shape :math:`(B, N, N)`.
        sizes: The number of real nodes of each graph, with shape :math:`(B,)`.
        rule: One of :data:`graphite_gen.config.ORDERINGS`.
        rng: The randomness.

    Returns:
        The node at each place, dummy nodes last, with shape :math:`(B, N)`, and :math:`\log q(\sigma | A)` with shape
        :math:`(B,)`.
    """
    if rule == "attachment":
        return _draw_even(adj, sizes, rng)
    # Fresh ties at every step: a node that lost a draw before is as good as one that has just come up.
    orders, log_q, _ = _walk(adj, sizes, rule, lambda: rng.random(adj.shape[:2]))

    return orders, log_q


def _retrace(
    adj: NDArray[np.bool_], sizes: NDArray[np.int64], rule: str, orders: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The log-probability of walking in given orders, -inf where no walk does, and whether they are even."""
    # The place as a tie-break makes the walk choose the given order wherever the rule allows it.
    places = np.argsort(orders, axis=1).astype(np.float64)
    walked, log_q, is_even = _walk(adj, sizes, rule, lambda: places if rule in _BACKWARD else -places)
    is_walk = (walked == orders).all(1)

    return np.where(is_walk, log_q, -np.inf), is_even & is_walk


def draw_chosen_orders(
    adj: NDArray[np.bool_], sizes: NDArray[np.int64], rule: str, rng: np.random.Generator, part: float = ANY_ORDER
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    r"""Orders by a rule, a few of them by none, with unbiased inverse probabilities, of graphs without dummy nodes.

    Candidates :math:`\sigma_k` come from :math:`q = (1 - \epsilon) q_{walk} + \epsilon / n!`, which is exact where the
    share of even walks is not known, and one of them is chosen in proportion to :math:`g`, which is small for those
    that are not even. With

    .. math:: \hat{q}(\sigma_k) = q(\sigma_k)\, g(\sigma_k) / \tfrac{1}{K} \sum_l g(\sigma_l)

    :math:`E[f(\sigma) / \hat{q}(\sigma)] = \sum_\sigma f(\sigma)` (Talbot et al., 2005). Other rules than
    ``attachment`` have one candidate, and :math:`\hat{q} = q`.

    Arguments:
        adj: Symmetric adjacency matrices, with shape :math:`(B, N, N)`.
        sizes: The number of nodes of each graph, which is :math:`N`, with shape :math:`(B,)`.
        rule: One of :data:`graphite_gen.config.ORDERINGS`.
        rng: The randomness.
        part: The part :math:`\epsilon` of the candidates that follow no rule.

    Returns:
        The node at each place, with shape :math:`(B, N)`, and :math:`\log \hat{q}` with shape :math:`(B,)`.
    """
    graphs = len(adj)
    trials = _trials(rule)
    orders, log_q, liking = _candidates(adj, sizes, rule, rng, part, trials)
    steps = liking.cumsum(1)
    choice = (steps <= rng.random((graphs, 1)) * steps[:, -1:]).sum(1)
    chosen = np.arange(graphs) * trials + choice

    return orders[chosen], log_q[chosen] + np.log(liking[np.arange(graphs), choice] / liking.mean(1))


def chosen_log_prob(
    adj: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    rule: str,
    orders: NDArray[np.int64],
    rng: np.random.Generator,
    part: float = ANY_ORDER,
) -> NDArray[np.float64]:
    r"""The :math:`\log \hat{q}` of given orders under :func:`draw_chosen_orders`, with shape :math:`(B,)`.

    Each is one candidate among others that are drawn anew: what bounds with a true order among proposals ask for.
    """
    log_q, is_even = _retrace(adj, sizes, rule, orders)
    own = _liking(is_even)
    others = _candidates(adj, sizes, rule, rng, part, _trials(rule) - 1)[2]
    mean = np.concatenate([own[:, None], others], axis=1).mean(1)

    return _loosened(log_q, orders.shape[1], part) + np.log(own / mean)


def _trials(rule: str) -> int:
    """How many candidates a chosen order has: only the rule ``attachment`` has something to choose by."""
    return TRIALS if rule == "attachment" else 1


def _candidates(
    adj: NDArray[np.bool_], sizes: NDArray[np.int64], rule: str, rng: np.random.Generator, part: float, trials: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Orders by walks, a few by none, and their log-probabilities, ``trials`` rows of each graph, and their liking."""
    graphs, nodes = adj.shape[:2]
    many, counts = adj.repeat(trials, 0), sizes.repeat(trials)
    orders, log_q, is_even = _walk(many, counts, rule, lambda: rng.random((graphs * trials, nodes)))
    free = np.flatnonzero(rng.random(len(orders)) < part)
    orders[free] = rng.permuted(orders[free], axis=1)
    log_q[free], is_even[free] = _retrace(many[free], counts[free], rule, orders[free])

    return orders, _loosened(log_q, nodes, part), _liking(is_even).reshape(graphs, trials)


def _loosened(log_q: NDArray[np.float64], nodes: int, part: float) -> NDArray[np.float64]:
    """The log-probability of orders of which a part follows no rule."""
    if not part:
        return log_q

    return np.logaddexp(math.log1p(-part) + log_q, math.log(part) - math.lgamma(nodes + 1))


def _liking(is_even: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.where(is_even, 1.0, UNEVEN)


def _draw_even(
    adj: NDArray[np.bool_], sizes: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """One of the even orders among a few walks of each graph, or any of them where none is."""
    graphs, nodes = adj.shape[:2]
    ties = (graphs * TRIALS, nodes)
    orders, log_q, is_even = _walk(adj.repeat(TRIALS, 0), sizes.repeat(TRIALS), "attachment", lambda: rng.random(ties))
    is_even = is_even.reshape(graphs, TRIALS)
    share = np.where(is_even.any(1), is_even.mean(1), 1)
    chosen = np.arange(graphs) * TRIALS + (rng.random((graphs, TRIALS)) + is_even).argmax(1)

    return orders[chosen], log_q[chosen] - np.log(share)


def _walk(
    adj: NDArray[np.bool_], sizes: NDArray[np.int64], rule: str, ties: Callable[[], NDArray[np.float64]]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Choose node after node: one of the least key, and among those the one of the highest tie-break.

    Returns:
        The orders, the logarithm of their probability, and of backward rules whether every node that came after the
        first few brought what an even one would.
    """
    graphs, nodes = adj.shape[:2]
    rows = np.arange(graphs)
    left = np.arange(nodes) < sizes[:, None]
    degrees = adj.sum(-1)
    brought = _brought(degrees, sizes)
    orders = np.tile(np.arange(nodes), (graphs, 1))
    log_q = np.zeros(graphs)
    is_even = np.ones(graphs, dtype=np.bool_)
    key = _first_key(degrees, brought, rule)
    for step in range(int(sizes.max(initial=0))):
        here = np.where(left, key, 2 * _FAR)
        best = left & (here == here.min(1)[:, None])
        chosen = np.where(best, ties(), -np.inf).argmax(1)
        live = step < sizes
        log_q -= np.where(live, np.log(np.maximum(best.sum(1), 1)), 0)
        place = sizes - 1 - step if rule in _BACKWARD else np.full(graphs, step)
        orders[rows[live], place[live]] = chosen[live]
        left[rows[live], chosen[live]] = False
        is_even &= (place < brought[:, 0]) | (degrees[rows, chosen] == brought[:, 0])
        near = adj[rows, chosen]
        degrees = degrees - near
        key = _next_key(key, near, degrees, brought, rule, step)

    return orders, log_q, is_even


def _brought(degrees: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """What each node after the first few would bring in graphs of these degrees, with shape :math:`(B, 1)`."""
    return even_degree(degrees.sum(1) / 2, sizes)[:, None]


def even_degree(edges: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The :math:`m` of graphs with :math:`m (n - m)` edges, rounded where there is none, with shape :math:`(B,)`."""
    return np.round((sizes - np.sqrt(np.maximum(sizes**2 - 4 * edges, 0))) / 2).astype(np.int64)


def _unevenness(degrees: NDArray[np.int64], brought: NDArray[np.int64]) -> NDArray[np.int64]:
    """How far degrees are from what a node brings, those above it a little further than those below."""
    return 2 * np.abs(degrees - brought) + (degrees > brought)


def _first_key(degrees: NDArray[np.int64], brought: NDArray[np.int64], rule: str) -> NDArray[np.int64]:
    if rule == "uniform":
        return np.zeros_like(degrees)
    if rule == "degeneracy":
        return degrees
    if rule == "attachment":
        return _unevenness(degrees, brought)
    # The first node of a graph, and of each further component, is one of the highest degree.
    return _FAR - degrees


def _next_key(
    key: NDArray[np.int64],
    near: NDArray[np.bool_],
    degrees: NDArray[np.int64],
    brought: NDArray[np.int64],
    rule: str,
    step: int,
) -> NDArray[np.int64]:
    """The keys after a node has been chosen, given who its neighbours are and the degrees that are left."""
    if rule == "max-degree":
        return np.zeros_like(key)
    if rule == "frontier":
        return np.where(near, 0, key)
    if rule == "bfs":
        return np.where(near & (key >= _FAR // 2), step, key)
    if rule == "dfs":
        return np.where(near, -step, key)
    if rule == "max-cardinality":
        return np.where(near, np.minimum(key, 0) - 1, key)
    if rule == "degeneracy":
        return degrees
    if rule == "attachment":
        return _unevenness(degrees, brought)

    return key


def arrange(batch: GraphBatch, rule: str, rng: np.random.Generator) -> tuple[GraphBatch, Tensor]:
    r"""Draw an order of arrival for every graph.

    Arguments:
        batch: The graphs.
        rule: One of :data:`graphite_gen.config.ORDERINGS`.
        rng: The randomness.

    Returns:
        The graphs with their nodes in that order, and :math:`\log q(\sigma | A)` with shape :math:`(B,)`, in double
        precision.
    """
    orders, log_q = draw_orders(batch.adj.cpu().numpy() > 0, batch.sizes.cpu().numpy(), rule, rng)

    return in_order(batch, torch.from_numpy(orders).to(batch.adj.device)), torch.from_numpy(log_q).to(batch.adj.device)


def in_order(batch: GraphBatch, orders: Tensor) -> GraphBatch:
    """The graphs with their nodes in given orders, dummy nodes last, with shape :math:`(B, N)`."""
    rows = torch.arange(len(orders), device=orders.device).unsqueeze(-1)
    adj = batch.adj[rows.unsqueeze(-1), orders.unsqueeze(-1), orders.unsqueeze(-2)]

    return GraphBatch(adj, batch.mask, batch.x[rows, orders])
