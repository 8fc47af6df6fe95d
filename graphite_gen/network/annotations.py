"""What a user knows about nodes, in a file of its own: features and labels, joined to the graph by node id.

A CSV file begins with a line that names its columns, with commas between, or semicolons or tabs. The first column is
the node's id, as the graph's file has it. Of features, all others are numbers; of labels there is a column ``label``
(or just one other), and maybe ``split``. A label that is empty is none; so is -1 beside 0, among whole numbers.

An npz file holds ``features (n, F)``, or ``labels (n,)`` and maybe ``split (n,)``, and the nodes' ``ids (n,)``. A label
-1 is none, whatever the others are. Without ids, rows stand in the order of the nodes, and then no other array is
welcome: it could be the ids by another name. What ``scipy.sparse.save_npz`` wrote is read as features, too.
"""

from __future__ import annotations

import csv
import io
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import FormatError
from ..graph import SimpleGraph
from ..io.files import is_special
from ..records import count_of

__all__ = ["csr_rows", "read_features", "read_labels"]


def csr_rows(data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any], shape: Sequence[int]) -> sparse.csr_array:
    """The matrix of such arrays, which are checked first: SciPy writes where they tell it to, and looks at few of them.

    Arguments:
        data: Numbers, with shape :math:`(S,)`.
        indices: Their columns, with shape :math:`(S,)`.
        indptr: Where rows start and the last one ends, with shape :math:`(n + 1,)`.
        shape: The number of rows and of columns.

    Raises:
        ValueError: They are no matrix.
    """
    rows, columns = (int(each) for each in shape)
    if any(part.ndim != 1 for part in (data, indices, indptr)) or data.dtype.kind not in "biuf":
        raise ValueError("not arrays of numbers of one dimension")
    if any(part.dtype.kind not in "iu" for part in (indices, indptr)):
        raise ValueError("rows and columns that are no whole numbers")
    if len(indptr) != rows + 1 or len(data) != len(indices) or not 0 <= columns < 2**31:
        raise ValueError(f"arrays of other lengths than a shape of {rows} rows and {columns} columns has")
    starts = indptr.astype(np.int64)
    if starts[0] != 0 or starts[-1] != len(data) or (starts[1:] < starts[:-1]).any():
        raise ValueError("rows that do not follow each other")
    if len(indices) and not 0 <= indices.min() <= indices.max() < columns:
        raise ValueError(f"a column out of range; they are 0 to {columns - 1}")

    return sparse.csr_array((data, indices.astype(np.int64), starts), shape=(rows, columns))


LABEL, SPLIT, IDS = "label", "split", "ids"
ARRAYS = {"features", "labels", SPLIT, IDS}
# The longest line of a CSV file, and how far an archive may expand before it counts as a bomb.
_MAX_LINE = 1 << 24
_BOMB_BYTES, _BOMB_RATIO = 1 << 28, 200

Ids = Sequence[Any] | NDArray[Any] | None


def read_features(path: Path, graph: SimpleGraph) -> sparse.csr_array:
    """Features of every node, sparse, with shape :math:`(n, F)`.

    Raises:
        FormatError: The file cannot be read, a node has no row, or a feature is not a finite number.
    """
    ids: Ids
    head: list[str] | None = None
    if _is_npz(path):
        arrays = _load(path)
        if {"data", "indices", "indptr", "shape"} <= arrays.keys():
            x = _sparse_rows(path, arrays)
            ids = None
        else:
            x = sparse.csr_array(_numbers(path, arrays, "features"))
            ids = _ids(path, arrays)
    else:
        head, rows = _csv(path, graph)
        ids = [row[0] for row in rows]
        x = sparse.csr_array(_csv_numbers(path, rows, len(head) - 1))
    _check_finite(path, x, graph, ids, head)
    order = _rows_of_nodes(path, graph, ids, x.shape[0])
    missing = np.flatnonzero(order < 0)
    if len(missing):
        name = missing[0] if graph.names is None else graph.names[missing[0]]
        raise FormatError(f"'{path}' has no features of node '{name}': every node needs a row.")

    return sparse.csr_array(x[order]).astype(np.float32)


def _check_finite(path: Path, x: sparse.csr_array, graph: SimpleGraph, ids: Ids, head: Sequence[str] | None) -> None:
    wrong = np.flatnonzero(~np.isfinite(x.data))
    if not len(wrong):
        return
    row, column = int(np.searchsorted(x.indptr, wrong[0], side="right")) - 1, int(x.indices[wrong[0]])
    nodes = graph.names if ids is None else ids
    node = nodes[row] if nodes is not None and row < len(nodes) else row
    # The first column names the nodes.
    name = f"column '{' '.join(head[column + 1].split())[:80]}'" if head is not None else f"column {column}"
    place = f"'{path}', row {row + 2}:" if head is not None else f"'{path}':"

    raise FormatError(
        f"{place} {name} of node '{str(node)[:80]}' is not a finite number; replace it, or leave its column out."
    )


def read_labels(path: Path, graph: SimpleGraph) -> tuple[list[Any], list[Any] | None]:
    """The label of each node, and the part of the split it is in; None where the file has none.

    A -1 is none in npz, where there are no empty cells; in CSV it is left to those who see all labels of the graph.

    Raises:
        FormatError: The file cannot be read, or has no labels.
    """
    ids: Ids
    if _is_npz(path):
        arrays = _load(path)
        if "labels" not in arrays:
            raise FormatError(f"'{path}' has {_listed(arrays)}: wanted an array 'labels', and 'ids' of the nodes.")
        labels = [None if label == "" or label == -1 else label for label in _column(path, arrays, "labels")]
        parts = [part or None for part in _column(path, arrays, SPLIT)] if SPLIT in arrays else None
        ids = _ids(path, arrays)
    else:
        head, rows = _csv(path, graph)
        ids = [row[0] for row in rows]
        words = [word.strip().lower() for word in head]
        others = [column for column in range(1, len(words)) if words[column] != SPLIT]
        # The first column is the node's id, whatever its name.
        if LABEL in words[1:]:
            column = words.index(LABEL, 1)
        elif len(others) == 1:
            column = others[0]
        else:
            raise FormatError(f"'{path}' has columns {', '.join(head)[:200]}: name the one of the labels 'label'.")
        labels = [row[column].strip() or None for row in rows]
        parts = [row[words.index(SPLIT, 1)].strip() or None for row in rows] if SPLIT in words[1:] else None
    if parts is not None and len(parts) != len(labels):
        raise FormatError(
            f"'{path}' has {count_of(len(labels), 'label')} and {count_of(len(parts), 'part')} of a split: wanted as "
            f"many."
        )
    order = _rows_of_nodes(path, graph, ids, len(labels)).tolist()

    return _picked(labels, order), None if parts is None else _picked(parts, order)


def _picked(column: Sequence[Any], order: Iterable[int]) -> list[Any]:
    return [None if row < 0 else column[row] for row in order]


def _rows_of_nodes(path: Path, graph: SimpleGraph, ids: Ids, rows: int) -> NDArray[np.int64]:
    """The row of each node, -1 where it has none, with shape :math:`(n,)`."""
    if ids is None:
        if rows != graph.nodes:
            raise FormatError(
                f"'{path}' has {count_of(rows, 'row')} for {count_of(graph.nodes, 'node')}: wanted one each, or the "
                f"nodes' 'ids' beside them."
            )
        return np.arange(rows)
    if len(ids) != rows:
        raise FormatError(f"'{path}' has {count_of(len(ids), 'id')} for {count_of(rows, 'row')}: wanted one each.")

    numbers = _numbers_of_nodes(graph)
    order = np.full(graph.nodes, -1)
    for row, each in enumerate(ids):
        node = _node(numbers, each)
        if node is None:
            raise FormatError(
                f"'{path}' is about a node '{str(each)[:80]}' that the graph does not have: use the ids of its file."
            )
        if order[node] >= 0:
            raise FormatError(f"'{path}' has two rows of node '{str(each)[:80]}': wanted one.")
        order[node] = row

    return order


def _numbers_of_nodes(graph: SimpleGraph) -> dict[str, int]:
    names = range(graph.nodes) if graph.names is None else graph.names

    return {str(name): node for node, name in enumerate(names)}


def _node(numbers: Mapping[str, int], each: Any) -> int | None:
    """The number of a node by its id, which may be 1.0 for 1: so pandas writes whole numbers now and then."""
    text = str(each).strip()
    whole = text.removesuffix(".0") if _is_number(text) else text

    return numbers.get(text, numbers.get(whole))


# CSV ----------------------------------------------------------------------------------------------------------


def _csv(path: Path, graph: SimpleGraph) -> tuple[list[str], list[list[str]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            lines = _bounded_lines(stream)
            first = next(lines, "")
            # Spreadsheets of some languages part cells by semicolons, since their numbers have commas.
            delimiter = next((mark for mark in ",;\t" if mark in first), ",")
            rows = [row for row in csv.reader(chain([first], lines), delimiter=delimiter) if row]
    except OSError as error:
        raise FormatError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, csv.Error) as error:
        raise FormatError(f"'{path}' is not CSV in UTF-8 ({error}); save it as that, or as '.npz'.") from error
    if not rows or len(rows[0]) < 2:
        raise FormatError(
            f"'{path}' has one column or none: wanted a line that names them, the first for node ids, with commas, "
            f"semicolons or tabs between."
        )
    if all(_is_number(cell) for cell in rows[0]):
        raise FormatError(f"'{path}' begins with numbers: wanted a first line that names the columns, as in 'id,x,y'.")
    if _is_row(rows, graph):
        raise FormatError(
            f"'{path}' begins with node '{rows[0][0][:80]}': wanted a first line that names the columns, as in "
            f"'id,label'."
        )
    for line, row in enumerate(rows[1:], 2):
        if len(row) != len(rows[0]):
            raise FormatError(
                f"'{path}', row {line}: {count_of(len(row), 'cell')} where the first line names {len(rows[0])}."
            )

    return rows[0], rows[1:]


def _is_row(rows: list[list[str]], graph: SimpleGraph) -> bool:
    """Whether the first line is about a node, which has no other, rather than the names of the columns."""
    numbers = _numbers_of_nodes(graph)
    node = _node(numbers, rows[0][0])
    is_named = any(word.strip().lower() == LABEL for word in rows[0])

    return not is_named and node is not None and all(_node(numbers, row[0]) != node for row in rows[1:])


def _bounded_lines(stream: TextIO) -> Iterator[str]:
    """The lines of a file that has some; a device may never end the first."""
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
        line, word = next((line, cell) for line, row in enumerate(rows, 2) for cell in row[1:] if not _is_number(cell))
        raise FormatError(f"'{path}', row {line}: '{word[:80]}' is no number; features are numbers.") from None


# npz ----------------------------------------------------------------------------------------------------------


def _is_npz(path: Path) -> bool:
    return path.suffix.lower() == ".npz"


def _load(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an npz file; NumPy's own reader takes a damaged shape at its word, and leaves bytes unread."""
    # A device may never end.
    if is_special(path):
        raise FormatError(f"'{path}' is no file: save the arrays to one, and pass that.")
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) != _listed_members(path):
                raise ValueError("some of its arrays are lost")
            if not all(member.filename.endswith(".npy") for member in members):
                raise ValueError("something else than arrays")
            if len({member.filename for member in members}) < len(members):
                raise ValueError("two arrays of one name")
            packed = sum(member.compress_size for member in members)
            if sum(member.file_size for member in members) > max(_BOMB_BYTES, _BOMB_RATIO * packed):
                raise FormatError(
                    f"'{path}' expands more than {_BOMB_RATIO} times, to over {_BOMB_BYTES >> 20} MB. If it is meant "
                    f"to, save it with 'numpy.savez', which does not compress."
                )
            return {member.filename.removesuffix(".npy"): _array(archive.read(member)) for member in members}
    except OSError as error:
        raise FormatError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    except (ValueError, TypeError, SyntaxError, RuntimeError, EOFError, *_DAMAGE) as error:
        reason = " ".join(str(error).split())[:200]
        raise FormatError(f"'{path}' is not an npz file of plain arrays ({reason}); objects are not read.") from error


# The last record of a zip file without a comment.
_END_BYTES = 22


def _listed_members(path: Path) -> int:
    """How many members the end of an archive tells of: a damaged directory hides some, and zipfile does not mind."""
    with path.open("rb") as stream:
        stream.seek(-_END_BYTES, io.SEEK_END)
        return int.from_bytes(stream.read()[10:12], "little")


_DAMAGE = (zipfile.BadZipFile, zlib.error, tokenize.TokenError)


def _array(data: bytes) -> NDArray[Any]:
    """The array of a whole npy file, whose checksum has been compared."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"an array of version {version}")
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read_header(stream)
    # Rows without contents cost no bytes, and could be any number.
    if dtype.hasobject or dtype.itemsize == 0 or 0 in shape[1:] or min(shape, default=0) < 0:
        raise ValueError(f"an array of type {dtype} and shape {shape}")
    if len(data) - stream.tell() != math.prod(shape) * dtype.itemsize:
        raise ValueError("an array of another size than it says")

    return np.frombuffer(data, dtype, offset=stream.tell()).reshape(shape, order="F" if is_fortran else "C")


def _column(path: Path, arrays: dict[str, NDArray[Any]], name: str) -> list[Any]:
    """An array of numbers or texts, one for each node, as plain values."""
    array = arrays[name]
    is_number = array.dtype.kind in "biuf"
    if array.ndim != 1 or not (is_number or array.dtype.kind in "SU") or (is_number and not np.isfinite(array).all()):
        raise FormatError(
            f"'{path}': '{name}' is {array.dtype} of shape {array.shape}; wanted a number or a text for each node."
        )

    return [each.decode("latin-1") for each in array.tolist()] if array.dtype.kind == "S" else array.tolist()


def _ids(path: Path, arrays: dict[str, NDArray[Any]]) -> list[Any] | None:
    """What the rows are about; None if they stand in the order of the nodes."""
    if IDS in arrays:
        return _column(path, arrays, IDS)
    if other := sorted(arrays.keys() - ARRAYS):
        raise FormatError(
            f"'{path}' has an array '{other[0][:80]}', which is not read, and no 'ids': call that of the nodes 'ids', "
            f"or leave it out if rows stand in the order of the nodes."
        )

    return None


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
        x = csr_rows(arrays["data"], arrays["indices"], arrays["indptr"], arrays["shape"].tolist())
    except (ValueError, TypeError, LookupError) as error:
        raise FormatError(f"'{path}' is no sparse matrix of numbers in CSR form ({error}); save it as that.") from error

    return x
