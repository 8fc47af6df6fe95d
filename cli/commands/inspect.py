"""What is in a file of graphs or in a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .. import options
from ..command import Command
from ..types import PATH_OR_NAME


@click.command(cls=Command, short_help="Show what is in a file or a checkpoint.")
@click.argument("thing", metavar="[FILE_OR_CHECKPOINT]", type=PATH_OR_NAME, required=False)
@options.input_format()
@options.simplify
@options.as_json
def inspect(thing: str | None, format: str | None, simplify: bool, as_json: bool) -> None:
    """Show what is in a file of graphs or a checkpoint; without an argument, list the models at hand.

    \b
    Example:
        graphite-gen inspect
        graphite-gen inspect test.h5
        graphite-gen inspect barabasi
    """
    from ..describing import describe_graphs, describe_model, is_model, list_models, show_description

    if thing is None:
        return list_models(as_json)
    description: dict[str, Any] = (
        describe_model(thing) if is_model(thing) else describe_graphs(Path(thing), format, simplify)
    )

    return show_description(description, as_json)
