"""Graphs sampled from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from .. import options
from ..command import Command
from ..constraint_options import build
from ..constraint_options import options as constraint_options
from ..types import PATH


@click.command(
    cls=Command,
    short_help="Sample graphs from a model.",
    groups={
        "Model": "model seed",
        "Graphs": "count nodes largest_component",
        "Constraints": "tree regular degrees connected acyclic planar edges max_degree",
        "Output": "output format union force",
    },
)
@options.number("-n", "--count", help="Number of graphs.  [default: 100; 1 for a model of one network]")
@options.output
@options.output_format()
@options.model
@options.nodes(None, "Nodes per graph; sizes of a range are uniform.  [default: as in training]")
@constraint_options
@click.option("--largest-component", is_flag=True, help="Keep only the largest component of each graph.")
@options.decoding_steps
@click.option("--with-latents", is_flag=True, help="Write the latents as node attributes z0, z1, ….")
@click.option(
    "--features",
    type=PATH,
    help="File of graphs whose node features condition the samples, in turn; for models trained with node features.",
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
    """Sample graphs from the prior through the decoder.

    For a fixed seed, graph i is the same however many graphs are sampled.

    Constraints always hold and can be combined. They are enforced by rejection, which is exact, or, where too few
    samples satisfy them, by masking infeasible edges; the graph attribute 'enforced' tells which.

    A model of one network ('graphite-gen train --single') samples graphs with its mean degree, of its size or another.

    \b
    Example:
        graphite-gen sample -n 100 -o out.graphml
        graphite-gen sample -n 1000 --format g6 -o - | python my_networkx_script.py
        graphite-gen sample --model powerlaw-tree --tree --max-degree 4 -o trees.h5
        graphite-gen sample --model ego --nodes 15 --connected -o 'out/{index:04d}.graphml'
    """
    if features is not None and nodes is not None:
        raise click.UsageError("'--nodes' and '--features' exclude each other: the file determines the sizes.")
    if constraints and largest_component:
        raise click.UsageError(f"'{_flag(next(iter(constraints)))}' and '--largest-component' exclude each other.")

    from graphite_gen.io import check_node_attributes, format_of
    from graphite_gen.training.checkpoint import is_network_model, read_config

    if with_latents:
        check_node_attributes(format_of(output, format), "latents")

    from graphite_gen.records import Provenance
    from graphite_gen.sampling import Sampler

    from ..console import note
    from ..model_choice import choose_folder, load_model, use_threads
    from ..reading import read_for_all
    from ..sharing import process_group
    from ..writing import write

    group = process_group(workers)
    use_threads(threads, workers)
    folder, reason = choose_folder(model)
    target: dict[str, Any] = {"format": format, "force": force, "union": union, "group": group}
    wanted: dict[str, Any] = {"seed": seed, "largest": largest_component, "latents": with_latents, "group": group}
    if is_network_model(read_config(folder)):
        for name in (*constraints, "decoding_steps", "features"):
            options.refuse_without_effect({name: _flag(name)}, f"'{folder}', which was trained on one network")

        from graphite_gen.network.generation import LargeGraphSampler
        from graphite_gen.network.storage import load_network

        network_model = load_network(folder)
        note(f"Model '{network_model.name}' of one network in '{folder}': {reason}.")
        network_sampler = LargeGraphSampler(network_model, count or 1, nodes=nodes, **wanted)
        provenance = Provenance(source="sample", model=network_model.name, seed=seed)
        write(network_sampler, output, provenance=provenance, total=count or 1, **target)
        return
    count = count or 100
    trained = load_model(folder, reason, device)
    seen = trained.sizes.graphs
    if nodes is not None and not min(seen) <= nodes[0] <= nodes[1] <= max(seen):
        note(f"'{trained.name}' was trained on graphs of {min(seen)} to {max(seen)} nodes: other sizes may be poor.")
    sampler = Sampler(
        trained,
        count,
        nodes=nodes,
        constraints=build(constraints),
        features=[] if features is None else read_for_all(group, features, simplify=simplify)[0],
        decoding_steps=decoding_steps,
        **wanted,
    )
    if decoding_steps is not None and sampler.schedule.decoding_steps != decoding_steps:
        steps = sampler.schedule.decoding_steps
        note(f"'--decoding-steps' is raised to {steps}: constraints are enforced node by node.")
    provenance = Provenance(source="sample", model=trained.name, seed=seed)
    write(sampler, output, provenance=provenance, total=count, **target)
    if constraints and group.is_rank_zero:
        label, rate = sampler.constraint.label, sampler.accepted / sampler.drawn
        masked = f"; {sampler.masked} graphs were sampled by masking" if sampler.masked else ""
        note(f"{sampler.accepted} of {sampler.drawn} unconstrained samples were '{label}' ({rate:.1%}){masked}.")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
