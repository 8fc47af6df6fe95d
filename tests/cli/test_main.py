from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from graphite_gen.cli.main import COMMANDS, main
from graphite_gen.errors import GraphiteError

from .conftest import Invoke, assert_error, is_one_line, program


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make 'families' raise an exception."""

    def fail_with(error: BaseException) -> None:
        @click.command()
        def families() -> None:
            raise error

        monkeypatch.setattr(type(main), "get_command", lambda self, ctx, name: families)

    return fail_with


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_shows_defaults_and_ends_with_an_example(invoke: Invoke, command: str) -> None:
    result = invoke(command, "--help")
    options, _, example = result.stdout.partition("Example:\n")

    assert result.exit_code == 0
    assert "--help" in options
    assert "[default: " in options
    assert all(line.strip().startswith("graphite-gen ") for line in example.splitlines() if line)
    assert f"graphite-gen {command}" in example


def test_an_unknown_command_or_option_is_a_usage_error(invoke: Invoke) -> None:
    assert invoke("frobnicate").exit_code == 2
    assert invoke("families", "--frobnicate").exit_code == 2


def test_an_error_that_the_user_can_fix_is_one_line_and_exit_code_1(invoke: Invoke, failing: Any) -> None:
    failing(GraphiteError("Found this.\nDo that."))
    result = invoke("families")

    assert result.exit_code == 1
    assert result.stderr == "Error: Found this. Do that.\n"


@pytest.mark.parametrize("line", [("--debug", "families"), ("families", "--debug")])
def test_debug_shows_the_traceback_before_or_after_the_command(
    invoke: Invoke, failing: Any, line: tuple[str, ...]
) -> None:
    failing(GraphiteError("Found this."))
    result = invoke(*line)

    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert result.stderr.endswith("Error: Found this.\n")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ZeroDivisionError("a\nb"), "ZeroDivisionError: a b"),
        (AssertionError(), "AssertionError"),
        (MemoryError(), "memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: 9"), "memory"),
        (OSError(errno.ENOSPC, "No space left on device", "out.g6"), "'out.g6': No space left on device."),
    ],
)
def test_any_other_error_is_one_line_too(invoke: Invoke, failing: Any, error: BaseException, words: str) -> None:
    failing(error)
    assert_error(invoke("families"), words)


def test_an_unexpected_error_suggests_debug(invoke: Invoke, failing: Any) -> None:
    failing(KeyError("x"))

    assert "'--debug'" in invoke("families").stderr


def test_an_interrupt_is_one_line_and_exit_code_130(invoke: Invoke, failing: Any) -> None:
    failing(KeyboardInterrupt())
    result = invoke("families")

    assert result.exit_code == 130
    assert result.stderr == "Interrupted.\n"


def test_a_closed_pipe_ends_the_program_silently(model: Path) -> None:
    process = program("sample", "-n", 1_000_000, "--format", "g6", "-o", "-", "--model", model, "--threads", 1)
    assert process.stdout is not None
    assert process.stderr is not None
    first = process.stdout.readline()
    process.stdout.close()

    assert len(first) > 1
    assert process.stderr.read().splitlines() == [f"Model 'ego' in '{model}': passed as '{model}'."]
    assert process.wait(timeout=60) == 0


def test_a_pipe_that_closes_before_a_table_ends_the_program_silently(graphs: Path) -> None:
    process = program("inspect", graphs)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()

    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 0


def test_the_version_is_that_of_the_package() -> None:
    from graphite_gen import __version__

    assert __version__ in CliRunner().invoke(main, ["--version"]).stdout


@pytest.mark.parametrize(
    ("line", "problem"), [("inspect - --format g6 <&-", "'-' cannot be read"), ("families >&-", "")]
)
def test_a_stream_that_the_shell_has_closed_is_handled(line: str, problem: str) -> None:
    command = f"'{sys.executable}' -m graphite_gen {line}"
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)

    assert result.returncode == bool(problem)
    assert is_one_line(result.stderr) == bool(problem)
    assert problem in result.stderr


def test_an_error_that_quotes_an_argument_is_one_line_of_bounded_length(invoke: Invoke) -> None:
    for value in ("a\nb", "x" * 70_000):
        result = invoke("evaluate", "a.g6", "--reference", "b.g6", "--fail-above", value)

        assert result.exit_code == 2
        last = result.stderr.splitlines()[-1]
        assert last.startswith("Error: Invalid value")
        assert last.endswith("as in ratio=3.")
        assert len(last) < 2100


def test_degrees_are_not_read_from_a_device(invoke: Invoke) -> None:
    assert_error(invoke("sample", "-o", "a.g6", "--degrees", "/dev/zero"), "list of degrees", code=2)
