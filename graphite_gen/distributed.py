"""Runs of several processes, built on ``torch.distributed``: gloo for objects and CPU tensors, nccl for CUDA tensors.

``torchrun`` starts the processes, on one host or several, or :func:`spawn_workers` does on this host. Every rank runs
the same program. Work is divided by index, results are gathered in order on rank 0, and rank 0 does all I/O. The result
for an index depends on the index alone, so results do not depend on the world size.
"""

from __future__ import annotations

import os
import pickle
import secrets
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from .errors import DistributedError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "GRACE",
    "SINGLE_PROCESS",
    "STORE",
    "ProcessGroup",
    "connect",
    "connect_group",
    "disconnect",
    "exit_worker",
    "finish",
    "group_from_environment",
    "is_connected",
    "is_spawned",
    "launch",
    "local_rank",
    "report_failure",
    "restarts",
]

T = TypeVar("T")

STORE = "GRAPHITE_GEN_STORE"
"""The environment variable of a process of :func:`spawn_workers`: the path of the store where the ranks meet."""

# Seconds to wait until all ranks have started, until rank 0 has reported an error, and until a process has ended.
START_TIMEOUT = 600.0
REPORT_TIMEOUT = 600.0
GRACE = 5.0
# A process that dies is noticed at once, by its closed connection. This bounds the time between two messages of a
# healthy rank, and the wait for a host that vanished without closing its connections.
TIMEOUT = timedelta(days=1)


@dataclass(frozen=True)
class ProcessGroup:
    """The processes of a run, as seen by one of them.

    Every rank has to call the same methods in the same order. On rank 0 they raise the error of a rank that failed,
    or a :class:`DistributedError` if a rank died.

    Attributes:
        rank: The index of this process.
        world_size: The number of processes.
    """

    rank: int = 0
    world_size: int = 1

    @property
    def is_rank_zero(self) -> bool:
        """Whether this process does the I/O."""
        return self.rank == 0

    @property
    def local_world_size(self) -> int:
        """The number of processes on this host."""
        local = os.environ.get("LOCAL_WORLD_SIZE", "")

        return min(int(local), self.world_size) if local.isdecimal() else self.world_size

    def gather_in_order(self, count: int, make: Callable[[int], T]) -> Iterator[T]:
        """Yield ``make(0), …, make(count - 1)`` on rank 0, and nothing on other ranks, which compute their part.

        Rank ``r`` computes the indices ``r, r + world_size, …`` and waits while it is ahead of rank 0, so memory stays
        bounded. An error is raised where the sequence reaches its index.
        """
        if self.world_size == 1:
            yield from map(make, range(count))
        elif self.is_rank_zero:
            yield from self._receive_in_order(count, make)
        else:
            for index in range(self.rank, count, self.world_size):
                self._wait(_submit("send_object_list", make(index), 0))

    def _receive_in_order(self, count: int, make: Callable[[int], T]) -> Iterator[T]:
        sources = (index % self.world_size for index in range(count) if index % self.world_size)
        # Received in the background, at most one object of each worker ahead.
        pending = deque(_submit("recv_object_list", None, source) for source in islice(sources, self.world_size - 1))
        for index in range(count):
            source = index % self.world_size
            if not source:
                yield make(index)
                continue
            received = self._wait(pending.popleft(), source)
            pending.extend(_submit("recv_object_list", None, following) for following in islice(sources, 1))
            yield received

    def all_gather_in_order(self, count: int, make: Callable[[int], T]) -> list[T]:
        """Return ``[make(0), …, make(count - 1)]`` on every rank; see :meth:`gather_in_order`."""
        return self.broadcast(list(self.gather_in_order(count, make)))

    def broadcast(self, value: T) -> T:
        """Return the value of rank 0 on every rank."""
        return value if self.world_size == 1 else self._wait(_submit("broadcast_object_list", value, 0))

    def all_reduce_sum(self, values: Sequence[float]) -> list[float]:
        """Sum the values of all ranks, with the same result on each."""
        if self.world_size == 1:
            return list(values)
        total = _torch().tensor(values, dtype=_torch().float64)
        self.all_reduce(total)

        return [float(value) for value in total]

    def all_reduce(self, tensor: Tensor) -> None:
        """Replace a tensor by its sum over all ranks."""
        if self.world_size > 1:
            self._wait(_submit("all_reduce", tensor))

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        return self.all_reduce_sum([float(flag)])[0] > 0

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self.all_reduce_sum([0.0])

    def _wait(self, work: Future[T], source: int | None = None) -> T:
        """The result of a communication, or the error of the rank that it failed on."""
        try:
            return work.result()
        except RuntimeError as error:
            if "allocate memory" in str(error):
                raise
            if not self.is_rank_zero:
                raise DistributedError("The connection to another rank was lost.") from error
            raise _failure_of(range(1, self.world_size) if source is None else [source]) from error


SINGLE_PROCESS = ProcessGroup()
"""The group of a process that runs alone."""


# Connecting ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Connection:
    """A connected group, the key-value store that its ranks share, and the thread that communicates.

    The main thread waits for that thread and not for gloo, since signals do not interrupt a call of gloo.
    """

    group: ProcessGroup
    store: Any
    thread: ThreadPoolExecutor


_connection: _Connection | None = None


def _torch() -> Any:
    """The module, which is only imported where there are several processes."""
    import torch

    # Imported after the start of a process group, it would keep it as a default argument, and its connections open.
    import torch.distributed.nn.functional

    return torch


def group_from_environment() -> ProcessGroup:
    """The group that torchrun or :func:`spawn_workers` has started this process in, which may not be connected yet.

    Other schedulers may set the same variables for processes that are independent of each other.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ and not is_spawned():
        return SINGLE_PROCESS
    try:
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return SINGLE_PROCESS

    return ProcessGroup(rank, world_size) if 0 <= rank < world_size else SINGLE_PROCESS


def is_connected() -> bool:
    """Whether this process is connected to others."""
    return _connection is not None


def is_spawned() -> bool:
    """Whether :func:`spawn_workers` has started this process."""
    return STORE in os.environ


def connect() -> ProcessGroup:
    """Connect this process to the others of its run, if there are any.

    Raises:
        DistributedError: They did not start, or cannot reach each other.
    """
    group = group_from_environment()
    if group.world_size > 1 and _connection is None:
        connect_group(group, os.environ.get(STORE))

    return group


def connect_group(group: ProcessGroup, path: str | None, workers: Sequence[subprocess.Popen[bytes]] = ()) -> None:
    global _connection
    # Its warnings about closed connections would follow our error message.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    torch = _torch()
    try:
        if "GLOO_SOCKET_IFNAME" not in os.environ and (name := _interface(group)):
            os.environ["GLOO_SOCKET_IFNAME"] = name
        store = _open_store(group) if path is None else torch.distributed.FileStore(path, group.world_size)
        store.set_timeout(timedelta(seconds=START_TIMEOUT))
        prefix = _meet(group, store, workers)
        store = torch.distributed.PrefixStore(prefix, store)
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        torch.distributed.init_process_group(
            backend, store=store, rank=group.rank, world_size=group.world_size, timeout=TIMEOUT
        )
        # No rank may close its connections while another one is still connecting.
        torch.distributed.all_reduce(torch.zeros(1))
    except (RuntimeError, ValueError, KeyError, OSError) as error:
        found = " ".join(str(error).split())[:120].rstrip(". ")
        raise DistributedError(
            f"The {group.world_size} processes of this run could not connect: {found}.", reason="not-connected"
        ) from error
    _connection = _Connection(group, store, ThreadPoolExecutor(1))
    if path is None and not group.is_rank_zero:
        # A connection of its own, since a pending request blocks others.
        watched = torch.distributed.PrefixStore(prefix, _open_store(group))
        threading.Thread(target=_watch_store, args=(watched, group.rank), daemon=True).start()


def _open_store(group: ProcessGroup) -> Any:
    """The store of torchrun, or that of rank 0 where torchrun has none."""
    is_server = group.is_rank_zero and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"

    return _torch().distributed.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=is_server,
        timeout=timedelta(seconds=START_TIMEOUT),
        wait_for_workers=False,
    )


def _meet(group: ProcessGroup, store: Any, workers: Sequence[subprocess.Popen[bytes]]) -> str:
    """Wait until all ranks have started, and agree on a new prefix of keys.

    The store of torchrun keeps the keys of processes that it has restarted since then. So rank 0 confirms the random
    tokens of the other ranks, and these retry until their own is among them.
    """
    token, deadline = secrets.token_hex(8), time.monotonic() + START_TIMEOUT
    if group.is_rank_zero:
        store.set("prefix", token)
        keys = [f"{token}/{rank}" for rank in range(1, group.world_size)]
        while not store.check(keys):
            if any(worker.poll() is not None for worker in workers):
                raise ChildProcessError("a worker ended at its start")
            _pause(deadline)
        store.set(f"{token}/confirmed", " ".join(store.get(key).decode() for key in keys))
        return token
    announced = ""
    while True:
        prefix = store.get("prefix").decode()
        if prefix != announced:
            store.set(f"{prefix}/{group.rank}", token)
            announced = prefix
        confirmed = f"{prefix}/confirmed"
        if store.check([confirmed]) and token in store.get(confirmed).decode().split():
            return prefix
        _pause(deadline)


def _pause(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError(f"not all have started within {START_TIMEOUT:g} s")
    time.sleep(0.02)


def _interface(group: ProcessGroup) -> str:
    """The network interface for gloo: loopback on one host, else the one that reaches the store; empty if unknown.

    By default gloo uses the address of the host's name, which on many hosts is a loopback address.
    """
    with suppress(OSError, KeyError, ImportError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        import fcntl

        is_local = group.local_world_size == group.world_size
        probe.connect(("127.0.0.1" if is_local else os.environ["MASTER_ADDR"], 1))
        address = socket.inet_aton(probe.getsockname()[0])
        for _, name in socket.if_nameindex():
            with suppress(OSError):
                # SIOCGIFADDR of Linux: the address of an interface.
                found = fcntl.ioctl(probe, 0x8915, name.encode().ljust(256, b"\0"))[20:24]
                if found == address and (is_local or name != "lo"):
                    return name

    return ""


# Communicating ------------------------------------------------------------------------------------------------


def _submit(operation: str, *args: Any) -> Future[Any]:
    """Start an operation of torch in the thread that communicates."""
    assert _connection is not None, "a group of several processes is connected"

    return _connection.thread.submit(_communicate, operation, *args)


def _communicate(operation: str, value: Any, peer: int | None = None) -> Any:
    """Reduce a tensor, or send, receive or broadcast an object."""
    torch = _torch()
    if peer is None:
        return getattr(torch.distributed, operation)(value)
    values = [value]
    getattr(torch.distributed, operation)(values, peer, device=torch.device("cpu"))

    return values[0]


# Failing and ending -------------------------------------------------------------------------------------------


def report_failure(error: Exception) -> None:
    """End a connected worker such that rank 0 raises its error; anywhere else this does nothing."""
    if _connection is None or not _connection.group.rank or isinstance(error, DistributedError):
        return
    try:
        content = pickle.dumps(error.__reduce__())
    except (pickle.PicklingError, AttributeError, TypeError):
        content = pickle.dumps((RuntimeError, (str(error),)))
    with suppress(RuntimeError):
        _connection.store.set(f"error/{_connection.group.rank}", content)
    disconnect()
    if not is_spawned():
        # torchrun stops all ranks when one fails, so rank 0 has to report the error first; it then ends this process.
        threading.Event().wait(REPORT_TIMEOUT)
    os._exit(1)


def _failure_of(ranks: Sequence[int]) -> Exception:
    """The error that one of the ranks has reported, or that it died."""
    assert _connection is not None
    for key in (f"error/{rank}" for rank in ranks):
        with suppress(RuntimeError):
            if _connection.store.check([key]):
                # From a process of this run, which runs any code that it likes anyway.
                kind, args, *facts = pickle.loads(_connection.store.get(key))  # noqa: S301
                try:
                    error: Exception = kind(*args)
                except TypeError:
                    # Some take other arguments than their message.
                    error = kind.__new__(kind, *args)
                vars(error).update(*facts)
                return error

    return DistributedError("A worker died (out of memory?).", reason="worker-died")


def disconnect() -> None:
    """Close the connections of this process: other ranks that communicate with it fail at once."""
    global _connection
    if _connection is not None:
        _torch().distributed.destroy_process_group()
        _connection.thread.shutdown(wait=False)
        _connection = None


def finish(code: int) -> None:
    """End the workers of torchrun with the exit code of rank 0."""
    if _connection is None:
        return
    ended = [f"ended/{rank}" for rank in range(1, _connection.group.world_size)]
    deadline = time.monotonic() + GRACE
    with suppress(RuntimeError):
        _connection.store.set("exit", str(code))
        # The store may end with this process, and a worker that finds it gone fails.
        while not code and not _connection.store.check(ended) and time.monotonic() < deadline:
            time.sleep(0.01)


def exit_worker(is_failed: bool) -> NoReturn:
    """End a worker that has done its part: with rank 0, but not long after a failure."""
    if is_failed:
        disconnect()
    if not is_spawned() or not is_failed:
        # Rank 0 reports first, and ends this process when it ends.
        threading.Event().wait(GRACE if is_failed or _connection is None else None)
    os._exit(int(is_failed))


def _watch_store(store: Any, rank: int) -> None:
    """End this worker when rank 0 ends, with its exit code, or when torchrun does."""
    try:
        store.wait(["exit"], timedelta(days=365))
        code = int(store.get("exit"))
        store.set(f"ended/{rank}", b"")
    except RuntimeError:
        code = 1
    os._exit(1 if code else 0)


# torchrun -----------------------------------------------------------------------------------------------------


def restarts() -> int:
    """How often torchrun has restarted this run after a failure."""
    count = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")

    return int(count) if count.isdecimal() else 0


def launch() -> str | None:
    """An identifier of this start of torchrun that its restarts share; None without torchrun."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    if name is None:
        return None
    # The name alone may be a default, and process ids are reused, in containers at once.
    return f"{name}, process {os.getppid()}{_start_of(os.getppid())}"


def _start_of(process: int) -> str:
    """The start time of a process, where the system has it."""
    try:
        # The name of the program, in parentheses, may contain any character.
        ticks = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (OSError, IndexError):
        return ""

    return f" from {ticks} of {boot}"


def local_rank() -> int | None:
    """The rank of this process on its host, which is also the index of its device; None without torchrun."""
    rank = os.environ.get("LOCAL_RANK", "")

    return int(rank) if rank.isdecimal() else None
