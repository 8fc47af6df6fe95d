"""The real program in forked children: libraries are loaded once, and each child can be struck at a chosen moment."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from graphite_gen.api import fit
from graphite_gen.cli import main as program
from graphite_gen.families.simulate import generate

__all__ = ["Ending", "at_operation", "load_libraries", "operations", "run", "run_for"]

# What Python reports before it is done: an open, a rename, a removal, a new folder.
OPERATIONS = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"})
COUNT = "operations.txt"

Strike = Callable[[], object]


@dataclass(frozen=True)
class Ending:
    """How a child ended.

    Attributes:
        code: Its exit code, as a shell tells it: 137 if it was killed.
        line: The last line it wrote to stderr.
    """

    code: int
    line: str

    @property
    def is_killed(self) -> bool:
        return self.code == 128 + signal.SIGKILL


def load_libraries() -> None:
    """Import what commands import, so that children need not."""
    torch.set_num_threads(1)
    for name in ("training.runs", "io.h5", "io.graphml", "io.g6", "sampling", "network.generation"):
        importlib.import_module(f"graphite_gen.{name}")
    for name in ("train", "sample", "generate", "nll", "evaluate"):
        importlib.import_module(f"graphite_gen.cli.commands.{name}")
    # Some of torch is loaded at the first step of an optimiser alone.
    fit(generate("ego", 4, (4, 6)).graphs, preset_name="paper", epochs=1)


def run(folder: Path, *args: object, before: Strike | None = None) -> Ending:
    """Run a command in a folder to its end.

    Arguments:
        folder: The folder to run in.
        args: The command line.
        before: What the child does first, such as setting up when it is struck.
    """
    return _ending(_start(folder, args, before), folder)


def run_for(seconds: float, folder: Path, *args: object) -> Ending:
    """Run a command in a folder and kill it after some time, if it has not ended by then."""
    child = _start(folder, args, None)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)

    return _ending(child, folder)


def at_operation(folder: Path, number: int, strike: Strike, name: str = "") -> Strike:
    """Set up a child to be struck right before its n-th operation on files in a folder, counted from 0.

    Arguments:
        folder: The folder.
        number: Which operation.
        strike: What happens then.
        name: Count only operations on files of that name.
    """

    def set_up() -> None:
        left = [number]

        def hook(event: str, values: tuple[Any, ...]) -> None:
            if not _concerns(event, values, folder, name):
                return
            left[0] -= 1
            if left[0] == -1:
                strike()

        sys.addaudithook(hook)

    return set_up


def operations(folder: Path, *args: object) -> int:
    """How many operations on files in a folder a command makes when nothing strikes it."""
    count = 0

    def set_up() -> None:
        def hook(event: str, values: tuple[Any, ...]) -> None:
            nonlocal count
            if _concerns(event, values, folder):
                count += 1

        sys.addaudithook(hook)

    def report() -> None:
        (folder.parent / COUNT).write_text(str(count))

    ending = _ending(_start(folder, args, set_up, report), folder)
    assert ending.code == 0, ending

    return int((folder.parent / COUNT).read_text())


def _concerns(event: str, values: tuple[Any, ...], folder: Path, name: str = "") -> bool:
    """Whether an event is an operation on a file in a folder."""
    if event not in OPERATIONS:
        return False
    given = values[:2] if event == "os.rename" else values[:1]
    paths = [Path(os.path.abspath(value)) for value in given if isinstance(value, str | Path)]  # noqa: PTH100

    return any(path.is_relative_to(folder) and (not name or path.name == name) for path in paths)


def _start(folder: Path, args: tuple[object, ...], before: Strike | None, after: Strike | None = None) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.chdir(folder)
        for descriptor, name in ((1, "out.txt"), (2, "err.txt")):
            file = os.open(folder.parent / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
            os.dup2(file, descriptor)
        sys.argv = ["graphite-gen", *map(str, args)]
        if before is not None:
            before()
        program.run()
        code = 0
    except SystemExit as error:
        code = int(error.code or 0)
    finally:
        if after is not None:
            after()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _ending(child: int, folder: Path) -> Ending:
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    lines = (folder.parent / "err.txt").read_text(errors="replace").splitlines()

    return Ending(code if code >= 0 else 128 - code, lines[-1] if lines else "")
