"""Conditions: attributes or properties of whole graphs that a model is trained with, and that samples can be given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, DatasetError, did_you_mean
from ..graph import SimpleGraph, is_finite, is_number
from ..records import typed
from .properties import component_labels

__all__ = ["PROPERTIES", "Condition", "Conditions"]

MOST_CLASSES = 50
"""The most classes of an attribute that is no number."""
# Graphs whose sizes and values stand for those of the training graphs.
EXAMPLES = 1000
# The fraction of examples that are nearest to a given number, and tell the sizes that go with it.
NEAREST = 0.1
LARGEST = 1e9
"""Given numbers are smaller than this."""


def _clustering(graph: SimpleGraph) -> float:
    """The fraction of connected triples that are triangles."""
    adjacency = graph.adjacency().astype(np.float64)
    degrees = adjacency.sum(1)
    triples = float((degrees * (degrees - 1)).sum())

    return float(np.trace(adjacency @ adjacency @ adjacency)) / triples if triples else 0.0


PROPERTIES: Mapping[str, Callable[[SimpleGraph], float]] = {
    "nodes": lambda graph: graph.nodes,
    "edges": lambda graph: len(graph.edges),
    "density": lambda graph: len(graph.edges) / max(math.comb(graph.nodes, 2), 1),
    "mean_degree": lambda graph: 2 * len(graph.edges) / max(graph.nodes, 1),
    "clustering": _clustering,
    "components": lambda graph: len(np.unique(component_labels(graph.edges, graph.nodes))),
}
"""Properties that are computed for graphs without an attribute of that name, on their skeleton."""


@dataclass(frozen=True)
class Condition:
    """One attribute or property of graphs.

    Attributes:
        name: Its name.
        classes: The values of an attribute that is no number; empty for a number.
        mean: The mean of a number over the training graphs.
        deviation: Its standard deviation.
        low: The smallest value.
        high: The largest value.
    """

    name: str
    classes: tuple[Any, ...] = ()
    mean: float = 0.0
    deviation: float = 1.0
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def of(cls, name: str, graphs: Sequence[SimpleGraph]) -> Condition:
        """The condition of this name on training graphs.

        Raises:
            ConfigError: It is no attribute of a graph and no property.
            DatasetError: Some graphs lack it, or it has too many classes.
        """
        if not any(name in graph.attributes for graph in graphs) and name not in PROPERTIES:
            known = {*PROPERTIES, *(str(key) for graph in graphs[:100] for key in graph.attributes)} - {"split"}
            raise ConfigError(
                f"The graphs have no attribute '{name}'{did_you_mean(name, sorted(known))}; "
                f"choose one of {', '.join(sorted(known))}."
            )
        values = [_value(name, graph, index) for index, graph in enumerate(graphs)]
        numeric = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        # A few integers are classes.
        if numeric and (any(isinstance(value, float) for value in values) or len({*values}) > MOST_CLASSES):
            values = [float(value) for value in values]
            spread = float(np.std(values))
            return cls(name, (), float(np.mean(values)), spread if spread > 1e-12 else 1.0, min(values), max(values))
        classes = tuple(sorted({*values}, key=lambda value: (type(value).__name__, value)))
        if len(classes) > MOST_CLASSES:
            raise DatasetError(f"The attribute '{name}' has {len(classes)} values; at most {MOST_CLASSES} are classes.")

        return cls(name, classes)

    @property
    def width(self) -> int:
        """The number of features that encode a value."""
        return len(self.classes) or 1

    def value(self, graph: SimpleGraph, index: int) -> Any:
        """The value of a graph of some index, which is a class or a number."""
        value = _value(self.name, graph, index)
        if not self.classes and (isinstance(value, str | bool)):
            raise DatasetError(f"Graph {index} has {self.name} {value!r}; those of the training graphs are numbers.")
        if self.classes and value not in self.classes:
            raise DatasetError(
                f"Graph {index} has {self.name} {value!r}, which no training graph has; they have {self._listed()}."
            )

        return value

    def encode(self, value: Any) -> NDArray[np.float32]:
        """The features of a value, with shape :math:`(C,)`."""
        if self.classes:
            return np.array([value == each for each in self.classes], dtype=np.float32)

        return np.array([(float(value) - self.mean) / self.deviation], dtype=np.float32)

    def parse(self, given: Any) -> Any:
        """A class, or a pair of numbers, from what a user gave, such as ``2``, ``"0.4:0.5"`` or ``(0.4, 0.5)``."""
        if self.classes:
            same = [each for each in self.classes if type(each) is type(given) and each == given]
            alike = [each for each in self.classes if str(each) == str(given)]
            if not same + alike:
                raise ConfigError(f"'{self.name}' is {given!r}; it should be one of {self._listed()}.")
            return (same + alike)[0]
        try:
            parts = given.split(":") if isinstance(given, str) else given
            parts = parts if isinstance(parts, tuple | list) else [parts]
            low, high = map(float, parts if len(parts) > 1 else [*parts, *parts])
            if not max(abs(low), abs(high)) < LARGEST:
                raise ValueError("not a finite number")
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"'{self.name}' is {given!r}; it should be a number such as {self.mean:.3g}, or a range such as "
                f"{self.low:.3g}:{self.high:.3g}."
            ) from error
        if not low <= high:
            raise ConfigError(f"'{self.name}' ranges from {low:g} to {high:g}; the first should not be larger.")

        return low, high

    def is_outside(self, given: Any) -> bool:
        """Whether no value of a parsed range is one of the training graphs."""
        return not self.classes and (given[1] < self.low or given[0] > self.high)

    def _listed(self) -> str:
        return ", ".join(map(repr, self.classes[:10])) + (", …" if len(self.classes) > 10 else "")

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        if self.classes:
            return {"name": self.name, "classes": list(self.classes)}

        return {key: getattr(self, key) for key in ("name", "mean", "deviation", "low", "high")}


def _value(name: str, graph: SimpleGraph, index: int) -> Any:
    """An attribute or property of a graph: a finite number that is no class, or a str, int or bool."""
    value = graph.attributes.get(name)
    if value is None:
        if name not in PROPERTIES:
            raise DatasetError(f"Graph {index} has no attribute '{name}', which other graphs have.")
        return float(PROPERTIES[name](graph.skeleton()))
    value = value.item() if isinstance(value, np.generic) else value
    if is_number(value) and not is_finite(value):
        raise DatasetError(f"Graph {index} has {name} {str(value)[:40]}, not a finite number.")
    if not isinstance(value, str | int | float):
        raise DatasetError(f"Graph {index} has {name} {str(value)[:40]!r}; expected a number or a class.")

    return value


@dataclass(frozen=True)
class Conditions:
    """The conditions of a model, and sizes and values of some training graphs.

    Attributes:
        each: The conditions.
        examples: Rows of a number of nodes and the values of all conditions.
    """

    each: tuple[Condition, ...] = ()
    examples: tuple[tuple[Any, ...], ...] = ()

    @classmethod
    def of(cls, names: Sequence[str], graphs: Sequence[SimpleGraph]) -> Conditions:
        """The conditions of these names on training graphs."""
        each = tuple(Condition.of(name, graphs) for name in dict.fromkeys(names))
        if not each:
            return cls()
        chosen = np.unique(np.linspace(0, len(graphs) - 1, EXAMPLES).round().astype(int)).tolist()
        rows = tuple((graphs[i].nodes, *(one.value(graphs[i], i) for one in each)) for i in chosen)

        return cls(each, rows)

    @property
    def width(self) -> int:
        """The number of features of all conditions."""
        return sum(one.width for one in self.each)

    def encode(self, values: Sequence[Any]) -> NDArray[np.float32]:
        """The features of values of all conditions, with shape :math:`(C,)`."""
        parts = [one.encode(value) for one, value in zip(self.each, values, strict=True)]

        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)

    def values(self, graph: SimpleGraph, index: int) -> tuple[Any, ...]:
        """The values of a graph of some index."""
        return tuple(one.value(graph, index) for one in self.each)

    def parse(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What a user asks of samples, by name.

        Raises:
            ConfigError: A name or a value is none of the training graphs'.
        """
        names = {one.name: one for one in self.each}
        for name in given:
            if name not in names:
                known = f"; it has {', '.join(names)}" if names else ", nor any other"
                raise ConfigError(f"The model has no condition '{name}'{known}.", reason="no-condition")

        return {name: names[name].parse(value) for name, value in given.items()}

    def outside(self, given: Mapping[str, Any]) -> list[str]:
        """The names of parsed conditions that are outside the range of the training graphs."""
        return [one.name for one in self.each if one.name in given and one.is_outside(given[one.name])]

    def sizes(
        self, given: Mapping[str, Any], possible: Sequence[int], count: int, rng: np.random.Generator
    ) -> NDArray[np.int64]:
        """Possible sizes of training graphs that agree with what is given; any possible ones if there are none."""
        found = np.array([row[0] for row in self._agreeing(given) if row[0] in {*possible}] or list(possible))

        return np.asarray(found[rng.integers(len(found), size=count)], dtype=np.int64)

    def draw(
        self, given: Mapping[str, Any], sizes: NDArray[np.int64], rng: np.random.Generator
    ) -> list[tuple[Any, ...]]:
        """Values of all conditions for graphs of some sizes: what is given, and otherwise those of training graphs.

        They are training graphs of the nearest size that agree with what is given. A number is drawn from its range.
        """
        rows, values = self._agreeing(given), []
        nodes = np.array([row[0] for row in rows])
        for size, place, part in zip(sizes.tolist(), rng.random(len(sizes)), rng.random(len(sizes)), strict=True):
            near = np.flatnonzero(np.abs(nodes - size) == np.abs(nodes - size).min())
            own = list(rows[near[int(place * len(near))]][1:])
            for index, one in enumerate(self.each):
                if one.name not in given:
                    continue
                if one.classes:
                    own[index] = given[one.name]
                    continue
                low, high = given[one.name]
                if not low <= own[index] <= high:
                    own[index] = float(low + part * (high - low))
            values.append(tuple(own))

        return values

    def _agreeing(self, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """The examples of the given classes and, of these, those in or nearest to the given ranges."""
        rows = list(self.examples)
        for place, one in enumerate(self.each, 1):
            if one.name in given and one.classes:
                rows = [row for row in rows if row[place] == given[one.name]] or rows
        for place, one in enumerate(self.each, 1):
            if one.name not in given or one.classes:
                continue
            low, high = given[one.name]
            inside = [row for row in rows if low <= row[place] <= high]
            if not inside:
                middle = (low + high) / 2
                rows.sort(key=lambda row, place=place, middle=middle: abs(row[place] - middle))  # type: ignore[misc]
                inside = rows[: max(1, round(NEAREST * len(rows)))]
            rows = inside

        return rows

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {"each": [one.to_json() for one in self.each], "examples": [list(row) for row in self.examples]}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Conditions:
        """The conditions of such a JSON object."""
        each = tuple(typed(Condition, {**one, "classes": tuple(one.get("classes", ()))}) for one in value["each"])
        found = cls(each, tuple(tuple(row) for row in value["examples"]))
        if not all(one.deviation > 0 and is_finite(one.mean) and is_finite(one.deviation) for one in each):
            raise ValueError("a mean or deviation is out of range")
        if bool(each) != bool(found.examples) or not all(map(found._is_example, found.examples)):
            raise ValueError("examples of other conditions")

        return found

    def _is_example(self, row: tuple[Any, ...]) -> bool:
        """Whether a row has a number of nodes, and values of all conditions."""
        if len(row) != len(self.each) + 1 or type(row[0]) is not int:
            return False
        pairs = zip(self.each, row[1:], strict=True)

        return all(value in one.classes if one.classes else is_finite(value) for one, value in pairs)
