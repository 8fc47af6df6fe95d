"""Encoding of attribute values and node names in formats that only have text.

A string is written as it is. Any other value, and a string that would not be read back unchanged, is written as JSON
after ``json:``: ``"red"`` becomes ``red`` and ``[1, 2]`` becomes ``json:[1, 2]``.

Node names that are strings or integers are written as they are. Where their text does not tell which they were, such
as the string ``"0"``, or integers among strings, the graph attribute ``integerNames`` lists the integers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import SimpleGraph
from ..records import Provenance

__all__ = [
    "INTEGERS",
    "OTHER",
    "edge_rows",
    "from_text",
    "gather",
    "hashable",
    "names_from_texts",
    "names_from_words",
    "node_rows",
    "plain",
    "provenance_attributes",
    "provenance_of",
    "scatter",
    "texts_from_names",
    "to_json",
    "to_text",
]

PREFIX = "json:"

OTHER = "otherAttributes"
"""The attribute that holds the attributes whose names the format does not allow or uses itself."""

INTEGERS = "integerNames"
"""The graph attribute that lists the node names that are integers."""

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)


def node_rows(graph: SimpleGraph) -> list[dict[str, Any]] | None:
    """Attributes of each node, including ``features``; None if no node has any."""
    features = {} if graph.features is None else {"features": graph.features.tolist()}

    return _rows({**graph.node_attributes, **features}, graph.nodes)


def edge_rows(graph: SimpleGraph) -> list[dict[str, Any]] | None:
    """Attributes of each edge, including ``weight``; None if no edge has any."""
    weights = {} if graph.weights is None else {"weight": graph.weights.tolist()}

    return _rows({**graph.edge_attributes, **weights}, len(graph.edges))


def _rows(columns: Mapping[str, list[Any]], length: int) -> list[dict[str, Any]] | None:
    rows = ({key: column[row] for key, column in columns.items() if column[row] is not None} for row in range(length))

    return list(rows) if columns else None


def plain(value: Any) -> Any:
    """NumPy values, tuples and sets as plain Python values; any other object as its string."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)

    return str(value)


def to_json(value: Any) -> str:
    """The value as ASCII JSON on one line."""
    return json.dumps(plain(value))


def to_text(value: Any) -> str:
    """The value as text, which :func:`from_text` decodes."""
    if isinstance(value, str) and not value.startswith(PREFIX) and not _UNSAFE.search(value):
        return value

    return PREFIX + to_json(value)


def from_text(text: Any) -> Any:
    """The value that :func:`to_text` encoded; any other text or value unchanged."""
    if not isinstance(text, str) or not text.startswith(PREFIX):
        return text
    try:
        return json.loads(text[len(PREFIX) :])
    except (ValueError, RecursionError):
        return text


def hashable(value: Any) -> Any:
    """A node name read from JSON: lists become tuples."""
    return tuple(hashable(item) for item in value) if isinstance(value, list) else value


def texts_from_names(names: Sequence[Any]) -> tuple[list[str], dict[str, Any]]:
    """Node names as distinct texts, and the graph attribute that :func:`names_from_texts` needs, if any."""
    names = [hashable(plain(name)) for name in names]
    texts = [str(name) if type(name) is int else to_text(name) for name in names]
    if len(set(texts)) < len(texts):
        # The integer 0 and the string "0" are two nodes.
        texts = [PREFIX + to_json(name) for name in names]
    guess = names_from_texts(texts, {})
    if list(map(repr, range(len(names)) if guess is None else guess)) == list(map(repr, names)):
        return texts, {}

    return texts, {INTEGERS: [name for name in names if type(name) is int]}


def names_from_texts(texts: Sequence[str], attributes: dict[str, Any]) -> tuple[Any, ...] | None:
    """The node names that the texts encode; None for ``0, 1, …`` and ``n0, n1, …``.

    The integers are those that the graph attribute :data:`INTEGERS` lists, which is removed, or are guessed.
    """
    integers = attributes.get(INTEGERS)
    if isinstance(integers, list) and all(type(name) is int for name in integers):
        whole = set(map(str, attributes.pop(INTEGERS)))
        return _distinct(texts, [int(text) if text in whole else hashable(from_text(text)) for text in texts])
    if any(all(text == f"{letter}{i}" for i, text in enumerate(texts)) for letter in ("", "n")):
        return None

    return names_from_words(texts)


def names_from_words(texts: Sequence[str]) -> tuple[Any, ...]:
    """Node names guessed from texts alone: integers if all of them look like integers."""
    if all(_INTEGER.fullmatch(text) for text in texts):
        return tuple(int(text) for text in texts)

    return _distinct(texts, [hashable(from_text(text)) for text in texts])


def _distinct(texts: Sequence[str], names: Sequence[Any]) -> tuple[Any, ...]:
    """The names if they are hashable and distinct, otherwise the texts."""
    try:
        return tuple(names if len(set(names)) == len(names) else texts)
    except TypeError:
        return tuple(texts)


def gather(row: Mapping[str, Any], reserved: frozenset[str], key: re.Pattern[str] | None = None) -> Mapping[str, Any]:
    """The attributes with names that the format allows, the others together under :data:`OTHER`."""
    other = {
        name: value
        for name, value in row.items()
        if name == OTHER or name in reserved or (key is not None and not key.fullmatch(name))
    }

    return {**{name: value for name, value in row.items() if name not in other}, OTHER: other} if other else row


def scatter(row: dict[str, Any]) -> dict[str, Any]:
    """Undo :func:`gather`."""
    other = row.pop(OTHER) if isinstance(row.get(OTHER), dict) else {}

    return {**row, **other}


def provenance_attributes(provenance: Provenance) -> dict[str, Any]:
    """Provenance as graph attributes."""
    return {name: plain(value) for name, value in vars(provenance).items() if value is not None and value != {}}


def provenance_of(attributes: Mapping[str, Any]) -> Provenance:
    """The provenance in graph attributes; those of the wrong type are ignored."""
    family, source, model = (
        value if isinstance(value := attributes.get(name), str) else None for name in ("family", "source", "model")
    )
    parameters, seed = attributes.get("parameters"), attributes.get("seed")
    if isinstance(parameters, str):
        parameters = from_text(PREFIX + parameters)

    return Provenance(
        family, parameters if isinstance(parameters, dict) else {}, seed if type(seed) is int else None, source, model
    )
