"""Node embeddings of one large network."""

from pathlib import Path
from typing import Any

import click

from .. import network_options, options
from ..command import command
from ..console import count_of, counting, note

MANY_NODES = 2000
"""From this size t-SNE takes long enough to say so."""


@command(
    short_help="Embed the nodes of a network.",
    groups={"Model": "kind latent epochs features node_features seed", "Output": "output output_format plot force"},
)
@network_options.graph
@options.file_or_dash(
    *("-o", "--output"),
    help="File for the latents: '.h5', '.csv', or a graph such as '.graphml' with node attributes z0, z1, …; '-' is "
    "CSV on stdout.",
)
@options.output_format("--output-format")
@options.file(
    "--plot",
    help="File for a t-SNE plot, coloured by label: '.png', '.svg' or '.pdf'. Needs scikit-learn and matplotlib.",
)
@options.choice("--kind", of=network_options.KINDS, default="graphite-vae", help="Kind of model to train.")
@network_options.autoencoder
@options.all_of(options.force, options.seed, options.threads)
def embed(graph: Path, output: Path | None, plot: Path | None, kind: str, force: bool, seed: int, **rest: Any) -> None:
    """Train an autoencoder on all edges of GRAPH, and write the posterior mean of the node latents.

    \b
    Example:
        graphite-gen embed cora.h5 -o z.h5 --plot tsne.png
        graphite-gen embed friends.graphml -o friends-z.graphml --latent 8
    """
    output_format = rest.pop("output_format")
    if output is None and plot is None:
        raise click.UsageError("Nothing to write: pass '-o FILE', '--plot FILE' or both.")
    network_options.refuse_idle([kind])

    from graphite_gen.network.embedding import (
        check_embedding_picture,
        check_embedding_target,
        draw_embedding,
        project_to_plane,
        write_embedding,
    )
    from graphite_gen.network.tasks import embed_nodes

    if output is not None:
        check_embedding_target(output, output_format, force=force)
    if plot is not None:
        check_embedding_picture(plot, force=force)
    found, features, given = network_options.read(graph, rest)
    with counting(f"Training {kind}") as count_epochs:
        z = embed_nodes(found, kind, seed=seed, features=features, progress=count_epochs, **given)
    points = None
    if plot is not None:
        if len(z) > MANY_NODES:
            note(f"t-SNE of {len(z)} nodes takes a while.")
        # Before anything is written, so that an interruption leaves no file.
        points = project_to_plane(z, seed)
    if output is not None:
        write_embedding(found, z, output, format=output_format, force=force, model=kind)
        if str(output) != "-":
            note(f"Wrote {count_of(z.shape[1], 'latent')} of {count_of(len(z), 'node')} to '{output}'.")
    if plot is not None and points is not None:
        draw_embedding(found, points, plot, force=force)
        note(f"Drew {count_of(len(z), 'node')} to '{plot}'.")
