"""Writing graphs to HDF5 datasets, block by block."""

from __future__ import annotations

import io
import json
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from ..data.dataset import SPLITS
from ..errors import OutputError
from ..graph import SimpleGraph
from .union import joined
from .values import plain

__all__ = ["GRAPHS", "GROUPS", "NO_SPLIT", "PatientFile", "Writer", "decoded", "undisturbed"]

GRAPHS = 4096
"""Graphs per block."""
NO_SPLIT = 255
GROUPS = ("graph_attributes", "node_attributes", "edge_attributes")

_CHUNK_BYTES = 1 << 16
_BLOCK_BYTES = 1 << 24
_KINDS: dict[type, Any] = {bool: np.dtype(np.bool_), int: np.dtype(np.int64), float: np.dtype(np.float64)}


class Writer:
    """Appends blocks of graphs to a file; a dataset is created when the first graph needs it."""

    def __init__(self, file: Any, common: Mapping[str, Any]) -> None:
        self.graphs = 0
        self._file = file
        self._common = common
        self._nodes = 0
        self._edges = 0
        self._columns: dict[tuple[str, str], _Column] = {}

    def write(self, block: Sequence[SimpleGraph]) -> None:
        """Append a block of graphs."""
        nodes = np.array([graph.nodes for graph in block], dtype=np.int32)
        counts = np.array([len(graph.edges) for graph in block], dtype=np.int32)

        append(self._file, "node_counts", self.graphs, nodes)
        append(self._file, "edge_counts", self.graphs, counts)
        edges = np.concatenate([graph.edges for graph in block]).astype(np.int32, copy=False)
        append(self._file, "edges", self._edges, edges)
        self._write_numbers("weights", self._edges, [graph.weights for graph in block], counts, np.float64)
        self._write_numbers("node_features", self._nodes, [graph.features for graph in block], nodes, np.float32)
        self._write_graph_attributes(block)
        names = [graph.names for graph in block]
        if "node_names" in self._file or any(names):
            self._extend("", "node_names", self._nodes, joined(names, nodes.tolist()))
        self._write_columns("node_attributes", self._nodes, [graph.node_attributes for graph in block], nodes)
        self._write_columns("edge_attributes", self._edges, [graph.edge_attributes for graph in block], counts)

        self.graphs += len(block)
        self._nodes += int(nodes.sum(dtype=np.int64))
        self._edges += int(counts.sum(dtype=np.int64))

    def _write_numbers(
        self, name: str, start: int, parts: Sequence[Any], lengths: NDArray[np.int32], dtype: Any
    ) -> None:
        """Write one row per edge or node, NaN where a graph has none."""
        shapes = {part.shape[1:] for part in parts if part is not None}
        if name in self._file:
            shapes.add(self._file[name].shape[1:])
        if len(shapes) > 1:
            widths = " and ".join(str(width) for (width,) in sorted(shapes))
            raise OutputError(
                f"HDF5 stores features of one width, and the graphs have {widths}; "
                f"'.jsonl' and '.graphml' can store them."
            )
        for shape in shapes:
            rows = [
                np.full((length, *shape), np.nan, dtype) if part is None else np.asarray(part, dtype)
                for part, length in zip(parts, lengths.tolist(), strict=True)
            ]
            append(self._file, name, start, np.concatenate(rows), np.nan)

    def _write_graph_attributes(self, block: Sequence[SimpleGraph]) -> None:
        """Write the graph attributes that differ from those of the file; the split has a dataset of its own."""
        rows = [graph.attributes for graph in block]
        codes = [_code(row.get("split")) for row in rows]
        if "split" in self._file or any(code != NO_SPLIT for code in codes):
            append(self._file, "split", self.graphs, np.array(codes, dtype=np.uint8), NO_SPLIT)
        kinds = np.array([graph.directed for graph in block], dtype=np.uint8)
        if "directed" in self._file or kinds.any():
            append(self._file, "directed", self.graphs, kinds, 0)
        own = [
            {
                key: value
                for key, value in row.items()
                if value is not None
                and not (key == "split" and _code(value) != NO_SPLIT)
                and not (key in self._common and plain(value) == self._common[key])
            }
            for row in rows
        ]
        for key in self._keys("graph_attributes", own):
            self._extend("graph_attributes", key, self.graphs, [row.get(key) for row in own])

    def _write_columns(
        self, group: str, start: int, tables: Sequence[Mapping[str, list[Any]]], lengths: NDArray[np.int32]
    ) -> None:
        for key in self._keys(group, tables):
            self._extend(group, key, start, joined([table.get(key) for table in tables], lengths.tolist()))

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
    """A dataset of numbers of one type; of JSON text once a value is missing or of another type.

    Text has a fixed width, and the dataset is rewritten when a wider text follows: HDF5 also has text of variable
    width, but may not terminate on files where that is damaged.
    """

    def __init__(self, group: Any, name: str, start: int) -> None:
        self._group = group
        self._name = name
        self._length = start
        # The values before a column that starts late are missing.
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
        step = max(1, _BLOCK_BYTES // self._kind.itemsize)
        for start in range(0, len(values), step):
            rows = np.array(values[start : start + step], dtype=self._kind)
            append(self._group, self._name, self._length, rows, dtype=self._kind)
            self._length += len(rows)

    def _widen(self, kind: Any) -> None:
        """Rewrite the column as text that is wide enough for old and new values."""
        self._kind = kind
        if self._name not in self._group:
            return
        old = self._group[self._name]
        length, self._length = self._length, 0
        narrow = old.dtype.kind == "S"
        # A 64-bit number has at most 24 characters.
        self._kind = _text(max(kind.itemsize, 1 if narrow else 24))
        self._group.move(self._name, f"{self._name}%old")
        step = max(1, _BLOCK_BYTES // self._kind.itemsize)
        for start in range(0, length, step):
            rows = old[start : start + step].tolist()
            self._append(rows if narrow else _texts(rows))
        del self._group[f"{self._name}%old"]


def _text(width: int) -> Any:
    """The dtype of text of a width, which is rounded up so that it seldom has to be widened."""
    return np.dtype(f"S{max(8, 1 << (width - 1).bit_length())}")


def append(group: Any, name: str, start: int, rows: NDArray[Any], fill: float | None = None, dtype: Any = None) -> None:
    """Append rows to a dataset of length ``start``; a new dataset has ``fill`` in the rows before."""
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
            # Readers treat rows that are declared but not stored as damage.
            step = max(1, _BLOCK_BYTES // row_bytes)
            for row in range(0, start, step):
                data[row : min(row + step, start)] = fill
    if rows.size:
        data[start:] = rows


def _code(split: Any) -> int:
    return SPLITS.index(split) if isinstance(split, str) and split in SPLITS else NO_SPLIT


def _kind(values: list[Any]) -> Any:
    """The numeric dtype that all values share, or None."""
    kinds = set(map(type, values))
    kind = _KINDS.get(kinds.pop()) if len(kinds) == 1 else None
    is_small = kind != np.int64 or all(-(2**63) <= value < 2**63 for value in values)

    return kind if is_small else None


def _texts(values: list[Any]) -> list[bytes]:
    return [b"" if value is None else json.dumps(value).encode() for value in values]


def encoded(name: str) -> str:
    """An attribute name as a valid name of an HDF5 dataset."""
    text = name.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")

    return {"": "%", ".": "%2E"}.get(text, text)


def decoded(name: str) -> str:
    """Undo :func:`encoded`."""
    return "" if name == "%" else unquote(name)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Delay signals: an exception raised inside a callback of HDF5 is lost, and the file is damaged."""
    received: list[int] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)):
            if callable(signal.getsignal(number)):
                handlers[number] = signal.signal(number, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number in received:
        handlers[number](number, None)


class PatientFile(io.FileIO):
    """The file of an open stream; errors of the system are kept, for :meth:`check` to raise after HDF5 has closed it.

    On a full disk HDF5 can neither go on nor close its file, and aborts the process.
    """

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream.fileno(), "r+b", closefd=False)
        self.error: OSError | None = None

    def check(self) -> None:
        """Raise the first error, if any."""
        if self.error is not None:
            raise self.error

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        while left and self.error is None:
            try:
                left = left[super().write(left) :]
            except OSError as error:
                self.error = error

        return len(data)

    def truncate(self, size: int | None = None) -> int:
        size = self.tell() if size is None else size
        try:
            super().truncate(size)
        except OSError as error:
            self.error = self.error or error

        return size
