"""Processes that share work, as real ones: each begins as a copy of this one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from graphite_gen import distributed as lines
from graphite_gen.distributed import SINGLE_PROCESS, ProcessGroup, launch, place
from graphite_gen.errors import DistributedError, SamplingError, UnusedSettingError

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

Work = Callable[[ProcessGroup], object]


@contextmanager
def group_of(size: int, work: Work, ends: list[int] | None = None) -> Iterator[ProcessGroup]:
    """The leader of a crew whose other processes do that work; how they ended is added to ``ends``."""
    children, kept = [], []
    for rank in range(1, size):
        ours, theirs = socket.socketpair()
        kept.append(ours)
        child = os.fork()
        if not child:
            try:
                for line in kept:
                    line.close()
                lines.disconnect()
                lines.connect(0, theirs)
                work(ProcessGroup(rank, size))
            finally:
                # Only the end of the leader ends it well.
                time.sleep(20)
                os._exit(1)
        theirs.close()
        children.append(child)
        lines.connect(rank, ours)
    try:
        yield ProcessGroup(0, size)
    finally:
        lines.dismiss()
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if ends is not None:
            ends += codes


def text(number: int) -> str:
    return f"thing {number}"


def all_of(group: ProcessGroup, count: int, make: Callable[[int], str] = text) -> Iterator[str]:
    return group.ordered(count, make, str.encode, bytes.decode)


def failing_at(bad: int, error: Exception) -> Callable[[int], str]:
    def make(number: int) -> str:
        if number == bad:
            raise error
        return text(number)

    return make


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_what_is_made_by_number_comes_to_the_leader_in_order(size: int, count: int) -> None:
    ends: list[int] = []
    with group_of(size, lambda group: list(all_of(group, count)), ends) as group:
        assert list(all_of(group, count)) == list(map(text, range(count)))
    assert ends == [0] * (size - 1)


@pytest.mark.parametrize("bad", [2, 3])
@pytest.mark.parametrize(
    "error", [SamplingError("none is found"), MemoryError(), UnusedSettingError("steps", "trees"), OSError(28, "full")]
)
def test_an_error_of_one_is_raised_at_its_turn_wherever_it_happened(bad: int, error: Exception) -> None:
    make = failing_at(bad, error)
    with group_of(2, lambda group: list(all_of(group, 6, make))) as group:
        things = all_of(group, 6, make)
        assert [next(things) for _ in range(bad)] == list(map(text, range(bad)))
        with pytest.raises(type(error)) as raised:
            next(things)

    assert str(raised.value) == str(error)


def test_an_error_of_a_kind_that_only_one_process_knows_is_told_too() -> None:
    class StrangeError(Exception):
        pass

    make = failing_at(1, StrangeError("odd"))
    with group_of(2, lambda group: list(all_of(group, 2, make))) as group, pytest.raises(RuntimeError, match="odd"):
        list(all_of(group, 2, make))


def test_an_error_beside_the_work_is_raised_when_the_leader_next_asks() -> None:
    with group_of(3, lambda group: group.tell(SamplingError("no model here"))) as group:
        assert group.everywhere([b"read by no one"]) == [b"read by no one"]
        with pytest.raises(SamplingError, match="no model here"):
            list(all_of(group, 3))


def test_what_a_lost_process_has_told_is_raised_in_place_of_its_loss() -> None:
    with group_of(3, lambda group: group.tell(SamplingError("no room here")) if group.rank == 2 else None) as group:
        while not group._line(2).has_come():
            time.sleep(0.01)
        with pytest.raises(SamplingError, match="no room here"), group.no_one_lost():
            raise RuntimeError("Connection closed by peer")
        with pytest.raises(DistributedError, match="was lost"), group.no_one_lost():
            raise RuntimeError("Connection closed by peer")


def test_all_assemble_or_the_error_of_one_that_does_not_is_raised() -> None:
    with group_of(3, lambda group: group.assemble()) as group:
        group.assemble()
    failing = SamplingError("no device here")
    with (
        group_of(3, lambda group: group.tell(failing) if group.rank == 2 else group.assemble()) as group,
        pytest.raises(SamplingError, match="no device here"),
    ):
        group.assemble()


def test_a_process_that_dies_is_missed_after_what_it_had_sent() -> None:
    def die(number: int) -> str:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return text(number)

    ends: list[int] = []
    with group_of(2, lambda group: list(all_of(group, 9, die)), ends) as group:
        things = all_of(group, 9)
        assert [next(things) for _ in range(3)] == list(map(text, range(3)))
        with pytest.raises(DistributedError, match="A process of this run was lost"):
            list(things)
    assert ends == [-signal.SIGKILL]


def test_what_the_leader_has_is_everywhere_and_what_is_shared_too() -> None:
    things = [b"", bytes(range(256)) * 5000, b"last"]

    def retell(group: ProcessGroup) -> list[str]:
        told = group.everywhere(things if group.is_rank_zero else [])
        shared = group.shared(5, text, str.encode, bytes.decode)
        lengths = [len(told), *map(len, told), *map(hash, shared)]
        return list(group.ordered(3, lambda _: repr(lengths), str.encode, bytes.decode))

    with group_of(3, retell) as group:
        found = retell(group)
    assert found == [repr([3, 0, 1_280_000, 4, *(hash(text(k)) for k in range(5))])] * 3


@pytest.mark.parametrize(("end", "code"), [(lines.dismiss, 0), (lines.disconnect, 1)])
def test_who_loses_the_leader_ends_whatever_it_is_at_and_well_after_a_farewell(
    end: Callable[[], None], code: int
) -> None:
    ends: list[int] = []
    began = time.monotonic()
    with group_of(3, lambda group: time.sleep(60), ends):
        end()

    assert ends == [code, code]
    assert time.monotonic() - began < 15


def test_no_one_runs_far_ahead_of_the_leader() -> None:
    heard, said = os.pipe()

    def make(number: int) -> bytes:
        os.write(said, b".")
        return bytes(1 << 22)

    def share(group: ProcessGroup) -> Iterator[bytes]:
        return group.ordered(20, make, bytes, bytes)

    with group_of(2, lambda group: list(share(group))) as group:
        things = share(group)
        for taken in range(1, 9):
            next(things)
            time.sleep(0.01)
            os.set_blocking(heard, False)
            made = len(os.read(heard, 100))
            # Its own and the other's, of which one may be under way and one be waiting.
            assert made <= 3, f"{made} more were made by the time that {taken} were taken"
    os.close(heard)
    os.close(said)


def test_a_process_knows_its_place_by_what_torchrun_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    assert place() == SINGLE_PROCESS == ProcessGroup(0, 1)
    monkeypatch.setenv("RANK", "2")
    assert place() == SINGLE_PROCESS
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert place() == SINGLE_PROCESS, "a scheduler may have numbered it"
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert place() == ProcessGroup(2, 3)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert place() == SINGLE_PROCESS
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert not place().is_rank_zero
    monkeypatch.setenv("RANK", "no number")
    assert place() == SINGLE_PROCESS


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs '/proc'")
def test_a_launch_has_the_start_of_the_process_that_launched_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert launch() is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    # Ticks after the boot, in seconds: 'ps' is the oracle.
    command = ["ps", "-o", "etimes=", "-p", str(os.getppid())]
    age = int(subprocess.run(command, capture_output=True, text=True).stdout)
    uptime = float(Path("/proc/uptime").read_text().split()[0])

    name, ticks = str(launch()).split(" of ")[0].split(" from ")
    assert name == f"none, process {os.getppid()}"
    assert int(ticks) / os.sysconf("SC_CLK_TCK") == pytest.approx(uptime - age, abs=3)


def test_processes_that_do_not_find_one_another_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("TORCHELASTIC_RUN_ID", "none")):
        monkeypatch.setenv(name, value)

    with pytest.raises(DistributedError, match=r"The 2 processes of this run did not find one another: .*MASTER_ADDR"):
        list(all_of(place(), 3))
