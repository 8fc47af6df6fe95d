"""Graphs, arrays and records as bytes, for the way from one process to another.

Arrays travel as they are, all else as JSON, in which numbers come back bit for bit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from ..graph import SimpleGraph
from ..records import Record

__all__ = [
    "pack_arrays",
    "pack_graphs",
    "pack_record",
    "unpack_arrays",
    "unpack_graphs",
    "unpack_record",
]

R = TypeVar("R", bound=Record)

ARRAYS = (("edges", "<i4"), ("weights", "<f8"), ("features", "<f4"))
COLUMNS = ("node_attributes", "edge_attributes")
PLAIN = {int, float, str, bool, type(None)}
# What JSON has no word for is an object with a single key that says what it is.
TUPLE, MAPPING = "tuple", "mapping"


def pack_graphs(graphs: Sequence[SimpleGraph], facts: Any = None) -> bytes:
    """Some graphs, and what else is to be known about them, as JSON can say it."""
    rows, parts = [], []
    for graph in graphs:
        row: dict[str, Any] = {"nodes": int(graph.nodes)}
        if graph.names is not None:
            row["names"] = _told_all(graph.names)
        if graph.attributes:
            row["attributes"] = _told(graph.attributes)
        for name in COLUMNS:
            if columns := getattr(graph, name):
                row[name] = {key: _told_all(column) for key, column in columns.items()}
        for name, dtype in ARRAYS:
            if (array := getattr(graph, name)) is not None:
                row[name] = list(array.shape)
                parts.append(np.ascontiguousarray(array, dtype=dtype).tobytes())
        rows.append(row)

    return _framed({"facts": facts, "graphs": rows}, parts)


def unpack_graphs(parcel: bytes) -> tuple[list[SimpleGraph], Any]:
    """What :func:`pack_graphs` packed."""
    head, at = _head(parcel)
    graphs = []
    for row in head["graphs"]:
        found: dict[str, Any] = {"nodes": row["nodes"]}
        if "names" in row:
            found["names"] = tuple(map(_meant, row["names"]))
        if "attributes" in row:
            found["attributes"] = _meant(row["attributes"])
        for name in COLUMNS:
            if name in row:
                found[name] = {key: list(map(_meant, column)) for key, column in row[name].items()}
        for name, dtype in ARRAYS:
            if name in row:
                found[name], at = _array(parcel, at, dtype, row[name])
        graphs.append(SimpleGraph(**found))

    return graphs, head["facts"]


def pack_arrays(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Named arrays of numbers."""
    rows = [(name, array.dtype.str, list(array.shape)) for name, array in arrays.items()]

    return _framed(rows, [np.ascontiguousarray(array).tobytes() for array in arrays.values()])


def unpack_arrays(parcel: bytes) -> dict[str, NDArray[Any]]:
    """What :func:`pack_arrays` packed."""
    rows, at = _head(parcel)
    found = {}
    for name, dtype, shape in rows:
        found[name], at = _array(parcel, at, dtype, shape)

    return found


def pack_record(record: Record) -> bytes:
    """A record of plain values, or of other records."""
    return json.dumps(record.to_json(), default=_plain).encode()


def unpack_record(kind: type[R], parcel: bytes) -> R:
    """A record of a kind, of what :func:`pack_record` packed; lists come back as tuples, as records have them."""
    return _record(kind, json.loads(parcel))


def _record(kind: type[R], told: Mapping[str, Any]) -> R:
    hints = get_type_hints(kind)
    values = {field.name: told[field.name] for field in fields(kind)}  # type: ignore[arg-type]
    for name, value in values.items():
        within = next((part for part in (hints[name], *get_args(hints[name])) if _is_record(part)), None)
        values[name] = _tuples(value) if within is None or value is None else _record(within, value)

    return kind(**values)


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Record)


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _framed(head: Any, parts: Sequence[bytes]) -> bytes:
    told = json.dumps(head, default=_plain).encode()

    return b"".join([len(told).to_bytes(8, "little"), told, *parts])


def _head(parcel: bytes) -> tuple[Any, int]:
    """What stands before the arrays, and where these begin."""
    end = 8 + int.from_bytes(parcel[:8], "little")

    return json.loads(parcel[8:end]), end


def _array(parcel: bytes, at: int, dtype: str, shape: Sequence[int]) -> tuple[NDArray[Any], int]:
    """The array that begins there, and where it ends."""
    array: NDArray[Any] = np.frombuffer(parcel, dtype, int(np.prod(shape)), at).reshape(shape)

    return array.copy(), at + array.nbytes


def _told_all(values: Sequence[Any]) -> Sequence[Any]:
    """Values as JSON has words for them; plain ones, as most are, are not looked at one by one."""
    return values if PLAIN.issuperset(map(type, values)) else list(map(_told, values))


def _told(value: Any) -> Any:
    if isinstance(value, tuple):
        return {TUPLE: list(map(_told, value))}
    if isinstance(value, list):
        return list(map(_told, value))
    if isinstance(value, Mapping):
        return {MAPPING: [[_told(key), _told(item)] for key, item in value.items()]}

    return value


def _meant(value: Any) -> Any:
    """What :func:`_told` told."""
    if isinstance(value, list):
        return list(map(_meant, value))
    if isinstance(value, dict):
        ((kind, content),) = value.items()
        return tuple(map(_meant, content)) if kind == TUPLE else {_meant(key): _meant(item) for key, item in content}

    return value


def _plain(value: Any) -> Any:
    """Numbers of numpy, as their attributes may be."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot travel between processes")
