"""Columns of numeric node features that a model generates: node attributes, and the node features of the graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, DatasetError, did_you_mean
from ..graph import SimpleGraph, is_finite, is_number

__all__ = ["FEATURES", "FeatureColumns", "numeric_features"]

FEATURES = "features"
"""The name of the node features of graphs, which are several columns."""
MOST_COLUMNS = 100
"""The most columns that a model generates."""
# Larger whole numbers are modelled as real or positive ones.
MOST_COUNT = 2.0**31
LARGEST = 1e100
"""Numbers that may be negative are smaller than this, so that their squares are finite."""


@dataclass(frozen=True)
class FeatureColumns:
    """The node features that a model generates, as columns of numbers.

    Attributes:
        names: The names of node attributes; ``features`` for the node features of the graphs.
        widths: The number of columns of each.
        kinds: The kind of every column: ``positive``, ``real``, ``count`` or ``integer``.
        are_whole: Whether the values of each name are integers in Python.
    """

    names: tuple[str, ...] = ()
    widths: tuple[int, ...] = ()
    kinds: tuple[str, ...] = ()
    are_whole: tuple[bool, ...] = ()

    @classmethod
    def of(
        cls, graphs: Sequence[SimpleGraph], names: Sequence[str] | bool, without: str | None = None
    ) -> FeatureColumns:
        """The columns of these names on training graphs; True for all numeric ones but the attribute ``without``.

        Raises:
            ConfigError: There is none, or a name is none of the graphs'.
            DatasetError: Values are missing or no finite numbers, or there are too many columns.
        """
        if names is False:
            return cls()
        chosen = numeric_features(graphs, without) if names is True else tuple(dict.fromkeys(names))
        if not chosen or (chosen == (FEATURES,) and not any(_shape(graphs, chosen)[0])):
            raise ConfigError("The nodes have no numeric features to generate.", reason="no-generated-features")
        known = {key for graph in graphs[:100] for key in graph.node_attributes} | {FEATURES}
        for name in chosen:
            if name == without:
                raise ConfigError(f"'{name}' is the node label; it cannot be a node feature as well.")
            if not any(_has(graph, name) for graph in graphs):
                raise ConfigError(f"The nodes have no attribute '{name}'{did_you_mean(name, sorted(known))}.")
        columns = cls(chosen, *_shape(graphs, chosen))
        if sum(columns.widths) > MOST_COLUMNS:
            raise DatasetError(
                f"The nodes have {sum(columns.widths)} columns of features; at most {MOST_COLUMNS} are generated.",
                reason="too-many-features",
            )
        values = np.concatenate([columns.values(graph, index) for index, graph in enumerate(graphs)])

        return replace(columns, kinds=tuple(map(_kind, values.T)))

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for every column."""
        return tuple(
            name if name != FEATURES else f"{name}[{place}]"
            for name, width in zip(self.names, self.widths, strict=True)
            for place in range(width)
        )

    def values(self, graph: SimpleGraph, index: int = 0) -> NDArray[np.float64]:
        """The columns of a graph, with shape :math:`(n, C)`; ``index`` names it in messages."""
        parts = []
        for name, width in zip(self.names, self.widths, strict=True):
            own = graph.features if name == FEATURES else graph.node_attributes.get(name)
            if own is None:
                what = "node features" if name == FEATURES else f"attribute '{name}'"
                raise DatasetError(f"The nodes of graph {index} have no {what}.", reason="feature-missing")
            for value in own if name != FEATURES else ():
                if value is None:
                    raise DatasetError(f"A node of graph {index} has no '{name}'.", reason="feature-missing")
                if not is_finite(value):
                    raise DatasetError(f"A node of graph {index} has {name} {str(value)[:40]!r}, not a finite number.")
            part = np.array(own, dtype=np.float64).reshape(graph.nodes, -1)
            if part.shape[1] != width:
                raise DatasetError(f"Graph {index} has {part.shape[1]} node features, but others have {width}.")
            parts.append(part)
        found = np.concatenate(parts, 1)
        for column, kind, name in zip(found.T, self.kinds, self.labels, strict=bool(self.kinds)):
            self._check(column, kind, name, index)

        return found

    def _check(self, column: NDArray[np.float64], kind: str, name: str, index: int) -> None:
        if kind in ("real", "integer") and not (np.abs(column) < LARGEST).all():
            wrong = column[np.abs(column) >= LARGEST][0]
            raise DatasetError(
                f"A node of graph {index} has {name} {wrong:g}; absolute values below {LARGEST:g} can be modelled."
            )
        is_whole = column == np.round(column)
        fits = {"positive": column > 0, "count": is_whole & (column >= 0), "integer": is_whole}.get(kind)
        if fits is not None and not fits.all():
            words = {"positive": "positive", "count": "counts", "integer": "integers"}[kind]
            raise DatasetError(
                f"A node of graph {index} has {name} {column[~fits][0]:g}; those of the model are {words}."
            )

    def without(self, graph: SimpleGraph) -> tuple[NDArray[np.float32] | None, dict[str, list[Any]]]:
        """The node features and attributes of a graph that are not generated."""
        attributes = {key: column for key, column in graph.node_attributes.items() if key not in self.names}

        return None if FEATURES in self.names else graph.features, attributes

    def to_columns(self, values: NDArray[np.float64]) -> dict[str, Any]:
        """Node attributes by name, and an array for ``features``, given columns with shape :math:`(n, C)`."""
        parts = np.split(values, np.cumsum(self.widths)[:-1], axis=1)
        found: dict[str, Any] = {}
        for name, part, is_whole in zip(self.names, parts, self.are_whole, strict=True):
            if name == FEATURES:
                # Numbers that would be infinite in single precision could not be written.
                largest = np.finfo(np.float32).max
                found[name] = part.clip(-largest, largest).astype(np.float32)
            else:
                found[name] = [int(value) if is_whole else value for value in part[:, 0].tolist()]

        return found

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {name: list(getattr(self, name)) for name in ("names", "widths", "kinds", "are_whole")}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> FeatureColumns:
        """The columns of such a JSON object."""
        found = cls(**{name: tuple(part) for name, part in value.items()})
        for part, kind in ((found.names, str), (found.widths, int), (found.are_whole, bool)):
            if not all(type(each) is kind for each in part):
                raise TypeError(f"expected {kind.__name__}")
        if any(width < 1 for width in found.widths):
            raise ValueError("a name without columns")
        if not len(found.names) == len(found.widths) == len(found.are_whole) or len(found.kinds) != sum(found.widths):
            raise ValueError("parts of different lengths")

        return found


def numeric_features(graphs: Sequence[SimpleGraph], without: str | None) -> tuple[str, ...]:
    """The names of all numeric node attributes in order, after the node features."""
    names = sorted({str(key) for graph in graphs for key in graph.node_attributes} - {without})
    has_features = any(graph.features is not None for graph in graphs)

    return (FEATURES,) * has_features + tuple(
        name
        for name in names
        if all(value is None or is_number(value) for graph in graphs for value in graph.node_attributes.get(name, ()))
    )


def _shape(graphs: Sequence[SimpleGraph], names: Sequence[str]) -> tuple[tuple[int, ...], tuple[()], tuple[bool, ...]]:
    """The widths of columns, no kinds, and whether their values are integers."""
    width = next((graph.features.shape[1] for graph in graphs if graph.features is not None), 0)

    def are_whole(name: str) -> bool:
        values = (value for graph in graphs for value in graph.node_attributes.get(name, ()))
        return name != FEATURES and all(isinstance(value, int | np.integer) for value in values)

    return tuple(width if name == FEATURES else 1 for name in names), (), tuple(map(are_whole, names))


def _has(graph: SimpleGraph, name: str) -> bool:
    return name in graph.node_attributes or (name == FEATURES and graph.features is not None)


def _kind(values: NDArray[np.float64]) -> str:
    """The kind of a column."""
    if (values == np.round(values)).all() and np.abs(values).max(initial=0) < MOST_COUNT:
        return "count" if (values >= 0).all() else "integer"

    return "positive" if (values > 0).all() else "real"
