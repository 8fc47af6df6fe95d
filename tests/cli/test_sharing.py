"""Commands whose work real processes share, by '--workers' and under torchrun."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from .conftest import Invoke, is_one_line, only_json, program, under_torchrun


def torchrun(*args: object) -> subprocess.CompletedProcess[str]:
    """A command under torchrun on loopback."""
    return subprocess.run(under_torchrun(*args), capture_output=True, text=True, timeout=120)


def working(*args: object) -> subprocess.Popen[str]:
    """'generate' without end, once two processes share it."""
    process = program("generate", "--family", "ego", "-n", 10**8, "--format", "g6", "-o", "-", "--workers", 2, *args)
    assert process.stdout is not None
    # The first graphs are the leader's own.
    assert all(process.stdout.readline() for _ in range(40))

    return process


@pytest.mark.parametrize("workers", [2, 3])
def test_generated_files_are_the_same_bytes_however_many_processes_share_them(invoke: Invoke, workers: int) -> None:
    line = ("generate", "--family", "ego", "-n", 100, "-o")
    for name, count in (("one.h5", 1), ("many.h5", workers)):
        result = invoke(*line, name, "--workers", count)
        assert (result.exit_code, result.stderr) == (0, f"Wrote 100 graphs to '{name}'.\n")

    assert Path("many.h5").read_bytes() == Path("one.h5").read_bytes()


def test_sampled_files_are_the_same_bytes_alone_by_workers_and_under_torchrun(invoke: Invoke, model: Path) -> None:
    line = ("sample", "--model", model, "-n", 300, "--connected", "--with-latents", "--threads", 1)
    alone = invoke(*line, "-o", "one.h5")
    by_workers = invoke(*line, "-o", "many.h5", "--workers", 3)
    by_torchrun = torchrun(*line, "-o", "out/{index:03d}.graphml")

    assert (alone.exit_code, by_workers.exit_code, by_torchrun.returncode) == (0, 0, 0), by_torchrun.stderr
    assert Path("many.h5").read_bytes() == Path("one.h5").read_bytes()
    # Said once, with the draws of all processes counted.
    counted = alone.stderr.splitlines()[-1]
    assert by_workers.stderr.splitlines()[-1] == counted == by_torchrun.stderr.splitlines()[-1]
    assert by_torchrun.stderr.count("Model ") == 1
    assert invoke(*line, "-o", "alone/{index:03d}.graphml").exit_code == 0
    files = sorted(Path("alone").iterdir())
    assert len(files) == 300
    assert all((Path("out") / file.name).read_bytes() == file.read_bytes() for file in files)


def test_graphs_from_a_pipe_are_scored_by_all_to_the_same_figures(invoke: Invoke, model: Path, graphs: Path) -> None:
    assert invoke("convert", graphs, "ego.graphml").exit_code == 0
    line = ("--model", model, "-k", 10, "--per-graph", "--json", "--check", "--check-graphs", 2, "--threads", 1)
    options = ("--chains", 2, "--steps", 3)

    alone = only_json(invoke("nll", graphs, *line, *options))
    shared = only_json(
        invoke(
            "nll", "-", "--format", "graphml", *line, *options, "--workers", 2, input=Path("ego.graphml").read_text()
        )
    )

    assert len(alone["per_graph"]) == 4
    assert len(alone["check"]["per_graph"]) == 2
    assert shared == alone


def test_graphs_are_judged_to_the_same_digits(invoke: Invoke, graphs: Path) -> None:
    assert invoke("generate", "--family", "erdos-renyi", "-n", 30, "--nodes", "5:8", "-o", "er.h5").exit_code == 0
    line = ("evaluate", "er.h5", "--reference", graphs, "--json")

    alone, shared = invoke(*line), invoke(*line, "--workers", 2)

    assert (shared.exit_code, shared.stdout, shared.stderr) == (0, alone.stdout, alone.stderr)
    assert len(json.loads(alone.stdout)["mmd"]) == 12


def test_what_is_wrong_is_said_once_with_the_same_exit_code(invoke: Invoke, graphs: Path) -> None:
    exists = ("generate", "--family", "ego", "-n", 100, "-o", graphs)
    poor = ("evaluate", graphs, "--reference", graphs, "--fail-below", "novel=2")
    for line in (exists, poor, ("evaluate", "none.h5", "--reference", graphs)):
        alone, shared = invoke(*line), invoke(*line, "--workers", 2)
        assert (shared.exit_code, shared.stderr) == (alone.exit_code, alone.stderr)
        assert alone.exit_code == 1


def test_an_error_of_another_process_is_said_as_if_it_were_the_leaders(invoke: Invoke, model: Path) -> None:
    assert invoke("generate", "--family", "ego", "-n", 5, "--nodes", 6, "-o", "good.jsonl").exit_code == 0
    lines = Path("good.jsonl").read_text().splitlines()
    # The second graph, which the second process scores, has no nodes.
    lines[1] = '{"directed": false, "multigraph": false, "graph": {}, "nodes": [], "edges": []}'
    Path("bad.jsonl").write_text("\n".join(lines) + "\n")
    line = ("nll", "bad.jsonl", "--model", model, "--split", "all", "-k", 5, "--threads", 1)

    alone, shared = invoke(*line), invoke(*line, "--workers", 2)

    assert "Graph 1 has no nodes" in alone.stderr
    assert (shared.exit_code, shared.stderr) == (1, alone.stderr)


def test_processes_that_cannot_start_are_missed_and_leave_nothing(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    result = invoke("generate", "--family", "ego", "-n", 100, "-o", "out.h5", "--workers", 3)

    assert result.exit_code == 1
    assert is_one_line(result.stderr)
    assert "was lost" in result.stderr
    assert not list(Path().iterdir())


def test_a_process_that_is_killed_ends_the_run_in_one_line() -> None:
    process = working()
    (other,) = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    os.kill(int(other), signal.SIGKILL)
    _, stderr = process.communicate(timeout=60)

    assert process.returncode == 1
    assert is_one_line(stderr)
    assert "A process of this run was lost" in stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_the_leader(number: signal.Signals) -> None:
    # With '--debug' both hold stderr, which ends when the last of them has.
    process = working("--debug")
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)

    assert process.returncode != 0
    assert "DistributedError" not in stderr
    if number == signal.SIGINT:
        assert (process.returncode, stderr.splitlines()[-1]) == (130, "Interrupted.")


def test_a_reader_that_has_had_enough_ends_all_of_them_well() -> None:
    process = working("--debug")
    assert process.stdout is not None
    process.stdout.close()

    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 0


@pytest.mark.parametrize(("is_killed", "code"), [(False, 0), (True, 1)])
def test_another_process_ends_as_well_as_the_leader(is_killed: bool, code: int) -> None:
    """Whoever started it on another host starts it again if the run was lost, and else not."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    line = [sys.executable, "-m", "graphite_gen", "generate", "--family", "ego", "-n", str(10**8)]
    line += ["--format", "g6", "-o", "-"]
    meeting = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    meeting["TORCHELASTIC_RUN_ID"] = "none"
    leader, other = (
        subprocess.Popen(line, env={**meeting, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for rank in range(2)
    )
    assert leader.stdout is not None
    assert all(leader.stdout.readline() for _ in range(40))
    if is_killed:
        leader.kill()
    leader.stdout.close()

    assert leader.wait(60) == (-signal.SIGKILL if is_killed else 0)
    assert other.communicate(timeout=60) == (b"", None)
    assert other.returncode == code


def test_under_torchrun_there_is_nothing_to_hire_and_one_process_speaks() -> None:
    done = torchrun("generate", "--family", "ego", "-o", "out.h5", "--workers", 2)

    assert done.returncode != 0
    assert done.stderr.count("has no effect under torchrun, which has started 2 processes already. Leave it out.") == 1
    assert not Path("out.h5").exists()


def test_what_processes_do_not_share_is_done_by_one(invoke: Invoke, graphs: Path) -> None:
    environment = {**os.environ, "RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
    line = [sys.executable, "-m", "graphite_gen", "convert", str(graphs), "other.graphml"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not Path("other.graphml").exists()
