"""How much networks resemble one observed network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..errors import DatasetError
from ..graph import SimpleGraph, as_simple_graph
from ..records import Record
from .attributes import AttributeRow, compare_attributes
from .statistics import summarise_graphs

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["NetworkComparison", "StatisticRow", "compare_networks"]


@dataclass(frozen=True)
class StatisticRow(Record):
    """A statistic of the observed network, and its mean and standard deviation over samples; None if undefined."""

    name: str
    reference: float | None
    samples: float | None
    deviation: float | None


@dataclass(frozen=True)
class NetworkComparison(Record):
    """Samples beside the network that they should resemble.

    Attributes:
        samples: The number of samples.
        statistics: Statistics of both.
        degree_distance: The mean Kolmogorov-Smirnov distance of the degree distributions, from 0 to 1.
        edge_overlap: The mean proportion of edges of the samples that are edges of the network; None if sizes differ.
        attributes: Measures of labels, weights and directions; empty if samples and network share none.
    """

    samples: int
    statistics: tuple[StatisticRow, ...]
    degree_distance: float
    edge_overlap: float | None
    attributes: tuple[AttributeRow, ...] = ()


def compare_networks(
    samples: Iterable[SimpleGraph | nx.Graph],
    reference: SimpleGraph | nx.Graph,
    *,
    node_label: str | None = None,
    edge_label: str | None = None,
) -> NetworkComparison:
    """Compare samples of a model of one network with that network; one sample is enough.

    Statistics of directed networks are those of their skeletons.

    Arguments:
        node_label: The node label to compare; None for all.
        edge_label: The edge label to compare; None for all.

    Raises:
        DatasetError: There are no samples, a network has no nodes, or a named attribute is not a label.
    """
    own, known = [as_simple_graph(graph) for graph in samples], as_simple_graph(reference)
    if not own or not all(graph.nodes for graph in (*own, known)):
        raise DatasetError("There is nothing to compare: expected samples and a network with nodes.")
    attributes = compare_attributes(own, [known], node_label=node_label, edge_label=edge_label)
    degrees, *drawn_degrees = (graph.skeleton().degrees() for graph in (known, *own))
    observed, drawn = _statistics([known.skeleton()]), _statistics([graph.skeleton() for graph in own])
    rows = [StatisticRow(name, *_mean(observed[name])[:1], *_mean(drawn[name])) for name in observed]
    distances = [stats.ks_2samp(own_degrees, degrees).statistic for own_degrees in drawn_degrees]
    edges = set(map(tuple, known.edges.tolist()))
    same = [graph for graph in own if graph.nodes == known.nodes and len(graph.edges)]
    overlaps = [len(edges & set(map(tuple, graph.edges.tolist()))) / len(graph.edges) for graph in same]

    return NetworkComparison(
        len(own),
        tuple(rows),
        float(np.mean(distances)),
        float(np.mean(overlaps)) if len(same) == len(own) else None,
        attributes,
    )


def _mean(values: NDArray[np.float64]) -> tuple[float | None, float | None]:
    finite = values[np.isfinite(values)]

    return (float(finite.mean()), float(finite.std())) if len(finite) else (None, None)


def _statistics(graphs: Sequence[SimpleGraph]) -> dict[str, NDArray[np.float64]]:
    return {
        **summarise_graphs(graphs),
        "maximum degree": np.array([graph.degrees().max() for graph in graphs], dtype=np.float64),
        "assortativity": np.array(list(map(_assortativity, graphs))),
    }


def _assortativity(graph: SimpleGraph) -> float:
    """The correlation of the degrees at both ends of an edge; NaN if all are equal."""
    degrees = graph.degrees()[np.concatenate([graph.edges, graph.edges[:, ::-1]])]
    if not len(degrees) or not np.ptp(degrees):
        return float("nan")

    return float(np.corrcoef(degrees.T)[0, 1])
