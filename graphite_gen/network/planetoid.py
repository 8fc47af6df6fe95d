"""Planetoid's raw files (Yang et al., 2016): ``ind.NAME.x`` and seven others, six of which are pickles."""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import FormatError
from ..graph import SimpleGraph
from ..io.files import is_special
from .annotations import csr_rows

__all__ = ["is_planetoid", "read_planetoid"]

_NAME = re.compile(r"(ind\.[^.]+)(?:\.(?:x|tx|allx|y|ty|ally|graph|test\.index))?")
VALIDATION = 500
MAX_CITATIONS = 100_000_000
# A file needs about twenty tuples. Deeply nested or shared ones would take exponential time to hash.
MAX_TUPLES = 1000


def is_planetoid(source: str | Path) -> bool:
    """Whether a path is one of Planetoid's files, or their common prefix, as in ``data/ind.cora``."""
    return _NAME.fullmatch(Path(source).name) is not None


def read_planetoid(
    source: str | Path,
) -> tuple[SimpleGraph, sparse.csr_array, list[int | None], list[str | None]]:
    """Citations, features :math:`(n, F)`, labels and public split of a set of files, as in Kipf & Welling (2017).

    ``test.index`` lists the nodes of the test papers in the order of their rows. Citeseer has nodes without rows: they
    have neither features nor labels.
    """
    path = Path(source)
    match = _NAME.fullmatch(path.name)
    assert match is not None
    stem = path.with_name(match[1])

    x, tx, allx = (_part(stem, part, sparse.csr_array, "a CSR matrix") for part in ("x", "tx", "allx"))
    y, ty, ally = (_part(stem, part, np.ndarray, "one-hot rows") for part in ("y", "ty", "ally"))
    tested = _test_index(stem)
    rows_fit = all(a.shape[:1] == b.shape[:1] for a, b in ((x, y), (tx, ty), (allx, ally), (tx, tested)))
    if not rows_fit or tx.shape[1] != allx.shape[1] or any(part.ndim != 2 for part in (y, ty, ally)):
        raise FormatError(f"'{stem}.*' differ in their numbers of rows or columns. Download them again.")

    known = allx.shape[0]
    nodes = max(known, int(tested.max(initial=-1)) + 1)
    rows = np.concatenate([np.arange(known), tested])
    # Node numbers determine what is allocated: a damaged one must not exhaust the memory.
    if nodes > 2 * len(rows):
        raise FormatError(f"'{stem}.test.index' lists node {nodes - 1} of only {len(rows)} known. Download it again.")
    if len(np.unique(rows)) != len(rows) or len(y) + VALIDATION > known:
        raise FormatError(f"'{stem}.test.index' and '{stem}.allx' overlap or are too short. Download them again.")
    if not (np.isfinite(allx.data).all() and np.isfinite(tx.data).all()):
        raise FormatError(f"'{stem}.*' have a feature that is not a finite number. Download them again.")
    stacked = sparse.vstack([allx, tx]).tocoo()
    features = sparse.csr_array((stacked.data, (rows[stacked.row], stacked.col)), shape=(nodes, allx.shape[1]))

    labels: list[int | None] = [None] * nodes
    for node, row in zip(rows.tolist(), np.concatenate([ally, ty]), strict=True):
        labels[node] = int(row.argmax()) if row.any() else None
    split: list[str | None] = [None] * nodes
    split[: len(y)] = ["train"] * len(y)
    split[len(y) : len(y) + VALIDATION] = ["validation"] * VALIDATION
    for node in tested.tolist():
        split[node] = "test"

    return _graph(stem, nodes), features.astype(np.float32), labels, split


def _part(stem: Path, part: str, kind: type, expected: str) -> Any:
    value = read_pickle(stem.with_name(f"{stem.name}.{part}"))
    if not isinstance(value, kind):
        raise FormatError(f"'{stem}.{part}' holds {type(value).__name__}: expected {expected}. Download it again.")

    return value


def _test_index(stem: Path) -> NDArray[np.int64]:
    path = stem.with_name(f"{stem.name}.test.index")
    data = _read(path)
    try:
        tested = np.array([int(word) for word in data.decode("ascii").split()], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise FormatError(f"'{path}' is not a list of nodes ({str(error)[:200]}). Download it again.") from error
    if len(tested) and tested.min() < 0:
        raise FormatError(f"'{path}' lists node {tested.min()}, which is negative. Download it again.")

    return tested


def _graph(stem: Path, nodes: int) -> SimpleGraph:
    """The citations, without directions, duplicates and self-loops."""
    lists = _part(stem, "graph", dict, "neighbour lists")
    # A small file can refer to one list many times.
    if sum(len(near) for near in lists.values() if isinstance(near, list)) > MAX_CITATIONS:
        raise FormatError(f"'{stem}.graph' lists more than {MAX_CITATIONS} neighbours, the supported maximum.")
    try:
        pairs = np.array([(i, j) for i, near in lists.items() for j in near], dtype=np.int64).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError):
        raise FormatError(f"'{stem}.graph' lists neighbours that are not integers. Download it again.") from None
    if len(pairs) and not 0 <= pairs.min() <= pairs.max() < nodes:
        raise FormatError(f"'{stem}.graph' has a node outside 0 to {nodes - 1}. Download it again.")
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)

    return SimpleGraph(nodes, np.unique(pairs, axis=0).astype(np.int32).reshape(-1, 2))


def _read(path: Path) -> bytes:
    # A device may never end.
    if is_special(path):
        raise FormatError(f"'{path}' is not a regular file.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise FormatError(f"'{path}' cannot be read: {error.strerror or error}.") from error


def read_pickle(path: Path) -> Any:
    """Content of a pickle file: an array, a CSR matrix, or lists and dicts of numbers and strings.

    A pickle could run any code. Here every name in it is looked up in a short allow-list of stand-ins that only record
    their state; arrays and matrices are built from that state after checking it.
    """
    data = _read(path)
    try:
        _check_opcodes(data)
        value = _PlainUnpickler(io.BytesIO(data), encoding="latin-1").load()

        return value.build() if isinstance(value, _Stub) else value
    except _RefusedError as error:
        raise FormatError(
            f"'{path}' holds {str(error)[:200]}, which is not read: only arrays, CSR matrices, lists and dicts are."
        ) from None
    except _DAMAGE as error:
        raise FormatError(f"'{path}' is damaged ({str(error)[:200]}). Download it again.") from error


_DAMAGE = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class _RefusedError(Exception):
    """Something other than plain data."""


_TUPLES = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}
_MEMOISING = {"PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"}
# Opcodes for sets, extensions, persistent ids and other objects that Planetoid's files do not have.
_REFUSED = re.compile(
    "EMPTY_SET|FROZENSET|ADDITEMS|DUP|INST|OBJ|EXT[124]|(BIN)?PERSID|NEWOBJ_EX|BYTEARRAY8|(NEXT|READONLY)_BUFFER"
)


def _check_opcodes(data: bytes) -> None:
    """Refuse opcodes that plain data does not need, or that would take excessive memory or time."""
    tuples, memoised, shared, previous = 0, 0, set(), ""
    for opcode, argument, _ in pickletools.genops(data):
        name = opcode.name
        if _REFUSED.fullmatch(name):
            raise _RefusedError(f"the opcode {name}")
        tuples += name in _TUPLES
        if name in _MEMOISING:
            index = memoised if argument is None else argument
            memoised += 1
            # The unpickler allocates memory up to the largest index.
            if index > len(data):
                raise ValueError(f"memo index {index}")
            if previous in _TUPLES:
                shared.add(index)
        elif tuples > MAX_TUPLES or (name in ("GET", "BINGET", "LONG_BINGET") and argument in shared):
            raise _RefusedError("nested or shared tuples")
        previous = name


class _Stub:
    """Stand-in for a class or function that a pickle names; it records its arguments and its state."""

    arguments: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def build(self) -> Any:
        raise _RefusedError("a bare class")


def _text(value: Any, what: str) -> str:
    """Text of a pickle. Lists that share lists would take exponential time to format, even for an error message."""
    if not isinstance(value, (str, bytes)):
        raise _RefusedError(f"{what} {type(value).__name__}")

    return value if isinstance(value, str) else value.decode("latin-1")


class _DType(_Stub):
    def build(self) -> np.dtype[Any]:
        code = _text(self.arguments[0], "an array of type")
        order = _text(self.state[1], "an array with byte order") if self.state else "="
        # Numbers only: 'O' would be objects.
        if re.fullmatch("[biuf][0-9]+", code) is None or order not in ("<", ">", "=", "|"):
            raise _RefusedError(f"an array of type '{code}'")

        return np.dtype(code).newbyteorder(order)  # type: ignore[arg-type]


class _Array(_Stub):
    def build(self) -> NDArray[Any]:
        _, shape, kind, is_fortran, content = self.state
        if not isinstance(kind, _DType) or not isinstance(shape, tuple) or not all(type(n) is int for n in shape):
            raise _RefusedError("an array without a type or shape")
        dtype = kind.build()
        # Python 2, and protocols below 3, store bytes as text.
        data = content.encode("latin-1") if isinstance(content, str) else content
        if not isinstance(data, bytes):
            raise _RefusedError("an array of objects")
        if min(shape, default=0) < 0 or len(data) != dtype.itemsize * math.prod(shape):
            raise ValueError(f"{len(data)} bytes for an array of shape {shape}")

        return np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")


class _Matrix(_Stub):
    def build(self) -> sparse.csr_array:
        data, indices, indptr = (self.state[name].build() for name in ("data", "indices", "indptr"))

        return csr_rows(data, indices, indptr, self.state["_shape"])


class _Dict(dict[Any, Any]):
    """Stand-in for a defaultdict."""

    def __init__(self, *default_factory: Any) -> None:
        super().__init__()

    def __setstate__(self, state: Any) -> None:
        raise _RefusedError("a dict with attributes")


class _Text:
    """Stand-in for ``codecs.encode`` of bytes, which protocols below 3 write as text."""

    def __new__(cls, text: str, encoding: Any) -> Any:
        if _text(encoding, "bytes in") not in ("latin1", "latin-1"):
            raise _RefusedError(f"bytes in '{encoding}'")
        return text

    def __setstate__(self, state: Any) -> None:
        raise _RefusedError("text with attributes")


# By name, in the modules of Python 2 and 3 and of old and new NumPy and SciPy.
_ALLOWED: dict[str, tuple[type, set[str]]] = {
    "_reconstruct": (_Array, {"numpy.core.multiarray", "numpy._core.multiarray"}),
    "ndarray": (_Array, {"numpy"}),
    "dtype": (_DType, {"numpy"}),
    "csr_matrix": (_Matrix, {"scipy.sparse.csr", "scipy.sparse._csr"}),
    "csr_array": (_Matrix, {"scipy.sparse._csr"}),
    # Protocols 0 and 1 create a matrix by _reconstructor(csr_matrix, object, None).
    "_reconstructor": (_Matrix, {"copy_reg", "copyreg"}),
    "object": (_Stub, {"__builtin__", "builtins"}),
    "list": (_Stub, {"__builtin__", "builtins"}),
    "defaultdict": (_Dict, {"collections"}),
    "encode": (_Text, {"_codecs"}),
}


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        stub, modules = _ALLOWED.get(name, (None, set()))
        if module not in modules:
            raise _RefusedError(f"a '{module}.{name}'")

        return stub
