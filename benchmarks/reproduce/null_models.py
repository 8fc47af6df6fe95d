"""Classical random graphs like one observed network: configuration model, Chung-Lu, degree-corrected SBM and BTER.

Small reference implementations for comparison. Each takes the network and a random generator, and gives a simple graph
on as many nodes.
"""

from __future__ import annotations

from collections.abc import Callable

import networkx as nx
import numpy as np
from sklearn.cluster import KMeans
from sklearn.manifold import spectral_embedding

__all__ = ["NULL_MODELS", "bter", "chung_lu", "configuration_model", "degree_corrected_sbm"]

# Nodes per block of the degree-corrected SBM.
BLOCK = 45


def configuration_model(observed: nx.Graph, rng: np.random.Generator) -> nx.Graph:
    """Return a random matching of free ends, without self-loops and repeated edges."""
    graph = nx.Graph(nx.configuration_model([degree for _, degree in observed.degree], seed=int(rng.integers(2**31))))
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))

    return graph


def chung_lu(observed: nx.Graph, rng: np.random.Generator) -> nx.Graph:
    """Return independent edges with the observed degrees in expectation."""
    degrees = [degree for _, degree in observed.degree]

    return nx.expected_degree_graph(degrees, seed=int(rng.integers(2**31)), selfloops=False)


def degree_corrected_sbm(observed: nx.Graph, rng: np.random.Generator) -> nx.Graph:
    """Return Poisson edges between spectral blocks, in the observed numbers, with ends in proportion to degrees."""
    nodes = len(observed)
    matrix = nx.to_scipy_sparse_array(observed, nodelist=range(nodes), dtype=float)
    # scikit-learn takes 32-bit indices only.
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    count = max(2, nodes // BLOCK)
    # Components make the smallest eigenvalues degenerate: a faint background connects them.
    points = spectral_embedding(matrix, n_components=min(count, 32), random_state=0, drop_first=False, eigen_tol=1e-4)
    block = KMeans(count, n_init=1, random_state=0).fit_predict(points)
    degrees = np.array([observed.degree[node] for node in range(nodes)], dtype=float)
    members = [np.flatnonzero(block == each) for each in range(count)]
    totals: dict[tuple[int, int], int] = {}
    for i, j in observed.edges:
        pair = (min(block[i], block[j]), max(block[i], block[j]))
        totals[pair] = totals.get(pair, 0) + 1
    graph = nx.empty_graph(nodes)
    for (a, b), total in sorted(totals.items()):
        drawn = rng.poisson(total)
        ends = [
            rng.choice(members[side], drawn, p=degrees[members[side]] / degrees[members[side]].sum()) for side in (a, b)
        ]
        graph.add_edges_from((int(i), int(j)) for i, j in zip(*ends, strict=True) if i != j)

    return graph


def bter(observed: nx.Graph, rng: np.random.Generator) -> nx.Graph:
    """Return dense blocks of nodes of similar degree, and Chung-Lu edges for the remaining degrees (BTER).

    Kolda, Pinar, Plantenga & Seshadhri (2014): a block has d + 1 nodes of degree about d, and is an Erdős-Rényi graph
    whose density is the cube root of the clustering coefficient at that degree.
    """
    degrees = np.array([observed.degree[node] for node in range(len(observed))])
    clustering = nx.clustering(observed)
    mean = {
        degree: np.mean([clustering[node] for node in np.flatnonzero(degrees == degree)]) for degree in set(degrees)
    }
    order = np.argsort(degrees, kind="stable")
    order = order[degrees[order] > 1]
    left = degrees.astype(float)
    graph = nx.empty_graph(len(observed))
    start = 0
    while start < len(order):
        least = degrees[order[start]]
        members = order[start : start + least + 1]
        density = float(np.cbrt(mean[least]))
        start += least + 1
        for place, i in enumerate(members):
            near = members[place + 1 :][rng.random(len(members) - place - 1) < density]
            graph.add_edges_from((int(i), int(j)) for j in near)
        left[members] -= density * (len(members) - 1)
    rest = nx.expected_degree_graph(np.maximum(left, 0).tolist(), seed=int(rng.integers(2**31)), selfloops=False)
    graph.add_edges_from(rest.edges)

    return graph


NULL_MODELS: dict[str, Callable[[nx.Graph, np.random.Generator], nx.Graph]] = {
    "configuration model": configuration_model,
    "Chung-Lu": chung_lu,
    "degree-corrected SBM": degree_corrected_sbm,
    "BTER": bter,
}
