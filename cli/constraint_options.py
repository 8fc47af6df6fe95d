"""Options for constraints on sampled graphs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from .options import all_of, flag, number
from .types import DEGREES

if TYPE_CHECKING:
    from graphite_gen.sampling import Constraint

_number = partial(number, low=0)
# By parameter name, which in camel case is the class of the constraint; options that are no flags take a value.
_OPTIONS: Mapping[str, Any] = {
    "tree": flag("--tree", help="Every graph is a tree."),
    "regular": _number("--regular", metavar="D", help="Every node has D neighbours."),
    "degrees": click.option("--degrees", type=DEGREES, help="Degree of each node, as in 3,2,2,1, or a file with them."),
    "connected": flag("--connected", help="Every graph is connected."),
    "acyclic": flag("--acyclic", help="No graph has a cycle."),
    "dag": flag("--dag", help="No directed graph has a directed cycle."),
    "planar": flag("--planar", help="Every graph is planar."),
    "edges": _number("--edges", metavar="M", help="Every graph has M edges."),
    "max_degree": _number("--max-degree", metavar="D", help="No node has more than D neighbours."),
}

options = all_of(*_OPTIONS.values())


def used(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the constraints that were given, by parameter name."""
    return {name: values[name] for name in _OPTIONS if values[name] is not None and values[name] is not False}


def build(constraints: Mapping[str, Any]) -> list[Constraint]:
    """Make the constraints of the options given."""
    from graphite_gen import sampling

    kinds = {name: getattr(sampling, name.title().replace("_", "")) for name in constraints}

    return [kinds[name]() if value is True else kinds[name](value) for name, value in constraints.items()]
