r"""Random node orderings from rules of known probability :math:`q(\sigma | A)`, independent of node numbers.

They give the bound :math:`\log p(A) \ge E_q[\log p(A_\sigma) - \log n! - \log q(\sigma | A)]`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..data.batch import GraphBatch

__all__ = [
    "UNIFORM_FRACTION",
    "attachment_degree",
    "permute_nodes",
    "permute_to_ordering",
    "proposal_log_prob",
    "propose_orderings",
    "sample_orderings",
]

# Rules that choose the last node first. 'attachment' inverts preferential attachment: with m such that the graph has
# m (n - m) edges, an ordering is regular if every node after the first m has exactly m edges to earlier ones.
_BACKWARD = ("degeneracy", "attachment")
# Candidates for a regular ordering: about one in four is regular if the graph has any.
CANDIDATES = 12
# The fraction of proposed orderings that are uniform: a model may generate graphs in orderings its rule never gives.
UNIFORM_FRACTION = 0.01
# The weight of a candidate that is not regular, relative to one that is.
IRREGULAR_WEIGHT = 0.01

_FAR = 1 << 40


def sample_orderings(
    adj: NDArray[np.bool_], sizes: NDArray[np.int64], rule: str, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    r"""Sample an ordering of every graph by a rule of :data:`graphite_gen.config.ORDERINGS`.

    The probability under the rule ``attachment`` is an estimate: that of the greedy ordering, divided by the fraction
    of candidates that are regular. Its inverse is unbiased, which is all that importance weights need.

    Arguments:
        adj: Symmetric adjacency matrices, False at padding, with shape :math:`(B, N, N)`.
        sizes: The number of nodes of each graph, with shape :math:`(B,)`.

    Returns:
        The node at each position, padding last, :math:`(B, N)`, and :math:`\log q(\sigma | A)`, :math:`(B,)`.
    """
    graphs, count = len(adj), _candidates(rule)
    many = adj.repeat(count, 0)
    orderings, log_q, regular = _greedy(many, sizes.repeat(count), rule, lambda: rng.random(many.shape[:2]))
    if rule != "attachment":
        return orderings, log_q
    # A regular ordering among the candidates of each graph, or any of them where none is regular.
    is_regular = regular.reshape(graphs, count)
    fraction = np.where(is_regular.any(1), is_regular.mean(1), 1)
    chosen = np.arange(graphs) * count + (rng.random((graphs, count)) + is_regular).argmax(1)

    return orderings[chosen], log_q[chosen] - np.log(fraction)


def _rule_log_prob(
    adj: NDArray[np.bool_], sizes: NDArray[np.int64], rule: str, orderings: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The log-probability of orderings under a rule, -inf where it never gives them, and whether they are regular."""
    # With positions as tie-breaks the rule gives the ordering itself wherever it can.
    positions = np.argsort(orderings, axis=1).astype(np.float64)
    found, log_q, is_regular = _greedy(adj, sizes, rule, lambda: positions if rule in _BACKWARD else -positions)
    is_possible = (found == orderings).all(1)

    return np.where(is_possible, log_q, -np.inf), is_regular & is_possible


def propose_orderings(
    adj: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    rule: str,
    rng: np.random.Generator,
    uniform_fraction: float = UNIFORM_FRACTION,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    r"""Sample orderings of graphs without padding, with unbiased inverse probabilities, for importance sampling.

    Candidates :math:`\sigma_k` come from :math:`q = (1 - \epsilon) q_{rule} + \epsilon / n!`, and one of them is chosen
    in proportion to :math:`g`, which is small for those that are not regular. With

    .. math:: \hat{q}(\sigma_k) = q(\sigma_k)\, g(\sigma_k) / \tfrac{1}{K} \sum_l g(\sigma_l)

    :math:`E[f(\sigma) / \hat{q}(\sigma)] = \sum_\sigma f(\sigma)` (Talbot et al., 2005). Rules other than
    ``attachment`` have one candidate, and :math:`\hat{q} = q`.

    The arguments are those of :func:`sample_orderings`, and ``uniform_fraction`` is :math:`\epsilon`.
    """
    graphs, count = len(adj), _candidates(rule)
    orderings, log_q, g = _sample_candidates(adj, sizes, rule, rng, uniform_fraction, count)
    cumulative = g.cumsum(1)
    choice = (cumulative <= rng.random((graphs, 1)) * cumulative[:, -1:]).sum(1)
    chosen = np.arange(graphs) * count + choice

    return orderings[chosen], log_q[chosen] + np.log(g[np.arange(graphs), choice] / g.mean(1))


def proposal_log_prob(
    adj: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    rule: str,
    orderings: NDArray[np.int64],
    rng: np.random.Generator,
    uniform_fraction: float = UNIFORM_FRACTION,
) -> NDArray[np.float64]:
    r"""Return :math:`\log \hat{q}` of given orderings under :func:`propose_orderings`, with shape :math:`(B,)`.

    The other candidates are sampled anew, as bidirectional Monte Carlo requires of a true ordering.
    """
    log_q, is_regular = _rule_log_prob(adj, sizes, rule, orderings)
    own = np.where(is_regular, 1.0, IRREGULAR_WEIGHT)
    others = _sample_candidates(adj, sizes, rule, rng, uniform_fraction, _candidates(rule) - 1)[2]
    mean = np.concatenate([own[:, None], others], axis=1).mean(1)

    return _mix_uniform(log_q, orderings.shape[1], uniform_fraction) + np.log(own / mean)


def _candidates(rule: str) -> int:
    return CANDIDATES if rule == "attachment" else 1


def _sample_candidates(
    adj: NDArray[np.bool_], sizes: NDArray[np.int64], rule: str, rng: np.random.Generator, fraction: float, count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Candidates and their log-probabilities, ``count`` rows of each graph, and their weights :math:`g`."""
    graphs, nodes = adj.shape[:2]
    many, counts = adj.repeat(count, 0), sizes.repeat(count)
    orderings, log_q, is_regular = _greedy(many, counts, rule, lambda: rng.random((graphs * count, nodes)))
    uniform = np.flatnonzero(rng.random(len(orderings)) < fraction)
    orderings[uniform] = rng.permuted(orderings[uniform], axis=1)
    log_q[uniform], is_regular[uniform] = _rule_log_prob(many[uniform], counts[uniform], rule, orderings[uniform])

    weights = np.where(is_regular, 1.0, IRREGULAR_WEIGHT)

    return orderings, _mix_uniform(log_q, nodes, fraction), weights.reshape(graphs, count)


def _mix_uniform(log_q: NDArray[np.float64], nodes: int, fraction: float) -> NDArray[np.float64]:
    """The log-probability under a mixture with uniform orderings."""
    if not fraction:
        return log_q

    return np.logaddexp(math.log1p(-fraction) + log_q, math.log(fraction) - math.lgamma(nodes + 1))


def _greedy(
    adj: NDArray[np.bool_], sizes: NDArray[np.int64], rule: str, ties: Callable[[], NDArray[np.float64]]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Choose node after node: one of the smallest key, and among those the one of the highest tie-break.

    The result is the orderings, their log-probabilities, and, for backward rules, whether they are regular.
    """
    graphs, nodes = adj.shape[:2]
    rows = np.arange(graphs)
    left = np.arange(nodes) < sizes[:, None]
    degrees = adj.sum(-1)
    m = attachment_degree(degrees.sum(1) / 2, sizes)[:, None]
    orderings = np.tile(np.arange(nodes), (graphs, 1))
    log_q = np.zeros(graphs)
    is_regular = np.ones(graphs, dtype=np.bool_)
    key = _initial_key(degrees, m, rule)
    for step in range(int(sizes.max(initial=0))):
        masked = np.where(left, key, 2 * _FAR)
        best = left & (masked == masked.min(1)[:, None])
        # Fresh tie-breaks at every step make all tied nodes equally likely.
        chosen = np.where(best, ties(), -np.inf).argmax(1)
        live = step < sizes
        log_q -= np.where(live, np.log(np.maximum(best.sum(1), 1)), 0)
        position = sizes - 1 - step if rule in _BACKWARD else np.full(graphs, step)
        orderings[rows[live], position[live]] = chosen[live]
        left[rows[live], chosen[live]] = False
        is_regular &= (position < m[:, 0]) | (degrees[rows, chosen] == m[:, 0])
        neighbours = adj[rows, chosen]
        degrees = degrees - neighbours
        key = _initial_key(degrees, m, rule) if rule in _BACKWARD else _next_key(key, neighbours, rule, step)

    return orderings, log_q, is_regular


def attachment_degree(edges: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the :math:`m` of graphs with :math:`m (n - m)` edges, rounded, with shape :math:`(B,)`."""
    return np.round((sizes - np.sqrt(np.maximum(sizes**2 - 4 * edges, 0))) / 2).astype(np.int64)


def _initial_key(degrees: NDArray[np.int64], m: NDArray[np.int64], rule: str) -> NDArray[np.int64]:
    if rule == "uniform":
        return np.zeros_like(degrees)
    if rule == "degeneracy":
        return degrees
    if rule == "attachment":
        # The distance from m; degrees above it are a little further away than those below.
        return 2 * np.abs(degrees - m) + (degrees > m)
    # The first node of a graph, and of each further component, is one of the highest degree.
    return _FAR - degrees


def _next_key(key: NDArray[np.int64], neighbours: NDArray[np.bool_], rule: str, step: int) -> NDArray[np.int64]:
    """The keys of a forward rule after a node has been chosen, given its neighbours."""
    if rule == "max-degree":
        return np.zeros_like(key)
    if rule == "frontier":
        return np.where(neighbours, 0, key)
    if rule == "bfs":
        return np.where(neighbours & (key >= _FAR // 2), step, key)
    if rule == "dfs":
        return np.where(neighbours, -step, key)
    if rule == "max-cardinality":
        return np.where(neighbours, np.minimum(key, 0) - 1, key)

    return key


def permute_to_ordering(batch: GraphBatch, rule: str, rng: np.random.Generator) -> tuple[GraphBatch, Tensor]:
    r"""Permute the nodes of every graph to a sampled ordering; also return :math:`\log q(\sigma | A)`, in double."""
    orderings, log_q = sample_orderings(batch.adj.cpu().numpy() > 0, batch.sizes.cpu().numpy(), rule, rng)
    device = batch.adj.device

    return permute_nodes(batch, torch.from_numpy(orderings).to(device)), torch.from_numpy(log_q).to(device)


def permute_nodes(batch: GraphBatch, orderings: Tensor) -> GraphBatch:
    """Permute the nodes of graphs to given orderings, padding last, with shape :math:`(B, N)`."""
    rows = torch.arange(len(orderings), device=orderings.device).unsqueeze(-1)
    adj = batch.adj[rows.unsqueeze(-1), orderings.unsqueeze(-1), orderings.unsqueeze(-2)]

    return GraphBatch(adj, batch.mask, batch.x[rows, orderings])
