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
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from filelock import Timeout

from .locks import HIDDEN, acquired, created

__all__ = ["filling", "is_full", "is_settled", "move_all", "replacing", "staging", "sweep"]

_SUFFIX = ".tmp"
# Inside a stage. Once the plan exists, all files of the stage will take their places.
_LOCK, _PLAN, _NEW, _OLD = "lock", "plan.json", "new", "old"


@contextmanager
def staging(folder: Path) -> Iterator[Path]:
    """A stage inside ``folder``, which is created if needed; both are removed at the end, the folder if it is empty.

    A stage that still has a plan stays: it may hold the only copy of replaced files, and the next sweep completes it.
    """
    with created(folder), ExitStack() as stack:
        sweep(folder)
        stage = _locked_stage(folder, stack)
        try:
            yield stage
        finally:
            if not os.path.lexists(stage / _PLAN):
                shutil.rmtree(stage, ignore_errors=True)


def _locked_stage(folder: Path, stack: ExitStack) -> Path:
    while True:
        stage = folder / f"{HIDDEN}{secrets.token_hex(8)}{_SUFFIX}"
        stage.mkdir(mode=0o700)
        # Another process may sweep the stage before it is locked: then try again.
        with suppress(Timeout, FileNotFoundError):
            stack.enter_context(acquired(stage / _LOCK))
            return stage


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

    Raises:
        FileExistsError: Another file appeared under the name of a new one.
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
        try:
            with replacing(stage / _PLAN) as stream:
                stream.write(json.dumps(plan).encode())
        except BaseException:
            # Nothing has moved yet, so nothing is to be completed.
            (stage / _PLAN).unlink(missing_ok=True)
            raise
        aside, into = _planned_moves(stage)
        move_all([*aside, *into], (stage / _PLAN).unlink)


_Moves = list[tuple[Path, Path]]


def _planned_moves(stage: Path) -> tuple[_Moves, _Moves]:
    """The moves of a plan: old files from the folder into the stage, then new ones back; ValueError for other plans."""
    plan = json.loads((stage / _PLAN).read_text(encoding="utf-8"))
    folder, new, old = stage.parent, stage / _NEW, stage / _OLD
    names = [*plan["old"], *plan["new"]]
    if new.is_symlink() or old.is_symlink() or not all(isinstance(n, str) and n == Path(n).name for n in names):
        raise ValueError("not a plan of this program")

    aside = [(folder / name, old / name) for name in plan["old"]]

    return aside, [(new / name, folder / name) for name in plan["new"]]


def move_all(moves: Sequence[tuple[Path, Path]], settled: Callable[[], object] = lambda: None) -> None:
    """Rename files in order, skipping those that are gone; if one fails, all get their old names back.

    ``settled`` is called when all files have their new names, or all their old names; not if moving back fails too.

    Raises:
        FileExistsError: A new name is taken.
    """
    tried: _Moves = []
    try:
        for old, new in moves:
            if os.path.lexists(old):
                _refuse_existing(new)
                tried.append((old, new))
                old.rename(new)
    except BaseException:
        # The last one tried may have failed before or after it was renamed.
        for old, new in reversed(tried):
            if os.path.lexists(new):
                _refuse_existing(old)
                new.rename(old)
        settled()
        raise
    settled()


def _refuse_existing(path: Path) -> None:
    # A rename would replace the file without a word.
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))


def _complete(stage: Path) -> None:
    """Carry out the rest of a plan. If it fails, the plan stays for the next sweep."""
    aside, into = _planned_moves(stage)
    waiting = {target for source, target in into if os.path.lexists(source)}
    arrived = {target for _, target in into} - waiting
    for source, target in aside:
        # What has the name of an old file may be the new one already, or a file that appeared later.
        if source not in arrived and os.path.lexists(source) and not os.path.lexists(target):
            source.rename(target)
    for source, target in into:
        if target in waiting:
            source.replace(target)
    (stage / _PLAN).unlink()


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
    facts = stage.lstat()
    # Other users may write to the same folder: their stages are theirs to remove.
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
        return
    with acquired(stage / _LOCK) as is_locked:
        if is_locked:
            if (stage / _PLAN).exists():
                _complete(stage)
            shutil.rmtree(stage)


def _sync(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
