"""A file for HDF5 to write to that never fails it, and calls of HDF5 that nothing disturbs."""

from __future__ import annotations

import io
import mmap
import os
import signal
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

__all__ = ["PatientFile", "has_endless_heap", "undisturbed"]

_SIGNATURE = b"GCOL\x01\0\0\0"
_OBJECT = struct.Struct("<HHIQ")


def has_endless_heap(stream: BinaryIO) -> bool:
    """Whether a heap of the file has an object that ends where it starts."""
    try:
        data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (ValueError, OSError):
        # An empty file, or one that is no file: it holds no heap.
        return False
    with data:
        at = data.find(_SIGNATURE)
        while at >= 0:
            if _is_endless(data, at):
                return True
            at = data.find(_SIGNATURE, at + 1)

    return False


def _is_endless(data: mmap.mmap, at: int) -> bool:
    size = int.from_bytes(data[at + 8 : at + 16], "little")
    end, at = min(at + size, len(data)), at + 16
    while at + _OBJECT.size <= end:
        index, _, _, length = _OBJECT.unpack_from(data, at)
        # Object 0 is the free space and counts its own header; the others are padded to eight bytes, modulo 2⁶⁴.
        step = length if index == 0 else (_OBJECT.size + length + 7 & ~7) % 2**64
        if step == 0:
            return True
        at += step

    return False


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let signals that raise wait: what is raised while HDF5 calls our file is dropped, and the file with it."""
    noted: list[int] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        # By name, as not every system has all of them.
        for number in (getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)):
            if callable(signal.getsignal(number)):
                handlers[number] = signal.signal(number, lambda number, frame: noted.append(number))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    for number in noted:
        handlers[number](number, None)


class PatientFile(io.RawIOBase):
    """The file of an open stream; what the system refuses is kept as ``error`` to be raised when HDF5 is done.

    On a disk that is full HDF5 itself can neither go on nor close its file, and takes the whole process down with it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.error: OSError | None = None
        self._descriptor = stream.fileno()
        self._place = 0

    def check(self) -> None:
        """Raise what the system has refused so far."""
        if self.error is not None:
            raise self.error

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            offset += os.fstat(self._descriptor).st_size
        self._place = offset + (self._place if whence == os.SEEK_CUR else 0)

        return self._place

    def tell(self) -> int:
        return self._place

    def readinto(self, buffer: Any) -> int:
        data = os.pread(self._descriptor, len(buffer), self._place)
        buffer[: len(data)] = data
        self._place += len(data)

        return len(data)

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        while left and self.error is None:
            try:
                done = os.pwrite(self._descriptor, left, self._place)
            except OSError as error:
                self.error = error
                break
            self._place += done
            left = left[done:]

        return len(data)

    def truncate(self, size: int | None = None) -> int:
        size = self._place if size is None else size
        try:
            os.ftruncate(self._descriptor, size)
        except OSError as error:
            self.error = self.error or error

        return size
