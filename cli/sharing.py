"""The processes of a command: started by '--workers', or by torchrun."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import click

from graphite_gen.distributed import (
    STORE,
    ProcessGroup,
    connect,
    connected_store,
    disconnect,
    group_from_environment,
    is_spawned,
    report_failure,
)
from graphite_gen.errors import DistributedError

# Seconds to wait until a process that should end has ended, and until rank 0 has reported the error of a worker.
GRACE = 5.0
REPORT_TIMEOUT = 600.0

ARGUMENTS = "graphite_gen.arguments"
"""The key of all command-line arguments in the context of a command."""


def process_group(workers: int) -> ProcessGroup:
    """Connect the processes of this command, which divide its CPU threads; those that it has to start end with it.

    From here on, only rank 0 reads standard input, writes and reports errors.
    """
    context = click.get_current_context()
    group = group_from_environment()
    if workers > 1 and group.world_size > 1 and not is_spawned():
        raise click.UsageError(f"'--workers' has no effect under torchrun with {group.world_size} processes.")
    if workers == 1:
        return connect_ranks()
    is_started = group.world_size > 1
    group = connect_ranks() if is_started else context.with_resource(spawn_workers(workers, context.meta[ARGUMENTS]))

    import torch

    torch.set_num_threads(max(1, torch.get_num_threads() // workers))

    return group


@contextmanager
def spawn_workers(world_size: int, arguments: Sequence[str]) -> Iterator[ProcessGroup]:
    """Start the other processes of a group on this host, with the same command-line arguments, and end them with it."""
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
                        stderr=None if "--debug" in arguments else subprocess.DEVNULL,
                    )
                )
            yield connect(group, store, workers)
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


def connect_ranks() -> ProcessGroup:
    """Connect the processes of torchrun, if it has started this one; workers end when rank 0 does."""
    group = connect()
    if not group.is_rank_zero and not is_spawned():
        threading.Thread(target=_watch_store, args=(connected_store(is_new=True), group.rank), daemon=True).start()

    return group


def _watch_store(store: Any, rank: int) -> None:
    """End this worker when rank 0 ends, with its exit code, or when torchrun does."""
    try:
        store.wait(["exit"], timedelta(days=365))
        code = int(store.get("exit"))
        store.set(f"ended/{rank}", b"")
    except RuntimeError:
        code = 1
    os._exit(1 if code else 0)


def end_workers(code: int) -> None:
    """End the workers of torchrun with the exit code of rank 0, and this process too, if there are any."""
    store = connected_store()
    if store is None:
        return
    ended = [f"ended/{rank}" for rank in range(1, group_from_environment().world_size)]
    deadline = time.monotonic() + GRACE
    with suppress(RuntimeError):
        store.set("exit", str(code))
        # The store may end with this process, and a worker that finds it gone fails.
        while not code and not store.check(ended) and time.monotonic() < deadline:
            time.sleep(0.01)
    sys.stderr.flush()
    # Without the cleanup of the interpreter, which would wait for pending communication.
    os._exit(code)


def wait_for_parent(error: BaseException) -> None:
    """Let a worker of :func:`spawn_workers` that has lost its connection end with rank 0, which reports the error."""
    if is_spawned() and isinstance(error, DistributedError):
        # See watch_parent.
        threading.Event().wait(GRACE)


def end_with_error(error: Exception) -> None:
    """End a worker such that rank 0 reports its error; anywhere else this does nothing."""
    if report_failure(error):
        # torchrun stops all ranks when one fails, so rank 0 has to report first; it then ends this process.
        threading.Event().wait(0 if is_spawned() else REPORT_TIMEOUT)
        os._exit(1)


def end_worker(is_failed: bool) -> NoReturn:
    """End a worker that has done its part: with rank 0, but not long after a failure."""
    if is_failed:
        disconnect()
        # Rank 0 has to report first.
        threading.Event().wait(0 if is_spawned() else GRACE)
    elif connected_store() is not None:
        # Rank 0 ends this process when it ends.
        threading.Event().wait()
    os._exit(int(is_failed))


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
    if "TORCHELASTIC_RUN_ID" not in os.environ:
        return "graphite-gen"
    local = os.environ.get("LOCAL_WORLD_SIZE")
    # The rendezvous of several hosts is not known here.
    options = f"--nproc-per-node {local}" if local == os.environ.get("WORLD_SIZE") else "…"

    return f"torchrun {options} -m graphite_gen"
