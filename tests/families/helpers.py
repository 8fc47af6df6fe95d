"""Independent oracles: every graph on a few nodes, shapes up to isomorphism, and chi-squared tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping
from itertools import combinations

import igraph
import numpy as np
from scipy import stats

from graphite_gen.graph import SimpleGraph

# Some sixty tests compare with a law. At 1e-3 each, one in sixteen choices of seeds would fail one of them by chance
# (one did, at 2e-4; forty other seeds gave uniform p-values); at 1e-5 it is one in some two thousand.
CHANCE = 1.0e-5


def all_graphs(n: int) -> Iterator[SimpleGraph]:
    """Every labelled graph on ``n`` nodes."""
    pairs = list(combinations(range(n), 2))
    for bits in range(1 << len(pairs)):
        yield SimpleGraph.from_pairs(n, [pair for k, pair in enumerate(pairs) if bits >> k & 1])


def shape(graph: SimpleGraph) -> tuple[int, bytes]:
    """The same key for isomorphic graphs and for no others."""
    other = igraph.Graph(graph.nodes, graph.edges.tolist())
    canonical = other.permute_vertices(other.canonical_permutation())

    return graph.nodes, SimpleGraph.from_pairs(graph.nodes, canonical.get_edgelist()).edges.tobytes()


def fit(counts: Mapping[Hashable, int], law: Mapping[Hashable, float]) -> float:
    """The p-value of counts under a law, rare outcomes pooled; zero if something impossible was counted."""
    if any(law.get(key, 0.0) == 0.0 for key in counts):
        return 0.0
    total = sum(counts.values())
    rare = [key for key in law if law[key] * total < 5]
    common = [key for key in law if law[key] * total >= 5]
    observed = [counts.get(key, 0) for key in common]
    expected = [law[key] * total for key in common]
    if sum(law[key] for key in rare) * total >= 1:
        observed.append(sum(counts.get(key, 0) for key in rare))
        expected.append(sum(law[key] for key in rare) * total)
    if len(expected) < 2:
        return 1.0

    return float(stats.chisquare(observed, np.array(expected) * sum(observed) / sum(expected)).pvalue)


def agreement(first: Counter[Hashable], second: Counter[Hashable]) -> float:
    """The p-value of two counters coming from one law, rare outcomes pooled."""
    keys = [key for key in first.keys() | second.keys() if first[key] + second[key] >= 10]
    table = np.array([[counter[key] for key in keys] for counter in (first, second)])
    rest = np.array([[sum(counter.values()) - row.sum()] for counter, row in zip((first, second), table, strict=True)])
    if rest.sum() >= 10:
        table = np.concatenate([table, rest], axis=1)

    return float(stats.chi2_contingency(table).pvalue)
