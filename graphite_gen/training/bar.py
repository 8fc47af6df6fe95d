"""A progress bar for runs that are started from Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..records import TrainRecord
from .trainer import Trainer

__all__ = ["with_bar"]


def with_bar(trainer: Trainer) -> Iterator[TrainRecord]:
    """The records of a run, with a progress bar on stderr if that is a terminal, or in a notebook."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (TextColumn("Epoch"), BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}"))
    # In notebooks rich needs ipywidgets; the display of IPython, which is always there, does without.
    hidden = console.is_jupyter or not console.is_terminal
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, disable=hidden) as bar:
        task = bar.add_task("starting", total=trainer.length.epochs, completed=trainer.epoch)
        handle: Any = None
        if console.is_jupyter:
            import IPython.display

            # Untyped where IPython is installed.
            display: Any = IPython.display.display
            handle = display(bar.make_tasks_table(bar.tasks), display_id=True)

        def update(text: str) -> None:
            # A budget may change the number of epochs.
            bar.update(task, total=trainer.length.epochs, completed=trainer.epoch, description=text)
            if handle is not None:
                handle.update(bar.make_tasks_table(bar.tasks))

        def show_pilot() -> None:
            text = f"comparing node orderings: {trainer.status.pilot}"
            if trainer.status.pilot and text != bar.tasks[0].description:
                update(text)

        trainer.watch = show_pilot
        for record in trainer:
            validation = "" if record.best is None else f", best validation {record.best:.2f}"
            update(f"loss {record.loss:.2f}{validation}")
            yield record
