"""The processes that share a command's work: those that '--workers' starts, or that torchrun did."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from graphite_gen.distributed import ProcessGroup

__all__ = ["ARGUMENTS", "GROUP", "gather", "use_one_thread"]

ARGUMENTS = "graphite_gen.arguments"
"""Where the context of a command keeps the whole line."""

GROUP = "graphite_gen.distributed"
"""Where it keeps the processes that share the work."""


def gather(workers: int) -> ProcessGroup:
    """The processes that share this command's work, this one among them; those that were hired end with it.

    From here on, only the one that leads may read standard input, write and refuse anything.

    Raises:
        click.UsageError: torchrun has started some, and more were asked for.
    """
    from graphite_gen.distributed import hire, is_hired, place

    context = click.get_current_context()
    group = place()
    if workers > 1 and group.size > 1 and not is_hired():
        raise click.UsageError(
            f"'--workers' has no effect under torchrun, which has started {group.size} processes already. Leave it out."
        )
    if workers > 1 and group.size == 1:
        arguments = context.meta[ARGUMENTS]
        group = context.with_resource(hire(workers, arguments, speaking="--debug" in arguments))
    context.meta[GROUP] = group

    return group


def use_one_thread() -> None:
    """Have matrices multiplied on one thread, unless the user has said on how many.

    The last digits of a product depend on how many threads share it, and processes have other numbers of them than one
    process alone. It has to be said before anything multiplies.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
