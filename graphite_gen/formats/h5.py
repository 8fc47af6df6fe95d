"""HDF5, version 1: graphs side by side in a few long arrays.

Root attributes ``format = "graphite-gen"``, ``version = 1``, and ``family``, ``parameters`` (JSON text), ``seed``,
``source``, ``model`` where known. Datasets, for :math:`G` graphs with :math:`ΣN` nodes and :math:`ΣE` edges in all:

=========================  ============================================================================
``node_counts (G,)``       int32
``edge_counts (G,)``       int32
``edges (ΣE, 2)``          int32, node ids local to each graph, i < j
``weights (ΣE,)``          float64; NaN on the edges of an unweighted graph among weighted ones
``node_features (ΣN, F)``  float32; NaN on the nodes of a graph without features among others
``split (G,)``             uint8: 0 train, 1 validation, 2 test, 255 none
``node_names (ΣN,)``       where a graph has names
=========================  ============================================================================

and a column per attribute in ``node_attributes``, ``edge_attributes`` and ``graph_attributes``. A column, and
``node_names``, is bool, int64 or float64 if every value is there and of that kind, and JSON text otherwise, empty
where a value is missing. In an attribute's name ``/`` stands as ``%2F`` and ``%`` as ``%25``.

Read as well: the same without ``format`` and ``version``, and a single graph as ``edge_index (2, E)`` with ``labels``.
Only what lies in the file itself is read: links out of it and virtual datasets are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, BinaryIO

import h5py
import numpy as np
from numpy.typing import NDArray

from ..errors import FormatError, OutputError
from ..graph import SimpleGraph
from ..records import Provenance
from ._build import MAX_NODES, Context, build_graph
from ._h5_writer import GRAPHS, GROUPS, NO_SPLIT, SPLITS, Writer, decoded
from ._values import facts_of, hashable, plain, provenance_of, to_json

__all__ = ["read", "write"]

_ROWS = 1 << 20
_MAX_CHUNK_BYTES = 1 << 28
_MAX_RATIO = 1100  # what deflate can reach, and a little


def read(stream: BinaryIO, context: Context) -> Iterator[SimpleGraph]:
    """The graphs of an HDF5 file, some thousands at a time."""
    try:
        with h5py.File(stream.name, "r") as file:
            graphs = _read_single(file, context) if "edge_index" in file else _read_many(file, context)
            yield from graphs
    except FormatError:
        raise
    except (OSError, RuntimeError, LookupError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise FormatError(
            f"'{context.name}' is damaged or not HDF5 ({_first_line(error)}); wanted a file as in 'formats/h5.py'."
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _dataset(context: Context, group: Any, name: str, columns: int | None, kinds: str) -> Any:
    """A dataset that lies in the file, has the right shape and type, and stores what it declares."""
    where = f"dataset '{name}'"
    if name not in group:
        raise context.error(where, "missing; wanted 'node_counts', 'edge_counts' and 'edges'.")
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise context.error(where, "a link to elsewhere, which is not followed.")
    data = group[name]
    if not isinstance(data, h5py.Dataset) or data.is_virtual or data.external:
        raise context.error(where, "not an array stored in this file.")
    if len(data.shape or ()) != (1 if columns is None else 2) or (columns and data.shape[1] != columns):
        wanted = "(rows,)" if columns is None else f"(rows, {columns or 'F'})"
        raise context.error(where, f"has shape {data.shape}, and {wanted} was wanted.")
    text = h5py.check_string_dtype(data.dtype) is not None
    if not ("s" in kinds if text else data.dtype.kind in kinds):
        raise context.error(where, f"holds {data.dtype}, and {'text' if kinds == 's' else 'numbers'} were wanted.")
    row_bytes = data.dtype.itemsize * (data.shape[1] if columns is not None else 1)
    chunk = int(np.prod(data.chunks)) * data.dtype.itemsize if data.chunks else 0
    if chunk > _MAX_CHUNK_BYTES or row_bytes > _MAX_CHUNK_BYTES:
        raise context.error(where, f"has blocks of more than {_MAX_CHUNK_BYTES} bytes, the most that is read.")
    if len(data) * row_bytes > _MAX_RATIO * data.id.get_storage_size() + chunk:
        raise context.error(where, f"declares {len(data)} rows and stores almost none; the file is damaged.")

    return data


class _Columns:
    """The optional arrays of a file that run along its graphs, nodes or edges."""

    def __init__(self, file: Any, context: Context, group: str, length: int) -> None:
        self._context = context
        self.items: dict[str, Any] = {}
        if group not in file:
            return
        if not isinstance(file.get(group, getlink=True), h5py.HardLink) or not isinstance(file[group], h5py.Group):
            raise context.error(f"group '{group}'", "not a group of columns in this file.")
        for name in file[group]:
            self.items[decoded(name)] = _column(context, file[group], name, length)

    def rows(self, start: int, stop: int) -> dict[str, list[Any]]:
        return {name: _values(self._context, data, start, stop) for name, data in self.items.items()}


def _column(
    context: Context, group: Any, name: str, length: int, columns: int | None = None, kinds: str = "biufs"
) -> Any:
    data = _dataset(context, group, name, columns, kinds)
    if len(data) != length:
        raise context.error(f"dataset '{name}'", f"has {len(data)} rows, and the counts say {length}.")

    return data


def _values(context: Context, data: Any, start: int, stop: int) -> list[Any]:
    """Some rows of a column as plain values, None where one is missing."""
    if h5py.check_string_dtype(data.dtype) is None:
        return data[start:stop].tolist()  # type: ignore[no-any-return]
    try:
        return [json.loads(text) if text else None for text in data.asstr()[start:stop]]
    except (ValueError, RecursionError) as error:
        raise context.error(f"dataset '{data.name}'", f"holds text that is not JSON ({error}).") from error


def _read_many(file: Any, context: Context) -> Iterator[SimpleGraph]:
    if "format" in file.attrs or "version" in file.attrs:
        format, version = plain(file.attrs.get("format")), plain(file.attrs.get("version"))
        if format != "graphite-gen" or version != 1:
            raise FormatError(
                f"'{context.name}' is version {version!r} of {format!r}, and we read version 1 of 'graphite-gen': "
                f"update graphite-gen, or write the file again."
            )
    node_counts = _dataset(context, file, "node_counts", None, "iu")
    graphs = len(node_counts)
    edge_counts = _column(context, file, "edge_counts", graphs, kinds="iu")
    edges = _dataset(context, file, "edges", 2, "iu")
    total_nodes, total_edges = _check_counts(context, node_counts, edge_counts, len(edges))

    weights = _column(context, file, "weights", total_edges, kinds="iuf") if "weights" in file else None
    features = _column(context, file, "node_features", total_nodes, 0, "iuf") if "node_features" in file else None
    split = _column(context, file, "split", graphs, kinds="iu") if "split" in file else None
    names = _column(context, file, "node_names", total_nodes) if "node_names" in file else None
    graph_columns, node_columns, edge_columns = (
        _Columns(file, context, group, length)
        for group, length in zip(GROUPS, (graphs, total_nodes, total_edges), strict=True)
    )
    facts = _root_facts(file)

    nodes_before = edges_before = 0
    for first, nodes, counts in _blocks(node_counts, edge_counts):
        node_ends, edge_ends = nodes_before + np.cumsum(nodes), edges_before + np.cumsum(counts)
        edge_span = edges_before, int(edge_ends[-1])
        node_span = nodes_before, int(node_ends[-1])
        pairs = edges[slice(*edge_span)]
        plain_block = _in_order(pairs, nodes, counts)
        pairs = pairs.astype(np.int32) if plain_block else pairs.astype(np.int64)
        block_weights = None if weights is None else weights[slice(*edge_span)].astype(np.float64)
        block_features = None if features is None else features[slice(*node_span)].astype(np.float32)
        block_names = None if names is None else _values(context, names, *node_span)
        block_facts = graph_columns.rows(first, first + len(nodes))
        splits = None if split is None else split[first : first + len(nodes)].tolist()
        block_nodes, block_edges = node_columns.rows(*node_span), edge_columns.rows(*edge_span)

        node_at, edge_at = 0, 0
        for k, (n, e) in enumerate(zip(nodes.tolist(), counts.tolist(), strict=True)):
            node_to, edge_to = node_at + n, edge_at + e
            attributes = dict(facts)
            if splits is not None and splits[k] != NO_SPLIT:
                if splits[k] >= len(SPLITS):
                    raise context.error(f"graph {first + k}", f"split is {splits[k]}; wanted 0, 1, 2 or 255.")
                attributes["split"] = SPLITS[splits[k]]
            for key, column in block_facts.items():
                if column[k] is not None:
                    attributes[key] = column[k]
            own_weights = None if block_weights is None else _own(block_weights[edge_at:edge_to])
            own_features = None if block_features is None else _own(block_features[node_at:node_to])
            own_names = None if block_names is None else _own_names(block_names[node_at:node_to])
            own_nodes = _own_columns(block_nodes, node_at, node_to)
            own_edges = _own_columns(block_edges, edge_at, edge_to)
            if own_weights is not None and not np.isfinite(own_weights).all():
                raise context.error(f"graph {first + k}", "a weight is not a finite number.")
            own_pairs = pairs[edge_at:edge_to]
            if not plain_block:
                rows = [{"": edge} for edge in range(e)]
                built = build_graph(context, f"graph {first + k}", n, own_pairs, edge_rows=rows)
                kept = built.edge_attributes.get("", [])
                own_pairs = built.edges
                own_weights = None if own_weights is None else own_weights[kept]
                own_edges = {key: [column[edge] for edge in kept] for key, column in own_edges.items()}
            yield SimpleGraph(n, own_pairs, own_weights, own_features, own_names, own_nodes, own_edges, attributes)
            node_at, edge_at = node_to, edge_to
        nodes_before, edges_before = node_span[1], edge_span[1]


def _check_counts(context: Context, node_counts: Any, edge_counts: Any, rows: int) -> tuple[int, int]:
    """The numbers of nodes and edges in all, by slices."""
    totals = [0, 0]
    for which, (name, data) in enumerate((("node_counts", node_counts), ("edge_counts", edge_counts))):
        for start in range(0, len(data), _ROWS):
            counts = data[start : start + _ROWS].astype(np.int64)
            most = MAX_NODES if which == 0 else rows
            wrong = np.flatnonzero((counts < 0) | (counts > most))
            if len(wrong):
                graph = int(wrong[0])
                raise context.error(
                    f"graph {start + graph}", f"'{name}' is {counts[graph]}, and 0 to {most} is possible here."
                )
            totals[which] += int(counts.sum())
    if totals[1] != rows:
        raise context.error("dataset 'edge_counts'", f"sums to {totals[1]}, and 'edges' has {rows} rows.")

    return totals[0], totals[1]


def _blocks(node_counts: Any, edge_counts: Any) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """Runs of graphs that are few enough to hold: the first one, and the counts of each."""
    for start in range(0, len(node_counts), GRAPHS):
        nodes = node_counts[start : start + GRAPHS].astype(np.int64)
        edges = edge_counts[start : start + GRAPHS].astype(np.int64)
        sizes = np.cumsum(nodes + edges)
        begin = 0
        while begin < len(nodes):
            before = int(sizes[begin - 1]) if begin else 0
            end = max(begin + 1, int(np.searchsorted(sizes, before + _ROWS, side="right")))
            yield start + begin, nodes[begin:end], edges[begin:end]
            begin = end


def _in_order(pairs: NDArray[Any], nodes: NDArray[np.int64], counts: NDArray[np.int64]) -> bool:
    """Whether all pairs are in range, ``i < j`` and in lexicographic order within their graphs."""
    i, j = pairs.T
    if not len(pairs):
        return True
    if not ((i >= 0).all() and (i < j).all() and (j < np.repeat(nodes, counts)).all()):
        return False
    same = np.repeat(np.arange(len(counts)), counts)
    later = (i[1:] > i[:-1]) | ((i[1:] == i[:-1]) & (j[1:] > j[:-1]))

    return bool((later | (same[1:] != same[:-1])).all())


def _own(rows: NDArray[Any]) -> NDArray[Any] | None:
    """A graph's rows, None where it has none among graphs that have."""
    return None if rows.size and np.isnan(rows).all() else rows


def _own_names(names: list[Any]) -> tuple[Any, ...] | None:
    return None if all(name is None for name in names) else tuple(hashable(name) for name in names)


def _own_columns(columns: Mapping[str, list[Any]], start: int, stop: int) -> dict[str, list[Any]]:
    if not columns:
        return {}
    own = {key: column[start:stop] for key, column in columns.items()}

    return {key: column for key, column in own.items() if any(value is not None for value in column)}


def _root_facts(file: Any) -> dict[str, Any]:
    facts = {
        name: plain(file.attrs[name])
        for name in ("family", "parameters", "seed", "source", "model")
        if name in file.attrs
    }

    return facts_of(provenance_of(facts))


def _read_single(file: Any, context: Context) -> Iterator[SimpleGraph]:
    """The one graph of a node classification set; its features are left to those who train on it."""
    pairs = _dataset(context, file, "edge_index", 0, "iu")
    if pairs.shape[0] != 2:
        raise context.error("dataset 'edge_index'", f"has shape {pairs.shape}, and (2, E) was wanted.")
    labels = _dataset(context, file, "labels", None, "iu") if "labels" in file else None
    nodes = file.attrs.get("num_nodes")
    if labels is not None:
        nodes = len(labels)
    ends = pairs[:].T
    if nodes is None:
        nodes = int(ends.max(initial=-1)) + 1
    context.check_nodes("dataset 'labels'", int(nodes))
    rows = [] if labels is None else [{"label": label} if label >= 0 else None for label in labels[:].tolist()]

    yield build_graph(context, "graph 0", int(nodes), ends, node_rows=rows, attributes=_root_facts(file))


def write(graphs: Iterable[SimpleGraph], stream: BinaryIO, provenance: Provenance) -> int:
    """Write version 1 to the file that the stream has opened."""
    facts = facts_of(provenance)
    with h5py.File(stream.name, "w") as file:
        file.attrs["format"], file.attrs["version"] = "graphite-gen", 1
        for name, value in facts.items():
            file.attrs[name] = to_json(value) if name == "parameters" else value
        writer = Writer(file, facts)
        graphs = iter(graphs)
        while block := list(islice(graphs, GRAPHS)):
            try:
                writer.write(block)
            except RuntimeError as error:
                raise OutputError(f"The HDF5 file cannot be written: {_first_line(error)}.") from error

        return writer.graphs
