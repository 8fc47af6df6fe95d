"""The program: commands found by name, and how it ends: exit codes, error messages, workers."""

import importlib
import os
import re
import signal
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import click

from graphite_gen.distributed import group_from_environment, is_spawned
from graphite_gen.errors import did_you_mean

from .advice import explain
from .command import Command
from .sharing import ARGUMENTS, end_with_error, end_worker, end_workers, wait_for_parent, watch_parent
from .signals import exit_code, raise_on_signals

SECTIONS = {
    "Models": ("train", "sample", "complete", "nll", "evaluate", "plot", "report"),
    "Latents": ("encode", "reconstruct", "interpolate"),
    "Graphs and files": ("generate", "families", "convert", "inspect"),
    "One network": ("link", "classify", "embed"),
}
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)
SHARED = ("train", "sample", "nll", "evaluate", "generate")
"""The commands that several processes can run together."""


# What click adds to a number that is out of range.
RANGE = re.compile(r" is not in the range (?:([^<>=]+)<=?)?x(?:>=?([^<>=]+)|<(=?)([^<>=]+))?\.$")


class Program(Command, click.Group):
    """A group of commands in named sections, whose modules are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None

        return getattr(importlib.import_module(f".commands.{cmd_name}", __package__), cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            advice = did_you_mean(args[0], COMMANDS) or "; 'graphite-gen --help' lists the commands"
            ctx.fail(f"No such command '{args[0]}'{advice}.")

        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, names in SECTIONS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [(name.ljust(width), command.get_short_help_str()) for name, command in commands if command]
            with formatter.section(title):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # '--debug' may also follow the command, where it is easiest to add to a command that just failed.
        end = args.index("--") if "--" in args else len(args)
        if "--debug" in args[:end]:
            args = ["--debug", *(arg for arg in args[:end] if arg != "--debug"), *args[end:]]
        ctx.meta[ARGUMENTS] = list(args)

        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        command = next((arg for arg in ctx.meta[ARGUMENTS] if not arg.startswith("-")), None)
        if command not in SHARED and not group_from_environment().is_rank_zero:
            # Rank 0 runs it alone.
            return None
        try:
            value = super().invoke(ctx)
            # Here and not at shutdown, where a closed pipe cannot be handled. None if the shell has closed stdout.
            if sys.stdout is not None:
                sys.stdout.flush()
        except click.ClickException as error:
            error.message = _shortened(_worded(error.message))  # type: ignore[misc]
            raise
        except (click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            # The reader has closed the pipe: discard the rest of the buffer.
            with suppress(OSError, ValueError), Path(os.devnull).open("w") as devnull:
                os.dup2(devnull.fileno(), sys.stdout.fileno())
            ctx.exit(0)
        except (Exception, KeyboardInterrupt) as error:
            wait_for_parent(error)
            if ctx.params["debug"]:
                traceback.print_exc()
            if isinstance(error, Exception):
                end_with_error(error)
            click.echo(_shortened(_line(error)), err=True)
            ctx.exit(exit_code(error) if isinstance(error, KeyboardInterrupt) else 1)

        return value


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(package_name="graphite-gen")
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
def main(debug: bool) -> None:
    """Generative models of graphs, with held-out likelihood estimates.

    \b
    Example:
        graphite-gen train --family barabasi
        graphite-gen sample -n 100 -o out.graphml
        graphite-gen generate --family barabasi --seed 1 -o test.h5
        graphite-gen nll test.h5
    """


def run() -> None:
    """The console script."""
    if not group_from_environment().is_rank_zero:
        _run_worker()
    try:
        _run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
        end_workers(code)
        if code > 128:
            # Threads that still compute would abort the shutdown of the interpreter, and so would a second Ctrl-C.
            sys.stderr.flush()
            os._exit(code)
        raise


def _run_worker() -> NoReturn:
    """Run a rank other than 0, silently, until rank 0 ends."""
    is_failed = True
    try:
        # Ctrl-C reaches all processes of a terminal; rank 0 handles it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if is_spawned():
            watch_parent()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1) if "--debug" in sys.argv else (0, 1, 2):
            os.dup2(null, descriptor)
        _run()
    except SystemExit as end:
        is_failed = bool(end.code)
    finally:
        end_worker(is_failed)


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        # File names may have characters that the terminal cannot show.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        raise_on_signals()
        main(prog_name="graphite-gen")
    except KeyboardInterrupt as error:
        click.echo(_line(error), err=True)
        sys.exit(exit_code(error))


def _line(error: BaseException) -> str:
    """The message for an error."""
    from graphite_gen.errors import GraphiteError

    text = str(error)
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted."
    if isinstance(error, GraphiteError):
        return f"Error: {explain(error)}"
    if isinstance(error, MemoryError) or "allocate memory" in text or "out of memory" in text:
        return "Error: There is not enough memory. Use fewer or smaller graphs, or a smaller batch."
    if isinstance(error, OSError):
        path = f" '{error.filename}'" if error.filename else ""
        return f"Error: The system refused{path}: {error.strerror or text or type(error).__name__}."

    return f"Error: Unexpected {type(error).__name__}: {text or 'no message'}. Run again with '--debug' for details."


def _worded(message: str) -> str:
    """The message of click for a number that is none or out of range, in plain words."""
    message = message.replace("a valid integer range.", "a whole number.").replace("a valid float range.", "a number.")
    match = RANGE.search(message)
    if match is None:
        return message
    low, high = match[1] or match[2], match[4]
    words = [f"at least {low}"] * bool(low) + [f"{'at most' if match[3] else 'less than'} {high}"] * bool(high)

    return f"{message[: match.start()]}; expected {' and '.join(words)}."


def _shortened(text: str) -> str:
    """A message on one line of bounded length; it may quote an argument or a file."""
    line = " ".join(text.split())

    return line if len(line) <= 2000 else f"{line[:1500]} … {line[-400:]}"
