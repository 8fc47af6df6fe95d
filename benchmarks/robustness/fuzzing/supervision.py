"""Inputs are read in a child process that is supervised and can be killed."""

from __future__ import annotations

import json
import mmap
import os
import random
import resource
import select
import shutil
import signal
import struct
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from graphite_gen.errors import GraphiteError

__all__ = ["FAILURES", "MEMORY", "SECONDS", "Outcome", "Reader", "attempt", "outcomes", "run_one"]

SECONDS = 5.0
MEMORY = 1 << 30
FAILURES = ("traceback", "hang", "memory", "crash", "corrupt")
# A blocked process, such as one that reads from a silent pipe, uses no CPU time.
_WAITING = 6 * SECONDS
_TICKS = os.sysconf("SC_CLK_TCK")
_MARK = struct.Struct("qdd")


@dataclass(frozen=True)
class Outcome:
    """The outcome of an input.

    Attributes:
        index: The index of the input; seed, reader and index reproduce it.
        mutation: The mutation.
        ending: ``refused``, ``read``, ``cut`` (undetectably truncated), or one of ``FAILURES``.
        detail: The type of the error, or a description of the failure.
    """

    index: int
    mutation: str
    ending: str
    detail: str


class Reader(Protocol):
    """A reader under test, with a generator of inputs."""

    name: str
    weight: float

    def trial(self, rng: random.Random, folder: Path) -> tuple[str, Callable[[], Any], Callable[[Any], str | None]]:
        """Create an input in an empty folder; return the mutation, a function that reads it, and a check of the result.

        The check returns None if the result is correct, ``cut`` for an undetectable truncation, else a description.
        """


def attempt(read: Callable[[], Any], fault: Callable[[Any], str | None], debug: bool = False) -> tuple[str, str]:
    """Read an input; return the outcome and a detail."""
    try:
        value = read()
    except GraphiteError as error:
        if debug:
            print(f"{type(error).__name__}: {error}")
        chain: BaseException | None = error
        while chain is not None:
            if isinstance(chain, MemoryError) or "allocate memory" in str(chain):
                return "memory", f"caught as {type(error).__name__}: {str(error)[:120]}"
            chain = chain.__cause__
        if not str(error).strip() or len(str(error)) > 10_000:
            return "traceback", f"a message of {len(str(error))} characters"
        return "refused", type(error).__name__
    except MemoryError as error:
        return "memory", _place(error)
    except Exception as error:
        if debug:
            traceback.print_exc()
        return "traceback", _place(error)
    found = fault(value)
    if found is None or found == "cut":
        return found or "read", ""

    return "corrupt", found


def _place(error: BaseException) -> str:
    """Return the error and its innermost frame in this project."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "fuzzing" not in frame.filename]
    last = frames[-1] if frames else None
    ours = [frame for frame in frames if "graphite_gen" in frame.filename or "/cli/" in frame.filename]
    where = ours[-1] if ours else last

    return (
        f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {str(error)[:120]}"
        if where
        else str(error)
    )


def run_one(reader: Reader, seed: int, index: int, folder: Path, debug: bool = False) -> Outcome:
    """Create and read one input."""
    rng = random.Random(f"{seed}/{reader.name}/{index}")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    mutation, read, fault = reader.trial(rng, folder)
    ending, detail = attempt(read, fault, debug)

    return Outcome(index, mutation, ending, detail)


def outcomes(reader: Reader, seed: int, count: int, folder: Path) -> Iterator[Outcome]:
    """Yield the outcomes of all inputs, restarting the child process after a failure."""
    start = 0
    while start < count:
        for outcome in _watched(reader, seed, start, count, folder):
            yield outcome
            start = outcome.index + 1


def _watched(reader: Reader, seed: int, start: int, count: int, folder: Path) -> Iterator[Outcome]:
    """Yield the outcomes of one child process, until it ends."""
    shared = mmap.mmap(-1, mmap.PAGESIZE)
    _MARK.pack_into(shared, 0, start, time.monotonic(), 0.0)
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(inlet)
        _work(reader, seed, range(start, count), folder, shared, outlet)
    os.close(outlet)
    last, rest, killed = start - 1, b"", False
    with os.fdopen(inlet, "rb", buffering=0) as pipe:
        while True:
            if select.select([pipe], [], [], 0.5)[0]:
                chunk = pipe.read(1 << 16)
                if not chunk:
                    break
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    outcome = Outcome(*json.loads(line))
                    last = outcome.index
                    yield outcome
            elif _hangs(child, shared):
                os.kill(child, signal.SIGKILL)
                killed = True
    _, status = os.waitpid(child, 0)
    index = _MARK.unpack_from(shared, 0)[0]
    if killed:
        yield Outcome(index, "", "hang", f"more than {SECONDS:g} s")
    elif os.WIFSIGNALED(status) and last < index:
        yield Outcome(index, "", "crash", signal.Signals(os.WTERMSIG(status)).name)
    elif os.WIFEXITED(status) and os.WEXITSTATUS(status) == 3:
        raise RuntimeError(f"The fuzzer itself failed on input {index} of '{reader.name}'; see above.")


def _hangs(child: int, shared: mmap.mmap) -> bool:
    """Return whether the current input takes too long, in CPU time, so that other load does not count."""
    _, since, cpu = _MARK.unpack_from(shared, 0)
    waited = time.monotonic() - since
    if waited < SECONDS:
        return False
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    used = (int(fields[11]) + int(fields[12])) / _TICKS

    return used - cpu > SECONDS or waited > _WAITING


def _work(reader: Reader, seed: int, indices: range, folder: Path, shared: mmap.mmap, outlet: int) -> None:
    """Process inputs in the child, and exit."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for index in indices:
            _MARK.pack_into(shared, 0, index, time.monotonic(), time.process_time())
            outcome = run_one(reader, seed, index, folder)
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            if peak > MEMORY:
                outcome = Outcome(index, outcome.mutation, "memory", f"{peak / 1e9:.2f} GB")
            row = [outcome.index, outcome.mutation, outcome.ending, outcome.detail]
            os.write(outlet, json.dumps(row).encode() + b"\n")
            if peak > MEMORY:
                os._exit(0)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(3)
