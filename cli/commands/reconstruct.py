"""Graphs decoded from their own latents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import command
from ..console import count_of, show_json, show_rows
from ..types import PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.sampling.reconstruction import Reconstruction

ROWS = {"reconstruction": "recovery", "latents from the prior": "prior", "random pairs": "chance"}


@command(
    short_help="Decode graphs from their own latents.",
    groups={"Model": "model seed", "Output": "output output_format union force as_json"},
)
@click.argument("graphs", type=PATH_OR_DASH)
@options.file(*("-o", "--output"), help="File for the decoded graphs, such as 'out.graphml'.")
@options.all_of(options.output_format("--output-format"), options.model, options.input_format(), options.simplify)
@options.all_of(options.ignore_weights, options.union, options.force, options.seed, options.device, options.threads)
@options.as_json
def reconstruct(graphs: Path, output: Path | None, model: str | None, force: bool, seed: int, **rest: Any) -> None:
    """Encode GRAPHS, decode them from a draw of their latents, and show how many edges come back.

    Precision is the proportion of decoded edges that are edges of the graph, recall that of its edges that are decoded.
    Below are the same for latents from the prior, with the same node orderings, and what random pairs would give.

    \b
    Example:
        graphite-gen generate --family geometric --graphs 20 -o graphs.h5
        graphite-gen reconstruct graphs.h5 --model geometric-one-shot -o out.graphml
    """
    from graphite_gen.io import check_output

    if output is not None:
        check_output(output, format=rest["output_format"], force=force, union=rest["union"])
    elif rest["output_format"] is not None:
        raise click.UsageError("'--output-format' needs '-o'.")
    elif rest["union"]:
        raise click.UsageError("'--union' needs '-o'.")

    from graphite_gen.records import Provenance
    from graphite_gen.sampling.reconstruction import reconstruct as decode_again

    from ..model_choice import choose_model
    from ..reading import read_with_options
    from ..writing import write

    found, family = read_with_options(graphs, rest)
    trained = choose_model(model, rest["device"], prefer=family)
    result = decode_again(trained, found, seed)
    if output is not None:
        provenance = Provenance(source="reconstruct", model=trained.name, seed=seed)
        target = {"format": rest["output_format"], "union": rest["union"], "force": force}
        write(result.graphs, output, provenance=provenance, **target)
    (show_json(result.to_json()) if rest["as_json"] else _show(result))


def _show(result: Reconstruction) -> None:
    parts = {title: getattr(result, name) for title, name in ROWS.items()}
    rows = [
        (title, *("-" if value is None else f"{value:.1%}" for value in (part.precision, part.recall)))
        for title, part in parts.items()
        if part is not None
    ]
    show_rows((count_of(len(result.graphs), "graph"), "precision", "recall"), rows, numbers=("precision", "recall"))
