"""Independent edges conditioned on constraints: exact where an algorithm is known, else row by row with masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..autoregressive.row_sampling import EdgeConstraints, sample_row
from ..data.properties import component_labels
from .constraints import Requirements
from .feasibility import NodePermutation

__all__ = ["exact_sampler", "sample_constrained", "sample_edge_count", "sample_rows", "sample_spanning_tree"]

# Log-odds of this size are certain in double precision.
CERTAIN = 60.0
BATCH, BATCHES = 64, 157

ExactSampler = Callable[[NDArray[np.float64], np.random.Generator], NDArray[np.bool_] | None]


def sample_constrained(
    logits: Tensor,
    requirements: Sequence[Requirements],
    keys: NDArray[np.float64],
    uniform: Tensor,
    streams: Sequence[np.random.Generator],
    by_degree: bool = False,
) -> Tensor:
    """Sample independent edges under constraints, given their log-odds, both with shape :math:`(B, N, N)`.

    Noise in [0, 1) is given for the decoding orders, :math:`(B, N)`, and the pairs, :math:`(B, N, N)`; exact samples
    have random generators of their own. Nodes of higher maximum degree are decoded first if ``by_degree``.
    """
    samplers = [exact_sampler(requirement) for requirement in requirements]
    adj = torch.zeros_like(logits)
    if any(sampler is None for sampler in samplers):
        sizes = np.array([requirement.nodes for requirement in requirements])
        order = NodePermutation(sizes, keys, logits.device, requirements, by_degree=by_degree)
        assert order.constraints is not None
        adj = order.invert(sample_rows(order.pairs(logits), order.sizes, uniform.to(logits), order.constraints))
    for row, (sampler, requirement, rng) in enumerate(zip(samplers, requirements, streams, strict=True)):
        if sampler is not None:
            n = requirement.nodes
            exact = sampler(logits[row, :n, :n].double().cpu().numpy(), rng)
            # The empty graph stands for a failed sample: it is checked and rejected like any other.
            adj[row] = 0
            if exact is not None:
                adj[row, :n, :n] = torch.from_numpy(exact).to(adj)

    return adj


def exact_sampler(requirements: Requirements) -> ExactSampler | None:
    """Return an exact sampler of independent edges given the requirements; None if none is known."""
    tight = requirements.tightened()
    if (tight.max_degree < tight.nodes - 1).any() or (tight.min_degree > int(tight.connected)).any():
        return None
    if tight.connected and tight.max_edges == tight.nodes - 1:
        return sample_spanning_tree
    if tight.min_edges == tight.max_edges and not (tight.connected or tight.acyclic or tight.planar):
        return partial(sample_edge_count, edges=tight.min_edges)

    return None


def sample_rows(logits: Tensor, sizes: Tensor, uniform: Tensor, constraints: EdgeConstraints) -> Tensor:
    """Sample independent edges row by row under constraints; log-odds and noise have shape :math:`(B, N, N)`."""
    adj = torch.zeros_like(logits)
    for t in range(1, logits.shape[-1]):
        live = (sizes > t).nonzero().squeeze(-1)
        if not len(live):
            break
        enforce = constraints(live, adj[live, :t, :t], torch.full_like(live, t), sizes[live])
        edges, _ = sample_row(_FixedLogits(logits[live, t, :t]), uniform[live, t, :t], enforce)
        adj[live, t, :t] = adj[live, :t, t] = edges.to(adj)

    return adj


@dataclass(frozen=True)
class _FixedLogits:
    """Candidate pairs whose logits do not depend on edges (see :class:`.RowCandidates`)."""

    values: Tensor

    def logits(self, rows: Tensor, nodes: Tensor | None) -> Tensor:
        return self.values[rows] if nodes is None else self.values[rows.unsqueeze(-1), nodes]

    def choose(self, rows: Tensor, nodes: Tensor) -> None:
        pass

    def restart(self, rows: Tensor) -> None:
        pass


def sample_spanning_tree(logits: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.bool_]:
    r"""Sample a tree in proportion to the product of its edges' odds: independent edges given that they form a tree.

    Eliminating node :math:`v` with odds :math:`w_{vi}` and adding :math:`w_{vi} w_{vj} / \sum_k w_{vk}` to the odds of
    its neighbours' pairs multiplies the sum over all trees by :math:`\sum_k w_{vk}`. So nodes are eliminated one by
    one, and inserted again in reverse order: each edge of the tree without :math:`v` is kept with the probability that
    it existed before the elimination, and :math:`v` is joined to each remaining component, in proportion to its odds.
    Nothing is subtracted, so this is stable for odds of any size. Log-odds and adjacency have shape :math:`(n, n)`.
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
        added = -rng.exponential(size=len(pairs)) >= w[i, j] - without[i, j]
        tree[i[added], j[added]] = tree[j[added], i[added]] = False
        labels = component_labels(pairs[~added], v)
        # The Gumbel-max trick, per component.
        keys = w[v, :v] - np.log(rng.exponential(size=v))
        order = np.lexsort((-keys, labels))
        chosen = order[np.unique(labels[order], return_index=True)[1]]
        tree[v, chosen] = tree[chosen, v] = True

    return tree


def sample_edge_count(logits: NDArray[np.float64], rng: np.random.Generator, edges: int) -> NDArray[np.bool_] | None:
    r"""Sample independent edges given their number.

    Multiplying all odds by a constant does not change the distribution given the number of edges. With the constant
    that makes the expected number the required one, about one sample in :math:`\sqrt{2 \pi} \sigma` has exactly that
    number. The first of these is returned, or None if there was none in all batches.
    """
    nodes = len(logits)
    upper = np.triu_indices(nodes, 1)
    odds = logits[upper]
    probabilities = _sigmoid(odds + _tilt(odds, edges))
    matrix = np.zeros((nodes, nodes), dtype=np.bool_)
    for _ in range(BATCHES):
        samples = rng.random((BATCH, len(odds))) < probabilities
        right = np.flatnonzero(samples.sum(1) == edges)
        if len(right):
            matrix[upper] = samples[right[0]]
            return matrix | matrix.T

    return None


def _tilt(log_odds: NDArray[np.float64], edges: int) -> float:
    """The constant to add to log-odds for an expected number of edges, by bisection."""
    low, high = -log_odds.max(initial=0) - CERTAIN, -log_odds.min(initial=0) + CERTAIN
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _sigmoid(log_odds + middle).sum() < edges else (low, middle)

    return (low + high) / 2


def _sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return 0.5 * (1 + np.tanh(x / 2))
