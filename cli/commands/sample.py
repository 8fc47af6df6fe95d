"""New graphs from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .. import options
from ..command import Command
from ..constraints import build
from ..constraints import options as constraint_options
from ..types import PATH


@click.command(cls=Command, short_help="Sample new graphs from a model.")
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1),
    metavar="N",
    help="How many graphs.  [default: 100; 1 from a model of one large graph]",
)
@options.output
@options.output_format()
@options.model
@options.nodes(None, "Nodes per graph, drawn evenly from a range.  [default: as in training]")
@constraint_options
@click.option("--largest-component", is_flag=True, help="Keep the largest component of each graph.")
@options.decoding_steps
@click.option("--with-latents", is_flag=True, help="Keep latents as node attributes z0, z1, ….")
@click.option(
    "--features",
    type=PATH,
    help="Graphs whose node features the new graphs are for, used in turn.  [default: none]",
)
@options.simplify
@options.union
@options.force
@options.seed
@options.device
@options.threads
@options.workers
def sample(
    count: int | None,
    output: Path,
    format: str | None,
    model: str | None,
    nodes: tuple[int, int] | None,
    constraints: dict[str, Any],
    largest_component: bool,
    decoding_steps: int | None,
    with_latents: bool,
    features: Path | None,
    simplify: bool,
    union: bool,
    force: bool,
    seed: int,
    device: str,
    threads: int | None,
    workers: int,
) -> None:
    """Sample new graphs from the prior, through the decoder.

    Graph i is the same graph for a seed, however many are drawn. With '--features' the sizes are those of the graphs
    in that file, which '--simplify' reads leniently.

    '--tree', '--regular', '--degrees', '--connected', '--acyclic', '--planar', '--edges' and '--max-degree' always
    hold, also together. Where plain draws often do what is asked, others are drawn again, which is exact; elsewhere the
    pairs that would break it are not asked about, node by node. The graph attribute 'enforced' says which.

    A model of one large graph ('graphite-gen train --single') gives graphs like it, with its mean degree, of its size
    or of another by '--nodes'.

    \b
    Example:
        graphite-gen sample -n 100 -o out.graphml
        graphite-gen sample -n 1000 --format g6 -o - | python my_networkx_script.py
        graphite-gen sample --model powerlaw-tree --tree --max-degree 4 -o trees.h5
        graphite-gen sample --model ego --nodes 15 --connected -o 'out/{index:04d}.graphml'
    """
    if features is not None and nodes is not None:
        raise click.UsageError("'--nodes' and '--features' exclude each other: the file says how many nodes there are.")

    if constraints and largest_component:
        name = next(iter(constraints)).replace("_", "-")
        raise click.UsageError(
            f"'--{name}' and '--largest-component' exclude each other: the one would undo the other."
        )

    from graphite_gen.io import check_node_attributes, format_of
    from graphite_gen.training.checkpoint import is_network_model, read_config

    if with_latents:
        check_node_attributes(format_of(output, format), "latents")

    from graphite_gen.records import Provenance
    from graphite_gen.sampling import Sampler

    from ..console import note
    from ..models import choose_folder, load_model, use_threads
    from ..reading import read_for_all
    from ..sharing import process_group
    from ..writing import write

    group = process_group(workers)
    use_threads(threads, workers)
    folder, reason = choose_folder(model)
    if is_network_model(read_config(folder)):
        given = [*constraints, *(["stages"] if decoding_steps is not None else []), *(["features"] if features else [])]
        if given:
            option = given[0].replace("_", "-")
            raise click.UsageError(f"'--{option}' has no use here: '{folder}' was trained on one large graph.")
        return _sample_like_one(
            folder,
            reason,
            count or 1,
            {"nodes": nodes, "seed": seed, "largest": largest_component, "latents": with_latents, "group": group},
            {"output": output, "format": format, "force": force, "union": union},
        )
    count = count or 100
    trained = load_model(folder, reason, device)
    seen = trained.sizes.graphs
    if nodes is not None and not min(seen) <= nodes[0] <= nodes[1] <= max(seen):
        note(f"'{trained.name}' was trained on {min(seen)} to {max(seen)} nodes: expect little of it beyond.")
    sampler = Sampler(
        trained,
        count,
        nodes=nodes,
        seed=seed,
        constraints=build(constraints),
        largest=largest_component,
        latents=with_latents,
        evidence=[] if features is None else read_for_all(group, features, simplify=simplify)[0],
        decoding_steps=decoding_steps,
        group=group,
    )
    if decoding_steps is not None and sampler.schedule.decoding_steps != decoding_steps:
        note(f"Constraints need nodes that arrive one at a time: graphs take {sampler.schedule.decoding_steps} stages.")
    write(
        sampler,
        output,
        format=format,
        provenance=Provenance(source="sample", model=trained.name, seed=seed),
        force=force,
        union=union,
        total=count,
        group=group,
    )
    if constraints and group.is_rank_zero:
        label, rate = sampler.constraint.label, sampler.kept / sampler.drawn
        made = f"; {sampler.made} more were held to it while deciding" if sampler.made else ""
        note(f"{sampler.kept} of {sampler.drawn} plain draws were '{label}' ({rate:.1%}){made}.")

    return None


def _sample_like_one(folder: Path, reason: str, count: int, asked: dict[str, Any], target: dict[str, Any]) -> None:
    from graphite_gen.network.generation import LargeGraphSampler
    from graphite_gen.network.storage import load_network_model
    from graphite_gen.records import Provenance

    from ..console import note
    from ..writing import write

    model = load_network_model(folder)
    note(f"Model '{model.name}' of one graph in '{folder}': {reason}.")
    sampler = LargeGraphSampler(model, count, **asked)
    write(
        sampler,
        target.pop("output"),
        provenance=Provenance(source="sample", model=model.name, seed=asked["seed"]),
        total=count,
        group=asked["group"],
        **target,
    )
