"""What is in a file of graphs or in a checkpoint."""

from pathlib import Path

import click

from .. import options
from ..command import command
from ..types import PATH_OR_NAME


@command(short_help="Summarise a file of graphs or a model.")
@click.argument("thing", metavar="[FILE_OR_MODEL]", type=PATH_OR_NAME, required=False)
@options.all_of(options.input_format(), options.simplify, options.as_json)
def inspect(thing: str | None, format: str | None, simplify: bool, as_json: bool) -> None:
    """Summarise a file or folder of graphs, or a model; list the models of a folder, without an argument all models.

    \b
    Example:
        graphite-gen inspect
        graphite-gen inspect test.h5
        graphite-gen inspect my-graphs/
        graphite-gen inspect barabasi
    """
    from graphite_gen.api import LOCAL
    from graphite_gen.training.checkpoint import find_checkpoint

    from ..summaries import is_model, list_models, show_summary, summarise_graphs, summarise_model

    if thing is None:
        return list_models(as_json)
    if is_model(thing):
        return show_summary(summarise_model(find_checkpoint(thing, LOCAL)), as_json)
    if any(Path(thing).glob("*/config.json")):
        return list_models(as_json, Path(thing))

    return show_summary(summarise_graphs(Path(thing), format, simplify), as_json)
