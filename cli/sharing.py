"""The processes of a command: started by '--workers', or by torchrun."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from graphite_gen.distributed import (
    GRACE,
    STORE,
    ProcessGroup,
    connect,
    connect_group,
    disconnect,
    group_from_environment,
    is_spawned,
    launch,
)

__all__ = ["ARGUMENTS", "process_group", "program", "spawn_workers", "use_one_thread", "watch_parent"]

ARGUMENTS = "graphite_gen.arguments"
"""The key of all command-line arguments in the context of a command."""


def process_group(workers: int) -> ProcessGroup:
    """Connect the processes of this command; those that it has to start end with it.

    From here on, only rank 0 reads standard input, writes and reports errors.

    Raises:
        click.UsageError: The command was started by torchrun, and '--workers' was given.
    """
    context = click.get_current_context()
    group = group_from_environment()
    if workers > 1 and group.world_size > 1 and not is_spawned():
        raise click.UsageError(
            f"'--workers' has no effect under torchrun, which has started {group.world_size} processes already. "
            f"Leave it out."
        )
    if workers == 1 or group.world_size > 1:
        return connect()
    arguments = context.meta[ARGUMENTS]

    return context.with_resource(spawn_workers(workers, arguments, show_stderr="--debug" in arguments))


@contextmanager
def spawn_workers(world_size: int, arguments: Sequence[str], *, show_stderr: bool = False) -> Iterator[ProcessGroup]:
    """Start the other processes of a group on this host; they end with the context, and with this process.

    Arguments:
        world_size: The number of processes, including this one, which is rank 0.
        arguments: The command-line arguments that each of them runs with.
        show_stderr: Whether workers write to stderr.

    Raises:
        DistributedError: A worker did not start.
        OSError: The system cannot start another process.
    """
    # The same modules, whatever the working directory holds.
    code = f"import sys; sys.path[:] = {sys.path!r}; from graphite_gen.cli.main import run; run()"
    group, workers = ProcessGroup(0, world_size), list[subprocess.Popen[bytes]]()
    reader, writer = os.pipe()
    with tempfile.TemporaryDirectory(prefix="graphite-gen-", ignore_cleanup_errors=True) as folder:
        store = str(Path(folder, "store"))
        try:
            for rank in range(1, world_size):
                workers.append(
                    subprocess.Popen(
                        [sys.executable, "-c", code, *arguments],
                        env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(world_size), STORE: store},
                        stdin=reader,
                        stdout=subprocess.DEVNULL,
                        stderr=None if show_stderr else subprocess.DEVNULL,
                    )
                )
            connect_group(group, store, workers)
            yield group
        finally:
            os.close(reader)
            os.close(writer)
            for worker in workers:
                try:
                    worker.wait(GRACE)
                except subprocess.TimeoutExpired:
                    worker.kill()
                    worker.wait()
            disconnect()


def watch_parent() -> None:
    """End this process of :func:`spawn_workers` when its parent ends, which closes the pipe that is its stdin."""
    pipe, folder = os.dup(0), Path(os.environ[STORE]).parent

    def watch() -> None:
        os.read(pipe, 1)
        # The parent removes it too, unless it was killed.
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def program() -> str:
    """The command that starts this program again, up to the name of the subcommand."""
    if launch() is None:
        return "graphite-gen"
    local = os.environ.get("LOCAL_WORLD_SIZE")
    # The rendezvous of several hosts is not known here.
    options = f"--nproc-per-node {local}" if local == os.environ.get("WORLD_SIZE") else "…"

    return f"torchrun {options} -m graphite_gen"


def use_one_thread() -> None:
    """Let numpy multiply matrices on one thread, unless the user has chosen a number of threads.

    The last digits of a product depend on the number of threads, which depends on the number of processes. It has no
    effect after the first product.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
