"""Options that commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from .command import Option
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
    "nodes",
    "number",
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
    """Whether an option was passed on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_without_effect(flags: Mapping[str, str], on: str) -> None:
    """Raise a usage error if one of the options, given as flag by name, was passed."""
    for name, flag in flags.items():
        if is_given(name):
            raise click.UsageError(f"'{flag}' has no effect on {on}. Leave it out.")


_format = partial(click.option, cls=Option, type=click.Choice(FORMATS, case_sensitive=False))


def input_format(flag: str = "--format") -> Callable[[F], F]:
    """The format of the graphs read."""
    return _format(flag, role="input_format", help="Input format.  [default: by suffix]")


def output_format(flag: str = "--format", default: str = "by suffix") -> Callable[[F], F]:
    """The format of the graphs written."""
    return _format(flag, role="output_format", help=f"Output format.  [default: {default}]")


def number(*names: str, help: str, low: int = 1, default: int | None = None, metavar: str = "N") -> Callable[[F], F]:
    """A whole number with a lower bound."""
    return click.option(
        *names, type=click.IntRange(low), metavar=metavar, default=default, show_default=True, help=help
    )


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
    help="Parameter of the family, as in m=3; may be repeated.  [default: see 'graphite-gen families']",
)
model = click.option(
    "--model",
    type=PATH_OR_NAME,
    metavar="PATH_OR_NAME",
    help="Model.  [default: the last one trained under ./checkpoints, else a bundled one]",
)
seed = click.option("--seed", type=SEED, metavar="N", default=0, show_default=True, help="Random seed.")
device = click.option(
    "--device", type=click.Choice(("auto", "cpu", "cuda")), default="auto", show_default=True, help="Device."
)
threads = click.option("--threads", type=click.IntRange(1, 4096), metavar="N", help="CPU threads.  [default: all]")
workers = click.option(
    "--workers",
    type=click.IntRange(1, 256),
    metavar="N",
    default=1,
    show_default=True,
    help="Worker processes on this machine; the result does not depend on their number.",
)
simplify = click.option(
    "--simplify",
    is_flag=True,
    help="Ignore edge directions, self-loops and repeated edges.  [default: such graphs are an error]",
)
ignore_weights = click.option(
    "--ignore-weights", is_flag=True, help="Ignore edge weights.  [default: weighted graphs need a weighted model]"
)
force = click.option("--force", is_flag=True, help="Overwrite existing files.")
decoding_steps = click.option("--stages", "decoding_steps", type=DECODING_STEPS, hidden=True)
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
union = click.option(
    "--union", is_flag=True, help="Write one graph, the disjoint union, with a node attribute 'graph'."
)
output = click.option(
    "-o",
    "--output",
    type=PATH_OR_DASH,
    required=True,
    help="File, '-' for stdout, or a template such as 'out/{index:04d}.graphml' for one file per graph.",
)
