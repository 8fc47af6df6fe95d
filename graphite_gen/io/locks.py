"""Locks that die with the process that holds them, so that one that was killed leaves none behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from ..errors import CheckpointError, OutputError

try:
    import fcntl
except ImportError:  # Not every system has it: there, no one is kept out.
    fcntl = None  # type: ignore[assignment]

__all__ = ["HIDDEN", "Hold", "claimed", "is_claimed", "take"]

HIDDEN = ".graphite-gen."
"""How the names begin of what we leave in a folder only while we work there, or were killed."""

LOCK = f"{HIDDEN}lock"


class Hold(Enum):
    """What came of trying to lock a file."""

    OURS = "ours"
    TAKEN = "taken"
    UNKNOWN = "unknown"  # The file system has no locks.


def take(descriptor: int, *, shared: bool = False) -> Hold:
    """Lock an open file or folder without waiting, until it is closed; others may share it, or none."""
    if fcntl is None:
        return Hold.UNKNOWN
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        return Hold.TAKEN if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else Hold.UNKNOWN

    return Hold.OURS


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Keep a folder to one training; it is made if need be, and gone again if nothing has come into it.

    Raises:
        CheckpointError: Another training is at work there.
        OutputError: The folder cannot be made or written to.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    path = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = _lock(path)
    except OSError as error:
        _remove_empty(missing)
        raise OutputError(f"Cannot write '{folder}': {error.strerror}. Choose another folder with '--out'.") from error
    try:
        yield
    finally:
        # While it is still ours: after that it may be another's.
        with suppress(OSError):
            path.unlink()
        os.close(descriptor)
        _remove_empty(missing)


def is_claimed(folder: Path) -> bool:
    """Whether a training is at work in a folder, as far as the system tells."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        # Shared, as another who only looks is no training.
        return take(descriptor, shared=True) is Hold.TAKEN
    finally:
        os.close(descriptor)


def _lock(path: Path) -> int:
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if take(descriptor) is Hold.TAKEN:
            os.close(descriptor)
            raise CheckpointError(
                f"Another training is at work in '{path.parent}'. Wait for its end or stop it, or train under another "
                f"'--name'."
            )
        # Whoever held it before may have taken it away between the two: then it keeps no one out.
        if path.exists() and path.stat().st_ino == os.fstat(descriptor).st_ino:
            return descriptor
        os.close(descriptor)


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()
