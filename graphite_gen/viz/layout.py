"""Where to draw the nodes of a graph: one style for pictures, pages and the terminal."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist

from ..data.properties import component_labels
from ..errors import DatasetError
from ..graph import SimpleGraph
from ..rng import stream

__all__ = ["MOST_DRAWN", "check_drawable", "place_nodes"]

MOST_DRAWN = 1000
"""The most nodes of a drawing: more are a blot, and distances between all of them take their time."""

STEPS = 60
SETTLED = 1e-4
# Between components, in lengths of an edge.
GAP = 0.8

Points = NDArray[np.float64]


def check_drawable(graph: SimpleGraph, index: int) -> None:
    """Refuse a graph that would be drawn in vain.

    Raises:
        DatasetError: It has too many nodes.
    """
    if graph.nodes > MOST_DRAWN:
        raise DatasetError(
            f"Graph {index} has {graph.nodes} nodes, and at most {MOST_DRAWN} are drawn: pass smaller graphs."
        )


def place_nodes(graph: SimpleGraph) -> Points:
    r"""Points within [-1, 1] in both directions, with shape :math:`(n, 2)`; the same for the same graph.

    Each component is drawn so that distances are those in hops as nearly as may be: the stress

    .. math:: \sum_{i < j} (|p_i - p_j| - d_{ij})^2 / d_{ij}^2

    is lowered by majorisation (Gansner et al., 2004) from classical scaling. Components stand in rows, the largest
    first.
    """
    if not graph.nodes:
        return np.zeros((0, 2))
    hops = shortest_path(graph.adjacency(), unweighted=True, directed=False)
    labels = component_labels(graph.edges, graph.nodes)
    groups = sorted((np.flatnonzero(labels == label) for label in np.unique(labels)), key=len, reverse=True)
    drawn = [_place_component(hops[np.ix_(group, group)]) for group in groups]
    points = np.zeros((graph.nodes, 2))
    for group, part, corner in zip(groups, drawn, _pack(drawn), strict=True):
        points[group] = part - part.min(0) + corner
    points -= (points.max(0) + points.min(0)) / 2

    return points / (np.abs(points).max() or 1.0)


def _place_component(hops: Points) -> Points:
    n = len(hops)
    if n == 1:
        return np.zeros((1, 2))
    inside = ~np.eye(n, dtype=np.bool_)
    weights = np.zeros_like(hops)
    weights[inside] = hops[inside] ** -2
    inverse = np.linalg.pinv(np.diag(weights.sum(1)) - weights, hermitian=True)
    # Twins have the same distances to all others: noise keeps them from the same place.
    points = _classical_scaling(hops) + 0.05 * stream(0, "layout").normal(size=(n, 2))
    for _ in range(STEPS):
        apart = cdist(points, points)
        pull = np.divide(weights * hops, apart, out=np.zeros_like(hops), where=apart > 0)
        moved = inverse @ (pull.sum(1)[:, None] * points - pull @ points)
        change, points = np.abs(moved - points).max(), moved
        if change < SETTLED:
            break
    # The longer side lies flat.
    turn = np.linalg.svd(points - points.mean(0), full_matrices=False)[2]

    return np.asarray(points @ turn.T)


def _classical_scaling(hops: Points) -> Points:
    squares = hops**2
    centred = squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean()
    values, vectors = np.linalg.eigh(-centred / 2)

    return np.asarray(vectors[:, :-3:-1] * np.sqrt(np.maximum(values[:-3:-1], 0)))


def _pack(parts: list[Points]) -> list[Points]:
    """The lower left corner of each component, in rows about as long as all of them are high."""
    sizes = [np.ptp(part, axis=0) + GAP for part in parts]
    longest = max(max(size[0] for size in sizes), np.sqrt(sum(size.prod() for size in sizes)))
    corners, x, y, height = [], 0.0, 0.0, 0.0
    for size in sizes:
        if x and x + size[0] > longest + 1e-9:
            x, y, height = 0.0, y - height, 0.0
        corners.append(np.array([x, y - size[1]]))
        x, height = x + size[0], max(height, size[1])

    return corners
