"""Several processes that run the same command and share its work.

``torchrun`` starts them, on one host or on many, or ``--workers`` does on this one; from there on they are the same.
Each runs the whole command; where it says so, work is shared out by number and comes together, in order, at the one
that leads, which alone reads standard input, writes and speaks. What is made for a number depends on the number alone,
so the result does not depend on how many there are.
"""

from __future__ import annotations

import builtins
import json
import os
import queue
import secrets
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from . import errors
from .errors import DistributedError

__all__ = [
    "HIRED",
    "SINGLE_PROCESS",
    "Line",
    "ProcessGroup",
    "connect",
    "disconnect",
    "dismiss",
    "has_joined",
    "hire",
    "is_connected",
    "is_hired",
    "join",
    "launch",
    "leave",
    "line_to",
    "local_rank",
    "lost",
    "place",
    "program",
    "restarts",
    "take_up_work",
]


def restarts() -> int:
    """How often torchrun has started this run anew after a process was lost."""
    count = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")

    return int(count) if count.isdecimal() else 0


def launch() -> str | None:
    """What tells this start of torchrun from every other and outlasts its restarts; None without torchrun."""
    name = os.environ.get("TORCHELASTIC_RUN_ID")
    # Its user may leave it unnamed or always give the same name, but who started us stays.
    return None if name is None else f"{name}, process {os.getppid()}{_start_of(os.getppid())}"


def _start_of(process: int) -> str:
    """When a process started, where the system tells: its number alone comes again, in containers at once."""
    try:
        # Its own name, in brackets, may have any signs in it.
        ticks = Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (OSError, IndexError):
        return ""

    return f" from {ticks} of {boot}"


def local_rank() -> int | None:
    """The number of this process on its host, by torchrun, which also numbers the host's devices; None without it."""
    number = os.environ.get("LOCAL_RANK", "")

    return int(number) if number.isdecimal() else None


def program() -> str:
    """How to call the program as it was called now, up to the name of the command."""
    if launch() is None:
        return "graphite-gen"
    here = os.environ.get("LOCAL_WORLD_SIZE")
    # Who meets over several hosts knows how.
    options = f"--nproc-per-node {here}" if here == os.environ.get("WORLD_SIZE") else "…"

    return f"torchrun {options} -m graphite_gen"


HEAD = struct.Struct("<Q?")
GREETING = struct.Struct("<32sI")
WELCOME = b"!"
KEY = "graphite-gen/line"

# Processes that were started together come within seconds, or not at all.
PATIENCE = 600.0
# Who connects and says nothing keeps the others waiting.
GREETING_PATIENCE = 10.0

_known: dict[int, Line] = {}


class Line:
    """A connection to another process."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        # Without it, parcels much smaller than a packet wait for one another.
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, parcel: bytes, fine: bool = True) -> None:
        """Send bytes, and whether all went well.

        Raises:
            CrewError: The other process is gone.
        """
        try:
            self._connection.sendall(HEAD.pack(len(parcel), fine))
            self._connection.sendall(parcel)
        except OSError as error:
            raise lost() from error

    def receive(self) -> tuple[bytes, bool]:
        """The next parcel that the other process sent.

        Raises:
            CrewError: The other process is gone.
        """
        length, fine = HEAD.unpack(_read(self._connection, HEAD.size))

        return bytes(_read(self._connection, length)), fine

    def has_come(self) -> bool:
        """Whether there is something to receive, be it that the other process is gone."""
        return bool(select.select([self._connection], [], [], 0)[0])

    def close(self) -> None:
        """Let the other process know that this was all."""
        self._connection.close()


class _WatchedLine(Line):
    """A line to the leader, without which this process ends, whatever it is at."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self._come: queue.SimpleQueue[tuple[bytes, bool]] = queue.SimpleQueue()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            try:
                content, fine = super().receive()
            except DistributedError:
                os._exit(1)
            # The leader has no one to tell its errors to: what is not fine is its farewell.
            if not fine:
                os._exit(0)
            self._come.put((content, fine))

    def send(self, parcel: bytes, fine: bool = True) -> None:
        try:
            super().send(parcel, fine)
        except DistributedError:
            # Whether the leader said farewell is seen by who watches, and this process ends with it.
            threading.Event().wait()

    def receive(self) -> tuple[bytes, bool]:
        return self._come.get()


def connect(rank: int, connection: socket.socket) -> None:
    """Keep a connection to another process, by its number."""
    _known[rank] = Line(connection) if rank else _WatchedLine(connection)


def is_connected() -> bool:
    """Whether there is any line."""
    return bool(_known)


def dismiss() -> None:
    """Say farewell to the others, who then end well, whatever they are at."""
    for line in _known.values():
        # Who is gone already needs none.
        with suppress(DistributedError):
            line.send(b"", fine=False)
    disconnect()


def disconnect() -> None:
    """Close all lines."""
    while _known:
        _known.popitem()[1].close()


def line_to(rank: int, own: int, size: int) -> Line:
    """The line to another process.

    Arguments:
        rank: Its number; one of the two is the leader, which is 0.
        own: The number of this process.
        size: How many there are.

    Raises:
        CrewError: The processes did not find one another.
    """
    if not _known:
        try:
            _meet(own, size)
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            raise DistributedError(
                f"The {size} processes of this run did not find one another: "
                f"{' '.join(str(error).split())[:120].rstrip('. ')}. Start them all with torchrun, or use '--workers'."
            ) from error

    return _known[rank]


def _meet(own: int, size: int) -> None:
    """Connect the processes that torchrun started, by what it lets them write down for one another."""
    import hmac
    import secrets
    from datetime import timedelta

    from torch.distributed.rendezvous import rendezvous

    store: Any = next(rendezvous("env://", timeout=timedelta(seconds=PATIENCE)))[0]
    if own:
        connect(0, _call(store, own))
        return
    # On one host no other needs to reach it.
    near = os.environ.get("LOCAL_WORLD_SIZE") == str(size)
    key = secrets.token_hex(16)
    with closing(_listen(near)) as server:
        server.settimeout(PATIENCE)
        host = "127.0.0.1" if near else os.environ["MASTER_ADDR"]
        store.set(KEY, f"{host} {server.getsockname()[1]} {key}")
        while len(_known) < size - 1:
            connection = server.accept()[0]
            connection.settimeout(GREETING_PATIENCE)
            try:
                told, rank = GREETING.unpack(_read(connection, GREETING.size))
            except DistributedError:
                told, rank = b"", 0
            # Whoever does not know the key came by mistake, or worse.
            if not hmac.compare_digest(told, key.encode()) or not 0 < rank < size:
                connection.close()
                continue
            connection.sendall(WELCOME)
            connection.settimeout(None)
            connect(rank, connection)


def _call(store: Any, own: int) -> socket.socket:
    """Connect to the leader: what it wrote down before torchrun has started it anew is there until it writes again."""
    started = time.monotonic()
    while True:
        host, port, key = store.get(KEY).decode().split()
        with suppress(OSError):
            connection = socket.create_connection((host, int(port)), GREETING_PATIENCE)
            with suppress(OSError):
                connection.sendall(GREETING.pack(key.encode(), own))
                if connection.recv(len(WELCOME)) == WELCOME:
                    connection.settimeout(None)
                    return connection
            connection.close()
        if time.monotonic() - started > PATIENCE:
            raise TimeoutError(f"no one answers at {host}:{port}")
        time.sleep(0.1)


def _listen(near: bool) -> socket.socket:
    if near:
        return socket.create_server(("127.0.0.1", 0))
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", 0))


def _read(connection: socket.socket, length: int) -> bytearray:
    """So many bytes, however they come."""
    found = bytearray(length)
    rest = memoryview(found)
    while rest:
        try:
            count = connection.recv_into(rest)
        except OSError as error:
            raise lost() from error
        if not count:
            raise lost()
        rest = rest[count:]

    return found


def lost() -> DistributedError:
    """What there is to say when a process is gone."""
    return DistributedError(
        "A process of this run was lost, and the run with it. See whether memory ran out; nothing is half-written."
    )


T = TypeVar("T")

# A process that dies is noticed at once, by its closed connection. Only one whose host vanished is waited for.
COLLECTIVE_TIMEOUT = timedelta(hours=2)


@dataclass(frozen=True)
class ProcessGroup:
    """The processes of a run, as one of them sees them.

    Attributes:
        rank: The number of this process.
        size: How many there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def is_rank_zero(self) -> bool:
        """Whether this process is the one that reads, writes and speaks."""
        return self.rank == 0

    @property
    def size_here(self) -> int:
        """How many of them are on this host."""
        here = os.environ.get("LOCAL_WORLD_SIZE", "")

        return min(int(here), self.size) if here.isdecimal() else self.size

    def ordered(
        self, count: int, make: Callable[[int], T], pack: Callable[[T], bytes], unpack: Callable[[bytes], T]
    ) -> Iterator[T]:
        """What is made for ``0 … count-1``: all of it, in order, for the leader, and nothing for the others.

        Everyone has to run through it. A number whose making fails raises the same error here as it would alone, after
        what came before it.

        Arguments:
            count: How many numbers there are.
            make: What makes one's thing, wherever it is called.
            pack: What makes bytes of a thing, for the way from one process to another.
            unpack: What makes the thing of these bytes again.

        Raises:
            CrewError: A process was lost.
        """
        if self.size == 1:
            yield from map(make, range(count))
        elif self.is_rank_zero:
            for number in range(count):
                maker = number % self.size
                yield make(number) if maker == self.rank else unpack(_opened(self._line(maker).receive()))
        else:
            self._deliver(count, make, pack)

    def _deliver(self, count: int, make: Callable[[int], T], pack: Callable[[T], bytes]) -> None:
        """Make this process's share and send it, as it is taken: who is ahead waits."""
        for number in range(self.rank, count, self.size):
            try:
                parcel = pack(make(number))
            except Exception as error:
                # Told by the leader, when its turn has come.
                self.tell(error)
                return
            self._line(0).send(parcel)

    def shared(
        self, count: int, make: Callable[[int], T], pack: Callable[[T], bytes], unpack: Callable[[bytes], T]
    ) -> list[T]:
        """What is made for ``0 … count-1``, in order, for everyone; see :meth:`ordered`."""
        made = list(self.ordered(count, make, pack, unpack))
        if self.size == 1:
            return made
        parcels = self.everywhere(list(map(pack, made)))

        return made if self.is_rank_zero else list(map(unpack, parcels))

    def everywhere(self, things: Sequence[bytes]) -> list[bytes]:
        """The leader's things, for everyone.

        Raises:
            CrewError: A process was lost.
        """
        if self.size == 1:
            return list(things)
        if self.is_rank_zero:
            for rank in range(1, self.size):
                self._line(rank).send(str(len(things)).encode())
                for thing in things:
                    self._line(rank).send(thing)
            return list(things)
        count = int(_opened(self._line(0).receive()))

        return [_opened(self._line(0).receive()) for _ in range(count)]

    def tell(self, error: Exception) -> None:
        """Have the leader raise an error of this process, when it next asks for its work or misses it.

        Raises:
            CrewError: The leader is gone.
        """
        told = {"kind": type(error).__name__, "text": str(error)}
        self._line(0).send(json.dumps(told).encode(), fine=False)

    def assemble(self) -> None:
        """Wait until everyone has come here; the leader raises the error of one that has not.

        Raises:
            CrewError: A process was lost.
        """
        for _ in self.ordered(self.size, lambda _: b"", bytes, bytes):
            pass

    def _raise_told(self) -> None:
        """Raise the error that another process has told before it was lost, if this one leads and there is one."""
        for rank in range(1, self.size) if self.is_rank_zero else ():
            with suppress(DistributedError):
                while self._line(rank).has_come():
                    _opened(self._line(rank).receive())

    def _line(self, rank: int) -> Line:
        return line_to(rank, self.rank, self.size)

    def sum(self, values: Sequence[float]) -> list[float]:
        """The sums of everyone's values, the same to the last bit for everyone.

        Raises:
            CrewError: A process was lost.
        """
        if self.size == 1:
            return list(values)
        import torch
        from torch import distributed

        total = torch.tensor(values, dtype=torch.float64)
        with self.no_one_lost():
            distributed.all_reduce(total)

        return [float(value) for value in total]

    def any(self, claim: bool) -> bool:
        """Whether it holds for anyone.

        Raises:
            CrewError: A process was lost.
        """
        return self.sum([float(claim)])[0] > 0

    def no_one_lost(self) -> AbstractContextManager[None]:
        """Around what processes do together: raises what one told that was lost, or a :class:`CrewError`."""
        return self._no_one_lost() if self.size > 1 else nullcontext()

    @contextmanager
    def _no_one_lost(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            # Who runs out of memory is to say so.
            if "memory" in str(error):
                raise
            self._raise_told()
            raise lost() from error


HIRED = "GRAPHITE_GEN_HIRED"
"""What is in the environment of a process that ``--workers`` has started."""

SINGLE_PROCESS = ProcessGroup()
"""What a process without others is."""


def place() -> ProcessGroup:
    """Which of how many processes this one was started as, by what torchrun writes into the environment.

    Schedulers number their processes too, but have no work shared.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ and HIRED not in os.environ:
        return SINGLE_PROCESS
    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return SINGLE_PROCESS

    return ProcessGroup(rank, size) if 0 <= rank < size else SINGLE_PROCESS


def join() -> ProcessGroup:
    """Meet the processes that were started with this one for sums of tensors; alone there is no one to meet.

    Raises:
        CrewError: They did not come.
    """
    group = place()
    if group.size == 1:
        return SINGLE_PROCESS
    import torch
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    if not distributed.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        try:
            store: Any = next(rendezvous("env://", timeout=COLLECTIVE_TIMEOUT))[0]
            # What processes have written down that torchrun has started anew since then is still there.
            (name,) = group.everywhere([secrets.token_bytes(16)] if group.is_rank_zero else [])
            store = distributed.PrefixStore(name.hex(), store)  # type: ignore[attr-defined]
            distributed.init_process_group(backend, None, COLLECTIVE_TIMEOUT, group.size, group.rank, store)
        except (RuntimeError, ValueError) as error:
            raise DistributedError(
                f"The {group.size} processes of this run did not find one another: {_first_line(error)}. "
                f"Start them all with torchrun, or use '--workers'."
            ) from error

    return group


def has_joined() -> bool:
    """Whether processes meet for sums of tensors, where the others wait for this one."""
    if "torch" not in sys.modules:
        return False
    from torch import distributed

    return distributed.is_available() and distributed.is_initialized()


def leave() -> None:
    """Meet no more: what of torch is still at it when a process ends may abort it."""
    if has_joined():
        from torch import distributed

        distributed.destroy_process_group()


def _opened(parcel: tuple[bytes, bool]) -> bytes:
    """What is in a parcel, or the error that was sent instead."""
    content, fine = parcel
    if fine:
        return content
    told = json.loads(content)
    kind = getattr(errors, told["kind"], getattr(builtins, told["kind"], RuntimeError))
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = RuntimeError
    # Some are made of other things than their text.
    error = kind.__new__(kind)
    error.args = (told["text"],)
    raise error


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines() or [type(error).__name__]

    return lines[0][:120].rstrip(". ")


# What ends when its line breaks needs no longer than this; what does not is ended.
GRACE = 5.0


@contextmanager
def hire(workers: int, arguments: Sequence[str], *, speaking: bool = False) -> Iterator[ProcessGroup]:
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
                connect(rank, ours)
                processes.append(
                    subprocess.Popen(
                        [sys.executable, "-c", program, *arguments],
                        env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(workers), HIRED: "1"},
                        stdin=theirs.fileno(),
                        stdout=subprocess.DEVNULL,
                        stderr=None if speaking else subprocess.DEVNULL,
                    )
                )
        yield ProcessGroup(0, workers)
    finally:
        disconnect()
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
    connect(0, socket.socket(fileno=os.dup(0)))
