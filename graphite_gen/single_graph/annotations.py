"""What a user knows about nodes, in a file of its own: features and labels, joined to the graph by node id.

A CSV file begins with a line that names its columns. The first column is the node's id, as the graph's file has it. Of
features, all others are numbers; of labels there is a column ``label`` (or just one other), and maybe ``split``.

An npz file holds ``features (n, F)``, or ``labels (n,)`` and maybe ``split (n,)``, and the nodes' ``ids (n,)``. Without
ids, rows stand in the order of the nodes. What ``scipy.sparse.save_npz`` wrote is read as features, too.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import FormatError
from ..graph import SimpleGraph

__all__ = ["read_features", "read_labels"]

LABEL, SPLIT = "label", "split"

Ids = Sequence[Any] | NDArray[Any] | None


def read_features(path: Path, graph: SimpleGraph) -> sparse.csr_array:
    """Features of every node, sparse, with shape :math:`(n, F)`.

    Raises:
        FormatError: The file cannot be read, a node has no row, or a feature is not a finite number.
    """
    ids: Ids
    if _is_npz(path):
        arrays = _load(path)
        if {"data", "indices", "indptr", "shape"} <= arrays.keys():
            x = _sparse_rows(path, arrays)
            ids = None
        else:
            x = sparse.csr_array(_numbers(path, arrays, "features"))
            ids = arrays.get("ids")
    else:
        head, rows = _csv(path)
        ids = [row[0] for row in rows]
        x = sparse.csr_array(_csv_numbers(path, rows, len(head) - 1))
    if not np.isfinite(x.data).all():
        raise FormatError(f"'{path}': a feature is not a finite number; replace it, or leave its column out.")
    order = _rows_of_nodes(path, graph, ids, x.shape[0])
    missing = np.flatnonzero(order < 0)
    if len(missing):
        name = missing[0] if graph.names is None else graph.names[missing[0]]
        raise FormatError(f"'{path}' has no features of node '{name}': every node needs a row.")

    return sparse.csr_array(x[order]).astype(np.float32)


def read_labels(path: Path, graph: SimpleGraph) -> tuple[list[Any], list[Any] | None]:
    """The label of each node, and the part of the split it is in; None where the file has none.

    Raises:
        FormatError: The file cannot be read, or has no labels.
    """
    ids: Ids
    if _is_npz(path):
        arrays = _load(path)
        if "labels" not in arrays:
            raise FormatError(f"'{path}' has {_listed(arrays)}: wanted an array 'labels', and 'ids' of the nodes.")
        labels = [None if label == "" or label == -1 else label for label in arrays["labels"].tolist()]
        parts = [part or None for part in arrays[SPLIT].tolist()] if SPLIT in arrays else None
        ids = arrays.get("ids")
    else:
        head, rows = _csv(path)
        ids = [row[0] for row in rows]
        words = [word.strip().lower() for word in head]
        others = [column for column in range(1, len(words)) if words[column] != SPLIT]
        if LABEL in words:
            column = words.index(LABEL)
        elif len(others) == 1:
            column = others[0]
        else:
            raise FormatError(f"'{path}' has columns {', '.join(head)}: name the one of the labels 'label'.")
        labels = [row[column].strip() or None for row in rows]
        parts = [row[words.index(SPLIT)].strip() or None for row in rows] if SPLIT in words else None
    if parts is not None and len(parts) != len(labels):
        raise FormatError(f"'{path}' has {len(labels)} labels and {len(parts)} parts of a split: wanted as many.")
    order = _rows_of_nodes(path, graph, ids, len(labels)).tolist()

    return _picked(labels, order), None if parts is None else _picked(parts, order)


def _picked(column: Sequence[Any], order: Iterable[int]) -> list[Any]:
    return [None if row < 0 else column[row] for row in order]


def _rows_of_nodes(path: Path, graph: SimpleGraph, ids: Ids, rows: int) -> NDArray[np.int64]:
    """The row of each node, -1 where it has none, with shape :math:`(n,)`."""
    if ids is None:
        if rows != graph.nodes:
            raise FormatError(
                f"'{path}' has {rows} rows for {graph.nodes} nodes: wanted one each, or the nodes' 'ids' beside them."
            )
        return np.arange(rows)
    if len(ids) != rows:
        raise FormatError(f"'{path}' has {len(ids)} ids for {rows} rows: wanted one each.")

    names = range(graph.nodes) if graph.names is None else graph.names
    number = {str(name): node for node, name in enumerate(names)}
    order = np.full(graph.nodes, -1)
    for row, each in enumerate(ids):
        node = number.get(str(each).strip())
        if node is None:
            raise FormatError(
                f"'{path}' is about a node '{each}' that the graph does not have: use the ids of its file."
            )
        if order[node] >= 0:
            raise FormatError(f"'{path}' has two rows of node '{each}': wanted one.")
        order[node] = row

    return order


# CSV ----------------------------------------------------------------------------------------------------------


def _csv(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = [row for row in csv.reader(stream) if row]
    except OSError as error:
        raise FormatError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"'{path}' is not CSV in UTF-8 ({error}); save it as that, or as '.npz'.") from error
    if not rows or len(rows[0]) < 2:
        raise FormatError(f"'{path}' has no columns: wanted a line that names them, the first for node ids.")
    if all(_is_number(cell) for cell in rows[0]):
        raise FormatError(f"'{path}' begins with numbers: wanted a first line that names the columns, as in 'id,x,y'.")
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise FormatError(f"'{path}', row {line}: {len(row)} cells where the first line names {len(rows[0])}.")

    return rows[0], rows[1:]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False

    return True


def _csv_numbers(path: Path, rows: list[list[str]], width: int) -> NDArray[np.float32]:
    try:
        return np.array([row[1:] for row in rows], dtype=np.float32).reshape(len(rows), width)
    except ValueError:
        line, word = next((line, cell) for line, row in enumerate(rows, 2) for cell in row[1:] if not _is_number(cell))
        raise FormatError(f"'{path}', row {line}: '{word}' is no number; features are numbers.") from None


# npz ----------------------------------------------------------------------------------------------------------


def _is_npz(path: Path) -> bool:
    return path.suffix.lower() == ".npz"


def _load(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except OSError as error:
        raise FormatError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise FormatError(f"'{path}' is not an npz file of plain arrays ({error}); objects are not read.") from error


def _listed(arrays: dict[str, NDArray[Any]]) -> str:
    return ", ".join(f"'{name}'" for name in arrays) or "no arrays"


def _numbers(path: Path, arrays: dict[str, NDArray[Any]], name: str) -> NDArray[np.float32]:
    if name not in arrays or arrays[name].ndim != 2 or arrays[name].dtype.kind not in "biuf":
        raise FormatError(f"'{path}' has {_listed(arrays)}: wanted numbers '{name}' with a row for each node.")

    return arrays[name].astype(np.float32)


def _sparse_rows(path: Path, arrays: dict[str, NDArray[Any]]) -> sparse.csr_array:
    try:
        if bytes(arrays["format"].item()) != b"csr":
            raise ValueError("not CSR")
        x = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=arrays["shape"].tolist())
        x.check_format()
    except (ValueError, TypeError, LookupError) as error:
        raise FormatError(f"'{path}' is no sparse matrix of numbers in CSR form ({error}); save it as that.") from error

    return x
