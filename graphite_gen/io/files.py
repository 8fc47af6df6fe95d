"""Opening files for reading, and writing them completely or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from ..errors import FormatError, OutputError
from .atomic import filling, is_full, replacing
from .build import Context

__all__ = [
    "MAX_LINE",
    "Template",
    "check_not_pickle",
    "check_target",
    "decoded",
    "is_special",
    "is_template",
    "lines",
    "open_input",
    "open_output",
]

MAX_LINE = 1 << 28
"""Longest line that is read, in bytes; a graph with 50 000 nodes in graph6 fits."""

_BOMB_BYTES, _BOMB_RATIO = 1 << 24, 500
_PICKLE = re.compile(r".*\.g?(pkl|pickle)|ind\.[^.]+(\.((t|all)?[xy]|graph|test\.index))?")
# The text before and after the only field; braces in it are doubled.
_TEMPLATE = re.compile(r"((?:[^{}]|\{\{|\}\})*)\{index(?::0?[0-9]{0,2}d?)?\}((?:[^{}]|\{\{|\}\})*)")


class _Expanded(gzip.GzipFile):
    """The contents of a gzip stream; damage and decompression bombs raise :class:`FormatError`."""

    def __init__(self, compressed: BinaryIO, context: Context) -> None:
        self._source = _Counted(compressed)
        super().__init__(fileobj=self._source, mode="rb")  # type: ignore[call-overload]
        self._context = context
        self._bytes = 0

    def readinto(self, buffer: Any) -> int:
        try:
            data = self.read1(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._error(f"the gzip data are damaged or truncated ({error}).") from error
        self._bytes += len(data)
        if self._bytes > _BOMB_BYTES and self._bytes > _BOMB_RATIO * self._source.count:
            raise self._error(f"the gzip data expand more than {_BOMB_RATIO} times; decompress the file first.")
        buffer[: len(data)] = data

        return len(data)

    def _error(self, problem: str) -> FormatError:
        return self._context.error(f"byte {self._source.count}", problem)


class _Counted:
    """A stream that counts the bytes read from it; stdin has no position."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.count += len(data)

        return data


@contextmanager
def open_input(path: Path | None, context: Context) -> Iterator[io.BufferedReader[Any]]:
    """The bytes of a file, or of stdin for None, decompressed if they are gzip data."""
    try:
        with nullcontext(_buffer(sys.stdin)) if path is None else _opened(path) as stream:
            buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
            packed = buffered.peek(2)[:2] == b"\x1f\x8b"
            if path is not None and path.suffix.lower() == ".gz" and not packed and buffered.peek(1):
                raise context.error("byte 0", "no gzip data, although the name ends in '.gz'.")
            yield io.BufferedReader(_Expanded(buffered, context), 1 << 16) if packed else buffered
    except FileNotFoundError:
        problem = f"'{context.name}' does not exist; expected a file of graphs, a folder of such files, or '-'."
        raise FormatError(problem, reason="input-missing", path=context.name) from None
    except OSError as error:
        raise FormatError(f"'{context.name}' cannot be read: {error.strerror or error}.") from error


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except ValueError as error:
        # A null character or an unpaired surrogate in the name.
        raise OSError(errno.EINVAL, str(error)) from error


def lines(stream: BinaryIO, context: Context) -> Iterator[tuple[str, bytes]]:
    """The lines of a stream, stripped, and their positions ``line 1``, ``line 2``, …"""
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise context.damage(f"line {number}", f"longer than the limit of {MAX_LINE} bytes.")
        yield f"line {number}", line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()


def decoded(context: Context, where: str, data: bytes) -> str:
    """Bytes decoded from UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise context.error(where, f"not UTF-8 at byte {error.start}; save the file as UTF-8.") from error


@contextmanager
def open_output(target: Path | None, force: bool = False) -> Iterator[BinaryIO]:
    """A stream whose bytes appear at the target when all are written, or never; None is stdout.

    A pipe or a device is written to directly.
    """
    with _output_errors("-" if target is None else target):
        if target is None:
            stdout = _buffer(sys.stdout)
            yield stdout
            stdout.flush()
        elif is_special(target):
            with target.open("wb") as stream:
                yield stream
        else:
            check_target(target, force)
            with replacing(target.resolve()) as file, _packed(file, target) as packed:
                yield packed


def _unwritable(target: Path | str, problem: object) -> OutputError:
    return OutputError(f"'{target}' cannot be written: {problem}.", reason="output-not-writable", path=target)


@contextmanager
def _output_errors(target: Path | str) -> Iterator[None]:
    """Raise errors of the system as :class:`OutputError`."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        problem = error.strerror or error
        raise _unwritable(target, f"{problem}; free some space" if is_full(error) else problem) from error


def _buffer(stream: TextIO | None) -> BinaryIO:
    """The binary buffer of stdin or stdout, which is None if the shell closed it."""
    if stream is None:
        raise OSError(errno.EBADF, "the stream is closed")

    return stream.buffer


def check_target(target: Path, force: bool) -> None:
    """Raise :class:`OutputError` if a target cannot be written, before work is done for it."""
    _check_path(target)
    if target.is_dir():
        problem = f"'{target}' is a folder; expected a file, or a template such as '{target}/{{index:04d}}.graphml'."
        raise OutputError(problem, reason="output-is-folder", path=target)
    if not target.parent.is_dir():
        raise _unwritable(target, f"the folder '{target.parent}' does not exist")
    # A file is renamed into its folder, so it is the folder that must be writable.
    if not os.access(target if is_special(target) else target.resolve().parent, os.W_OK):
        raise _unwritable(target, "permission denied")
    if target.exists() and not force and not is_special(target):
        raise OutputError(f"'{target}' exists.", reason="output-exists", path=target)


def _check_path(target: Path) -> None:
    """Refuse a path that no file can have: too long, with a null character, through a loop of links or a file."""
    try:
        target.stat()
    except (FileNotFoundError, NotADirectoryError):
        file = next((path for path in target.parents if path.exists() and not path.is_dir()), None)
        if file is not None:
            raise _unwritable(target, f"'{file}' is a file, not a folder") from None
    except (OSError, ValueError) as error:
        raise _unwritable(target, error.strerror if isinstance(error, OSError) else error) from error


def check_not_pickle(path: str | Path) -> None:
    """Raise :class:`FormatError` for the name of a pickle, which could run any code, or of one of Planetoid's files."""
    if _PICKLE.fullmatch(Path(path).name.lower()):
        raise FormatError(
            f"'{path}': pickles, such as Planetoid's files, are not read or written; HDF5, GraphML and edge lists are, "
            f"and features and labels in CSV or npz.",
            path=path,
        )


def is_special(target: Path | None) -> bool:
    """Whether the target is a pipe or a device; None is stdout."""
    try:
        return target is None or stat.S_IFMT(target.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR)
    except (OSError, ValueError):
        return False


def _packed(stream: BinaryIO, target: Path) -> AbstractContextManager[BinaryIO]:
    """The stream, compressed if the name of the target ends in ``.gz``."""
    if target.suffix.lower() != ".gz":
        return nullcontext(stream)

    # Without name and time, so that equal graphs give equal files.
    return gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6, mtime=0)  # type: ignore[return-value]


def is_template(target: str | Path) -> bool:
    """Whether a target is meant as a template: its name has a field such as ``{index}``, or a wrong one."""
    return "{index" in str(target) or re.search(r"\{\w*(?::\w*)?\}", Path(target).name) is not None


class Template:
    """A target such as ``out/{index:04d}.graphml``: one file per graph, all of them or none."""

    def __init__(self, target: str) -> None:
        path = Path(target)
        match = _TEMPLATE.fullmatch(path.name)
        if match is None or "{" in str(path.parent):
            raise OutputError(
                f"'{target}' is not a valid template: the file name must contain '{{index}}' or '{{index:04d}}' once, "
                f"and no other field."
            )
        self._folder, self._name = path.parent, path.name
        before, after = (re.escape(text.format()) for text in match.groups())
        self._pattern = re.compile(rf"{before}( *\d+){after}")

    def check(self, force: bool) -> list[Path]:
        """The existing files of the template, which are refused unless ``force`` is True."""
        _check_path(self._folder / self._name.format(index=0))
        try:
            names = ((path, self._pattern.fullmatch(path.name)) for path in sorted(self._folder.iterdir()))
            found = [path for path, match in names if match and self._name.format(index=int(match[1])) == path.name]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unwritable(self._folder, error.strerror or error) from error
        for path in found:
            if path.is_dir():
                raise OutputError(f"'{path}' is a folder; expected a file.", reason="output-is-folder", path=path)
        if found and not force:
            raise OutputError(f"'{found[0]}' exists.", reason="output-exists", path=found[0])

        return found

    @contextmanager
    def files(self, force: bool) -> Iterator[Callable[[], AbstractContextManager[BinaryIO]]]:
        """A function that opens the file of the next graph; at the end they replace all files of the template."""
        indices = count()
        with _output_errors(self._folder), filling(self._folder, lambda: self.check(force)) as new:

            @contextmanager
            def open_next() -> Iterator[BinaryIO]:
                target = self._folder / self._name.format(index=next(indices))
                with _output_errors(target), (new / target.name).open("x+b") as stream, _packed(stream, target) as file:
                    yield file

            yield open_next
