import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from graphite_gen import __version__
from graphite_gen.cli.main import main
from graphite_gen.errors import GraphiteError

from .conftest import assert_error, invoke, is_one_line, program, run


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make 'families' raise an exception."""

    def fail_with(error: BaseException) -> None:
        @click.command()
        def families() -> None:
            raise error

        monkeypatch.setattr(type(main), "get_command", lambda self, ctx, name: families)

    return fail_with


@pytest.mark.parametrize("line", [("--debug", "families"), ("families", "--debug")])
def test_debug_shows_the_traceback_before_or_after_the_command(failing: Any, line: tuple[str, ...]) -> None:
    failing(GraphiteError("Found this."))
    result = invoke(*line)

    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert result.stderr.endswith("Error: Found this.\n")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (GraphiteError("Found this.\nDo that."), 1, "Error: Found this. Do that."),
        (ZeroDivisionError("a\nb"), 1, "Error: Unexpected ZeroDivisionError: a b. Run again with '--debug'"),
        (AssertionError(), 1, "Error: Unexpected AssertionError: no message."),
        (MemoryError(), 1, "Error: There is not enough memory."),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9"), 1, "Error: There is not enough memory."),
        (OSError(errno.ENOSPC, "No space left", "out.g6"), 1, "Error: The system refused 'out.g6': No space left."),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
)
def test_every_error_is_one_line(failing: Any, error: BaseException, code: int, message: str) -> None:
    failing(error)
    result = invoke("families")

    assert result.exit_code == code
    assert result.stderr.startswith(message)
    assert result.stderr.count("\n") == 1


def test_a_closed_pipe_ends_the_program_silently(model: Path, graphs: Path) -> None:
    endless = ("sample", "-n", 60_000, "--format", "g6", "-o", "-", "--model", model, "--threads", 1)
    for line, notes in (
        (endless, [f"Model 'ego', of graphs on 5 to 8 nodes, in '{model}': passed as '{model}'."]),
        (("inspect", graphs), []),
    ):
        process = program(*line)
        assert process.stdout is not None
        assert process.stderr is not None
        # A table is printed only after the pipe is closed.
        if line is endless:
            assert len(process.stdout.readline()) > 1
        process.stdout.close()

        assert process.stderr.read().splitlines() == notes
        assert process.wait(timeout=60) == 0


def test_the_version_is_that_of_the_package() -> None:
    assert __version__ in run("--version").stdout


@pytest.mark.parametrize(
    ("line", "problem"), [("inspect - --format g6 <&-", "'-' cannot be read"), ("families >&-", "")]
)
def test_a_stream_that_the_shell_has_closed_is_handled(line: str, problem: str) -> None:
    command = f"'{sys.executable}' -m graphite_gen {line}"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)

    assert result.returncode == bool(problem)
    assert is_one_line(result.stderr) == bool(problem)
    assert problem in result.stderr


def test_an_error_that_quotes_an_argument_is_one_line_of_bounded_length() -> None:
    for value in ("a\nb", "x" * 70_000):
        result = invoke("evaluate", "a.g6", "--reference", "b.g6", "--fail-above", value)
        assert_error(result, "as in ratio=3.", code=2)
        assert len(result.stderr.splitlines()[-1]) < 2100
