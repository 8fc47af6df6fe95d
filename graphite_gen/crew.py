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
import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from . import errors
from .errors import CrewError
from .lines import Line, line_to, lost

__all__ = ["ALONE", "HIRED", "Crew", "has_joined", "join", "leave", "place"]

T = TypeVar("T")

# A process that dies is noticed at once, by its closed connection. Only one whose host vanished is waited for.
PATIENCE = timedelta(hours=2)


@dataclass(frozen=True)
class Crew:
    """The processes of a run, as one of them sees them.

    Attributes:
        rank: The number of this process.
        size: How many there are.
    """

    rank: int = 0
    size: int = 1

    @property
    def leads(self) -> bool:
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
        elif self.leads:
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

        return made if self.leads else list(map(unpack, parcels))

    def everywhere(self, things: Sequence[bytes]) -> list[bytes]:
        """The leader's things, for everyone.

        Raises:
            CrewError: A process was lost.
        """
        if self.size == 1:
            return list(things)
        if self.leads:
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
        for rank in range(1, self.size) if self.leads else ():
            with suppress(CrewError):
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

ALONE = Crew()
"""What a process without others is."""


def place() -> Crew:
    """Which of how many processes this one was started as, by what torchrun writes into the environment.

    Schedulers number their processes too, but have no work shared.
    """
    if "TORCHELASTIC_RUN_ID" not in os.environ and HIRED not in os.environ:
        return ALONE
    try:
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return ALONE

    return Crew(rank, size) if 0 <= rank < size else ALONE


def join() -> Crew:
    """Meet the processes that were started with this one for sums of tensors; alone there is no one to meet.

    Raises:
        CrewError: They did not come.
    """
    crew = place()
    if crew.size == 1:
        return ALONE
    import torch
    from torch import distributed
    from torch.distributed.rendezvous import rendezvous

    if not distributed.is_initialized():
        backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
        try:
            store: Any = next(rendezvous("env://", timeout=PATIENCE))[0]
            # What processes have written down that torchrun has started anew since then is still there.
            (name,) = crew.everywhere([secrets.token_bytes(16)] if crew.leads else [])
            store = distributed.PrefixStore(name.hex(), store)  # type: ignore[attr-defined]
            distributed.init_process_group(backend, None, PATIENCE, crew.size, crew.rank, store)
        except (RuntimeError, ValueError) as error:
            raise CrewError(
                f"The {crew.size} processes of this run did not find one another: {_first_line(error)}. "
                f"Start them all with torchrun, or use '--workers'."
            ) from error

    return crew


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
