"""Options for constraints on sampled graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from .options import number
from .types import DEGREES

if TYPE_CHECKING:
    from graphite_gen.sampling import Constraint

__all__ = ["build", "options"]

_flag = functools.partial(click.option, is_flag=True)
_number = functools.partial(number, low=0)
# By parameter name, which in camel case is the class of the constraint; options that are no flags take a value.
_OPTIONS: Mapping[str, Callable[..., Any]] = {
    "tree": _flag("--tree", help="Every graph is a tree."),
    "regular": _number("--regular", metavar="D", help="Every node has D neighbours."),
    "degrees": click.option(
        "--degrees", type=DEGREES, metavar="LIST|FILE", help="Node i has the i-th degree, as in 3,2,2,1."
    ),
    "connected": _flag("--connected", help="Every graph is connected."),
    "acyclic": _flag("--acyclic", help="No graph has a cycle."),
    "planar": _flag("--planar", help="Every graph is planar."),
    "edges": _number("--edges", metavar="M", help="Every graph has M edges."),
    "max_degree": _number("--max-degree", metavar="D", help="No node has more than D neighbours."),
}


def options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which receives those given as one mapping, ``constraints``."""

    @functools.wraps(command)
    def collected(**values: Any) -> None:
        given = {name: values.pop(name) for name in _OPTIONS}
        command(constraints={k: v for k, v in given.items() if v is not None and v is not False}, **values)

    return functools.reduce(lambda result, option: option(result), reversed([*_OPTIONS.values()]), collected)


def build(used: Mapping[str, Any]) -> list[Constraint]:
    """Make the constraints of the options given."""
    from graphite_gen import sampling

    kinds = {name: getattr(sampling, name.title().replace("_", "")) for name in used}

    return [kinds[name]() if value is True else kinds[name](value) for name, value in used.items()]
