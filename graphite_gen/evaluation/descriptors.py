"""Descriptors of graphs: one vector per graph, with the bins of published tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..distributed import SINGLE_PROCESS, ProcessGroup
from ..errors import DatasetError
from ..graph import SimpleGraph
from ..memory import check_memory
from .orbits import orbit_counts
from .parallel import arrays_of
from .sparse_union import unions

__all__ = ["CLUSTERING_BINS", "DESCRIPTORS", "clustering_coefficients", "describe", "spectra"]

CLUSTERING_BINS = 100
# Bytes per cell of the matrices that a spectrum takes.
SPECTRUM_BYTES = 32
SPECTRUM_BINS = 200

Rows = NDArray[np.float64]


def degree_histograms(graphs: Sequence[SimpleGraph]) -> Rows:
    """The proportion of nodes of each degree, from 0 to the highest of all graphs, with shape :math:`(G, K)`."""
    degrees = [graph.degrees() for graph in graphs]
    most = max((int(row.max(initial=0)) for row in degrees), default=0)

    return _normalised([np.bincount(row, minlength=most + 1) for row in degrees])


def clustering_coefficients(graphs: Sequence[SimpleGraph]) -> list[Rows]:
    r"""The clustering coefficient :math:`2 T_v / (d_v (d_v - 1))` of each node, 0 below degree 2, each of shape (n,).

    :math:`T_v` is the number of triangles at a node.
    """
    found = []
    for union in unions(graphs):
        a = union.adjacency
        d = a.sum(1)
        ends = a.multiply(a @ a).sum(1)
        found += union.split(ends / np.maximum(d * (d - 1), 1))

    return found


def clustering_histograms(graphs: Sequence[SimpleGraph]) -> Rows:
    """The proportion of nodes with a clustering coefficient in each bin of [0, 1], with shape (G, 100)."""
    return _normalised([np.histogram(row, CLUSTERING_BINS, (0, 1))[0] for row in clustering_coefficients(graphs)])


def orbit_means(graphs: Sequence[SimpleGraph]) -> Rows:
    """The orbit counts of up to four nodes, averaged over the nodes of each graph, with shape :math:`(G, 15)`."""
    return np.array([counts.mean(0) for counts in orbit_counts(graphs)])


def spectrum_histograms(graphs: Sequence[SimpleGraph]) -> Rows:
    r"""The proportion of eigenvalues of :math:`I - D^{-1/2} A D^{-1/2}` in each bin of [0, 2], with shape (G, 200).

    Isolated nodes have eigenvalue 0. The first bin starts at :math:`-10^{-5}` as in the published code, so that common
    values such as 0 and 1 are not on the edge of a bin. That code drops eigenvalues that are rounded above 2, as in
    bipartite graphs; here they are in the last bin.
    """
    return _normalised([np.histogram(values, SPECTRUM_BINS, (-1e-5, 2))[0] for values in spectra(graphs)])


def spectra(graphs: Sequence[SimpleGraph]) -> list[Rows]:
    """The eigenvalues of each graph in ascending order, each of shape (n,)."""
    found = []
    for graph in graphs:
        what = f"The spectrum of a graph on {graph.nodes} nodes"
        check_memory(graph.nodes**2 * SPECTRUM_BYTES, what, "Use smaller graphs.", DatasetError)
        scale = 1 / np.sqrt(np.maximum(graph.degrees(), 1))
        laplacian = np.diag((graph.degrees() > 0).astype(np.float64)) - graph.adjacency() * np.outer(scale, scale)
        found.append(np.clip(np.linalg.eigvalsh(laplacian), 0, 2))

    return found


DESCRIPTORS: Mapping[str, Callable[[Sequence[SimpleGraph]], Rows]] = {
    "degree": degree_histograms,
    "clustering": clustering_histograms,
    "orbit": orbit_means,
    "spectrum": spectrum_histograms,
}
"""Every descriptor by its name."""


def describe(
    graphs: Sequence[SimpleGraph], names: Sequence[str] = tuple(DESCRIPTORS), *, group: ProcessGroup = SINGLE_PROCESS
) -> dict[str, Rows]:
    """The rows of the named descriptors, keys of :data:`DESCRIPTORS`, on every process of the group.

    Those of a directed graph are those of its skeleton.
    """
    graphs = [graph.skeleton() for graph in graphs]
    empty = next((index for index, graph in enumerate(graphs) if not graph.nodes), None)
    if empty is not None:
        message = f"Graph {empty} of {len(graphs)} has no nodes, so its descriptors are undefined."
        raise DatasetError(message, reason="empty-graph", index=empty)

    return dict(arrays_of(graphs, lambda some: {name: DESCRIPTORS[name](some) for name in names}, group))


def _normalised(counts: Sequence[NDArray[np.int64]]) -> Rows:
    rows = np.array(counts, dtype=np.float64)

    return rows / rows.sum(1, keepdims=True)
