"""Node features and labels in files of their own, CSV or npz, joined to the graph by node id."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import FormatError
from ..graph import SimpleGraph
from ..io.files import check_not_pickle
from ..io.npz import read_npz
from ..records import count_of, listed

__all__ = ["csr_rows", "read_features", "read_labels"]

LABEL, SPLIT, IDS = "label", "split", "ids"
ARRAYS = {"features", "labels", SPLIT, IDS}
# The longest line of a CSV file.
_MAX_LINE = 1 << 24

Ids = Sequence[Any] | NDArray[Any] | None


def csr_rows(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: Sequence[int]) -> sparse.csr_array:
    """CSR matrix of arrays from an untrusted file; SciPy itself does not check that indices are within bounds."""
    rows, columns = (int(each) for each in shape)
    if any(part.ndim != 1 for part in (data, indices, indptr)) or data.dtype.kind not in "biuf":
        raise ValueError("not one-dimensional arrays of numbers")
    if any(part.dtype.kind not in "iu" for part in (indices, indptr)):
        raise ValueError("indices that are not integers")
    if len(indptr) != rows + 1 or len(data) != len(indices) or not 0 <= columns < 2**31:
        raise ValueError(f"lengths that do not fit the shape {rows} x {columns}")
    starts = indptr.astype(np.int64)
    if starts[0] != 0 or starts[-1] != len(data) or (starts[1:] < starts[:-1]).any():
        raise ValueError("row pointers that do not ascend")
    if len(indices) and not 0 <= indices.min() <= indices.max() < columns:
        raise ValueError(f"a column outside 0 to {columns - 1}")

    return sparse.csr_array((data, indices.astype(np.int64), starts), shape=(rows, columns))


def read_features(path: Path, graph: SimpleGraph) -> sparse.csr_array:
    """Features of every node, with shape :math:`(n, F)`.

    All columns of a CSV file but the first, the node id, are numbers. An npz file holds ``features (n, F)`` and ``ids
    (n,)``, or the output of ``scipy.sparse.save_npz``. Without ids, rows are in node order.
    """
    ids: Ids
    header: list[str] | None = None
    if path.suffix.lower() == ".npz":
        arrays = read_npz(path)
        dense = arrays.get("features")
        if {"data", "indices", "indptr", "shape"} <= arrays.keys():
            x, ids = _sparse_matrix(path, arrays), None
        elif dense is not None and dense.ndim == 2 and dense.dtype.kind in "biuf":
            x, ids = sparse.csr_array(dense.astype(np.float32)), _ids(path, arrays)
        else:
            raise FormatError(
                f"'{path}' has {listed(arrays) or 'no arrays'}: expected numbers 'features' with a row per node."
            )
    else:
        header, rows = _csv(path, graph)
        ids = [row[0] for row in rows]
        x = sparse.csr_array(_csv_numbers(path, rows, len(header) - 1))
    _check_finite(path, x, graph, ids, header)
    order = _rows_of_nodes(path, graph, ids, x.shape[0])
    missing = np.flatnonzero(order < 0)
    if len(missing):
        name = missing[0] if graph.names is None else graph.names[missing[0]]
        raise FormatError(f"'{path}' has no features of node '{name}': every node needs a row.")

    return sparse.csr_array(x[order]).astype(np.float32)


def _check_finite(path: Path, x: sparse.csr_array, graph: SimpleGraph, ids: Ids, header: list[str] | None) -> None:
    wrong = np.flatnonzero(~np.isfinite(x.data))
    if not len(wrong):
        return
    row, column = int(np.searchsorted(x.indptr, wrong[0], side="right")) - 1, int(x.indices[wrong[0]])
    nodes = graph.names if ids is None else ids
    node = nodes[row] if nodes is not None and row < len(nodes) else row
    place = f"'{path}'" if header is None else f"'{path}', row {row + 2}"
    # The first column of a CSV file is the node id.
    name = f"{column}" if header is None else f"'{' '.join(header[column + 1].split())[:80]}'"

    raise FormatError(f"{place}: column {name} of node '{str(node)[:80]}' is not a finite number.")


def read_labels(path: Path, graph: SimpleGraph) -> tuple[list[Any], list[Any] | None]:
    """Label of each node and its part of the split, None where the file has none.

    A CSV file has a column ``label`` (or just one other than the node id) and optionally ``split``; an npz file has
    ``labels (n,)``, and optionally ``split (n,)`` and ``ids (n,)``. In npz files, which have no empty cells, -1 is
    None; in CSV files it is kept.
    """
    ids: Ids
    if path.suffix.lower() == ".npz":
        arrays = read_npz(path)
        if "labels" not in arrays:
            raise FormatError(
                f"'{path}' has {listed(arrays) or 'no arrays'}: expected an array 'labels', and 'ids' of the nodes."
            )
        labels = [None if label == "" or label == -1 else label for label in _column(path, arrays, "labels")]
        parts = [part or None for part in _column(path, arrays, SPLIT)] if SPLIT in arrays else None
        ids = _ids(path, arrays)
    else:
        header, rows = _csv(path, graph)
        ids = [row[0] for row in rows]
        names = [name.strip().lower() for name in header]
        others = [column for column in range(1, len(names)) if names[column] != SPLIT]
        # The first column is the node id, whatever its name.
        if LABEL not in names[1:] and len(others) != 1:
            raise FormatError(f"'{path}' has columns {', '.join(header)[:200]}: expected one called 'label'.")
        column = names.index(LABEL, 1) if LABEL in names[1:] else others[0]
        labels = [row[column].strip() or None for row in rows]
        parts = [row[names.index(SPLIT, 1)].strip() or None for row in rows] if SPLIT in names[1:] else None
    if parts is not None and len(parts) != len(labels):
        raise FormatError(f"'{path}' has {count_of(len(labels), 'label')} and {len(parts)} entries of 'split'.")
    order = _rows_of_nodes(path, graph, ids, len(labels)).tolist()
    found = [None if row < 0 else labels[row] for row in order]

    return found, None if parts is None else [None if row < 0 else parts[row] for row in order]


def _rows_of_nodes(path: Path, graph: SimpleGraph, ids: Ids, rows: int) -> NDArray[np.int64]:
    """Row of each node, -1 if it has none, with shape :math:`(n,)`."""
    if ids is None:
        if rows != graph.nodes:
            raise FormatError(
                f"'{path}' has {count_of(rows, 'row')} and no 'ids', and the graph {count_of(graph.nodes, 'node')}."
            )
        return np.arange(rows)
    if len(ids) != rows:
        raise FormatError(f"'{path}' has {count_of(len(ids), 'id')} for {count_of(rows, 'row')}.")

    indices = _node_indices(graph)
    order = np.full(graph.nodes, -1)
    for row, each in enumerate(ids):
        node = _find_node(indices, each)
        if node is None:
            raise FormatError(f"'{path}' has a node '{str(each)[:80]}' that is not in the graph.")
        if order[node] >= 0:
            raise FormatError(f"'{path}' has two rows of node '{str(each)[:80]}'.")
        order[node] = row

    return order


def _node_indices(graph: SimpleGraph) -> dict[str, int]:
    names = range(graph.nodes) if graph.names is None else graph.names

    return {str(name): node for node, name in enumerate(names)}


def _find_node(indices: Mapping[str, int], each: Any) -> int | None:
    """Index of a node by its id, which may be 1.0 for 1, as pandas writes integers with missing values."""
    text = str(each).strip()
    integer = text.removesuffix(".0") if _is_number(text) else text

    return indices.get(text, indices.get(integer))


# CSV ----------------------------------------------------------------------------------------------------------


def _csv(path: Path, graph: SimpleGraph) -> tuple[list[str], list[list[str]]]:
    check_not_pickle(path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            lines = _bounded_lines(stream)
            first = next(lines, "")
            # Spreadsheets use semicolons in locales with decimal commas.
            delimiter = next((mark for mark in ",;\t" if mark in first), ",")
            rows = [row for row in csv.reader(chain([first], lines), delimiter=delimiter) if row]
    except FileNotFoundError as error:
        raise FormatError(f"'{path}' does not exist; expected a '.csv' or '.npz' file.") from error
    except OSError as error:
        raise FormatError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, csv.Error) as error:
        raise FormatError(f"'{path}' is not CSV in UTF-8 ({error}).") from error
    if not rows or len(rows[0]) < 2:
        raise FormatError(
            f"'{path}' has fewer than two columns: expected a header row, the first column for node ids, and commas, "
            f"semicolons or tabs as delimiters."
        )
    if all(_is_number(cell) for cell in rows[0]) or _lacks_header(rows, graph):
        raise FormatError(f"'{path}' has no header row: it starts with '{rows[0][0][:80]}', expected 'id,label' or so.")
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise FormatError(f"'{path}', row {line}: {count_of(len(row), 'cell')}, and the header has {len(rows[0])}.")

    return rows[0], rows[1:]


def _lacks_header(rows: list[list[str]], graph: SimpleGraph) -> bool:
    """Whether the first row begins with a node id that no other row has, and does not name a column 'label'."""
    indices = _node_indices(graph)
    node = _find_node(indices, rows[0][0])
    has_label = any(name.strip().lower() == LABEL for name in rows[0])

    return not has_label and node is not None and all(_find_node(indices, row[0]) != node for row in rows[1:])


def _bounded_lines(stream: TextIO) -> Iterator[str]:
    # A device may never end its first line.
    while line := stream.readline(_MAX_LINE):
        if len(line) == _MAX_LINE:
            raise ValueError(f"a line of more than {_MAX_LINE} characters")
        yield line


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False

    return True


def _csv_numbers(path: Path, rows: list[list[str]], width: int) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):
            return np.array([row[1:] for row in rows], dtype=np.float32).reshape(len(rows), width)
    except ValueError:
        line, cell = next((line, cell) for line, row in enumerate(rows, 2) for cell in row[1:] if not _is_number(cell))
        raise FormatError(f"'{path}', row {line}: '{cell[:80]}' is not a number.") from None


# npz ----------------------------------------------------------------------------------------------------------


def _column(path: Path, arrays: dict[str, NDArray[Any]], name: str) -> list[Any]:
    """A one-dimensional array of numbers or strings as a list."""
    array = arrays[name]
    is_number = array.dtype.kind in "biuf"
    if array.ndim != 1 or not (is_number or array.dtype.kind in "SU") or (is_number and not np.isfinite(array).all()):
        raise FormatError(
            f"'{path}': '{name}' is {array.dtype} of shape {array.shape}; expected a number or a string per node."
        )

    return [each.decode("latin-1") for each in array.tolist()] if array.dtype.kind == "S" else array.tolist()


def _ids(path: Path, arrays: dict[str, NDArray[Any]]) -> list[Any] | None:
    """Node id of each row; None if rows are in node order. Unknown arrays could be the ids under another name."""
    if IDS in arrays:
        return _column(path, arrays, IDS)
    if other := sorted(arrays.keys() - ARRAYS):
        raise FormatError(
            f"'{path}' has an unknown array '{other[0][:80]}' and no 'ids': rename it to 'ids' if it holds node ids, "
            f"or remove it."
        )

    return None


def _sparse_matrix(path: Path, arrays: dict[str, NDArray[Any]]) -> sparse.csr_array:
    try:
        if bytes(arrays["format"].item()) != b"csr":
            raise ValueError("not CSR")
        return csr_rows(arrays["data"], arrays["indices"], arrays["indptr"], arrays["shape"].tolist())
    except (ValueError, TypeError, LookupError) as error:
        raise FormatError(f"'{path}' is not a sparse matrix in CSR form ({error}).") from error
