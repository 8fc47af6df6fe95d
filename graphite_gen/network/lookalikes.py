"""A graph that resembles an observed network: its degrees and statistics, with the decoder's log-odds of pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from .arcs import Indices
from .pair_logits import PairLogits
from .reconnection import reconnect
from .rewiring import Observed, Rewiring

__all__ = ["rewire"]

# Sweeps over graphs of up to MANY_EDGES edges, and the least number of sweeps over larger ones.
SWEEPS, FEWEST, MANY_EDGES = 200, 60, 400_000
# Sweeps between two reconnections.
_CONNECTED = 20
# Reconnections after the last sweep, each after sweeps, until the bound on copied edges holds.
_MORE = 10


def rewire(
    edges: Indices,
    logits: PairLogits,
    like: Indices,
    observed: Observed,
    sizes: Mapping[int, int],
    bound: float,
    rng: np.random.Generator,
) -> tuple[Indices, float]:
    """Edges of a graph with the degrees of the given one, in ascending order, and the proportion of copied ones.

    Arguments:
        edges: Edges i < j of the graph to begin with, with shape (2, E).
        logits: Log-odds of pairs of its N nodes.
        like: The observed node that each node is a copy of, with shape (N,).
        observed: The statistics of the observed network.
        sizes: The numbers of components of the graph by size, without the largest.
        bound: The largest proportion of edges that are copied from the observed network.
    """
    chain = Rewiring(edges.copy(), logits, like, observed, bound)
    if edges.shape[1] < 2:
        return chain.edges, chain.copied()
    sweeps = max(FEWEST, round(SWEEPS * min(1.0, MANY_EDGES / edges.shape[1])))
    blocks, more, before = -(-sweeps // _CONNECTED), _MORE, 2.0
    # More sweeps than planned only as long as they help.
    while blocks or (more and bound < chain.copied() < before):
        before = before if blocks else chain.copied()
        for _ in range(_CONNECTED):
            chain.sweep(rng)
        chain.replace_edges(reconnect(chain.edges, len(like), Counter(sizes), chain.affinity, rng))
        blocks, more = (blocks - 1, more) if blocks else (0, more - 1)

    keys = np.sort(chain.edges[0] * len(like) + chain.edges[1])

    return np.stack(np.divmod(keys, len(like))), chain.copied()
