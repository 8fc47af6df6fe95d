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

from graphite_gen import lines
from graphite_gen.crew import ALONE, Crew, place
from graphite_gen.errors import CrewError, SamplingError, UnusedSettingError
from graphite_gen.launch import launch

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

Work = Callable[[Crew], object]


@contextmanager
def crew_of(size: int, work: Work, ends: list[int] | None = None) -> Iterator[Crew]:
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
                work(Crew(rank, size))
            finally:
                # Only the end of the leader ends it well.
                time.sleep(20)
                os._exit(1)
        theirs.close()
        children.append(child)
        lines.connect(rank, ours)
    try:
        yield Crew(0, size)
    finally:
        lines.dismiss()
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        if ends is not None:
            ends += codes


def text(number: int) -> str:
    return f"thing {number}"


def all_of(crew: Crew, count: int, make: Callable[[int], str] = text) -> Iterator[str]:
    return crew.ordered(count, make, str.encode, bytes.decode)


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
    with crew_of(size, lambda crew: list(all_of(crew, count)), ends) as crew:
        assert list(all_of(crew, count)) == list(map(text, range(count)))
    assert ends == [0] * (size - 1)


@pytest.mark.parametrize("bad", [2, 3])
@pytest.mark.parametrize(
    "error", [SamplingError("none is found"), MemoryError(), UnusedSettingError("steps", "trees"), OSError(28, "full")]
)
def test_an_error_of_one_is_raised_at_its_turn_wherever_it_happened(bad: int, error: Exception) -> None:
    make = failing_at(bad, error)
    with crew_of(2, lambda crew: list(all_of(crew, 6, make))) as crew:
        things = all_of(crew, 6, make)
        assert [next(things) for _ in range(bad)] == list(map(text, range(bad)))
        with pytest.raises(type(error)) as raised:
            next(things)

    assert str(raised.value) == str(error)


def test_an_error_of_a_kind_that_only_one_process_knows_is_told_too() -> None:
    class StrangeError(Exception):
        pass

    make = failing_at(1, StrangeError("odd"))
    with crew_of(2, lambda crew: list(all_of(crew, 2, make))) as crew, pytest.raises(RuntimeError, match="odd"):
        list(all_of(crew, 2, make))


def test_an_error_beside_the_work_is_raised_when_the_leader_next_asks() -> None:
    with crew_of(3, lambda crew: crew.tell(SamplingError("no model here"))) as crew:
        assert crew.everywhere([b"read by no one"]) == [b"read by no one"]
        with pytest.raises(SamplingError, match="no model here"):
            list(all_of(crew, 3))


def test_what_a_lost_process_has_told_is_raised_in_place_of_its_loss() -> None:
    with crew_of(3, lambda crew: crew.tell(SamplingError("no room here")) if crew.rank == 2 else None) as crew:
        while not crew._line(2).has_come():
            time.sleep(0.01)
        with pytest.raises(SamplingError, match="no room here"), crew.no_one_lost():
            raise RuntimeError("Connection closed by peer")
        with pytest.raises(CrewError, match="was lost"), crew.no_one_lost():
            raise RuntimeError("Connection closed by peer")


def test_all_assemble_or_the_error_of_one_that_does_not_is_raised() -> None:
    with crew_of(3, lambda crew: crew.assemble()) as crew:
        crew.assemble()
    failing = SamplingError("no device here")
    with (
        crew_of(3, lambda crew: crew.tell(failing) if crew.rank == 2 else crew.assemble()) as crew,
        pytest.raises(SamplingError, match="no device here"),
    ):
        crew.assemble()


def test_a_process_that_dies_is_missed_after_what_it_had_sent() -> None:
    def die(number: int) -> str:
        if number == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return text(number)

    ends: list[int] = []
    with crew_of(2, lambda crew: list(all_of(crew, 9, die)), ends) as crew:
        things = all_of(crew, 9)
        assert [next(things) for _ in range(3)] == list(map(text, range(3)))
        with pytest.raises(CrewError, match="A process of this run was lost"):
            list(things)
    assert ends == [-signal.SIGKILL]


def test_what_the_leader_has_is_everywhere_and_what_is_shared_too() -> None:
    things = [b"", bytes(range(256)) * 5000, b"last"]

    def retell(crew: Crew) -> list[str]:
        told = crew.everywhere(things if crew.leads else [])
        shared = crew.shared(5, text, str.encode, bytes.decode)
        lengths = [len(told), *map(len, told), *map(hash, shared)]
        return list(crew.ordered(3, lambda _: repr(lengths), str.encode, bytes.decode))

    with crew_of(3, retell) as crew:
        found = retell(crew)
    assert found == [repr([3, 0, 1_280_000, 4, *(hash(text(k)) for k in range(5))])] * 3


@pytest.mark.parametrize(("end", "code"), [(lines.dismiss, 0), (lines.disconnect, 1)])
def test_who_loses_the_leader_ends_whatever_it_is_at_and_well_after_a_farewell(
    end: Callable[[], None], code: int
) -> None:
    ends: list[int] = []
    began = time.monotonic()
    with crew_of(3, lambda crew: time.sleep(60), ends):
        end()

    assert ends == [code, code]
    assert time.monotonic() - began < 15


def test_no_one_runs_far_ahead_of_the_leader() -> None:
    heard, said = os.pipe()

    def make(number: int) -> bytes:
        os.write(said, b".")
        return bytes(1 << 22)

    def share(crew: Crew) -> Iterator[bytes]:
        return crew.ordered(20, make, bytes, bytes)

    with crew_of(2, lambda crew: list(share(crew))) as crew:
        things = share(crew)
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
    assert place() == ALONE == Crew(0, 1)
    monkeypatch.setenv("RANK", "2")
    assert place() == ALONE
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert place() == ALONE, "a scheduler may have numbered it"
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    assert place() == Crew(2, 3)
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert place() == ALONE
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert not place().leads
    monkeypatch.setenv("RANK", "no number")
    assert place() == ALONE


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

    with pytest.raises(CrewError, match=r"The 2 processes of this run did not find one another: .*MASTER_ADDR"):
        list(all_of(place(), 3))
