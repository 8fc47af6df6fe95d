"""Latents of graphs in two dimensions, with a value for the colour of each point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.encoded import EncodedGraph
from ..errors import DatasetError
from ..evaluation.descriptors import clustering_coefficients
from ..graph import SimpleGraph
from ..records import listed

__all__ = ["LEVELS", "LatentProjection", "project_latents"]

LEVELS = {"graphs": ("nodes", "edges", "density", "clustering"), "nodes": ("degree", "clustering")}
"""What a point can be, and the properties that every graph or node has, the default first."""


@dataclass(frozen=True, eq=False)
class LatentProjection:
    """Points and their values.

    Attributes:
        points: The first two principal components, with shape :math:`(P, 2)`.
        variance: The proportions of the variance along them.
        label: The name of the property or attribute.
        values: Its values, with shape :math:`(P,)`: numbers, or indices of ``names``; NaN where it is missing.
        names: The names of the values of an attribute that is not a number.
    """

    points: NDArray[np.float64]
    variance: tuple[float, float]
    label: str
    values: NDArray[np.float64]
    names: tuple[str, ...] = ()


def project_latents(
    encoded: Sequence[EncodedGraph], graphs: Sequence[SimpleGraph], level: str = "graphs", by: str | None = None
) -> LatentProjection:
    """Project posterior means to their first two principal components.

    Arguments:
        encoded: The latents of the graphs.
        graphs: The graphs.
        level: ``nodes`` for a point per node, or ``graphs`` for one per graph: averages and standard deviations over
            its nodes.
        by: A property of :data:`LEVELS`, or the name of a node or graph attribute; None for the first property.
    """
    if not graphs or [one.nodes for one in encoded] != [graph.nodes for graph in graphs]:
        raise DatasetError("Latents and graphs to draw differ in number or size, or there are none.")
    if level not in LEVELS:
        raise DatasetError(f"Unknown level '{level}'; expected {listed(LEVELS)}.")
    by = by or LEVELS[level][0]
    # The last entry of the vector is the number of nodes, which is no latent.
    rows = [one.mean for one in encoded] if level == "nodes" else [one.vector[None, :-1] for one in encoded]
    points, variance = _principal_components(np.concatenate(rows).astype(np.float64))
    found = _node_values(graphs, by) if level == "nodes" else _graph_values(graphs, by)
    known = [value for value in found if value is not None]
    is_number = all(isinstance(value, int | float | np.number) for value in known)
    names = () if is_number else tuple(sorted(set(map(str, known))))
    codes = {name: code for code, name in enumerate(names)}
    values = np.array([codes.get(str(value)) if names else value for value in found], dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    if np.isnan(values).all():
        kind = level.removesuffix("s")
        raise DatasetError(f"There is no {kind} attribute '{by}', and no property: those are {listed(LEVELS[level])}.")

    return LatentProjection(points, variance, by, values, names)


def _principal_components(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], tuple[float, float]]:
    centred = np.pad(rows - rows.mean(0), ((0, 2), (0, 2)))
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    total = float((s**2).sum()) or 1.0
    first, second = (float(value**2 / total) for value in s[:2])

    return (u * s)[: len(rows), :2], (first, second)


def _node_values(graphs: Sequence[SimpleGraph], by: str) -> list[Any]:
    if by == "degree":
        return [value for graph in graphs for value in graph.degrees()]
    if by == "clustering":
        return [value for row in clustering_coefficients(graphs) for value in row]

    return [value for graph in graphs for value in graph.node_attributes.get(by, [None] * graph.nodes)]


def _graph_values(graphs: Sequence[SimpleGraph], by: str) -> list[Any]:
    if by == "clustering":
        return [row.mean() for row in clustering_coefficients(graphs)]
    if by in LEVELS["graphs"]:
        rows = [(n := graph.nodes, m := len(graph.edges), 2 * m / max(n * (n - 1), 1)) for graph in graphs]
        return [row[LEVELS["graphs"].index(by)] for row in rows]

    return [graph.attributes.get(by) for graph in graphs]
