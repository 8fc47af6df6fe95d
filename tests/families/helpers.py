"""Independent oracles: isomorphism classes, chi-squared tests and means over samples."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from math import factorial

import igraph
import networkx as nx
import numpy as np
from scipy import stats

from graphite_gen.families import Family
from graphite_gen.graph import SimpleGraph

# The significance level of about sixty statistical tests: with it, one in some two thousand choices of seeds fails.
ALPHA = 1.0e-5


def labellings(graph: SimpleGraph) -> float:
    """The number of labelled graphs that are isomorphic to this one: n! / |Aut|."""
    return factorial(graph.nodes) / igraph.Graph(graph.nodes, graph.edges.tolist()).count_automorphisms()


def all_shapes(n: int) -> list[SimpleGraph]:
    """One graph of each isomorphism class on ``n`` < 8 nodes."""
    return [SimpleGraph.from_networkx(graph) for graph in nx.graph_atlas_g() if len(graph) == n]


def shape(graph: SimpleGraph) -> tuple[int, tuple[tuple[int, ...], ...]]:
    """A canonical form: equal for isomorphic graphs only."""
    other = igraph.Graph(graph.nodes, graph.edges.tolist())
    canonical = other.permute_vertices(other.canonical_permutation())

    return graph.nodes, tuple(sorted(tuple(sorted(pair)) for pair in canonical.get_edgelist()))


def fit(counts: Mapping[Hashable, int], distribution: Mapping[Hashable, float]) -> float:
    """The p-value of counts under a distribution, rare outcomes pooled; 0 if an impossible outcome was counted."""
    if any(distribution.get(key, 0.0) == 0.0 for key in counts):
        return 0.0
    total = sum(counts.values())
    bins = [[key] for key in distribution if distribution[key] * total >= 5]
    bins.append([key for key in distribution if distribution[key] * total < 5])
    observed = np.array([sum(counts.get(key, 0) for key in keys) for keys in bins])
    expected = np.array([sum(distribution[key] for key in keys) * total for keys in bins])
    observed, expected = observed[expected >= 1], expected[expected >= 1]
    if len(expected) < 2:
        return 1.0

    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


def agreement(family: Family, n: int, theirs: Callable[..., nx.Graph], draws: int = 3000) -> float:
    """The p-value of samples and of graphs by seed under a common distribution of shapes, rare ones pooled."""
    rng = np.random.default_rng(0)
    first = Counter(shape(family.sample(n, rng)) for _ in range(draws))
    second = Counter(shape(SimpleGraph.from_pairs(n, list(theirs(n, seed=seed).edges))) for seed in range(draws))
    keys = [key for key in first.keys() | second.keys() if first[key] + second[key] >= 10]
    table = np.array([[counter[key] for key in keys] for counter in (first, second)])
    rest = np.array([[sum(counter.values()) - row.sum()] for counter, row in zip((first, second), table, strict=True)])
    if rest.sum() >= 10:
        table = np.concatenate([table, rest], axis=1)

    return float(stats.chi2_contingency(table).pvalue)
