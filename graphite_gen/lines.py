"""Lines between the process that leads and each of the others, for parcels of bytes.

A line breaks when the process at its other end is gone, in whatever way. The leader then says so; another process has
no one left to work for, and ends: well if the leader has said farewell, and otherwise so that whoever started it knows
that the run was lost.
"""

from __future__ import annotations

import os
import queue
import select
import socket
import struct
import threading
import time
from contextlib import closing, suppress
from typing import Any

from .errors import CrewError

__all__ = ["Line", "connect", "disconnect", "dismiss", "is_connected", "line_to", "lost"]

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
            except CrewError:
                os._exit(1)
            # The leader has no one to tell its errors to: what is not fine is its farewell.
            if not fine:
                os._exit(0)
            self._come.put((content, fine))

    def send(self, parcel: bytes, fine: bool = True) -> None:
        try:
            super().send(parcel, fine)
        except CrewError:
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
        with suppress(CrewError):
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
            raise CrewError(
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
            except CrewError:
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


def lost() -> CrewError:
    """What there is to say when a process is gone."""
    return CrewError(
        "A process of this run was lost, and the run with it. See whether memory ran out; nothing is half-written."
    )
