"""Files that appear complete or not at all, even if their writer is killed at any moment.

Files are prepared in a hidden folder beside their target, the stage, which their writer locks, and are then renamed.
The stage of a killed writer is not locked: the next writer in the same folder completes or removes it.
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
from typing import BinaryIO

from filelock import FileLock, Timeout

from .locks import HIDDEN, acquire, created

__all__ = ["filling", "is_full", "is_settled", "move_all", "replacing", "staging", "sweep"]

_SUFFIX = ".tmp"
# Inside a stage. Once the plan exists, all files of the stage will take their places.
_LOCK, _PLAN, _NEW, _OLD = "lock", "plan.json", "new", "old"


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """A stage inside ``folder``, which is created if needed; both are removed at the end, the folder if it is empty."""
    with created(folder):
        sweep(folder)
        stage, lock = _locked_stage(folder)
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)
            if lock is not None:
                lock.release()


def _locked_stage(folder: Path) -> tuple[Path, FileLock | None]:
    while True:
        stage = folder / f"{HIDDEN}{secrets.token_hex(8)}{_SUFFIX}"
        stage.mkdir(mode=0o700)
        # Another process may sweep the stage before it is locked: then try again.
        with suppress(Timeout, FileNotFoundError):
            return stage, acquire(stage / _LOCK)


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A stream whose bytes become the target once all of them are on disk, or never."""
    with staging(target.parent) as stage:
        with (stage / _NEW).open("x+b") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        (stage / _NEW).replace(target)
        _sync(target.parent)


@contextmanager
def filling(folder: Path, replaced: Callable[[], Sequence[Path]]) -> Iterator[Path]:
    """A hidden folder whose files all appear in ``folder`` at the end, or none of them.

    A new folder appears by one rename. In an existing folder the files are moved one by one, according to a plan that
    is written first: if their writer is killed, the next writer completes the plan. When all new files are written,
    ``replaced`` is called and returns the files to be replaced.
    """
    is_new = not folder.exists()
    # The stage of a writer that was killed after creating this folder is beside it.
    sweep(folder.parent)
    with staging(folder.parent if is_new else folder) as stage:
        new = stage / _NEW
        new.mkdir()
        (stage / _OLD).mkdir()
        yield new
        plan = {"old": [path.name for path in replaced()], "new": sorted(path.name for path in new.iterdir())}
        if is_new:
            new.rename(folder)
            _sync(folder.parent)
            return
        with replacing(stage / _PLAN) as stream:
            stream.write(json.dumps(plan).encode())
        try:
            move_all(_planned_moves(stage))
        finally:
            (stage / _PLAN).unlink()


def _planned_moves(stage: Path) -> list[tuple[Path, Path]]:
    """The moves of a plan, all of them between the stage and the folder around it; ValueError for any other plan."""
    plan = json.loads((stage / _PLAN).read_text(encoding="utf-8"))
    folder, new, old = stage.parent, stage / _NEW, stage / _OLD
    names = [*plan["old"], *plan["new"]]
    if new.is_symlink() or old.is_symlink() or not all(isinstance(n, str) and n == Path(n).name for n in names):
        raise ValueError("not a plan of this program")

    return [(folder / name, old / name) for name in plan["old"]] + [(new / name, folder / name) for name in plan["new"]]


def move_all(moves: Sequence[tuple[Path, Path]]) -> None:
    """Rename files in order, skipping those already renamed; if one fails, all get their old names back."""

    def move(pairs: Sequence[tuple[Path, Path]]) -> None:
        for old, new in pairs:
            if os.path.lexists(old) and not os.path.lexists(new):
                old.rename(new)

    try:
        move(moves)
    except BaseException:
        move([(new, old) for old, new in reversed(moves)])
        raise


def is_full(error: OSError) -> bool:
    """Whether the error says that there is no space left."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_settled(folder: Path) -> bool:
    """Whether the folder has no plan that is only partly carried out."""
    return not any(folder.glob(f"{HIDDEN}*{_SUFFIX}/{_PLAN}"))


def sweep(folder: Path) -> None:
    """Complete or remove the stages of killed writers in a folder; those still in use stay."""
    with suppress(OSError):
        for stage in list(folder.glob(f"{HIDDEN}*{_SUFFIX}")):
            with suppress(OSError, ValueError, KeyError, TypeError):
                _remove_abandoned(stage)


def _remove_abandoned(stage: Path) -> None:
    # Other users may write to the same folder: their stages are theirs to remove.
    if stage.is_symlink() or stage.stat().st_uid != os.getuid():
        return
    lock = acquire(stage / _LOCK)
    if lock is None:
        return
    try:
        if (stage / _PLAN).exists():
            move_all(_planned_moves(stage))
            (stage / _PLAN).unlink()
        shutil.rmtree(stage)
    finally:
        lock.release()


def _sync(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
