"""Options for constraints on sampled graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from .types import DEGREES

if TYPE_CHECKING:
    from graphite_gen.sampling import Constraint

__all__ = ["build", "options"]

# The class of each constraint and its option; options that are no flags take a value.
_OPTIONS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "tree": ("Tree", click.option("--tree", is_flag=True, help="Every graph is a tree.")),
    "regular": (
        "Regular",
        click.option("--regular", type=click.IntRange(0), metavar="D", help="Every node has D neighbours."),
    ),
    "degrees": (
        "Degrees",
        click.option("--degrees", type=DEGREES, metavar="LIST|FILE", help="Node i has the i-th degree, as in 3,2,2,1."),
    ),
    "connected": ("Connected", click.option("--connected", is_flag=True, help="Every graph is connected.")),
    "acyclic": ("Acyclic", click.option("--acyclic", is_flag=True, help="No graph has a cycle.")),
    "planar": ("Planar", click.option("--planar", is_flag=True, help="Every graph is planar.")),
    "edges": ("Edges", click.option("--edges", type=click.IntRange(0), metavar="M", help="Every graph has M edges.")),
    "max_degree": (
        "MaxDegree",
        click.option("--max-degree", type=click.IntRange(0), metavar="D", help="No node has more than D neighbours."),
    ),
}


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which receives those given as one mapping, ``constraints``."""

    @functools.wraps(command)
    def collected(**values: Any) -> None:
        given = {name: values.pop(name) for name in _OPTIONS}
        used = {name: value for name, value in given.items() if value is not None and value is not False}
        command(constraints=used, **values)

    for _, option in reversed(list(_OPTIONS.values())):
        collected = option(collected)

    return collected


def build(used: Mapping[str, Any]) -> list[Constraint]:
    """Make the constraints of the options given."""
    from graphite_gen import sampling

    return [getattr(sampling, _OPTIONS[name][0])(*(() if value is True else (value,))) for name, value in used.items()]
