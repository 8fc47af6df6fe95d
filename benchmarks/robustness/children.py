"""The real program in forked children: libraries are imported once, and a fault can be injected at a chosen moment."""

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

# Audit events that Python raises before an operation on files.
OPERATIONS = frozenset({"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"})
COUNT = "operations.txt"

Fault = Callable[[], object]


@dataclass(frozen=True)
class Ending:
    """The exit of a child process.

    Attributes:
        code: Its exit code, as in a shell: 137 after SIGKILL.
        line: The last line of stderr.
    """

    code: int
    line: str

    @property
    def is_killed(self) -> bool:
        return self.code == 128 + signal.SIGKILL


def load_libraries() -> None:
    """Import what commands import, so that children need not do so."""
    torch.set_num_threads(1)
    for name in ("training.runs", "io.h5", "io.graphml", "io.g6", "sampling", "network.generation"):
        importlib.import_module(f"graphite_gen.{name}")
    for name in ("train", "sample", "generate", "nll", "evaluate"):
        importlib.import_module(f"graphite_gen.cli.commands.{name}")
    # Parts of torch are imported at the first optimiser step.
    fit(generate("ego", 4, (4, 6), seed=0).graphs, preset="paper", seed=0, epochs=1)


def run(folder: Path, *args: object, before: Fault | None = None) -> Ending:
    """Run a command in a folder until it exits.

    Arguments:
        folder: The folder to run in.
        args: The command line.
        before: Called in the child first, for example to install a fault.
    """
    return _ending(_start(folder, args, before), folder)


def run_for(seconds: float, folder: Path, *args: object) -> Ending:
    """Run a command in a folder and kill it after some time, unless it has exited."""
    child = _start(folder, args, None)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)

    return _ending(child, folder)


def at_operation(folder: Path, number: int, fault: Fault, name: str = "") -> Fault:
    """Return a set-up that injects a fault before the n-th operation on files in a folder, counted from 0.

    Arguments:
        folder: The folder.
        number: The index of the operation.
        fault: The fault.
        name: Count only operations on files of that name.
    """

    def set_up() -> None:
        left = [number]

        def hook(event: str, values: tuple[Any, ...]) -> None:
            if not _concerns(event, values, folder, name):
                return
            left[0] -= 1
            if left[0] == -1:
                fault()

        sys.addaudithook(hook)

    return set_up


def operations(folder: Path, *args: object) -> int:
    """Return the number of operations on files in a folder that a command makes without a fault."""
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
    """Return whether an event is an operation on a file in a folder."""
    if event not in OPERATIONS:
        return False
    given = values[:2] if event == "os.rename" else values[:1]
    paths = [Path(os.path.abspath(value)) for value in given if isinstance(value, str | Path)]  # noqa: PTH100

    return any(path.is_relative_to(folder) and (not name or path.name == name) for path in paths)


def _start(folder: Path, args: tuple[object, ...], before: Fault | None, after: Fault | None = None) -> int:
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
