"""The processes that share a command's work: those that '--workers' starts, or that torchrun did."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from graphite_gen.crew import Crew

__all__ = ["ARGUMENTS", "CREW", "gather", "use_one_thread"]

ARGUMENTS = "graphite_gen.arguments"
"""Where the context of a command keeps the whole line."""

CREW = "graphite_gen.crew"
"""Where it keeps the processes that share the work."""


def gather(workers: int) -> Crew:
    """The processes that share this command's work, this one among them; those that were hired end with it.

    From here on, only the one that leads may read standard input, write and refuse anything.

    Raises:
        click.UsageError: torchrun has started some, and more were asked for.
    """
    from graphite_gen.crew import place
    from graphite_gen.hiring import hire, is_hired

    context = click.get_current_context()
    crew = place()
    if workers > 1 and crew.size > 1 and not is_hired():
        raise click.UsageError(
            f"'--workers' has no effect under torchrun, which has started {crew.size} processes already. Leave it out."
        )
    if workers > 1 and crew.size == 1:
        arguments = context.meta[ARGUMENTS]
        crew = context.with_resource(hire(workers, arguments, speaking="--debug" in arguments))
    context.meta[CREW] = crew

    return crew


def use_one_thread() -> None:
    """Have matrices multiplied on one thread, unless the user has said on how many.

    The last digits of a product depend on how many threads share it, and processes have other numbers of them than one
    process alone. It has to be said before anything multiplies.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
