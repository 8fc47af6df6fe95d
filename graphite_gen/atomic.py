"""Files that appear whole or not at all, one or many of them."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["move_all", "replacing", "staging"]


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes become the target when all of them are on the disk, or never.

    They go to a hidden file beside the target that takes its name at the end.

    Raises:
        OSError: The target cannot be written.
    """
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(target)
    finally:
        # The place it was to be in may itself be gone, or never have been a folder.
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """A hidden folder inside a folder, so on the same file system, to prepare files in before they are moved there.

    It is gone at the end. The folder around it is made if need be, and gone as well if anything fails.

    Raises:
        OSError: The folder cannot be made or written to.
    """
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=".", suffix=".tmp", dir=folder))
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    except BaseException:
        for place in missing:
            with suppress(OSError):
                place.rmdir()
        raise


def move_all(moves: Sequence[tuple[Path, Path]]) -> None:
    """Rename files in turn, each to a name that is free by then; if that fails, all have their old names again.

    Arguments:
        moves: Old and new names, on one file system.

    Raises:
        OSError: A file cannot be renamed.
    """
    started = 0
    try:
        for started, (old, new) in enumerate(moves, 1):  # noqa: B007
            old.rename(new)
    except BaseException:
        for old, new in reversed(moves[:started]):
            # The last one may not have been renamed yet.
            if not os.path.lexists(old):
                new.rename(old)
        raise
