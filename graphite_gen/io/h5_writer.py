"""Graphs into HDF5 datasets that grow block by block."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from ..errors import OutputError
from ..graph import SimpleGraph
from .values import plain

__all__ = ["GRAPHS", "GROUPS", "NO_SPLIT", "SPLITS", "Writer", "decoded"]

GRAPHS = 4096
"""The graphs of a block."""
SPLITS = ("train", "validation", "test")
NO_SPLIT = 255
GROUPS = ("graph_attributes", "node_attributes", "edge_attributes")

_CODES = {name: code for code, name in enumerate(SPLITS)}
_CHUNK_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 24
_KINDS: dict[type, Any] = {bool: np.dtype(np.bool_), int: np.dtype(np.int64), float: np.dtype(np.float64)}


class Writer:
    """Appends blocks of graphs to a file; a dataset starts when the first graph needs it."""

    def __init__(self, file: Any, facts: Mapping[str, Any]) -> None:
        self.graphs = 0
        self._file = file
        self._facts = facts
        self._nodes = 0
        self._edges = 0
        self._columns: dict[tuple[str, str], _Column] = {}

    def write(self, block: Sequence[SimpleGraph]) -> None:
        """Append the graphs."""
        nodes = np.array([graph.nodes for graph in block], dtype=np.int32)
        counts = np.array([len(graph.edges) for graph in block], dtype=np.int32)
        total_nodes, total_edges = int(nodes.sum(dtype=np.int64)), int(counts.sum(dtype=np.int64))

        self._append("node_counts", self.graphs, nodes)
        self._append("edge_counts", self.graphs, counts)
        self._append(
            "edges", self._edges, np.concatenate([graph.edges for graph in block]).astype(np.int32, copy=False)
        )
        if self._needs("weights", [graph.weights for graph in block]):
            self._append("weights", self._edges, _filled([graph.weights for graph in block], counts), np.nan)
        if self._needs("node_features", [graph.features for graph in block]):
            self._append("node_features", self._nodes, self._features(block, nodes), np.nan)
        self._write_facts(block)
        if self._needs("node_names", [graph.names for graph in block]):
            self._extend("", "node_names", self._nodes, _joined([graph.names for graph in block], nodes))
        self._write_columns("node_attributes", self._nodes, [graph.node_attributes for graph in block], nodes)
        self._write_columns("edge_attributes", self._edges, [graph.edge_attributes for graph in block], counts)

        self.graphs += len(block)
        self._nodes += total_nodes
        self._edges += total_edges

    def _needs(self, name: str, parts: Sequence[Any]) -> bool:
        return name in self._file or any(part is not None for part in parts)

    def _append(self, name: str, start: int, rows: NDArray[Any], fill: float | None = None) -> None:
        append(self._file, name, start, rows, fill)

    def _features(self, block: Sequence[SimpleGraph], nodes: NDArray[np.int32]) -> NDArray[np.float32]:
        widths = {graph.features.shape[1] for graph in block if graph.features is not None}
        if "node_features" in self._file:
            widths.add(self._file["node_features"].shape[1])
        if len(widths) > 1:
            raise OutputError(
                f"HDF5 holds features of one width, and the graphs have {' and '.join(map(str, sorted(widths)))}: "
                f"write '.jsonl' or '.graphml'."
            )

        return _filled([graph.features for graph in block], nodes, np.float32, tuple(widths))

    def _write_facts(self, block: Sequence[SimpleGraph]) -> None:
        """Write what differs from the file's own facts; known splits have a dataset of their own."""
        rows = [graph.attributes for graph in block]
        if "split" in self._file or any("split" in row for row in rows):
            codes = [_code(row.get("split")) for row in rows]
            if "split" in self._file or any(code != NO_SPLIT for code in codes):
                self._append("split", self.graphs, np.array(codes, dtype=np.uint8), NO_SPLIT)
        own = [
            {
                key: value
                for key, value in row.items()
                if value is not None
                and not (key == "split" and _code(value) != NO_SPLIT)
                and not (key in self._facts and plain(value) == self._facts[key])
            }
            if row
            else row
            for row in rows
        ]
        for key in self._keys("graph_attributes", own):
            self._extend("graph_attributes", key, self.graphs, [row.get(key) for row in own])

    def _write_columns(
        self, group: str, start: int, tables: Sequence[Mapping[str, list[Any]]], lengths: NDArray[np.int32]
    ) -> None:
        for key in self._keys(group, tables):
            self._extend(group, key, start, _joined([table.get(key) for table in tables], lengths))

    def _keys(self, group: str, tables: Sequence[Mapping[str, Any]]) -> dict[str, None]:
        known = [key for owner, key in self._columns if owner == group]

        return dict.fromkeys([*known, *(key for table in tables for key in table)])

    def _extend(self, group: str, key: str, start: int, values: list[Any]) -> None:
        column = self._columns.get((group, key))
        if column is None:
            parent = self._file.require_group(group) if group else self._file
            column = self._columns[group, key] = _Column(parent, encoded(key), start)
        column.extend(values)


class _Column:
    """A dataset of numbers of one kind, until a value comes that is missing or of another; then JSON text.

    Texts have one width, and the dataset is written anew when a wider one comes: HDF5 can also hold texts of any
    width, but goes astray in files where those are damaged.
    """

    def __init__(self, group: Any, name: str, start: int) -> None:
        self._group = group
        self._name = name
        self._length = start
        # A column that starts late has missing values before it.
        self._kind: Any = _text(1) if start else None

    def extend(self, values: list[Any]) -> None:
        """Append values."""
        values = [plain(value) for value in values]
        if not values:
            return
        kind = _kind(values)
        texts: list[bytes] = []
        if kind is None or (self._kind is not None and self._kind != kind):
            texts = _texts(values)
            kind = _text(max(map(len, texts)))
        if self._kind is None:
            self._kind = kind
        elif texts and (self._kind.kind != "S" or self._kind.itemsize < kind.itemsize):
            self._widen(kind)
        self._append(texts or values)

    def _append(self, values: list[Any]) -> None:
        step = _rows_at_once(self._kind)
        for start in range(0, len(values), step):
            rows = np.array(values[start : start + step], dtype=self._kind)
            append(self._group, self._name, self._length, rows, dtype=self._kind)
            self._length += len(rows)

    def _widen(self, kind: Any) -> None:
        """Write the column anew as texts that are wide enough for what comes and for what there is."""
        if self._name not in self._group:
            self._kind = kind
            return
        old = self._group[self._name]
        length, self._length = self._length, 0
        narrow = old.dtype.kind == "S"
        # A number of 64 bits has at most 24 characters.
        self._kind = _text(max(kind.itemsize, 1 if narrow else 24))
        self._group.move(self._name, f"{self._name}%old")
        step = _rows_at_once(self._kind)
        for start in range(0, length, step):
            rows = old[start : start + step].tolist()
            self._append(rows if narrow else _texts(rows))
        del self._group[f"{self._name}%old"]


def _text(width: int) -> Any:
    """The type of texts up to a width, which is rounded up so that it seldom has to grow."""
    return np.dtype(f"S{max(8, 1 << (width - 1).bit_length())}")


def _rows_at_once(kind: Any) -> int:
    return max(1, _BLOCK_BYTES // int(kind.itemsize))


def append(group: Any, name: str, start: int, rows: NDArray[Any], fill: float | None = None, dtype: Any = None) -> None:
    """Write rows from ``start`` on, which is where the dataset ends unless it is new; rows before are then ``fill``."""
    if name in group:
        data = group[name]
        data.resize(start + len(rows), axis=0)
    else:
        width = rows.shape[1:]
        row_bytes = max(1, rows.dtype.itemsize * int(np.prod(width, dtype=np.int64)))
        data = group.create_dataset(
            name,
            shape=(start + len(rows), *width),
            maxshape=(None, *width),
            chunks=(max(1, _CHUNK_BYTES // row_bytes), *(max(1, w) for w in width)),
            dtype=dtype or rows.dtype,
            compression="gzip",
            compression_opts=1,
            shuffle=True,
            fillvalue=fill,
        )
        if width:
            # Readers take rows that are declared and not stored for damage.
            step = max(1, _BLOCK_BYTES // row_bytes)
            for row in range(0, start, step):
                data[row : min(row + step, start)] = fill
    if rows.size:
        data[start:] = rows


def _code(split: Any) -> int:
    return _CODES.get(split, NO_SPLIT) if isinstance(split, str) else NO_SPLIT


def _kind(values: list[Any]) -> Any:
    """The one numeric type of all values, or None."""
    kind = _KINDS.get(type(values[0]))
    if kind is None or any(type(value) is not type(values[0]) for value in values):
        return None
    if kind == np.int64 and not all(-(2**63) <= value < 2**63 for value in values):
        return None

    return kind


def _texts(values: list[Any]) -> list[bytes]:
    return [b"" if value is None else json.dumps(value).encode() for value in values]


def _joined(columns: Sequence[Any], lengths: NDArray[np.int32]) -> list[Any]:
    """The graphs' columns one after the other, None where a graph has none."""
    return [
        value
        for column, length in zip(columns, lengths.tolist(), strict=True)
        for value in ([None] * length if column is None else column)
    ]


def _filled(
    parts: Sequence[Any], lengths: NDArray[np.int32], dtype: Any = np.float64, width: tuple[int, ...] = ()
) -> NDArray[Any]:
    """The graphs' rows one after the other, NaN where a graph has none."""
    return np.concatenate(
        [
            np.full((length, *width), np.nan, dtype) if part is None else np.asarray(part, dtype)
            for part, length in zip(parts, lengths.tolist(), strict=True)
        ]
    )


def encoded(name: str) -> str:
    """An attribute's name as one that HDF5 can give to a dataset."""
    text = name.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")

    return {"": "%", ".": "%2E"}.get(text, text)


def decoded(name: str) -> str:
    """Undo :func:`encoded`."""
    return "" if name == "%" else unquote(name)
