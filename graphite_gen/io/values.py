"""How values and names are written where a format only has text.

A string is written as it is, and what is no string, or would not come back as the same string, as JSON after
``json:``. So ``"red"`` stays ``red``, and ``[1, 2]`` becomes ``json:[1, 2]``, for whoever opens the file.

Names that are strings or integers are written as they are. Where reading them by themselves would take strings such
as ``"0"`` for numbers, or a few numbers among strings for strings, the graph carries the fact ``integerNames``, the
list of those that are integers.
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
    "facts_of",
    "from_text",
    "gather",
    "hashable",
    "names_from_texts",
    "names_from_words",
    "node_rows",
    "plain",
    "provenance_of",
    "scatter",
    "take_integers",
    "texts_from_names",
    "to_json",
    "to_text",
]


def node_rows(graph: SimpleGraph) -> list[dict[str, Any]] | None:
    """What each node carries, features included; None if no node carries anything."""
    features = {} if graph.features is None else {"features": graph.features.tolist()}

    return _rows({**graph.node_attributes, **features}, graph.nodes)


def edge_rows(graph: SimpleGraph) -> list[dict[str, Any]] | None:
    """What each edge carries, its weight included; None if no edge carries anything."""
    weights = {} if graph.weights is None else {"weight": graph.weights.tolist()}

    return _rows({**graph.edge_attributes, **weights}, len(graph.edges))


def _rows(columns: Mapping[str, list[Any]], length: int) -> list[dict[str, Any]] | None:
    if not columns:
        return None

    return [{key: column[row] for key, column in columns.items() if column[row] is not None} for row in range(length)]


PREFIX = "json:"
OTHER = "otherAttributes"
"""The attribute that holds those whose own name the format uses for itself."""

INTEGERS = "integerNames"
"""The fact about a graph that lists those of its names that are integers, where their texts do not tell."""

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)
_PROVENANCE = ("family", "parameters", "seed", "source", "model")


def plain(value: Any) -> Any:
    """NumPy numbers and arrays, tuples and sets as plain Python ones; anything strange as its text."""
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
    """The value as text that :func:`from_text` gives back."""
    if isinstance(value, str) and not value.startswith(PREFIX) and not _UNSAFE.search(value):
        return value

    return PREFIX + to_json(value)


def from_text(text: str) -> Any:
    """The value that :func:`to_text` wrote; any other text is itself."""
    if not text.startswith(PREFIX):
        return text
    try:
        return json.loads(text[len(PREFIX) :])
    except (ValueError, RecursionError):
        return text


def hashable(value: Any) -> Any:
    """A name read from JSON: lists become tuples."""
    return tuple(hashable(item) for item in value) if isinstance(value, list) else value


def texts_from_names(names: Sequence[Any]) -> tuple[list[str], dict[str, Any]]:
    """Names as distinct texts, and the fact about the graph that :func:`names_from_texts` needs besides, if any."""
    names = [hashable(plain(name)) for name in names]
    texts = [str(name) if type(name) is int else to_text(name) for name in names]
    if len(set(texts)) < len(texts):
        # The number 0 and the text '0' are two nodes.
        texts = [PREFIX + to_json(name) for name in names]
    guess = names_from_texts(texts)
    if list(map(repr, range(len(names)) if guess is None else guess)) == list(map(repr, names)):
        return texts, {}

    return texts, {INTEGERS: [name for name in names if type(name) is int]}


def names_from_texts(texts: Sequence[str], integers: Sequence[int] | None = None) -> tuple[Any, ...] | None:
    """The names behind the texts; ``0, 1, …`` and ``n0, n1, …`` are no names at all.

    Arguments:
        texts: The texts.
        integers: The names that are integers, where the graph says so; None is to guess from the texts.
    """
    if integers is not None:
        whole = set(map(str, integers))
        return _distinct(texts, [int(text) if text in whole else hashable(from_text(text)) for text in texts])
    if any(all(text == f"{letter}{i}" for i, text in enumerate(texts)) for letter in ("", "n")):
        return None

    return names_from_words(texts)


def names_from_words(texts: Sequence[str]) -> tuple[Any, ...]:
    """The names behind texts that nothing more is known of: integers if all look like it."""
    if all(_INTEGER.fullmatch(text) for text in texts):
        return tuple(int(text) for text in texts)

    return _distinct(texts, [hashable(from_text(text)) for text in texts])


def _distinct(texts: Sequence[str], names: Sequence[Any]) -> tuple[Any, ...]:
    """The names if they can tell nodes apart, else the texts, which do."""
    try:
        return tuple(names if len(set(names)) == len(names) else texts)
    except TypeError:
        return tuple(texts)


def take_integers(facts: dict[str, Any]) -> list[int] | None:
    """Take the fact that :func:`texts_from_names` gave out of a graph's facts."""
    value = facts.get(INTEGERS)
    if not isinstance(value, list) or not all(type(name) is int for name in value):
        return None
    del facts[INTEGERS]

    return value


def gather(row: Mapping[str, Any], reserved: frozenset[str] | None = None, key: re.Pattern[str] | None = None) -> Any:
    """The attributes under names the format can hold, the rest together under :data:`OTHER`."""

    def fits(name: str) -> bool:
        return name != OTHER and name not in (reserved or ()) and (key is None or key.fullmatch(name) is not None)

    if all(fits(name) for name in row):
        return row

    return {
        **{name: value for name, value in row.items() if fits(name)},
        OTHER: {name: value for name, value in row.items() if not fits(name)},
    }


def scatter(row: dict[str, Any]) -> dict[str, Any]:
    """Undo :func:`gather`."""
    if not isinstance(row.get(OTHER), dict):
        return row
    other = row.pop(OTHER)

    return {**row, **other}


def facts_of(provenance: Provenance | None) -> dict[str, Any]:
    """What is known of a file's origin, as facts about each of its graphs."""
    if provenance is None:
        return {}
    facts = {name: getattr(provenance, name) for name in _PROVENANCE}

    return {name: plain(value) for name, value in facts.items() if value is not None and value != {}}


def provenance_of(attributes: Mapping[str, Any]) -> Provenance:
    """The origin that a graph's facts tell; a fact of the wrong type tells nothing."""

    def word(name: str) -> str | None:
        value = attributes.get(name)
        return value if isinstance(value, str) else None

    parameters, seed = attributes.get("parameters"), attributes.get("seed")
    if isinstance(parameters, str):
        parameters = from_text(PREFIX + parameters)

    return Provenance(
        word("family"),
        parameters if isinstance(parameters, dict) else {},
        seed if type(seed) is int else None,
        word("source"),
        word("model"),
    )
