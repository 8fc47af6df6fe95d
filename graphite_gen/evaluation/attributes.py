"""Labels, weights, directions and node features of samples beside those of reference graphs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from ..data.properties import is_acyclic
from ..errors import DatasetError, did_you_mean
from ..graph import SimpleGraph, is_finite
from ..records import Record
from ..rng import stream

__all__ = [
    "MAX_LABELS",
    "AttributeRow",
    "compare_attributes",
    "describe_attributes",
    "find_columns",
    "find_labels",
    "has_attributes",
    "is_directed",
]

MAX_LABELS = 50
"""The maximum number of distinct values of an attribute that is a label."""

MAX_COLUMNS = 100
"""The maximum number of columns of node features that are compared."""
MAX_PAIRS = 10
"""The maximum number of other columns that correlations of a column are computed with."""

TYPES = (str, int, np.integer, np.bool_)

Graphs = Sequence[SimpleGraph]
Values = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class AttributeRow(Record):
    """A measure of an attribute on reference graphs and on samples.

    The reference graphs are also divided at random into halves. Their difference shows what to expect of samples of the
    true process, but it is that of one division: it is no test of significance. None stands for a value that is
    undefined, such as a relative difference from 0.

    Attributes:
        on: What has the attribute: ``node``, ``edge``, or ``graph`` for the directions of edges.
        attribute: The name of the attribute, ``weight``, ``direction``, or ``features[0]`` for a column of features.
        measure: The measure. Proportions are over all nodes, edges or graphs of a set; the total variation (TV) and the
            Kolmogorov-Smirnov distance (KS) are between two sets, from 0 to 1; others are means over graphs or edges.
        labels: The label that a proportion is of, or those of the two ends of edges; empty for other measures.
        reference: The value of the reference graphs; None for a distance.
        samples: The value of the samples, or their distance from the reference graphs.
        difference: The relative difference of samples and reference.
        half: The value of the second half of the reference graphs, or its distance from the first half; None if there
            is one reference graph.
        half_difference: The relative difference of the second half from the first.
        training: The value of the training graphs, or their distance from the reference graphs, which good samples
            attain; None without training graphs.
    """

    on: str
    attribute: str
    measure: str
    labels: tuple[Any, ...]
    reference: float | None
    samples: float | None
    difference: float | None
    half: float | None
    half_difference: float | None
    training: float | None = None


@dataclass(frozen=True)
class _Measured:
    """Values by measure and labels, and by measure what distances compare: numbers, or proportions of labels."""

    values: Mapping[tuple[str, tuple[Any, ...]], float]
    numbers: Mapping[str, Values] = field(default_factory=dict)
    proportions: Mapping[str, Values] = field(default_factory=dict)


def has_attributes(graph: SimpleGraph) -> bool:
    """Whether a graph has more than its structure: directions, weights, or attributes of nodes or edges."""
    return graph.directed or graph.weights is not None or bool(graph.node_attributes or graph.edge_attributes)


def is_directed(graphs: Graphs, what: str = "graphs") -> bool:
    """Whether graphs are directed; a :class:`DatasetError` if only some of them are."""
    kinds = {graph.directed for graph in graphs}
    if len(kinds) > 1:
        raise DatasetError(f"Some of the {what} are directed and others are not.", reason="mixed-directions")

    return True in kinds


def find_labels(graphs: Graphs, on: str, name: str | None = None, what: str = "graphs") -> dict[str, list[Any]]:
    """The labels of nodes or edges by name, with their values in order.

    A label is an attribute on every node or edge with at most :data:`MAX_LABELS` distinct values, which are strings,
    integers or booleans.

    Arguments:
        on: ``node`` or ``edge``.
        name: The only attribute to consider; None for all.
        what: What the graphs are, for messages.

    Raises:
        DatasetError: The attribute with this name is not a label.
    """
    sides = [graph.node_attributes if on == "node" else graph.edge_attributes for graph in graphs if _size(graph, on)]
    names = {*sides[0]}.intersection(*sides[1:]) if sides else set()
    if name is not None and sides:
        _check_label(sides, on, name, names, what)
        names = {name}
    values = {own: _distinct([columns[own] for columns in sides]) for own in sorted(names)}

    return {
        own: sorted(found, key=lambda value: (isinstance(value, str), value))
        for own, found in values.items()
        if 0 < len(found) <= MAX_LABELS
    }


def _distinct(columns: Sequence[list[Any]]) -> set[Any]:
    """The values of columns; none if one of them cannot be a label, as it may not be hashable."""
    are_labels = all(isinstance(value, TYPES) for column in columns for value in column)

    return set().union(*columns) if are_labels else set()


def _size(graph: SimpleGraph, on: str) -> int:
    return graph.nodes if on == "node" else len(graph.edges)


def _check_label(sides: Sequence[Mapping[str, list[Any]]], on: str, name: str, shared: set[str], what: str) -> None:
    def error(problem: str) -> DatasetError:
        return DatasetError(f"The {on} attribute '{name}' {problem}.", reason="not-a-label", on=on, name=name)

    values = [value for columns in sides for value in columns.get(name, [None])]
    if any(value is None for value in values):
        raise error(f"is not on every {on} of the {what}{did_you_mean(name, shared - {name})}")
    wrong = next((value for value in values if not isinstance(value, TYPES)), None)
    if wrong is not None:
        raise error(f"has the value {str(wrong)[:40]}; labels are strings, integers or booleans")
    if len(set(values)) > MAX_LABELS:
        raise error(f"has {len(set(values))} distinct values; labels have at most {MAX_LABELS}")


def find_columns(graphs: Graphs, labels: Sequence[str] = ()) -> dict[str, Callable[[SimpleGraph], Values]]:
    """The numeric node features by name: functions that give the values of a graph, with shape (n,).

    They are the columns of the graphs' node features, and node attributes with a finite number on every node, other
    than the labels given; integers with few distinct values are labels (:func:`find_labels`).
    """
    graphs = [graph for graph in graphs if graph.nodes]
    shared = (
        {*graphs[0].node_attributes}.intersection(*(graph.node_attributes for graph in graphs)) if graphs else set()
    )
    found: dict[str, Callable[[SimpleGraph], Values]] = {}
    widths = {0 if graph.features is None else graph.features.shape[1] for graph in graphs}
    if len(widths) == 1 and 0 < (width := widths.pop()) <= MAX_COLUMNS:
        found = {f"features[{place}]": partial(_feature, place=place) for place in range(width)}
    for name in sorted(shared - {*labels}):
        values = (value for graph in graphs for value in graph.node_attributes[name])
        if all(map(is_finite, values)):
            found[name] = partial(_column, name=name)

    return found


def _feature(graph: SimpleGraph, place: int) -> Values:
    return np.zeros(0) if graph.features is None else graph.features[:, place].astype(np.float64)


def _column(graph: SimpleGraph, name: str) -> Values:
    return np.array(graph.node_attributes.get(name, []), dtype=np.float64)


def compare_attributes(
    samples: Graphs,
    reference: Graphs,
    train: Graphs = (),
    *,
    node_label: str | None = None,
    edge_label: str | None = None,
    seed: int = 0,
) -> tuple[AttributeRow, ...]:
    """Compare the labels, weights, directions and node features that both samples and reference graphs have.

    Arguments:
        train: Training graphs, whose own values are shown beside those of the samples if they have the same attributes.
        node_label: The node attribute to compare; None for every label (:func:`find_labels`).
        edge_label: The edge attribute to compare; None for every label.
        seed: The seed of the halves of the reference graphs.

    Raises:
        DatasetError: One side is directed and the other is not, or a named attribute is not a label.
    """
    directed = is_directed(samples, "samples")
    if directed is not is_directed(reference, "reference graphs"):
        kinds = ("directed", "undirected") if directed else ("undirected", "directed")
        message = f"The samples are {kinds[0]} and the reference graphs {kinds[1]}."
        raise DatasetError(message, reason="mixed-directions")
    both = [*samples, *reference]
    order = stream(seed, "halves").permutation(len(reference))
    halves = [[reference[k] for k in part] for part in np.array_split(order, 2)] if len(reference) > 1 else []
    measures: list[tuple[str, str, Callable[[Graphs], _Measured]]] = []
    for on, name in (("node", node_label), ("edge", edge_label)):
        if name is not None:
            find_labels(samples, on, name, "samples")
            find_labels(reference, on, name, "reference graphs")
        measure = _node_label if on == "node" else _edge_label
        labels = find_labels(both, on, name)
        measures += [(on, own, partial(measure, name=own, labels=values)) for own, values in labels.items()]
        if on == "node":
            columns = find_columns(both, [*labels, *([] if name is None else [name])])
            measures += [("node", own, partial(_numbers, name=own, columns=columns)) for own in columns]
    if _are_weighted(samples) and _are_weighted(reference):
        measures.append(("edge", "weight", _weights))
    if directed:
        measures.append(("graph", "direction", _directions))

    return tuple(
        row
        for on, name, measure in measures
        for row in _rows(
            on, name, _measured(measure, train), *(measure(side) for side in (samples, reference, *halves))
        )
    )


def _measured(measure: Callable[[Graphs], _Measured], train: Graphs) -> _Measured | None:
    """A measure of training graphs; None if they do not have the attribute, or other values of it."""
    if not train:
        return None
    try:
        found = measure(train)
    except (LookupError, TypeError, ValueError, DatasetError):
        return None

    return found if all(len(part) for part in (*found.numbers.values(), *found.proportions.values())) else None


def _are_weighted(graphs: Graphs) -> bool:
    weighted = [graph.weights is not None for graph in graphs if len(graph.edges)]

    return bool(weighted) and all(weighted)


def _rows(
    on: str, name: str, seen: _Measured | None, own: _Measured, known: _Measured, *halves: _Measured
) -> list[AttributeRow]:
    rows = []
    for distance, kind in ((_total_variation, "proportions"), (_kolmogorov_smirnov, "numbers")):
        for measure in getattr(known, kind):
            samples, whole, *parts = (getattr(side, kind)[measure] for side in (own, known, *halves))
            half = distance(*parts) if parts else None
            training = None if seen is None else distance(getattr(seen, kind)[measure], whole)
            rows.append(AttributeRow(on, name, measure, (), None, distance(samples, whole), None, half, None, training))
    for (measure, labels), value in known.values.items():
        sides = [_defined(side.values[measure, labels]) for side in (own, known, *halves)]
        # Pairs of labels that are never adjacent.
        if len(labels) < 2 or value or own.values[measure, labels]:
            first, second = sides[2:] if halves else (None, None)
            differences = _relative(sides[0], sides[1]), second, _relative(second, first)
            training = None if seen is None else _defined(seen.values[measure, labels])
            rows.append(AttributeRow(on, name, measure, labels, sides[1], sides[0], *differences, training))

    return rows


def _defined(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _relative(value: float | None, base: float | None) -> float | None:
    if value is None or base is None:
        return None
    if value == base:
        return 0.0

    return (value - base) / abs(base) if base else None


def _total_variation(x: Values, y: Values) -> float | None:
    return _defined(np.abs(x - y).sum() / 2)


def _kolmogorov_smirnov(x: Values, y: Values) -> float | None:
    # The exact p-value, which is not used, takes long.
    return float(stats.ks_2samp(x, y, method="asymp").statistic) if len(x) and len(y) else None


def _node_label(graphs: Graphs, name: str, labels: Sequence[Any]) -> _Measured:
    """Proportions of labels, edges between labels (the mixing matrix) and assortativity."""
    codes = _codes(graphs, "node", name, labels)
    pairs = [own[graph.edges] for own, graph in zip(codes, graphs, strict=True)]
    directed = is_directed(graphs)
    ends = np.concatenate(pairs) if directed else np.sort(np.concatenate(pairs), axis=1)
    size = len(labels)
    mixing = np.bincount(ends @ (size, 1), minlength=size**2).reshape(size, size)
    shown = [(i, j) for i in range(size) for j in range(0 if directed else i, size)]
    proportions = _proportions(np.concatenate(codes), size)
    coefficients = np.array([_assortativity(own, directed, size) for own in pairs])
    defined = coefficients[np.isfinite(coefficients)]
    plain = [_plain(label) for label in labels]

    return _Measured(
        {
            ("assortativity", ()): float(defined.mean()) if len(defined) else np.nan,
            **{("proportion", (plain[i],)): proportions[i] for i in range(size)},
            **{("edges per graph", (plain[i], plain[j])): mixing[i, j] / len(graphs) for i, j in shown},
        },
        proportions={
            "TV of proportions": proportions,
            "TV of edges": mixing.ravel() / mixing.sum() if mixing.any() else np.full(size**2, np.nan),
        },
    )


def _edge_label(graphs: Graphs, name: str, labels: Sequence[Any]) -> _Measured:
    proportions = _proportions(np.concatenate(_codes(graphs, "edge", name, labels)), len(labels))

    return _Measured(
        {("proportion", (_plain(label),)): value for label, value in zip(labels, proportions, strict=True)},
        proportions={"TV of proportions": proportions},
    )


def _numbers(graphs: Graphs, name: str, columns: Mapping[str, Callable[[SimpleGraph], Values]]) -> _Measured:
    """Moments of a node feature, and its correlations: with later columns, and of the two ends of edges."""
    parts = [columns[name](graph) for graph in graphs]
    values = _pooled(parts)
    ends = [own[graph.edges] for own, graph in zip(parts, graphs, strict=True)]
    pairs = np.concatenate([np.zeros((0, 2)), *ends])
    # An undirected edge has two directions.
    pairs = pairs if is_directed(graphs) else np.concatenate([pairs, pairs[:, ::-1]])
    later = [*columns][[*columns].index(name) + 1 :][:MAX_PAIRS]

    return _Measured(
        {
            ("mean", ()): float(values.mean()) if len(values) else np.nan,
            ("deviation", ()): float(values.std()) if len(values) else np.nan,
            ("correlation over edges", ()): _correlation(*pairs.T),
            **{
                ("correlation", (other,)): _correlation(values, _pooled([columns[other](graph) for graph in graphs]))
                for other in later
            },
        },
        numbers={"KS of values": values},
    )


def _correlation(x: Values, y: Values) -> float:
    """Pearson's coefficient; NaN if a side does not vary."""
    if len(x) < 2 or not x.std() or not y.std():
        return np.nan

    return float(np.corrcoef(x, y)[0, 1])


def _weights(graphs: Graphs) -> _Measured:
    weights = _pooled([graph.weights for graph in graphs if graph.weights is not None])
    pairs = [graph.nodes * (graph.nodes - 1) / (1 if graph.directed else 2) for graph in graphs]
    densities = [len(graph.edges) / most if most else 0.0 for graph, most in zip(graphs, pairs, strict=True)]
    values = {("mean", ()): weights.mean() if len(weights) else np.nan, ("density", ()): float(np.mean(densities))}

    return _Measured(values, numbers={"KS of weights": weights})


def _directions(graphs: Graphs) -> _Measured:
    """Proportions of arcs whose reverse exists and of graphs without a directed cycle, and degrees of all nodes."""
    arcs = sum(len(graph.edges) for graph in graphs)
    mutual = 2 * (arcs - sum(len(graph.skeleton().edges) for graph in graphs))
    out, into = (_pooled([_arc_counts(graph, end) for graph in graphs]) for end in (0, 1))

    return _Measured(
        {
            ("reciprocity", ()): mutual / arcs if arcs else np.nan,
            ("proportion acyclic", ()): float(np.mean([is_acyclic(graph) for graph in graphs])),
            ("mean in-degree", ()): float(into.mean()),
        },
        numbers={"KS of in-degrees": into, "KS of out-degrees": out},
    )


def _arc_counts(graph: SimpleGraph, end: int) -> Codes:
    """The out-degree of each node, or its in-degree for ``end`` 1."""
    return np.bincount(graph.edges[:, end], minlength=graph.nodes)


def _pooled(parts: Sequence[NDArray[Any]]) -> Values:
    return np.concatenate([np.zeros(0), *parts])


def _codes(graphs: Graphs, on: str, name: str, labels: Sequence[Any]) -> list[Codes]:
    """The number of the label of each node or edge; a graph without edges may have no column."""
    numbers = {label: number for number, label in enumerate(labels)}
    columns = [(graph.node_attributes if on == "node" else graph.edge_attributes).get(name, []) for graph in graphs]

    return [np.array([numbers[value] for value in column], dtype=np.int64) for column in columns]


def _proportions(codes: Codes, size: int) -> Values:
    return np.bincount(codes, minlength=size) / len(codes) if len(codes) else np.full(size, np.nan)


def _assortativity(pairs: Codes, directed: bool, size: int) -> float:
    r"""Newman's coefficient :math:`(\operatorname{tr} e - a \cdot b) / (1 - a \cdot b)`, where :math:`e` is the mixing
    matrix and :math:`a`, :math:`b` are its row and column sums; NaN if all ends have one label.
    """
    ends = pairs if directed else np.concatenate([pairs, pairs[:, ::-1]])
    if not len(ends) or (ends == ends[0, 0]).all():
        return np.nan
    expected = float(_proportions(ends[:, 0], size) @ _proportions(ends[:, 1], size))

    return float((ends[:, 0] == ends[:, 1]).mean() - expected) / (1 - expected)


def _plain(label: Any) -> Any:
    """A label as a Python value, which JSON can store."""
    return label.item() if isinstance(label, np.generic) else label


def describe_attributes(samples: Graphs, reference: Graphs) -> list[dict[str, Values]]:
    """For each side, the attributes of each graph as rows by kind, for those that both sides have.

    They are the proportions of node labels and of edges between them, of edge labels, quantiles of weights, and
    reciprocity, and means and deviations of node features.
    """
    both = [*samples, *reference]
    rows: dict[str, Values] = {}
    for name, column in find_columns(both, [*find_labels(both, "node")]).items():
        parts = [column(graph) for graph in both]
        rows[f"node feature '{name}'"] = np.array([[own.mean(), own.std()] if len(own) else [0, 0] for own in parts])
    for on, measure in (("node", _node_label), ("edge", _edge_label)):
        for name, labels in find_labels(both, on).items():
            found = [np.concatenate([*measure([graph], name, labels).proportions.values()]) for graph in both]
            rows[f"{on} label '{name}'"] = np.nan_to_num(np.array(found))
    if _are_weighted(samples) and _are_weighted(reference):
        weights = (np.zeros(1) if graph.weights is None else graph.weights for graph in both)
        rows["weights"] = np.array(
            [np.quantile(own, np.linspace(0, 1, 5)) if len(own) else np.zeros(5) for own in weights]
        )
    if is_directed(both):
        values = np.array([_directions([graph]).values["reciprocity", ()] for graph in both])
        rows["reciprocity"] = np.nan_to_num(values)[:, None]
    cut = len(samples)

    return [{name: values[part] for name, values in rows.items()} for part in (slice(cut), slice(cut, None))]
