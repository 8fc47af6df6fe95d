"""Processes on this host that share the work of a command, for people without torchrun."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from . import lines
from .crew import HIRED, Crew

__all__ = ["hire", "is_hired", "take_up_work"]

# What ends when its line breaks needs no longer than this; what does not is ended.
GRACE = 5.0


@contextmanager
def hire(workers: int, arguments: Sequence[str], *, speaking: bool = False) -> Iterator[Crew]:
    """Start other processes that run the same command, which end when this one leaves, in whatever way.

    Arguments:
        workers: How many processes there will be, with this one, which leads.
        arguments: The command's arguments.
        speaking: Whether they may write to stderr.

    Raises:
        OSError: The system starts no more.
    """
    # They find the same modules, whatever lies in the folder at hand.
    program = f"import sys; sys.path[:] = {sys.path!r}; from graphite_gen.cli.main import run; run()"
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for rank in range(1, workers):
            ours, theirs = socket.socketpair()
            with theirs:
                lines.connect(rank, ours)
                processes.append(
                    subprocess.Popen(
                        [sys.executable, "-c", program, *arguments],
                        env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(workers), HIRED: "1"},
                        stdin=theirs.fileno(),
                        stdout=subprocess.DEVNULL,
                        stderr=None if speaking else subprocess.DEVNULL,
                    )
                )
        yield Crew(0, workers)
    finally:
        lines.disconnect()
        for process in processes:
            try:
                process.wait(GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def is_hired() -> bool:
    """Whether another process has hired this one."""
    return HIRED in os.environ


def take_up_work() -> None:
    """Hold on to the line to the process that hired this one: it came as standard input."""
    lines.connect(0, socket.socket(fileno=os.dup(0)))
