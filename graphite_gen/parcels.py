"""Graphs and records as bytes, for the way from one process to another.

Arrays travel as they are, all else as JSON, in which numbers come back bit for bit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .graph import SimpleGraph
from .records import Record

__all__ = ["pack_graphs", "pack_record", "unpack_graphs", "unpack_record"]

R = TypeVar("R", bound=Record)

ARRAYS = (("edges", "<i4"), ("weights", "<f8"), ("features", "<f4"))
OTHERS = ("nodes", "names", "node_attributes", "edge_attributes", "attributes")


def pack_graphs(graphs: Sequence[SimpleGraph], facts: Any = None) -> bytes:
    """Some graphs, and what else is to be known about them, as JSON can say it."""
    rows, parts = [], []
    for graph in graphs:
        row: dict[str, Any] = {}
        for name in OTHERS:
            if value := getattr(graph, name):
                row[name] = value
        for name, dtype in ARRAYS:
            if (array := getattr(graph, name)) is not None:
                row[name] = list(array.shape)
                parts.append(np.ascontiguousarray(array, dtype=dtype).tobytes())
        rows.append(row)
    head = json.dumps({"facts": facts, "graphs": rows}, default=_plain).encode()

    return b"".join([len(head).to_bytes(8, "little"), head, *parts])


def unpack_graphs(parcel: bytes) -> tuple[list[SimpleGraph], Any]:
    """What :func:`pack_graphs` packed."""
    at = 8 + int.from_bytes(parcel[:8], "little")
    head = json.loads(parcel[8:at])
    graphs = []
    for row in head["graphs"]:
        found: dict[str, Any] = {"nodes": 0, **row}
        if "names" in row:
            found["names"] = tuple(row["names"])
        for name, dtype in ARRAYS:
            if name in row:
                array: NDArray[Any] = np.frombuffer(parcel, dtype, int(np.prod(row[name])), at).reshape(row[name])
                at += array.nbytes
                found[name] = array.copy()
        graphs.append(SimpleGraph(**found))

    return graphs, head["facts"]


def pack_record(record: Record) -> bytes:
    """A record of plain values."""
    return json.dumps(record.to_json(), default=_plain).encode()


def unpack_record(kind: type[R], parcel: bytes) -> R:
    """A record of a kind, of what :func:`pack_record` packed; lists come back as tuples, as records have them."""
    told = json.loads(parcel)

    return kind(**{field.name: _tuples(told[field.name]) for field in fields(kind)})  # type: ignore[arg-type]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    """Numbers of numpy, as their attributes may be."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot travel between processes")
