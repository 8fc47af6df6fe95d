r"""Random node orderings from rules of known probability :math:`q(\sigma | A)`, independent of node numbers.

They give the bound :math:`\log p(A) \ge E_q[\log p(A_\sigma) - \log n! - \log q(\sigma | A)]`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..config import ORDERINGS, ModelConfig
from ..data.batch import GraphBatch
from ..data.edge_states import arc_codes

__all__ = [
    "SOFT_FRACTION",
    "attachment_degree",
    "ordering_matrix",
    "permute_to_ordering",
    "proposal_log_prob",
    "propose_orderings",
    "sample_orderings",
]

# Rules that choose the last node first. 'attachment' inverts preferential attachment: with m such that the graph has
# m (n - m) edges, an ordering is regular if every node after the first m has exactly m edges to earlier ones.
_BACKWARD = ("degeneracy", "attachment")
# Candidates for a regular ordering: about one in four is regular if the graph has any, in some graphs one in a hundred.
CANDIDATES = 24
# Training searches for a regular ordering with ever more candidates, up to this number.
MOST_CANDIDATES = 512
# The most cells of adjacency matrices that it considers at a time.
MOST_CELLS = 1 << 25
# The fraction of proposed orderings that follow a softened rule: a model may generate graphs in orderings that its rule
# never gives.
SOFT_FRACTION = 0.25
# The probability that a step of a softened rule ignores it; every ordering has one of these.
SOFTNESS = (0.2, 0.9)
# The weight of a candidate that is not regular, relative to one that is.
IRREGULAR_WEIGHT = 0.01

_FAR = 1 << 40


def sample_orderings(
    adj: NDArray[np.bool_], sizes: NDArray[np.int64], rule: str, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    r"""Sample an ordering of every graph by a rule of :data:`graphite_gen.config.ORDERINGS`.

    The probability under the rule ``attachment`` is an estimate: that of the greedy ordering, divided by the fraction
    of candidates that are regular. Its inverse is too large on average, since candidates are sampled until one is
    regular: importance sampling uses :func:`propose_orderings`, which is unbiased.

    Arguments:
        adj: Symmetric adjacency matrices, False at padding, with shape :math:`(B, N, N)`.
        sizes: The number of nodes of each graph, with shape :math:`(B,)`.

    Returns:
        The node at each position, padding last, :math:`(B, N)`, and :math:`\log q(\sigma | A)`, :math:`(B,)`.
    """
    if rule != "attachment":
        sampled = _sample(adj, sizes, rule, rng)
        return sampled.orderings, sampled.log_prob()
    orderings, log_q = np.zeros(adj.shape[:2], dtype=np.int64), np.zeros(len(adj))
    # Only graphs with these numbers of edges have a regular ordering.
    edges = adj.sum((1, 2)) // 2
    m = attachment_degree(edges.astype(np.float64), sizes)
    can_be_regular = (edges >= m * (sizes - m)) & (edges <= m * (sizes - m) + m * (m - 1) // 2)
    left, count = np.arange(len(adj)), 8
    while len(left) and count <= MOST_CANDIDATES:
        candidates = _sample(adj[left].repeat(count, 0), sizes[left].repeat(count), rule, rng)
        # A regular ordering among the candidates of each graph, or any of them where none is regular.
        is_regular = candidates.is_regular.reshape(len(left), count)
        fraction = np.where(is_regular.any(1), is_regular.mean(1), 1)
        chosen = np.arange(len(left)) * count + (rng.random(is_regular.shape) + is_regular).argmax(1)
        orderings[left], log_q[left] = candidates.orderings[chosen], candidates.log_prob()[chosen] - np.log(fraction)
        left, count = left[~is_regular.any(1) & can_be_regular[left]], 4 * count
        left = left[: MOST_CELLS // (count * adj.shape[1] ** 2)]

    return orderings, log_q


def propose_orderings(
    adj: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    rule: str,
    rng: np.random.Generator,
    soft_fraction: float = SOFT_FRACTION,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    r"""Sample orderings with unbiased inverse probabilities, for importance sampling over all orderings.

    Candidates :math:`\sigma_k` come from the defensive mixture :math:`q = (1 - \alpha) q_0 + \alpha\, q_{soft}` of the
    rule and its softened form, which gives every ordering (:meth:`_Orderings.log_prob`), and one of them is chosen in
    proportion to :math:`g`, which is small for those that are not regular. With

    .. math:: \hat{q}(\sigma_k) = q(\sigma_k)\, g(\sigma_k) / \tfrac{1}{K} \sum_l g(\sigma_l)

    :math:`E[f(\sigma) / \hat{q}(\sigma)] = \sum_\sigma f(\sigma)` (Talbot et al., 2005). Rules other than
    ``attachment`` have one candidate, and :math:`\hat{q} = q`.

    The arguments are those of :func:`sample_orderings`, and ``soft_fraction`` is :math:`\alpha`.
    """
    graphs, count = len(adj), _candidates(rule)
    candidates = _sample(adj.repeat(count, 0), sizes.repeat(count), rule, rng, soft_fraction)
    g = candidates.weights.reshape(graphs, count)
    cumulative = g.cumsum(1)
    choice = (cumulative <= rng.random((graphs, 1)) * cumulative[:, -1:]).sum(1)
    chosen = np.arange(graphs) * count + choice
    log_q = candidates.log_prob(soft_fraction)[chosen]

    return candidates.orderings[chosen], log_q + np.log(g[np.arange(graphs), choice] / g.mean(1))


def proposal_log_prob(
    adj: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    rule: str,
    orderings: NDArray[np.int64],
    rng: np.random.Generator,
    soft_fraction: float = SOFT_FRACTION,
) -> NDArray[np.float64]:
    r"""Return :math:`\log \hat{q}` of given orderings under :func:`propose_orderings`, with shape :math:`(B,)`.

    The other candidates are sampled anew, as bidirectional Monte Carlo requires of a true ordering.
    """
    graphs, others = len(adj), _candidates(rule) - 1
    given = _follow(adj, sizes, rule, lambda position, best, left: orderings[np.arange(graphs), position])
    mean = given.weights
    if others:
        candidates = _sample(adj.repeat(others, 0), sizes.repeat(others), rule, rng, soft_fraction)
        mean = np.column_stack([given.weights, candidates.weights.reshape(graphs, others)]).mean(1)

    return given.log_prob(soft_fraction) + np.log(given.weights / mean)


def _candidates(rule: str) -> int:
    return CANDIDATES if rule == "attachment" else 1


@dataclass(frozen=True)
class _Orderings:
    """Orderings, with what each of their steps could have chosen under a rule.

    Attributes:
        orderings: The node at each position, with shape :math:`(B, N)`.
        log_rule: The log-probability of each step under the rule, zero after the last, with shape :math:`(B, N)`.
        log_uniform: That of a uniform choice among the nodes left.
        is_regular: Whether the ordering is regular, with shape :math:`(B,)`.
    """

    orderings: NDArray[np.int64]
    log_rule: NDArray[np.float64]
    log_uniform: NDArray[np.float64]
    is_regular: NDArray[np.bool_]

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights :math:`g` of :func:`propose_orderings`."""
        return np.where(self.is_regular, 1.0, IRREGULAR_WEIGHT)

    def log_prob(self, soft_fraction: float = 0.0) -> NDArray[np.float64]:
        r"""The log-probability under a mixture of a rule and its softened form, with shape :math:`(B,)`.

        .. math:: q_{soft}(\sigma) = \frac{1}{S} \sum_s \prod_t \left(\frac{\epsilon_s}{n - t} + (1 - \epsilon_s)\,
            q_0(\sigma_t | \sigma_{<t})\right)
        """
        terms = [np.log1p(-soft_fraction) + self.log_rule.sum(1)]
        for softness in SOFTNESS if soft_fraction else ():
            steps = np.logaddexp(np.log1p(-softness) + self.log_rule, np.log(softness) + self.log_uniform)
            terms.append(np.log(soft_fraction / len(SOFTNESS)) + steps.sum(1))

        return np.logaddexp.reduce(terms, axis=0)


def _sample(
    adj: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    rule: str,
    rng: np.random.Generator,
    soft_fraction: float = 0.0,
) -> _Orderings:
    """Sample orderings by a rule or, some of them, by its softened form."""
    softness = np.zeros(len(adj))
    if soft_fraction:
        softness = np.where(rng.random(len(adj)) < soft_fraction, rng.choice(SOFTNESS, len(adj)), 0.0)

    def choose(position: NDArray[np.int64], best: NDArray[np.bool_], left: NDArray[np.bool_]) -> NDArray[np.int64]:
        if soft_fraction:
            best = np.where((rng.random(len(best)) < softness)[:, None], left, best)
        # Fresh tie-breaks at every step make all tied nodes equally likely.
        return np.where(best, rng.random(best.shape), -1.0).argmax(1)

    return _follow(adj, sizes, rule, choose)


def _follow(
    adj: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    rule: str,
    choose: Callable[[NDArray[np.int64], NDArray[np.bool_], NDArray[np.bool_]], NDArray[np.int64]],
) -> _Orderings:
    """Choose node after node, given the positions, the nodes of the smallest key, and all nodes left."""
    assert rule in ORDERINGS, f"'{rule}' is no ordering"
    graphs, nodes = adj.shape[:2]
    rows = np.arange(graphs)
    left = np.arange(nodes) < sizes[:, None]
    degrees = adj.sum(-2 if rule == "topological" else -1)
    m = attachment_degree(degrees.sum(1) / 2, sizes)[:, None]
    orderings = np.tile(np.arange(nodes), (graphs, 1))
    log_rule, log_uniform = np.zeros((graphs, nodes)), np.zeros((graphs, nodes))
    is_regular = np.ones(graphs, dtype=np.bool_)
    key = -_onion_layers(adj, sizes) if rule == "onion" else _initial_key(degrees, m, rule)
    for step in range(int(sizes.max(initial=0))):
        live = step < sizes
        masked = np.where(left, key, 2 * _FAR)
        best = left & (masked == masked.min(1)[:, None])
        position = np.where(live, sizes - 1 - step if rule in _BACKWARD else step, nodes - 1)
        chosen = choose(position, best, left)
        # A step that the rule never takes has probability zero.
        is_best = np.where(best[rows, chosen], 0.0, -np.inf)
        log_rule[:, step] = np.where(live, is_best - np.log(np.maximum(best.sum(1), 1)), 0)
        log_uniform[:, step] = np.where(live, -np.log(np.maximum(left.sum(1), 1)), 0)
        orderings[rows[live], position[live]] = chosen[live]
        left[rows[live], chosen[live]] = False
        is_regular &= ~live | (position < m[:, 0]) | (degrees[rows, chosen] == m[:, 0])
        neighbours = adj[rows, chosen] & live[:, None]
        degrees = degrees - neighbours
        key = _initial_key(degrees, m, rule) if rule in _BACKWARD else _next_key(key, neighbours, rule, step)

    return _Orderings(orderings, log_rule, log_uniform, is_regular)


def _onion_layers(adj: NDArray[np.bool_], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The onion layer of every node, from 1 for the outermost (Hébert-Dufresne et al., 2016), with shape (B, N)."""
    left = np.arange(adj.shape[1]) < sizes[:, None]
    layers, core = np.zeros(left.shape, dtype=np.int64), np.zeros((len(adj), 1), dtype=np.int64)
    layer = 0
    while left.any():
        layer += 1
        degrees = np.where(left, (adj & left[:, None]).sum(-1), _FAR)
        core = np.maximum(core, degrees.min(1, keepdims=True))
        removed = left & (degrees <= core)
        layers[removed] = layer
        left &= ~removed

    return layers


def attachment_degree(edges: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the :math:`m` of graphs with :math:`m (n - m)` edges, rounded, with shape :math:`(B,)`."""
    return np.round((sizes - np.sqrt(np.maximum(sizes**2 - 4 * edges, 0))) / 2).astype(np.int64)


def _initial_key(degrees: NDArray[np.int64], m: NDArray[np.int64], rule: str) -> NDArray[np.int64]:
    if rule == "uniform":
        return np.zeros_like(degrees)
    if rule == "topological":
        # Those of the matrix of arcs.
        return degrees
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
    if rule == "topological":
        return key - neighbours
    if rule == "max-cardinality":
        return np.where(neighbours, np.minimum(key, 0) - 1, key)

    return key


def ordering_matrix(batch: GraphBatch, config: ModelConfig) -> NDArray[np.bool_]:
    """The matrices that the ordering of a model is sampled from, with shape :math:`(B, N, N)`.

    They are the arcs from rows to columns for the rule ``topological``, otherwise adjacency matrices.
    """
    adj = batch.adj.cpu().numpy() > 0
    if config.ordering != "topological":
        return adj
    assert batch.states is not None, "graphs have no directions"

    return adj & (arc_codes(batch.states.cpu().numpy(), config.edge_labels)[0] > 0)


def permute_to_ordering(
    batch: GraphBatch, config: ModelConfig, rng: np.random.Generator, is_unbiased: bool = False
) -> tuple[GraphBatch, Tensor]:
    r"""Permute the nodes of every graph to a sampled ordering; also return :math:`\log q(\sigma | A)`, in double.

    With ``is_unbiased`` that is a log-probability whose inverse is unbiased, for importance weights.
    """
    adj, sizes = ordering_matrix(batch, config), batch.sizes.cpu().numpy()
    if is_unbiased:
        orderings, log_q = propose_orderings(adj, sizes, config.ordering, rng, soft_fraction=0.0)
    else:
        orderings, log_q = sample_orderings(adj, sizes, config.ordering, rng)
    device = batch.adj.device

    return batch.reordered(torch.from_numpy(orderings).to(device)), torch.from_numpy(log_q).to(device)
