"""Arrays, sparse matrices and lists out of pickle files, without running anything they ask for.

A pickle is a program for a small stack machine. Ours knows the instructions that build numbers, texts, lists and dicts,
and instead of calling what a file names it looks the name up among a handful of stand-ins that only note what was
meant. Any other name or instruction is refused.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..errors import FormatError
from ..io.files import is_special
from .annotations import csr_rows

__all__ = ["read_plain"]


def read_plain(path: Path) -> Any:
    """What a pickle file holds: an array, a CSR matrix, or lists and dicts of numbers and texts.

    Raises:
        FormatError: The file cannot be read, is damaged, or holds anything else.
    """
    # A device may never end.
    if is_special(path):
        raise FormatError(f"'{path}' is no file; fetch it again.")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FormatError(f"'{path}' cannot be read: {error.strerror or error}.") from error
    try:
        value = _Machine(data).run()

        return value.finished() if isinstance(value, _Unfinished) else value
    except _RefusedError as error:
        raise FormatError(
            f"'{path}' holds {str(error)[:200]}, which is not read: only arrays, sparse matrices, lists and dicts are."
        ) from None
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, struct.error) as error:
        raise FormatError(f"'{path}' is damaged ({str(error)[:200]}); fetch it again.") from error


class _RefusedError(Exception):
    """Something that is no plain data."""


_KNOWN = {
    ("numpy.core.multiarray", "_reconstruct"): "array",
    ("numpy._core.multiarray", "_reconstruct"): "array",
    ("numpy", "ndarray"): "ndarray",
    ("numpy", "dtype"): "dtype",
    ("scipy.sparse.csr", "csr_matrix"): "csr",
    ("scipy.sparse._csr", "csr_matrix"): "csr",
    ("scipy.sparse._csr", "csr_array"): "csr",
    ("copy_reg", "_reconstructor"): "object",
    ("copyreg", "_reconstructor"): "object",
    ("__builtin__", "object"): "base",
    ("builtins", "object"): "base",
    ("collections", "defaultdict"): "dict",
    ("__builtin__", "list"): "list",
    ("builtins", "list"): "list",
    ("_codecs", "encode"): "encode",
}


class _Name:
    """A class or function that a file names; the ones we know, by what they stand for."""

    def __init__(self, module: str, name: str) -> None:
        try:
            self.meaning = _KNOWN[module, name]
        except KeyError:
            raise _RefusedError(f"a '{module}.{name}'") from None

    def called(self, arguments: tuple[Any, ...]) -> Any:
        """What a call would give, or an unfinished thing that its state will complete."""
        if self.meaning == "dict":
            return {}
        if self.meaning == "encode":
            text, encoding = arguments
            if encoding not in ("latin1", "latin-1"):
                raise _RefusedError(f"bytes in '{encoding}'")
            return text.encode("latin-1")
        if self.meaning == "dtype":
            return _Unfinished("dtype", arguments[0])
        if self.meaning == "array":
            return _Unfinished("array")
        if self.meaning in ("object", "csr"):
            # Python 2 asks for an object of the class it names first.
            kind = arguments[0] if self.meaning == "object" else self
            if isinstance(kind, _Name) and kind.meaning == "csr":
                return _Unfinished("csr")

        raise _RefusedError(f"a call of '{self.meaning}'")


class _Unfinished:
    """An array, its type, or a sparse matrix, before and after its state is known."""

    def __init__(self, kind: str, detail: Any = None) -> None:
        self.kind = kind
        self.detail = detail
        self.state: Any = None

    def finished(self) -> Any:
        """The thing itself."""
        if self.kind == "dtype":
            return self._dtype()
        if self.kind == "array":
            return self._array()

        return self._csr()

    def _dtype(self) -> np.dtype[Any]:
        code = _text(self.detail)
        order = _text(self.state[1]) if self.state else "="
        # Types of numbers alone: 'O' would be objects.
        if code[:1] not in ("b", "i", "u", "f") or not code[1:].isdigit() or order not in ("<", ">", "=", "|"):
            raise _RefusedError(f"an array of type '{code}'")

        return np.dtype(code).newbyteorder(order)  # type: ignore[arg-type]

    def _array(self) -> NDArray[Any]:
        _, shape, kind, is_fortran, content = self.state
        dtype = kind.finished()
        data = content.encode("latin-1") if isinstance(content, str) else content
        if not isinstance(data, bytes):
            raise _RefusedError("an array of objects")
        if len(data) != dtype.itemsize * int(np.prod(shape, dtype=np.float64)):
            raise ValueError("an array of another size than it says")

        return np.frombuffer(data, dtype).reshape(shape, order="F" if is_fortran else "C")

    def _csr(self) -> sparse.csr_array:
        state = {_text(key): value for key, value in self.state.items()}
        data, indices, indptr = (state[name].finished() for name in ("data", "indices", "indptr"))

        return csr_rows(data, indices, indptr, state["_shape"])


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


_MARK = object()


class _Machine:
    """The stack machine, less every instruction that could do harm."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        """Follow the instructions to the end."""
        while True:
            code = self._take(1)
            if code == b".":
                return self._stack.pop()
            step = _STEPS.get(code)
            if step is None:
                raise _RefusedError(f"the instruction {code!r}")
            step(self)

    def _take(self, count: int) -> bytes:
        if self._at + count > len(self._data):
            raise ValueError("it ends too soon")
        self._at += count

        return self._data[self._at - count : self._at]

    def _line(self) -> bytes:
        end = self._data.index(b"\n", self._at)
        line, self._at = self._data[self._at : end], end + 1

        return line

    def _number(self, layout: str) -> Any:
        return struct.unpack("<" + layout, self._take(struct.calcsize("<" + layout)))[0]

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _to_mark(self) -> list[Any]:
        at = len(self._stack) - 1 - self._stack[::-1].index(_MARK)
        items, self._stack[at:] = self._stack[at + 1 :], []

        return items

    def _pop(self, count: int) -> list[Any]:
        if len(self._stack) < count:
            raise ValueError("too little on its stack")
        items, self._stack[-count:] = self._stack[-count:], []

        return items

    def _reduce(self) -> None:
        function, arguments = self._pop(2)
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise _RefusedError("a call of something else")
        self._push(function.called(arguments))

    def _build(self) -> None:
        (state,) = self._pop(1)
        target = self._stack[-1]
        if not isinstance(target, _Unfinished):
            raise _RefusedError("an object of its own")
        target.state = state

    def _global(self) -> None:
        module, name = self._line().decode("ascii"), self._line().decode("ascii")
        self._push(_Name(module, name))

    def _stack_global(self) -> None:
        module, name = self._pop(2)
        self._push(_Name(_text(module), _text(name)))

    def _set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise ValueError("items for what is no dict")
        target.update(zip(items[::2], items[1::2], strict=True))

    def _extend(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise ValueError("items for what is no list")
        target.extend(items)

    def _int_line(self) -> None:
        line = self._line()
        self._push(line == b"01" if line in (b"00", b"01") else int(line))

    def _text_line(self) -> None:
        line = self._line()
        if len(line) < 2 or line[:1] not in (b"'", b'"') or line[-1:] != line[:1]:
            raise ValueError("a text without quotes")
        # Python 2 wrote bytes with backslashes.
        self._push(codecs.escape_decode(line[1:-1])[0].decode("latin-1"))

    def _long(self, size: int) -> None:
        self._push(int.from_bytes(self._take(size), "little", signed=True))

    def _tuple(self, count: int) -> None:
        self._push(tuple(self._pop(count)))

    def _keep(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def _mark_dict(self) -> None:
        items = self._to_mark()
        self._push(dict(zip(items[::2], items[1::2], strict=True)))


_Step = Callable[[_Machine], Any]

_STEPS: dict[bytes, _Step] = {
    b"\x80": lambda m: m._take(1),  # the protocol
    b"\x95": lambda m: m._take(8),  # the length of a frame
    b"(": lambda m: m._push(_MARK),
    b"0": lambda m: m._pop(1),
    b"1": lambda m: m._to_mark(),
    b"N": lambda m: m._push(None),
    b"\x88": lambda m: m._push(True),
    b"\x89": lambda m: m._push(False),
    b"I": _Machine._int_line,
    b"L": lambda m: m._push(int(m._line().rstrip(b"L"))),
    b"F": lambda m: m._push(float(m._line())),
    b"J": lambda m: m._push(m._number("i")),
    b"K": lambda m: m._push(m._number("B")),
    b"M": lambda m: m._push(m._number("H")),
    b"\x8a": lambda m: m._long(m._number("B")),
    b"G": lambda m: m._push(struct.unpack(">d", m._take(8))[0]),
    b"S": _Machine._text_line,
    b"V": lambda m: m._push(m._line().decode("raw_unicode_escape")),
    b"T": lambda m: m._push(m._take(m._number("I")).decode("latin-1")),
    b"U": lambda m: m._push(m._take(m._number("B")).decode("latin-1")),
    b"X": lambda m: m._push(m._take(m._number("I")).decode("utf-8", "surrogatepass")),
    b"\x8c": lambda m: m._push(m._take(m._number("B")).decode("utf-8", "surrogatepass")),
    b"B": lambda m: m._push(m._take(m._number("I"))),
    b"C": lambda m: m._push(m._take(m._number("B"))),
    b"\x8e": lambda m: m._push(m._take(m._number("Q"))),
    b")": lambda m: m._push(()),
    b"\x85": lambda m: m._tuple(1),
    b"\x86": lambda m: m._tuple(2),
    b"\x87": lambda m: m._tuple(3),
    b"t": lambda m: m._push(tuple(m._to_mark())),
    b"]": lambda m: m._push([]),
    b"l": lambda m: m._push(m._to_mark()),
    b"a": lambda m: m._extend(m._pop(1)),
    b"e": lambda m: m._extend(m._to_mark()),
    b"}": lambda m: m._push({}),
    b"d": _Machine._mark_dict,
    b"s": lambda m: m._set_items(m._pop(2)),
    b"u": lambda m: m._set_items(m._to_mark()),
    b"p": lambda m: m._keep(int(m._line())),
    b"q": lambda m: m._keep(m._number("B")),
    b"r": lambda m: m._keep(m._number("I")),
    b"\x94": lambda m: m._keep(len(m._memo)),
    b"g": lambda m: m._push(m._memo[int(m._line())]),
    b"h": lambda m: m._push(m._memo[m._number("B")]),
    b"j": lambda m: m._push(m._memo[m._number("I")]),
    b"c": _Machine._global,
    b"\x93": _Machine._stack_global,
    b"R": _Machine._reduce,
    b"\x81": _Machine._reduce,  # a class called with arguments, which for ours is the same
    b"b": _Machine._build,
}
