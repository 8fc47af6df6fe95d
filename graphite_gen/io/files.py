"""Opening files for reading, and writing them whole or not at all."""

from __future__ import annotations

import errno
import gzip
import io
import os
import re
import stat
import string
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from ..errors import FormatError, OutputError
from .atomic import filling, is_full, replacing
from .build import Context

__all__ = ["MAX_LINE", "Template", "check_target", "is_special", "lines", "open_input", "open_output"]

MAX_LINE = 1 << 28
"""The longest line that is read, in bytes; a graph of 50 000 nodes in graph6 fits."""

_GZIP_MAGIC = b"\x1f\x8b"
_BOMB_BYTES, _BOMB_RATIO = 1 << 24, 500


class _Expanded(io.RawIOBase):
    """The contents of a gzip stream, with damage and bombs turned into :class:`FormatError`."""

    def __init__(self, compressed: BinaryIO, context: Context) -> None:
        self._source = _Counted(compressed)
        self._gzip = gzip.GzipFile(fileobj=self._source, mode="rb")  # type: ignore[call-overload]
        self._context = context
        self._bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._gzip.read1(len(buffer))
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._context.error(
                f"byte {self._source.count}", f"the gzip data are damaged or cut short ({error}); fetch the file again."
            ) from error
        self._bytes += len(data)
        if self._bytes > _BOMB_BYTES and self._bytes > _BOMB_RATIO * self._source.count:
            raise self._context.error(
                f"byte {self._source.count}",
                f"the gzip data expand more than {_BOMB_RATIO} times; unpack the file first if that is right.",
            )
        buffer[: len(data)] = data

        return len(data)


class _Counted:
    """A stream that knows how many bytes were read from it; stdin cannot tell."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.count = 0

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(size)
        self.count += len(data)

        return data


@contextmanager
def open_input(path: Path | None, context: Context) -> Iterator[io.BufferedReader[Any]]:
    """The bytes of a file, or of stdin for None, unpacked if they are gzip's."""
    try:
        with nullcontext(_buffer(sys.stdin)) if path is None else _opened(path) as stream:
            buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
            packed = buffered.peek(2)[:2] == _GZIP_MAGIC
            if path is not None and path.suffix.lower() == ".gz" and not packed and buffered.peek(1):
                raise context.error(
                    "byte 0", "no gzip data, as its name says; fetch the file again, or drop the '.gz'."
                )
            yield io.BufferedReader(_Expanded(buffered, context), 1 << 16) if packed else buffered
    except FileNotFoundError:
        raise FormatError(f"'{context.name}' does not exist: pass a file of graphs, a folder of them or '-'.") from None
    except OSError as error:
        raise FormatError(f"'{context.name}' cannot be read: {error.strerror or error}.") from error


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except ValueError as error:
        # A null, or half of a character: no file has such a name.
        raise OSError(errno.EINVAL, str(error)) from error


def lines(stream: BinaryIO, context: Context) -> Iterator[tuple[int, bytes]]:
    """The lines of a stream without their ends, counted from 1."""
    number = 0
    while line := stream.readline(MAX_LINE + 1):
        number += 1
        if len(line) > MAX_LINE:
            raise context.damage(f"line {number}", f"longer than {MAX_LINE} bytes, the most that is read.")
        yield number, line.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else line.strip()


@contextmanager
def open_output(target: Path | None, force: bool = False) -> Iterator[BinaryIO]:
    """A stream whose bytes appear at the target when all is written, or never; None is stdout.

    A pipe or a device is written to directly.

    Raises:
        OutputError: The target exists and ``force`` is not given, or cannot be written.
    """
    with _refusals_of("-" if target is None else target):
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


@contextmanager
def _refusals_of(target: Path | str) -> Iterator[None]:
    """Turn what the system refuses into an error about the target."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        remedy = "; make room there, or pass a file elsewhere." if is_full(error) else "."
        raise OutputError(f"'{target}' cannot be written: {error.strerror or error}{remedy}") from error


def _buffer(stream: TextIO | None) -> BinaryIO:
    """The bytes of stdin or stdout, which Python has not if the shell closed it."""
    if stream is None:
        raise OSError(errno.EBADF, "the shell has closed it; pass a file")

    return stream.buffer


def check_target(target: Path, force: bool) -> None:
    """Refuse a target that cannot be written, before any work is done for it."""
    _check_name(target)
    if target.is_dir():
        raise OutputError(
            f"'{target}' is a folder: pass a file, or '{target}/{{index:04d}}.graphml' for one file each."
        )
    _check_no_file_above(target)
    if not target.parent.is_dir():
        raise OutputError(f"'{target}' cannot be written: the folder '{target.parent}' does not exist; make it first.")
    # Files appear by taking their name in the folder, so that it is the folder that must let itself be written.
    if not os.access(target if is_special(target) else target.resolve().parent, os.W_OK):
        raise OutputError(f"'{target}' cannot be written: you may not write there; pass a file in another folder.")
    if target.exists() and not force and not is_special(target):
        raise OutputError(f"'{target}' exists: pass --force to replace it, or another name.")


def _check_name(target: Path) -> None:
    """Refuse a name that no file can have: too long, with a null, through a loop of links."""
    try:
        target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise OutputError(f"'{target}' cannot be written: {reason}; pass another name.") from error


def _check_no_file_above(target: Path) -> None:
    """Refuse a target in what is no folder and cannot become one."""
    file = next((path for path in target.parents if path.exists() and not path.is_dir()), None)
    if file is not None:
        raise OutputError(f"'{target}' cannot be written: '{file}' is a file and no folder; pass another folder.")


def is_special(target: Path | None) -> bool:
    """Whether the target is a pipe or a device; None is stdout."""
    if target is None:
        return True
    try:
        mode = target.stat().st_mode
    except (OSError, ValueError):
        return False

    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _packed(stream: BinaryIO, target: Path) -> AbstractContextManager[BinaryIO]:
    """The stream, packed if the target's suffix says so."""
    if target.suffix.lower() != ".gz":
        return nullcontext(stream)

    # No name and no time inside, so that equal graphs make equal files.
    return gzip.GzipFile(filename="", fileobj=stream, mode="wb", compresslevel=6, mtime=0)  # type: ignore[return-value]


class Template:
    """A target such as ``out/{index:04d}.graphml``: one file per graph, all of them or none."""

    def __init__(self, target: str) -> None:
        path = Path(target)
        try:
            pieces = list(string.Formatter().parse(path.name))
        except ValueError as error:
            raise OutputError(f"'{target}' is not a template: {error}. Write it like 'out/{{index:04d}}.g6'.") from None
        fields = [(field, spec, conversion) for _, field, spec, conversion in pieces if field is not None]
        if (
            [field for field, _, _ in fields] != ["index"]
            or not re.fullmatch(r"0?[0-9]{0,2}d?", fields[0][1] or "", re.ASCII)
            or fields[0][2] is not None
            or "{" in str(path.parent)
        ):
            raise OutputError(
                f"'{target}' is not a template we fill: its file name holds '{{index}}' or '{{index:04d}}' once, "
                f"and no other field."
            )

        self._folder = path.parent
        self._name = path.name
        self._pattern = re.compile(
            "".join(re.escape(text) + (r"( *\d+)" if field else "") for text, field, _, _ in pieces)
        )

    def check(self, force: bool) -> list[Path]:
        """The files that are in the way, refused unless ``force`` is given."""
        _check_name(self._folder / self._name.format(index=0))
        _check_no_file_above(self._folder / self._name)
        try:
            found = [path for path in sorted(self._folder.iterdir()) if self._gives(path.name)]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise OutputError(f"'{self._folder}' cannot be written: {error.strerror or error}.") from error
        for path in found:
            if path.is_dir():
                raise OutputError(f"'{path}' is a folder: pass another template, or move it away.")
        if found and not force:
            raise OutputError(f"'{found[0]}' exists: pass --force to replace such files, or another folder.")

        return found

    def _gives(self, name: str) -> bool:
        """Whether that is the name of the file of some graph."""
        match = self._pattern.fullmatch(name)

        return match is not None and self._name.format(index=int(match[1])) == name

    @contextmanager
    def files(self, force: bool) -> Iterator[Callable[[], AbstractContextManager[BinaryIO]]]:
        """A function that opens the next graph's file; at the end all take the place of any that were there before.

        Raises:
            OutputError: There are such files and ``force`` is not given, or they cannot be written.
        """
        written = 0
        with _refusals_of(self._folder), filling(self._folder, lambda: self.check(force)) as new:

            @contextmanager
            def open_next() -> Iterator[BinaryIO]:
                nonlocal written
                target = self._folder / self._name.format(index=written)
                written += 1
                with _refusals_of(target), (new / target.name).open("x+b") as stream, _packed(stream, target) as packed:
                    yield packed

            yield open_next
