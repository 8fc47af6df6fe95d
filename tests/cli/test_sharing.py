import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import Result

from .conftest import assert_error, invoke, is_one_line, program, run, run_json, under_torchrun


def torchrun(*args: object) -> subprocess.CompletedProcess[str]:
    """A command under torchrun on loopback."""
    return subprocess.run(under_torchrun(*args), capture_output=True, text=True, timeout=120)


def working(*args: object) -> subprocess.Popen[str]:
    """An endless 'generate' of two processes, after its first graphs."""
    process = program("generate", "--family", "ego", "-n", 10**8, "--format", "g6", "-o", "-", "--workers", 2, *args)
    assert process.stdout is not None
    # More than the first chunk, which rank 0 draws.
    assert all(process.stdout.readline() for _ in range(40))

    return process


def alike(*line: object) -> Result:
    """The result of a command, which is the same with two processes."""
    alone, shared = invoke(*line), invoke(*line, "--workers", 2)
    assert (shared.exit_code, shared.stdout, shared.stderr) == (alone.exit_code, alone.stdout, alone.stderr)

    return alone


def test_results_do_not_depend_on_the_number_of_processes(graphs: Path) -> None:
    generated = alike("generate", "--family", "ego", "-n", 100, "--format", "g6", "-o", "-")
    run("generate", "--family", "erdos-renyi", "-n", 30, "--nodes", "5:8", "-o", "er.h5")
    evaluated = alike("evaluate", "er.h5", "--reference", graphs, "--json")

    assert (generated.exit_code, generated.stdout.count("\n"), generated.stderr) == (0, 100, "")
    assert len(json.loads(evaluated.stdout)["mmd"]) == 12


def test_sampled_files_do_not_depend_on_how_processes_are_started(model: Path) -> None:
    line = ("sample", "--model", model, "-n", 300, "--connected", "--with-latents", "--threads", 1)
    alone = run(*line, "-o", "one.h5")
    by_workers = run(*line, "-o", "many.h5", "--workers", 3)
    by_torchrun = torchrun(*line, "-o", "out/{index:03d}.graphml")

    assert by_torchrun.returncode == 0, by_torchrun.stderr
    assert Path("many.h5").read_bytes() == Path("one.h5").read_bytes()
    # Printed once, with the draws of all ranks.
    counted = alone.stderr.splitlines()[-1]
    assert by_workers.stderr.splitlines()[-1] == counted == by_torchrun.stderr.splitlines()[-1]
    assert by_torchrun.stderr.count("Model ") == 1
    run(*line, "-o", "alone/{index:03d}.graphml")
    files = sorted(Path("alone").iterdir())
    assert len(files) == 300
    assert all((Path("out") / file.name).read_bytes() == file.read_bytes() for file in files)


def test_every_rank_scores_graphs_from_a_pipe_with_the_same_result(model: Path, graphs: Path) -> None:
    text = run("convert", graphs, "-", "--output-format", "graphml").stdout
    options = ("-k", 10, "--per-graph", "--check", "--check-graphs", 2, "--chains", 2, "--steps", 3, "--threads", 1)

    alone = run_json("nll", graphs, "--model", model, *options)
    shared = run_json("nll", "-", "--format", "graphml", "--model", model, *options, "--workers", 2, input=text)

    assert len(alone["per_graph"]) == 4
    assert len(alone["check"]["per_graph"]) == 2
    assert shared == alone


def test_errors_of_rank_zero_are_reported_once_with_the_same_exit_code(graphs: Path) -> None:
    exists = ("generate", "--family", "ego", "-n", 100, "-o", graphs)
    poor = ("evaluate", graphs, "--reference", graphs, "--fail-below", "novel=2")
    for line in (exists, poor, ("evaluate", "none.h5", "--reference", graphs)):
        assert_error(alike(*line), after_notes=True)


def test_errors_of_a_worker_are_reported_like_those_of_rank_zero(model: Path) -> None:
    run("generate", "--family", "ego", "-n", 5, "--nodes", 6, "-o", "good.jsonl")
    lines = Path("good.jsonl").read_text().splitlines()
    # The second graph, which rank 1 scores, has no nodes.
    lines[1] = '{"directed": false, "multigraph": false, "graph": {}, "nodes": [], "edges": []}'
    Path("bad.jsonl").write_text("\n".join(lines) + "\n")
    line = ("nll", "bad.jsonl", "--model", model, "--split", "all", "-k", 5, "--threads", 1)

    assert_error(alike(*line), "Graph 1 has no nodes", after_notes=True)


def test_workers_that_do_not_start_are_an_error_and_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "false")
    assert_error(invoke("generate", "--family", "ego", "-n", 100, "-o", "out.h5", "--workers", 3), "could not connect")
    assert not list(Path().iterdir())


def test_a_worker_that_is_killed_ends_the_run_with_one_line() -> None:
    process = working()
    (other,) = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
    os.kill(int(other), signal.SIGKILL)
    _, stderr = process.communicate(timeout=60)

    assert process.returncode == 1
    assert is_one_line(stderr)
    assert "A worker died" in stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_rank_zero(number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    # With '--debug' both have stderr open, so it ends with the last of them.
    process = working("--debug")
    process.send_signal(number)
    _, stderr = process.communicate(timeout=60)

    assert process.returncode != 0
    assert "DistributedError" not in stderr
    if number == signal.SIGINT:
        assert (process.returncode, stderr.splitlines()[-1]) == (130, "Interrupted.")
    assert not list(tmp_path.glob("graphite-gen-*"))


def test_a_closed_pipe_ends_all_processes_without_an_error() -> None:
    process = working("--debug")
    assert process.stdout is not None
    process.stdout.close()

    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait(60) == 0


@pytest.mark.parametrize(("is_killed", "code"), [(False, 0), (True, 1)])
def test_a_worker_of_torchrun_ends_with_the_exit_code_of_rank_zero(is_killed: bool, code: int) -> None:
    """The torchrun of another host restarts its workers if they fail."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    words = ("generate", "--family", "ego", "-n", str(10**8), "--format", "g6", "-o", "-")
    line = [sys.executable, "-m", "graphite_gen", *words]
    meeting = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "none"}
    environment = {**os.environ, **meeting}
    first, worker = (
        subprocess.Popen(
            line, env={**environment, "RANK": str(rank)}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        for rank in range(2)
    )
    assert first.stdout is not None
    assert all(first.stdout.readline() for _ in range(40))
    if is_killed:
        first.kill()
    first.stdout.close()

    assert first.wait(60) == (-signal.SIGKILL if is_killed else 0)
    assert worker.communicate(timeout=60) == (b"", None)
    assert worker.returncode == code


def test_workers_are_refused_under_torchrun_with_one_message() -> None:
    done = torchrun("generate", "--family", "ego", "-o", "out.h5", "--workers", 2)

    assert done.returncode != 0
    assert done.stderr.count("has no effect under torchrun with 2 processes") == 1
    assert not Path("out.h5").exists()


def test_other_commands_run_on_rank_zero_alone(graphs: Path) -> None:
    environment = {**os.environ, "RANK": "1", "WORLD_SIZE": "2", "TORCHELASTIC_RUN_ID": "none"}
    line = [sys.executable, "-m", "graphite_gen", "convert", str(graphs), "other.graphml"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not Path("other.graphml").exists()
