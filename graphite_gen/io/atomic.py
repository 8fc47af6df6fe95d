"""Files that appear whole or not at all, one or many of them, also where their writer is killed at any moment.

What is being written has a hidden name and is locked by its writer. What a killed one has left is not, and the next
that writes into the same folder takes it away.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from .locks import HIDDEN, Hold, take

__all__ = ["filling", "is_full", "is_settled", "move_all", "replacing", "staging", "sweep"]

_SUFFIX = ".tmp"
# What stands in a stage once all of its files are to take their places: then there is no way but on.
_PLAN, _NEW, _OLD = "plan.json", "new", "old"


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes become the target when all of them are on the disk, or never.

    They go to a hidden file beside the target that takes its name at the end.

    Raises:
        OSError: The target cannot be written.
    """
    sweep(target.parent)
    temporary, stream = _held(target.parent, lambda path: path.open("x+b"))
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            # Before it is closed: what no one holds may be taken away.
            temporary.replace(target)
        _to_disk(target.parent)
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
        sweep(folder)
        stage, held = _held(folder, _open_folder)
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)
            held.close()
    except BaseException:
        for place in missing:
            with suppress(OSError):
                place.rmdir()
        raise


@contextmanager
def filling(folder: Path, replaced: Callable[[], Sequence[Path]]) -> Iterator[Path]:
    """A hidden folder whose files all appear in a folder at the end, or none of them.

    A folder that is not there yet appears in one move. Where there is one the files are moved in turn, by a plan that
    is kept beside them: if their writer is killed, the next that comes by follows it to the end.

    Arguments:
        folder: Where the files go.
        replaced: The files there that they take the place of, asked for when all are written.

    Raises:
        OSError: The folder cannot be made or written to.
    """
    is_new = not folder.exists()
    # Where one was killed that had just made this folder, its stage is beside it.
    sweep(folder.parent)
    with staging(folder.parent if is_new else folder) as stage:
        new, old = stage / _NEW, stage / _OLD
        new.mkdir()
        old.mkdir()
        yield new
        aside = [path.name for path in replaced()]
        if is_new:
            new.rename(folder)
            _to_disk(folder.parent)
            return
        names = sorted(os.listdir(new))  # noqa: PTH208
        with replacing(stage / _PLAN) as stream:
            stream.write(json.dumps({"old": aside, "new": names}).encode())
        try:
            move_all([(folder / name, old / name) for name in aside] + [(new / name, folder / name) for name in names])
        finally:
            (stage / _PLAN).unlink()


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


def is_full(error: OSError) -> bool:
    """Whether the system has refused to write for want of room."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_settled(folder: Path) -> bool:
    """Whether no set of files is half moved into a folder. Whoever only reads leaves it at that."""
    return not any(folder.glob(f"{HIDDEN}*{_SUFFIX}/{_PLAN}"))


def sweep(folder: Path) -> None:
    """Take away what killed writers have left in a folder; what someone is still writing stays."""
    with suppress(OSError), os.scandir(folder) as entries:
        left = [entry for entry in entries if entry.name.startswith(HIDDEN) and entry.name.endswith(_SUFFIX)]
        for entry in left:
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder or entry.is_file(follow_symlinks=False):
                with suppress(OSError, ValueError, KeyError, TypeError):
                    _remove_abandoned(Path(entry.path), is_folder)


def _remove_abandoned(path: Path, is_folder: bool) -> None:
    descriptor = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        # In a folder that others write to as well, only our own is ours to clear up.
        if os.fstat(descriptor).st_uid != os.getuid() or take(descriptor) is not Hold.OURS:
            return None
        if not is_folder:
            return path.unlink()
        if (path / _PLAN).exists():
            _follow_plan(path)
        shutil.rmtree(path)
    finally:
        os.close(descriptor)


def _follow_plan(stage: Path) -> None:
    """Make the moves that a killed writer has not come to, within the folder and its stage alone.

    Raises:
        ValueError: It is no plan of ours.
    """
    plan = json.loads((stage / _PLAN).read_text(encoding="utf-8"))
    folder, new, old = stage.parent, stage / _NEW, stage / _OLD
    left = set(os.listdir(new))  # noqa: PTH208
    names = [*plan["old"], *plan["new"]]
    is_ours = all(isinstance(name, str) and name == Path(name).name for name in names) and left <= set(plan["new"])
    if not is_ours or new.is_symlink() or old.is_symlink():
        raise ValueError("It is no plan of ours.")
    if left == set(plan["new"]):
        for name in plan["old"]:
            if os.path.lexists(folder / name):
                (folder / name).rename(old / name)
    for name in left:
        (new / name).rename(folder / name)
    (stage / _PLAN).unlink()


class _Folder:
    """An open folder, to hold a lock on."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDONLY)

    def fileno(self) -> int:
        return self._descriptor

    def close(self) -> None:
        os.close(self._descriptor)


def _open_folder(path: Path) -> _Folder:
    path.mkdir(mode=0o700)

    return _Folder(path)


def _held(folder: Path, make: Callable[[Path], Any]) -> tuple[Path, Any]:
    """Something new under a hidden name, which is locked."""
    while True:
        path = folder / f"{HIDDEN}{secrets.token_hex(8)}{_SUFFIX}"
        made = make(path)
        # Someone who sweeps may have come between the two, and taken it for left behind.
        if take(made.fileno()) is not Hold.TAKEN and path.exists():
            return path, made
        made.close()


def _to_disk(folder: Path) -> None:
    """Have the names in a folder written to the disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
