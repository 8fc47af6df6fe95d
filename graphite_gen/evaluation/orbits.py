"""Orbit counts: the occurrences of each node in the 15 orbits of connected graphs on two to four nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..graph import SimpleGraph
from .sparse_union import unions

__all__ = ["ORBITS", "orbit_counts"]

ORBITS = 15

# Triangles that are extended to complete graphs at once.
TRIANGLES = 1 << 17
# With more triangles per node on average, dense matrices of neighbours are faster.
DENSE_TRIANGLES = 100
DENSE_NODES = 4096


def orbit_counts(graphs: Sequence[SimpleGraph]) -> list[NDArray[np.int64]]:
    """The orbit counts of the nodes of each graph, each with shape :math:`(n, 15)`.

    Orbits are numbered as by Pržulj (2007) and ORCA (Hočevar & Demšar, 2014): edge (0), path on three nodes (1 end, 2
    middle), triangle (3), path (4 end, 5 inner), claw (6 leaf, 7 hub), 4-cycle (8), paw (9 leaf, 10 other, 11 hub),
    diamond (12 degree 2, 13 degree 3), complete graph (14). The cost is linear in the number of three-step walks.
    """
    return [counts for union in unions(graphs) for counts in union.split(_count(union.adjacency))]


def _count(a: Any) -> NDArray[np.int64]:
    # Only complete graphs are enumerated. Counts of non-induced subgraphs follow from degrees, triangles and common
    # neighbours; they are linear combinations of the induced counts, solved for from the densest subgraph down.
    d = a.sum(1)
    common = a @ a - sparse.diags_array(d, format="csr", dtype=np.int64)
    shared = a.multiply(common).tocsr()
    triangles = shared.sum(1) // 2
    complete = (_complete_among_neighbours if triangles.mean() > DENSE_TRIANGLES else _complete)(a)

    diamond_hub = _data(shared, _pairs).sum(1) - 3 * complete
    diamond_side = a.multiply(a @ _data(shared, lambda t: t - 1)).sum(1) // 2 - 3 * complete
    cycle = _data(common, _pairs).sum(1) - diamond_side - diamond_hub - 3 * complete
    paw_hub = triangles * (d - 2) - 2 * diamond_hub - 3 * complete
    paw_side = shared @ (d - 2) - 2 * diamond_side - 2 * diamond_hub - 6 * complete
    paw_leaf = a @ triangles - 2 * triangles - 2 * diamond_side - 3 * complete
    claw_hub = d * (d - 1) * (d - 2) // 6 - paw_hub - diamond_hub - complete
    claw_leaf = a @ _pairs(d - 1) - paw_leaf - paw_side - 2 * diamond_side - diamond_hub - 3 * complete
    ahead = a @ (d - 1)
    path_inner = (d - 1) * ahead - 2 * triangles
    path_inner -= 2 * cycle + paw_side + 2 * paw_hub + 2 * diamond_side + 4 * diamond_hub + 6 * complete
    path_end = a @ ahead - d * (d - 1) - 2 * triangles
    path_end -= 2 * cycle + 2 * paw_leaf + paw_side + 4 * diamond_side + 2 * diamond_hub + 6 * complete

    columns = [d, ahead - 2 * triangles, _pairs(d) - triangles, triangles]
    columns += [path_end, path_inner, claw_leaf, claw_hub, cycle]
    columns += [paw_leaf, paw_side, paw_hub, diamond_side, diamond_hub, complete]

    return np.stack(columns, axis=1)


def _complete(a: Any) -> NDArray[np.int64]:
    """The number of 4-cliques at each node, each clique found once, its nodes in ascending order."""
    upper = sparse.triu(a, 1, format="csr")
    i, j = upper.nonzero()
    third = upper[i].multiply(upper[j]).tocsr()
    edge, k = third.nonzero()
    counts = np.zeros(a.shape[0], dtype=np.int64)
    for start in range(0, len(edge), TRIANGLES):
        e, c = edge[start : start + TRIANGLES], k[start : start + TRIANGLES]
        triangle, last = third[e].multiply(upper[c]).nonzero()
        for nodes in (i[e[triangle]], j[e[triangle]], c[triangle], last):
            counts += np.bincount(nodes, minlength=len(counts))

    return counts


def _complete_among_neighbours(a: Any) -> NDArray[np.int64]:
    """The same for dense graphs: triangles among the neighbours of each node that come after it."""
    upper = sparse.triu(a, 1, format="csr")
    # Slicing a dense matrix is faster, if it fits in memory.
    dense = a.toarray().astype(np.bool_) if a.shape[0] <= DENSE_NODES else None
    counts = np.zeros(a.shape[0], dtype=np.int64)
    for node in range(a.shape[0]):
        after = upper.indices[upper.indptr[node] : upper.indptr[node + 1]]
        if len(after) < 3:
            continue
        among = (a[after][:, after].toarray() if dense is None else dense[np.ix_(after, after)]).astype(np.float32)
        # Integers this small are exact in single precision.
        twice = ((among @ among) * among).sum(1, dtype=np.float64).astype(np.int64)
        counts[after] += twice // 2
        counts[node] += twice.sum() // 6

    return counts


def _pairs(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return values * (values - 1) // 2


def _data(matrix: Any, change: Any) -> Any:
    """The matrix with its stored values changed."""
    changed = matrix.copy()
    changed.data = change(changed.data)

    return changed
