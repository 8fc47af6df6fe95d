"""What is in a file of graphs or in a checkpoint."""

from __future__ import annotations

from pathlib import Path

import click

from .. import options
from ..command import Command
from ..types import PATH_OR_NAME


@click.command(cls=Command, short_help="Summarise a file of graphs or a model.")
@click.argument("thing", metavar="[FILE_OR_MODEL]", type=PATH_OR_NAME, required=False)
@options.input_format()
@options.simplify
@options.as_json
def inspect(thing: str | None, format: str | None, simplify: bool, as_json: bool) -> None:
    """Summarise a file of graphs or a model; without an argument, list all models.

    \b
    Example:
        graphite-gen inspect
        graphite-gen inspect test.h5
        graphite-gen inspect barabasi
    """
    from ..summaries import is_model, list_models, show_summary, summarise_graphs, summarise_model

    if thing is None:
        return list_models(as_json)
    summary = summarise_model(thing) if is_model(thing) else summarise_graphs(Path(thing), format, simplify)

    return show_summary(summary, as_json)
