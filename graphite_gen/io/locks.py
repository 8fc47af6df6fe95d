"""Locks on folders. They end with the process that holds them, so a killed process leaves no lock behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from ..errors import CheckpointError, OutputError

__all__ = ["HIDDEN", "LOCK", "acquired", "created", "is_locked", "locked"]

HIDDEN = ".graphite-gen."
"""Prefix of the files and folders that exist only while a process is writing, or after it was killed."""

LOCK = f"{HIDDEN}lock"

# Testing a lock holds it for an instant, so both testing and locking retry for this many seconds.
_RETRY = 0.2
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)


@contextmanager
def acquired(path: Path, timeout: float = 0) -> Iterator[bool]:
    """Create and lock a file; False where the file system has no locks, Timeout if another process holds the lock."""
    # The fallback is a marker file, which would outlive a killed process and count as held.
    lock = FileLock(path, timeout=timeout, fallback_to_soft=False)
    try:
        lock.acquire()
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    try:
        yield lock.is_locked
    finally:
        lock.release()


@contextmanager
def created(folder: Path) -> Iterator[None]:
    """Create a folder and its parents; on leaving, remove those that were created and are still empty."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    finally:
        for place in missing:
            with suppress(OSError):
                place.rmdir()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a run's folder, which is created, and removed again if it is still empty at the end."""
    path = folder / LOCK
    with ExitStack() as stack:
        try:
            stack.enter_context(created(folder))
            stack.enter_context(acquired(path, _RETRY))
        except Timeout:
            pid = _holder(path)
            problem = f"'{folder}' is locked by another run{f' (pid {pid})' if pid else ''}."
            raise CheckpointError(problem, reason="folder-locked", folder=folder, pid=pid) from None
        except OSError as error:
            problem = f"Cannot write '{folder}': {error.strerror or error}."
            raise OutputError(problem, reason="folder-not-writable", path=folder) from error
        with suppress(OSError):
            path.write_text(f"{os.getpid()}\n", encoding="ascii")
        try:
            yield
        finally:
            # While the lock is held: afterwards the file may be another run's.
            with suppress(OSError):
                path.unlink()


def is_locked(folder: Path) -> bool:
    """Whether a run holds the lock of a folder, as far as the file system can tell."""
    path = folder / LOCK
    try:
        with acquired(path, _RETRY) if path.exists() else nullcontext():
            return False
    except Timeout:
        return True
    except OSError:
        return False


def _holder(path: Path) -> int | None:
    """The process id that the holder of a lock has written into it."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
