"""Latents of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .. import options
from ..command import command
from ..console import count_of, note, track
from ..types import PATH_OR_DASH


@command(
    short_help="Encode graphs to latents.",
    groups={"Model": "model seed", "Output": "output force"},
)
@click.argument("graphs", type=PATH_OR_DASH)
@options.file_or_dash(
    *("-o", "--output"),
    required=True,
    help="File for the latents: '.h5', '.npz', '.csv' or '.jsonl'; '-' is CSV on stdout.",
)
@options.all_of(options.model, options.input_format(), options.simplify, options.ignore_weights, options.force)
@options.all_of(options.seed, options.device, options.threads)
def encode(graphs: Path, output: Path, model: str | None, force: bool, seed: int, **rest: Any) -> None:
    """Encode GRAPHS: posterior means and standard deviations of the latents of each node, and a vector of each graph.

    Node numbers have no influence: the random features of the encoder are those of '--seed' for every graph, assigned
    to nodes by their place in its structure. Only latents of the same seed are comparable.

    \b
    Example:
        graphite-gen generate --family barabasi --graphs 20 -o graphs.h5
        graphite-gen encode graphs.h5 --model barabasi-one-shot -o z.h5
        graphite-gen sample --latents z.h5 --model barabasi-one-shot -o decoded.graphml
    """
    from graphite_gen.io.latents import check_latents_target, write_latents

    check_latents_target(output, force=force)

    from graphite_gen.evaluation.activity import latent_activity
    from graphite_gen.sampling.encoding import encode_graphs
    from graphite_gen.training.model_card import latents_in_words

    from ..model_choice import choose_model
    from ..reading import read_with_options

    found, family = read_with_options(graphs, rest)
    trained = choose_model(model, rest["device"], prefer=family)
    encoded = list(track(encode_graphs(trained, found, seed), len(found), "Encoding"))
    write_latents(encoded, output, model=trained.name, force=force)
    width = encoded[0].mean.shape[1]
    if str(output) != "-":
        note(f"Wrote {count_of(width, 'latent')} per node of {count_of(len(encoded), 'graph')} to '{output}'.")
    if trained.config.is_variational and not (activity := latent_activity(encoded)).active_units:
        note(latents_in_words(activity.to_json(), width, family))
