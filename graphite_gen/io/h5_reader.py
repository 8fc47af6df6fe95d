"""Reading graphs from HDF5 datasets in blocks; declared sizes are checked before memory is allocated."""

from __future__ import annotations

import json
import mmap
import re
import struct
from collections.abc import Iterator
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

from ..data.dataset import SPLITS
from ..graph import SimpleGraph
from .build import MAX_NODES, Context, build_graph
from .h5_writer import GRAPHS, GROUPS, NO_SPLIT, decoded
from .values import hashable, plain, provenance_attributes, provenance_of

__all__ = ["Reader", "dataset", "file_attributes", "has_endless_heap"]

_ROWS = 1 << 20
_MAX_BLOCK_BYTES = 1 << 28
_MAX_RATIO = 1100  # slightly above the best ratio of deflate
_BOMB_BYTES, _BOMB_RATIO = 1 << 24, 500
_HEAP = b"GCOL\x01\0\0\0"
_OBJECT = struct.Struct("<HHIQ")


def file_attributes(file: Any) -> dict[str, Any]:
    """The provenance of a file, as attributes of each of its graphs."""
    names = ("family", "parameters", "seed", "source", "model")

    return provenance_attributes(provenance_of({name: plain(file.attrs[name]) for name in names if name in file.attrs}))


def dataset(
    context: Context, group: Any, name: str, kinds: str, rows: int | None = None, width: int | None = None
) -> Any:
    """A dataset stored in the file itself, with the expected shape and type, and with as much data as it declares.

    Any number of ``rows`` may be None, any ``width`` 0, and None is one dimension; kind ``S`` is text of fixed width.
    """
    where = f"dataset '{name}'"
    if name not in group:
        raise context.damage(where, "missing; 'node_counts', 'edge_counts' and 'edges' are required.")
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise context.damage(where, "a soft or external link; expected a dataset in this file.")
    data = group[name]
    if not isinstance(data, h5py.Dataset) or data.is_virtual or data.external:
        raise context.damage(where, "virtual, external or not a dataset; expected a dataset in this file.")

    shape: tuple[int, ...] = data.shape or ()
    if len(shape) != (1 if width is None else 2) or (width and shape[1] != width):
        expected = "(rows,)" if width is None else f"(rows, {width or 'F'})"
        raise context.damage(where, f"has shape {shape}; expected {expected}.")
    if rows is not None and len(data) != rows:
        raise context.damage(where, f"has {len(data)} rows; the counts require {rows}.")
    if data.dtype.kind not in kinds:
        expected = {"iu": "integers", "iuf": "numbers"}.get(kinds, "numbers or text of fixed width")
        raise context.damage(where, f"has dtype {data.dtype}; expected {expected}.")

    size = data.dtype.itemsize
    row_bytes = size * (1 if width is None else shape[1])
    chunk_bytes = size * int(np.prod(data.chunks or (0,), dtype=np.float64))
    if max(chunk_bytes, row_bytes) > _MAX_BLOCK_BYTES:
        raise context.damage(where, f"has blocks larger than the limit of {_MAX_BLOCK_BYTES} bytes.")
    # Columns may start late and have the length of the counts; only other datasets must be stored in full.
    if rows is None or width is not None:
        declared, stored = len(data) * row_bytes, data.id.get_storage_size()
        if declared > _MAX_RATIO * stored + chunk_bytes:
            raise context.damage(where, f"declares {len(data)} rows and stores almost none.")
        if declared > max(_BOMB_BYTES, _BOMB_RATIO * data.file.id.get_filesize()):
            raise context.damage(where, f"expands to more than {_BOMB_RATIO} times the size of the file.")

    return data


class Reader:
    """The graphs of a version 1 file."""

    def __init__(self, file: Any, context: Context) -> None:
        self._context = context
        self._common = file_attributes(file)
        self._node_counts = dataset(context, file, "node_counts", "iu")
        graphs = len(self._node_counts)
        self._edge_counts = dataset(context, file, "edge_counts", "iu", graphs)
        self._edges = dataset(context, file, "edges", "iu", width=2)
        edges = len(self._edges)
        nodes = self._total("node_counts", self._node_counts, MAX_NODES)
        if self._total("edge_counts", self._edge_counts, edges) != edges:
            raise context.damage("dataset 'edge_counts'", f"does not sum to the {edges} rows of 'edges'.")

        def optional(name: str, *shape: Any) -> Any:
            return dataset(context, file, name, *shape) if name in file else None

        self._weights = optional("weights", "iuf", edges)
        self._features = optional("node_features", "iuf", nodes, 0)
        self._split = optional("split", "iu", graphs)
        self._directed = optional("directed", "iu", graphs)
        # Edges of other programs may be arcs.
        self._stated = False if "format" in file.attrs else None
        self._names = optional("node_names", "biufS", nodes)
        self._graph_columns, self._node_columns, self._edge_columns = (
            self._columns(file, group, rows) for group, rows in zip(GROUPS, (graphs, nodes, edges), strict=True)
        )

    def _total(self, name: str, data: Any, most: int) -> int:
        """The sum of the counts, after checking each."""
        total = 0
        for start in range(0, len(data), _ROWS):
            counts = data[start : start + _ROWS]
            wrong = np.flatnonzero((counts < 0) | (counts > most))
            if len(wrong):
                problem = f"'{name}' is {counts[wrong[0]]}; expected 0 to {most}."
                raise self._context.damage(f"graph {start + wrong[0]}", problem)
            total += int(counts.sum(dtype=np.int64))

        return total

    def _columns(self, file: Any, group: str, rows: int) -> dict[str, Any]:
        if group not in file:
            return {}
        if not isinstance(file.get(group, getlink=True), h5py.HardLink) or not isinstance(file[group], h5py.Group):
            raise self._context.damage(f"group '{group}'", "not a group in this file.")

        return {decoded(name): dataset(self._context, file[group], name, "biufS", rows) for name in file[group]}

    def graphs(self) -> Iterator[SimpleGraph]:
        """The graphs in order, read in blocks of bounded size."""
        first = node = edge = 0
        while first < len(self._node_counts):
            nodes, edges = (
                data[first : first + GRAPHS].astype(np.int64) for data in (self._node_counts, self._edge_counts)
            )
            count = max(1, int(np.searchsorted(np.cumsum(nodes + edges), _ROWS, side="right")))
            node_to, edge_to = node + int(nodes[:count].sum()), edge + int(edges[:count].sum())
            yield from self._block(first, nodes[:count], edges[:count], slice(node, node_to), slice(edge, edge_to))
            first, node, edge = first + count, node_to, edge_to

    def _block(
        self, first: int, nodes: NDArray[np.int64], edges: NDArray[np.int64], node_span: slice, edge_span: slice
    ) -> Iterator[SimpleGraph]:
        graph_span = slice(first, first + len(nodes))
        pairs, directed = self._edges[edge_span], self._directions(graph_span)
        ordered, kinds = _in_order(pairs, nodes, edges, directed), directed.tolist()
        pairs = pairs.astype(np.int32 if ordered else np.int64)
        weights = None if self._weights is None else self._weights[edge_span].astype(np.float64)
        with np.errstate(over="ignore"):
            features = None if self._features is None else self._features[node_span].astype(np.float32)
        names = None if self._names is None else self._values(self._names, node_span)
        node_columns = {key: self._values(data, node_span) for key, data in self._node_columns.items()}
        edge_columns = {key: self._values(data, edge_span) for key, data in self._edge_columns.items()}
        attributes = self._graph_attributes(graph_span)

        node = edge = 0
        for k, (n, e) in enumerate(zip(nodes.tolist(), edges.tolist(), strict=True)):
            own_nodes, own_edges = slice(node, node + n), slice(edge, edge + e)
            graph = SimpleGraph(
                n,
                pairs[own_edges],
                None if weights is None else self._own_rows(first + k, "weight", weights[own_edges]),
                None if features is None else self._own_rows(first + k, "feature", features[own_nodes]),
                None if names is None else _own_names(names[own_nodes]),
                _own_columns(node_columns, own_nodes) if node_columns else {},
                _own_columns(edge_columns, own_edges) if edge_columns else {},
                attributes[k],
                kinds[k],
            )
            yield graph if ordered else self._simple(first + k, graph)
            node, edge = node + n, edge + e

    def _values(self, data: Any, span: slice) -> list[Any]:
        """Some rows of a column as plain values, None where missing."""
        if data.dtype.kind != "S":
            return data[span].tolist()
        step = max(1, _ROWS // data.dtype.itemsize)
        try:
            return [
                json.loads(text) if text else None
                for start in range(span.start, span.stop, step)
                for text in data[start : min(start + step, span.stop)].tolist()
            ]
        except (ValueError, RecursionError) as error:
            problem = f"contains text that is not JSON ({error})."
            raise self._context.damage(f"dataset '{data.name}'", problem) from error

    def _graph_attributes(self, span: slice) -> list[dict[str, Any]]:
        rows = [dict(self._common) for _ in range(span.start, span.stop)]
        if self._split is not None:
            for k, code in enumerate(self._split[span].tolist()):
                if code != NO_SPLIT and not 0 <= code < len(SPLITS):
                    raise self._context.damage(f"graph {span.start + k}", f"split is {code}; expected 0, 1, 2 or 255.")
                if code != NO_SPLIT:
                    rows[k]["split"] = SPLITS[code]
        for key, data in self._graph_columns.items():
            for row, value in zip(rows, self._values(data, span), strict=True):
                if value is not None:
                    row[key] = value

        return rows

    def _directions(self, span: slice) -> NDArray[np.bool_]:
        """Which graphs are read as directed ones, with shape :math:`(G,)`."""
        count = span.stop - span.start
        if self._directed is None and not self._context.directed:
            return np.zeros(count, dtype=np.bool_)
        found = []
        codes = [self._stated] * count if self._directed is None else self._directed[span].tolist()
        for index, code in enumerate(codes, span.start):
            if code not in (None, 0, 1):
                raise self._context.damage(f"graph {index}", f"directed is {code}; expected 0 or 1.")
            found.append(self._context.is_directed(f"graph {index}", None if code is None else code == 1))

        return np.array(found, dtype=np.bool_)

    def _own_rows(self, index: int, what: str, rows: NDArray[Any]) -> NDArray[Any] | None:
        """The rows of a graph; None if all are NaN, as in a graph without such data among others."""
        if np.isfinite(rows).all():
            return rows
        if np.isnan(rows).all():
            return None
        raise self._context.error(f"graph {index}", f"a {what} is not a finite number.")

    def _simple(self, index: int, graph: SimpleGraph) -> SimpleGraph:
        """The graph with its pairs checked and sorted, and edge data in the same order."""
        rows = [{"position": e} for e in range(len(graph.edges))]
        where, kind = f"graph {index}", graph.directed
        built = build_graph(self._context, where, graph.nodes, graph.edges, directed=kind, edge_rows=rows)
        kept = np.array(built.edge_attributes.get("position", ()), dtype=np.intp)

        return graph.selected(np.arange(graph.nodes), kept, built.edges)


def _in_order(
    pairs: NDArray[Any], nodes: NDArray[np.int64], counts: NDArray[np.int64], directed: NDArray[np.bool_]
) -> bool:
    """Whether all pairs are in range, have ``i < j`` unless directed, and are in lexicographic order in each graph."""
    i, j = pairs.T
    low, high = i, j
    if directed.any():
        turned = np.repeat(directed, counts) & (i > j)
        low, high = np.where(turned, j, i), np.where(turned, i, j)
    if not ((low >= 0).all() and (low < high).all() and (high < np.repeat(nodes, counts)).all()):
        return False
    owner = np.repeat(np.arange(len(counts)), counts)
    later = (i[1:] > i[:-1]) | ((i[1:] == i[:-1]) & (j[1:] > j[:-1]))

    return bool((later | (owner[1:] != owner[:-1])).all())


def _own_names(names: list[Any]) -> tuple[Any, ...] | None:
    return None if all(name is None for name in names) else tuple(hashable(name) for name in names)


def _own_columns(columns: dict[str, list[Any]], span: slice) -> dict[str, list[Any]]:
    own = {key: column[span] for key, column in columns.items()}

    return {key: column for key, column in own.items() if any(value is not None for value in column)}


def has_endless_heap(stream: BinaryIO) -> bool:
    """Whether a heap of an HDF5 file has an object of size zero, on which the HDF5 library would not terminate."""
    try:
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (ValueError, OSError):
        # An empty file, or not a regular file.
        return False
    with data:
        return any(_is_endless(data, match.start()) for match in re.finditer(re.escape(_HEAP), data))


def _is_endless(data: mmap.mmap, at: int) -> bool:
    size = int.from_bytes(data[at + 8 : at + 16], "little")
    end, at = min(at + size, len(data)), at + 16
    while at + _OBJECT.size <= end:
        index, _, _, length = _OBJECT.unpack_from(data, at)
        # Object 0 is free space, whose length includes its header; other objects are padded to eight bytes, modulo 2⁶⁴.
        step = length if index == 0 else (_OBJECT.size + length + 7 & ~7) % 2**64
        if step == 0:
            return True
        at += step

    return False
