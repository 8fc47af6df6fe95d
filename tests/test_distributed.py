import multiprocessing
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphite_gen.distributed import (
    SINGLE_PROCESS,
    STORE,
    ProcessGroup,
    connect,
    group_from_environment,
    report_failure,
)
from graphite_gen.errors import CheckpointError, DistributedError, SamplingError, UnusedSettingError
from graphite_gen.evaluation import evaluate
from graphite_gen.evaluation.mmd import MMDEstimate, MMDRow
from graphite_gen.graph import SimpleGraph
from graphite_gen.training.torchrun import launch

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

Run = Callable[..., dict[int, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Call a function on every rank of a new group, and return its results, or the exceptions that it raised."""
    fork = multiprocessing.get_context("fork")

    def run(world_size: int, work: Callable[[ProcessGroup], object]) -> dict[int, Any]:
        results = fork.SimpleQueue()

        def run_rank(rank: int) -> None:
            os.environ.update({"RANK": str(rank), "WORLD_SIZE": str(world_size), STORE: str(tmp_path / "store")})
            try:
                results.put((rank, work(connect())))
            except Exception as error:
                if report_failure(error):
                    os._exit(1)
                results.put((rank, error))

        processes = [fork.Process(target=run_rank, args=(rank,)) for rank in range(world_size)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(60)
            assert process.exitcode is not None, "a process hangs"
        found = dict[int, Any]()
        while not results.empty():
            found.update([results.get()])
        return found

    return run


def described(error: Exception) -> tuple[object, ...]:
    """An exception as plain values."""
    return type(error).__name__, str(error), getattr(error, "reason", None), getattr(error, "facts", None)


def until_error(group: ProcessGroup, count: int, make: Callable[[int], int]) -> tuple[list[int], object]:
    gathered: list[int] = []
    try:
        for value in group.gather_in_order(count, make):
            gathered.append(value)
    except Exception as error:
        if group.rank:
            raise
        return gathered, described(error)
    return gathered, None


@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_results_are_gathered_in_order_and_known_to_every_rank(run: Run, world_size: int) -> None:
    def work(group: ProcessGroup) -> object:
        gathered = [list(group.gather_in_order(count, lambda index: index**2)) for count in (0, 1, 2, 7)]
        everywhere = group.all_gather_in_order(5, lambda index: (index, group.rank))
        group.barrier()
        sums = group.all_reduce_sum([group.rank, 0.5])
        return gathered, everywhere, group.broadcast(f"from {group.rank}"), sums, group.any(group.rank == 1)

    found = run(world_size, work)
    squares = [[index**2 for index in range(count)] for count in (0, 1, 2, 7)]
    computed = [(index, index % world_size) for index in range(5)]
    sums = [sum(range(world_size)), world_size / 2]

    for rank in range(world_size):
        expected = [[], [], [], []] if rank else squares
        assert found[rank] == (expected, computed, "from 0", sums, world_size > 1)


def test_all_ranks_evaluate_with_the_new_seed_of_rank_zero(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = [SimpleGraph.from_networkx(nx.gnp_random_graph(6, 0.5, seed=seed)) for seed in range(16)]

    def work(group: ProcessGroup) -> object:
        monkeypatch.setattr(secrets, "randbits", lambda bits: group.rank)
        return evaluate(graphs[:8], graphs[8:], most=4, replicates=5, group=group).to_json()

    expected = evaluate(graphs[:8], graphs[8:], most=4, replicates=5, seed=0).to_json()

    assert run(2, work) == {0: expected, 1: expected}


def test_graphs_and_records_arrive_as_they_were_sent(run: Run) -> None:
    edges = np.array([[0, 1], [1, 2]], dtype=np.int32)
    attributes = {"x": float("nan"), "y": (1, [2, "ü"], {3: None}), "z": np.float32(0.1)}
    graph = SimpleGraph(3, edges, np.array([0.1, -0.0]), None, ("a", 1, (2, 3)), {"c": [1, None, "d"]}, {}, attributes)
    row = MMDRow(MMDEstimate("orbit", "rbf", 0.1 + 0.2, 0.1, 0.5, 3.0, (3, 4)), None, chance=0.1)

    (_, (received, same_row)) = run(2, lambda group: list(group.gather_in_order(2, lambda _: (graph, row))))[0]

    assert same_row == row
    for name in SimpleGraph.__slots__:
        ours, theirs = getattr(graph, name), getattr(received, name)
        assert type(ours) is type(theirs)
        assert ours.tobytes() == theirs.tobytes() if isinstance(ours, np.ndarray) else repr(ours) == repr(theirs)
    assert type(received.attributes["z"]) is np.float32


class StrangeError(Exception):
    """An error that cannot be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle it")


@pytest.mark.parametrize("bad", [2, 3])
@pytest.mark.parametrize(
    "error",
    [
        CheckpointError("no weights", reason="no-weights", path=Path("a/b")),
        UnusedSettingError("steps", "trees"),
        MemoryError(),
        OSError(28, "full", "file"),
        StrangeError("odd"),
    ],
)
def test_an_error_is_raised_on_rank_zero_where_the_sequence_reaches_it(run: Run, bad: int, error: Exception) -> None:
    def make(index: int) -> int:
        if index == bad:
            raise error
        return index

    gathered, raised = run(2, lambda group: until_error(group, 6, make))[0]

    assert gathered == list(range(bad))
    is_sent = bad % 2 == 1
    assert raised == described(RuntimeError("odd") if is_sent and isinstance(error, StrangeError) else error)


@pytest.mark.parametrize("operation", ["broadcast", "barrier", "gather"])
def test_an_error_between_two_operations_is_raised_in_the_next_one(run: Run, operation: str) -> None:
    def work(group: ProcessGroup) -> object:
        if group.rank == 2:
            raise SamplingError("no model here")
        if operation == "broadcast":
            return group.broadcast(1)
        return group.barrier() if operation == "barrier" else list(group.gather_in_order(6, str))

    assert described(run(3, work)[0])[:2] == ("SamplingError", "no model here")


def test_the_death_of_a_worker_is_noticed_after_what_it_had_sent(run: Run) -> None:
    def make(index: int) -> int:
        if index == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return index

    gathered, raised = run(2, lambda group: until_error(group, 9, make))[0]

    assert gathered == [0, 1, 2]
    assert (raised[0], raised[2]) == ("DistributedError", "worker-died")


def test_a_worker_that_is_ahead_waits(run: Run) -> None:
    made, count = multiprocessing.get_context("fork").Value("i", 0), 20

    def make(index: int) -> bytes:
        with made.get_lock():
            made.value += 1
        return bytes(1 << 20)

    def work(group: ProcessGroup) -> list[int]:
        ahead = []
        for taken, _ in enumerate(group.gather_in_order(count, make), 1):
            time.sleep(0.02)
            ahead.append(made.value - taken)
        return ahead

    ahead = run(2, work)[0]

    # One is received in advance, one waits to be sent, and one is being made.
    assert len(ahead) == count
    assert max(ahead) <= 3


def test_the_group_is_that_of_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    expected = [
        (("RANK", "2"), SINGLE_PROCESS),
        # A scheduler may have set both.
        (("WORLD_SIZE", "3"), SINGLE_PROCESS),
        (("TORCHELASTIC_RUN_ID", "none"), ProcessGroup(2, 3)),
        (("WORLD_SIZE", "2"), SINGLE_PROCESS),
        (("RANK", "no number"), SINGLE_PROCESS),
    ]
    for variable, group in expected:
        monkeypatch.setenv(*variable)
        assert group_from_environment() == group


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs '/proc'")
def test_a_launch_is_identified_by_the_start_time_of_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert launch() is None
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    # 'ps' is the oracle of the start time, in ticks since the boot.
    command = ["ps", "-o", "etimes=", "-p", str(os.getppid())]
    age = int(subprocess.run(command, capture_output=True, text=True).stdout)
    uptime = float(Path("/proc/uptime").read_text().split()[0])

    name, ticks = str(launch()).split(" of ")[0].split(" from ")
    assert name == f"none, process {os.getppid()}"
    assert int(ticks) / os.sysconf("SC_CLK_TCK") == pytest.approx(uptime - age, abs=3)


@pytest.mark.slow
@pytest.mark.parametrize("world_size", [2, 3])
def test_training_agrees_with_one_process(world_size: int) -> None:
    script = Path(__file__).with_name("distributed_training.py")
    line = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(world_size), str(script)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300)
    differences = dict(line.split(": ") for line in done.stdout.splitlines())

    assert done.returncode == 0, done.stderr
    assert len(differences) == 7
    assert max(map(float, differences.values())) < 1e-5, differences


def test_processes_that_cannot_connect_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    for name, value in (("RANK", "1"), ("WORLD_SIZE", "2"), ("TORCHELASTIC_RUN_ID", "none")):
        monkeypatch.setenv(name, value)

    with pytest.raises(DistributedError, match="MASTER_ADDR") as error:
        connect()
    assert error.value.reason == "not-connected"


def test_a_lack_of_memory_is_not_taken_for_a_dead_worker() -> None:
    work: Future[None] = Future()
    work.set_exception(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    with pytest.raises(RuntimeError, match="allocate memory"):
        ProcessGroup(0, 2)._wait(work)


@pytest.mark.parametrize(("local", "expected"), [("2", 2), ("9", 4), ("", 4), ("x", 4)])
def test_processes_on_this_host_are_those_of_torchrun(
    monkeypatch: pytest.MonkeyPatch, local: str, expected: int
) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", local)
    assert ProcessGroup(0, 4).local_world_size == expected
