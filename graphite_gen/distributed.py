"""Runs of several processes, started by ``torchrun`` or the command line and connected by ``torch.distributed``.

Work is divided by index, and rank 0 gathers the results in order and does all I/O.
"""

from __future__ import annotations

import os
import pickle
import secrets
import socket
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import DistributedError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = [
    "SINGLE_PROCESS",
    "STORE",
    "ProcessGroup",
    "connect",
    "connected_store",
    "disconnect",
    "group_from_environment",
    "is_spawned",
    "report_failure",
]

T = TypeVar("T")

STORE = "GRAPHITE_GEN_STORE"
"""The environment variable of a spawned worker: the path of the store where the ranks meet."""

# Seconds to wait until all ranks have started.
START_TIMEOUT = 600.0
# A process that dies is noticed at once, by its closed connection. This bounds the time between two messages of a
# healthy rank, and the wait for a host that vanished without closing its connections.
TIMEOUT = timedelta(days=1)


@dataclass(frozen=True)
class ProcessGroup:
    """The processes of a run, as seen by one of them.

    Every rank has to call the same methods in the same order. On rank 0 they raise the error of a rank that failed,
    or a :class:`DistributedError` if a rank died.
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
        if not self.is_rank_zero:
            for index in range(self.rank, count, self.world_size):
                self._wait(_submit("send_object_list", make(index), 0))
            return
        sources = (index % self.world_size for index in range(count) if index % self.world_size)
        receiving = (_submit("recv_object_list", None, source) for source in sources)
        # Received in the background, at most one object of each worker ahead.
        pending = deque(islice(receiving, self.world_size - 1))
        for index in range(count):
            source = index % self.world_size
            if not source:
                yield make(index)
                continue
            received = self._wait(pending.popleft(), source)
            pending.extend(islice(receiving, 1))
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


@dataclass(frozen=True)
class _Connection:
    """A connected group, the store that its ranks share, and the prefix of their keys."""

    group: ProcessGroup
    store: Any
    prefix: str
    # Communicates, since signals interrupt the wait of the main thread for it, but not a call of gloo.
    thread: ThreadPoolExecutor


_connection: _Connection | None = None


def _torch() -> Any:
    """The module, which is only imported where there are several processes."""
    import torch

    # Imported after the start of a process group, it would keep it as a default argument, and its connections open.
    import torch.distributed.nn.functional

    return torch


def group_from_environment() -> ProcessGroup:
    """The group that this process was started in, by torchrun or as a spawned worker; it may not be connected yet."""
    # Other schedulers may set the same variables for processes that are independent of each other.
    if "TORCHELASTIC_RUN_ID" not in os.environ and not is_spawned():
        return SINGLE_PROCESS
    try:
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return SINGLE_PROCESS

    return ProcessGroup(rank, world_size) if 0 <= rank < world_size else SINGLE_PROCESS


def is_spawned() -> bool:
    """Whether a process of the same command has started this one."""
    return STORE in os.environ


def connect(
    group: ProcessGroup | None = None, path: str | None = None, workers: Sequence[subprocess.Popen[bytes]] = ()
) -> ProcessGroup:
    """Connect this process to the others of its run, if there are any: by default those of the environment.

    The ranks meet at a file, by default that of the environment or the store of torchrun. ``workers`` are the processes
    of other ranks that were started by this one.
    """
    global _connection
    group = group or group_from_environment()
    if group.world_size == 1 or _connection is not None:
        return group
    # Otherwise its warnings about closed connections would follow our error messages.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    torch = _torch()
    try:
        if "GLOO_SOCKET_IFNAME" not in os.environ and (name := _interface(group)):
            os.environ["GLOO_SOCKET_IFNAME"] = name
        store = _open_store(group, path or os.environ.get(STORE))
        prefix = _meet(group, store, workers)
        torch.distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo",
            store=torch.distributed.PrefixStore(prefix, store),
            rank=group.rank,
            world_size=group.world_size,
            timeout=TIMEOUT,
        )
        # No rank may close its connections while another one is still connecting.
        torch.distributed.all_reduce(torch.zeros(1))
    except (RuntimeError, ValueError, KeyError, OSError) as error:
        found = " ".join(str(error).split())[:120].rstrip(". ")
        message = f"The {group.world_size} processes of this run could not connect: {found}."
        raise DistributedError(message, reason="not-connected") from error
    _connection = _Connection(group, torch.distributed.PrefixStore(prefix, store), prefix, ThreadPoolExecutor(1))

    return group


def connected_store(is_new: bool = False) -> Any:
    """The key-value store of the connected ranks, or None; ``is_new`` opens a connection for blocking requests."""
    if _connection is None:
        return None
    if not is_new:
        return _connection.store

    return _torch().distributed.PrefixStore(_connection.prefix, _open_store(_connection.group, os.environ.get(STORE)))


def _open_store(group: ProcessGroup, path: str | None) -> Any:
    """A store in a file, or that of torchrun, or that of rank 0 where torchrun has none."""
    distributed, timeout = _torch().distributed, timedelta(seconds=START_TIMEOUT)
    if path is not None:
        store = distributed.FileStore(path, group.world_size)
        store.set_timeout(timeout)
        return store
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    is_server = group.is_rank_zero and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True"

    return distributed.TCPStore(host, port, is_master=is_server, timeout=timeout, wait_for_workers=False)


def _meet(group: ProcessGroup, store: Any, workers: Sequence[subprocess.Popen[bytes]]) -> str:
    """Wait until all ranks have started, and agree on a new prefix of keys."""
    # The store of torchrun keeps the keys of processes that it has restarted since then. So rank 0 confirms the random
    # tokens of the other ranks, and these retry until their own is among them.
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
    """The network interface for gloo: loopback on one host, else the one that reaches the store; empty if unknown."""
    # By default gloo uses the address of the host's name, which on many hosts is a loopback address.
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


def _submit(operation: str, value: Any, peer: int | None = None) -> Future[Any]:
    """Reduce a tensor, or send, receive or broadcast an object, in the thread that communicates."""
    assert _connection is not None, "a group of several processes is connected"
    torch = _torch()

    def communicate() -> Any:
        if peer is None:
            return getattr(torch.distributed, operation)(value)
        values = [value]
        getattr(torch.distributed, operation)(values, peer, device=torch.device("cpu"))
        return values[0]

    return _connection.thread.submit(communicate)


def report_failure(error: Exception) -> bool:
    """Have rank 0 raise an error of this worker, which is disconnected; whether it could be reported."""
    if _connection is None or _connection.group.is_rank_zero or isinstance(error, DistributedError):
        return False
    try:
        content = pickle.dumps(error.__reduce__())
    except (pickle.PicklingError, AttributeError, TypeError):
        content = pickle.dumps((RuntimeError, (str(error),)))
    with suppress(RuntimeError):
        _connection.store.set(f"error/{_connection.group.rank}", content)
    disconnect()

    return True


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
