"""A progress bar for runs that are started from Python."""

from __future__ import annotations

from collections.abc import Iterator

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
    hidden = not (console.is_terminal or console.is_jupyter)
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console, disable=hidden) as bar:
        task = bar.add_task("starting", total=trainer.length.epochs, completed=trainer.epoch)

        def show_pilot() -> None:
            if ordering := trainer.status.pilot:
                bar.update(task, description=f"comparing node orderings: {ordering}")

        trainer.watch = show_pilot
        for record in trainer:
            validation = "" if record.best is None else f", best validation {record.best:.2f}"
            figures = f"loss {record.loss:.2f}{validation}"
            # A budget may change the number of epochs.
            bar.update(task, total=trainer.length.epochs, completed=record.epoch, description=figures)
            yield record
