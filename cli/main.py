"""The program: commands found by name, and every way a run can end."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import traceback
from contextlib import suppress
from typing import Any, NoReturn

import click

from graphite_gen.distributed import (
    GRACE,
    SINGLE_PROCESS,
    ProcessGroup,
    dismiss,
    has_joined,
    is_connected,
    is_hired,
    leave,
    place,
    take_up_work,
)
from graphite_gen.errors import DistributedError

from .advice import explain
from .command import CommandGroup
from .sharing import ARGUMENTS, GROUP
from .signals import exit_code, heed_signals

__all__ = ["main", "run"]

SECTIONS = {
    "Models": ("train", "sample", "complete", "nll", "evaluate", "plot", "report"),
    "Graphs and files": ("generate", "families", "convert", "inspect"),
    "One network": ("link", "classify", "embed"),
}
COMMANDS = tuple(name for names in SECTIONS.values() for name in names)
SHARED = ("train", "sample", "nll", "evaluate", "generate")
"""The commands whose work processes can share."""


class Program(CommandGroup):
    """A group whose commands are modules that are imported when they are asked for."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f".commands.{cmd_name}", __package__)
        command: click.Command = getattr(module, cmd_name)

        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # '--debug' is welcome after the command too: there it is easiest to add to a line that just failed.
        end = args.index("--") if "--" in args else len(args)
        if "--debug" in args[:end]:
            args = ["--debug", *(arg for arg in args[:end] if arg != "--debug"), *args[end:]]
        ctx.meta[ARGUMENTS] = list(args)

        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        command = next((arg for arg in ctx.meta[ARGUMENTS] if not arg.startswith("-")), None)
        if command not in SHARED and not place().is_rank_zero:
            # One process is enough.
            return None
        try:
            value = super().invoke(ctx)
            # Here, not at shutdown, where a closed pipe could only be complained about. There is none if the shell
            # closed it.
            if sys.stdout is not None:
                sys.stdout.flush()
        except click.ClickException as error:
            error.message = _shortened(error.message)  # type: ignore[misc]
            raise
        except (click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            _discard_stdout()
            ctx.exit(0)
        except (Exception, KeyboardInterrupt) as error:
            if ctx.params["debug"]:
                traceback.print_exc()
            if isinstance(error, Exception):
                _tell(ctx.meta.get(GROUP, SINGLE_PROCESS), error)
            click.echo(_shortened(_line(error)), err=True)
            ctx.exit(exit_code(error) if isinstance(error, KeyboardInterrupt) else 1)

        return value


@click.group(
    cls=Program,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=True,
)
@click.version_option(package_name="graphite-gen")
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
def main(debug: bool) -> None:
    """Generative models of graphs, with honest likelihoods.

    \b
    Example:
        graphite-gen train --family barabasi
        graphite-gen sample -n 100 -o out.graphml
        graphite-gen generate --family barabasi --seed 1 -o test.h5
        graphite-gen nll test.h5
    """


def run() -> None:
    """The console script."""
    if not place().is_rank_zero:
        _run_behind()
    try:
        _run()
    except SystemExit as end:
        if not end.code:
            dismiss()
            leave()
        raise


def _run_behind() -> NoReturn:
    """Run where another process leads: end with it, and as well as it does."""
    code: object = 1
    try:
        _follow()
        _run()
    except SystemExit as end:
        code = end.code
        _await_end(code)
    finally:
        # No clearing up: it could keep the one that leads from telling how it went.
        os._exit(1 if code else 0)


def _await_end(code: object) -> None:
    """Wait for the process that leads to end, and this one with it; not for ever where that may be waiting for it."""
    # Work that was delivered, or an error in its stead, is taken when its turn comes; a sum is waited for.
    is_expected = not code or (code == 1 and not has_joined())
    if is_connected() and is_expected:
        threading.Event().wait()
    elif code:
        # So long that the other can speak first: when this process fails, torchrun stops all.
        threading.Event().wait(GRACE)


def _follow() -> None:
    """Leave it to the process that leads to speak, to read and to be interrupted."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if is_hired():
        take_up_work()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1) if "--debug" in sys.argv else (0, 1, 2):
        os.dup2(nowhere, number)


def _tell(group: ProcessGroup, error: Exception) -> None:
    """Have the process that leads say what went wrong here."""
    if not group.is_rank_zero and not isinstance(error, DistributedError):
        with suppress(DistributedError):
            group.tell(error)


def _run() -> None:
    for stream in (sys.stdout, sys.stderr):
        # A file name or a sign that the terminal cannot show is no reason to fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        heed_signals()
        main(prog_name="graphite-gen")
    except KeyboardInterrupt as error:
        click.echo(_line(error), err=True)
        sys.exit(exit_code(error))


def _line(error: BaseException) -> str:
    """What to tell the user, on one line."""
    from graphite_gen.errors import GraphiteError

    text = " ".join(str(error).split())
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted."
    if isinstance(error, GraphiteError):
        return "Error: " + " ".join(explain(error).split())
    if isinstance(error, MemoryError) or "allocate memory" in text or "out of memory" in text:
        return "Error: There is not enough memory. Use fewer or smaller graphs, or a smaller batch."
    if isinstance(error, OSError):
        place = f" '{error.filename}'" if error.filename else ""
        return f"Error: The system refused{place}: {error.strerror or text or type(error).__name__}."

    return f"Error: Unexpected {type(error).__name__}: {text or 'no message'}. Run again with '--debug' for details."


def _shortened(text: str) -> str:
    """A message on one line of bounded length: what a user or a file says stands in it."""
    line = " ".join(text.split())

    return line if len(line) <= 2000 else f"{line[:1500]} … {line[-400:]}"


def _discard_stdout() -> None:
    """Let what is left in the buffer go nowhere: the reader has had enough."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
    finally:
        os.close(devnull)
