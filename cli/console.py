"""Output of the commands: results to stdout, notes and progress to stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import click

from graphite_gen.records import count_of as count_of
from graphite_gen.records import listed

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")

# Without a terminal, the first line of progress is due after 10 seconds, and each further one after half as much again.
PATIENCE = 10.0
LATER = 1.5
# Seconds that are worth an estimate before they pass.
LONG = 60.0


def note(text: str) -> None:
    """Print a line to stderr."""
    click.echo(text, err=True)


def note_label(labels: Sequence[str], chosen: str | None) -> None:
    """Print a line to stderr on the label that colours nodes, if it is the first of several."""
    if chosen is None and len(labels) > 1:
        note(f"Nodes are coloured by '{labels[0]}', the first of {listed(labels)}; '--node-label' chooses another.")


def show_json(value: Any) -> None:
    """Print JSON to stdout; numbers that are not finite become null."""
    finite = json.loads(json.dumps(value), parse_constant=lambda name: None)
    click.echo(json.dumps(finite, indent=2))


def show_rows(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[str] = (), whole: Sequence[str] = ()
) -> None:
    """Print a table to stdout, with some columns aligned right as numbers and others never wrapped."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        right = name in numbers
        table.add_column(name, justify="right" if right else "left", no_wrap=right or name in whole, overflow="fold")
    for row in rows:
        table.add_row(*row)
    show(table)


def show_facts(facts: Iterable[tuple[str, str | None]]) -> None:
    """Print a table of names and values to stdout, without those that have no value."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        if value:
            table.add_row(name, value)
    show(table)


def show(renderable: Any) -> None:
    """Print anything that rich renders to stdout."""
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(renderable)
    # Rich pads every cell to the width of its column.
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()), color=True)


def nats(value: float | None, error: float | None = None) -> str:
    """Format a number in nats with its standard error; a dash if unknown."""
    return "-" if value is None else f"{value:.2f}" if error is None else f"{value:.2f} ± {error:.2f}"


def duration(seconds: float) -> str:
    """Format seconds, as in ``12 min 34 s``."""
    minutes, rest = divmod(round(seconds), 60)

    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def progress_bar(*columns: str) -> Progress:
    """A progress bar on stderr, disabled unless that is a terminal, with further columns by their format."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        *(TextColumn(column) for column in columns),
        TimeRemainingColumn(compact=True),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def track(items: Iterable[T], total: int | None, description: str, at_once: int = 1) -> Iterator[T]:
    """Iterate with progress on stderr: a bar on a terminal, elsewhere a few lines if it takes long.

    Items that come without delay, ``at_once``, are counted together, so that the time left is not overestimated.
    """
    with counting(description) as count:
        count(0, total)
        for done, item in enumerate(items, 1):
            yield item
            if done % at_once == 0 or done == total:
                count(done, total)


def forecast(items: Iterable[T], costs: Sequence[float], description: str) -> Iterator[T]:
    """The items, after a note of the time that all will take if that is long, given their relative costs."""
    iterator, seconds, head = iter(items), 0.0, list[T]()
    # The first item may be slow for other reasons, so the second one decides.
    for cost in costs[:2]:
        started = time.monotonic()
        head += islice(iterator, 1)
        seconds = (time.monotonic() - started) * sum(costs) / cost
        if seconds < LONG:
            break
    else:
        announce(seconds if len(costs) > 2 else 0.0, description)
    yield from head
    yield from iterator


def announce(seconds: float, description: str) -> None:
    """Print an estimate of a time that is long."""
    if seconds >= LONG:
        note(f"{description} will take about {duration(seconds)}. On Ctrl-C, what is done by then is kept.")


@contextmanager
def counting(description: str) -> Iterator[Callable[[int, int | None], None]]:
    """A function to call with the amount done and the total, which shows progress like :func:`track`."""
    if not sys.stderr.isatty():
        yield _count_by_lines(description)
        return
    with progress_bar() as progress:

        def count(done: int, total: int | None) -> None:
            task = progress.task_ids[0] if progress.task_ids else progress.add_task(description)
            progress.update(task, completed=done, total=total)

        yield count


def _count_by_lines(description: str) -> Callable[[int, int | None], None]:
    started, due = time.monotonic(), PATIENCE

    def count(done: int, total: int | None) -> None:
        nonlocal due
        elapsed = time.monotonic() - started
        if elapsed < due or not done or done == total:
            return
        due = LATER * elapsed
        part = str(done) if total is None else f"{done} of {total}"
        rest = "" if total is None else f", about {duration(elapsed / done * (total - done))} left"
        note(f"{description}: {part} after {duration(elapsed)}{rest}.")

    return count
