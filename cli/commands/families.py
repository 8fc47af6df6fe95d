"""The families, their parameters and floors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import Command

if TYPE_CHECKING:
    from graphite_gen.families import Family

SIZES = range(10, 21)


@click.command(cls=Command, short_help="List the families of random graphs.")
@options.as_json
def families(as_json: bool) -> None:
    """List the families, their parameters and their floors.

    The floor is the mean of -log p(A|n) under the true law in nats per graph, over graphs of 10 to 20 nodes; blank
    where it has no closed form. Parameters are those that '--param' changes; 'largest_component=true' keeps the largest
    component of each draw, so that graphs may have fewer nodes than asked for and another floor than the one here.

    \b
    Example:
        graphite-gen families
        graphite-gen generate --family barabasi --param m=3 -o ba.h5
    """
    from graphite_gen.families import FAMILIES

    from ..console import show_json, show_rows

    rows = [_describe(kind()) for kind in FAMILIES.values()]
    if as_json:
        return show_json(rows)

    return show_rows(
        ("family", "parameters", "floor", "what it is"),
        [
            (
                "\n".join((row["name"], *(f"  or {alias}" for alias in row["aliases"]))),
                "\n".join(f"{key}={_shown(value)}" for key, value in row["parameters"].items()),
                "" if row["floor"] is None else f"{row['floor']:.2f}",
                row["summary"],
            )
            for row in rows
        ],
        numbers=("floor",),
        whole=("family", "parameters"),
    )


def _describe(law: Family) -> dict[str, Any]:
    return {
        "name": law.name,
        "aliases": list(law.aliases),
        "parameters": law.parameters(),
        "summary": law.summary,
        "has_law": law.has_law,
        "floor": _floor(law),
    }


def _floor(law: Family) -> float | None:
    """The mean floor over the sizes the family has, where it has a closed form."""
    from graphite_gen.errors import FamilyError

    values = []
    for n in SIZES:
        try:
            values.append(law.floor(n))
        except FamilyError:
            continue
    known = [value for value in values if value is not None]

    return sum(known) / len(known) if known and len(known) == len(values) else None


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
