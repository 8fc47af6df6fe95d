"""Options that commands share, and the types of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from .types import DECODING_STEPS, NODES, PARAMETER, PATH_OR_DASH, PATH_OR_NAME, SEED

__all__ = [
    "FORMATS",
    "as_json",
    "decoding_steps",
    "device",
    "family",
    "force",
    "ignore_weights",
    "input_format",
    "is_given",
    "model",
    "naming_format",
    "nodes",
    "output",
    "output_format",
    "parameters",
    "refuse_without_effect",
    "seed",
    "simplify",
    "threads",
    "union",
    "workers",
]

FORMATS = ("graphml", "h5", "g6", "s6", "jsonl", "gml", "edgelist")

F = TypeVar("F", bound=Callable[..., Any])


def is_given(name: str) -> bool:
    """Whether the command was given that option, rather than left to its default."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_without_effect(flags: Mapping[str, str], on: str) -> None:
    """Refuse options that were given and change nothing.

    Arguments:
        flags: The flag of each option by its name.
        on: What they have no effect on.

    Raises:
        click.UsageError: One was given.
    """
    for name, flag in flags.items():
        if is_given(name):
            raise click.UsageError(f"'{flag}' has no effect on {on}. Leave it out.")


def _format(flag: str, help: str) -> Callable[[F], F]:
    return click.option(flag, type=click.Choice(FORMATS, case_sensitive=False), help=help)


def input_format(flag: str = "--format") -> Callable[[F], F]:
    """The format of the graphs read."""
    return _format(flag, "Format of the graphs read.  [default: by suffix]")


def output_format(flag: str = "--format") -> Callable[[F], F]:
    """The format of the graphs written."""
    return _format(flag, "Format of the graphs written.  [default: by suffix]")


@contextmanager
def naming_format(flag: str) -> Iterator[None]:
    """Let errors about a file advise the option by which this command is told its format."""
    from graphite_gen.errors import FormatError

    try:
        yield
    except FormatError as error:
        raise FormatError(str(error).replace("pass --format", f"pass {flag}")) from error


def nodes(default: str | None, help: str) -> Callable[[F], F]:
    """The sizes of graphs."""
    return click.option("--nodes", type=NODES, metavar="N|LOW:HIGH", default=default, show_default=True, help=help)


def family(help: str, required: bool = False) -> Callable[[F], F]:
    """A family by name or alias."""
    return click.option("--family", metavar="NAME", required=required, help=help)


parameters = click.option(
    "--param",
    "parameters",
    type=PARAMETER,
    metavar="KEY=VALUE",
    multiple=True,
    help="A parameter of the family, as in m=3 or largest_component=true; may be repeated.  [default: the family's]",
)
model = click.option(
    "--model",
    type=PATH_OR_NAME,
    metavar="PATH_OR_NAME",
    help="The model.  [default: the last one trained under ./checkpoints, else a bundled one]",
)
seed = click.option(
    "--seed", type=SEED, metavar="N", default=0, show_default=True, help="The run's one seed, at least 0."
)
device = click.option(
    "--device", type=click.Choice(("auto", "cpu", "cuda")), default="auto", show_default=True, help="Where to compute."
)
threads = click.option("--threads", type=click.IntRange(1, 4096), metavar="N", help="CPU threads.  [default: all]")
workers = click.option(
    "--workers",
    type=click.IntRange(1, 256),
    metavar="N",
    default=1,
    show_default=True,
    help="Processes on this machine that share the work; the result is the same.",
)
simplify = click.option(
    "--simplify", is_flag=True, help="Ignore directions, drop self-loops and repeated edges.  [default: refuse them]"
)
ignore_weights = click.option(
    "--ignore-weights", is_flag=True, help="Take the edges alone.  [default: weighted graphs need a weighted model]"
)
force = click.option("--force", is_flag=True, help="Replace what exists.  [default: refuse]")
decoding_steps = click.option(
    "--stages",
    "decoding_steps",
    type=DECODING_STEPS,
    metavar="N|all",
    help="In how many stages a staged model decides; 'all' is one pair at a time.  [default: the model's]",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.  [default: a table]")
union = click.option("--union", is_flag=True, help="Write one graph, the disjoint union; nodes say which 'graph'.")
output = click.option(
    "-o",
    "--output",
    type=PATH_OR_DASH,
    required=True,
    help="A file, '-' for stdout, or a template like 'out/{index:04d}.graphml' for one file each.",
)
