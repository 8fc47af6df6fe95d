"""Graphs sampled from a trained model."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from .. import constraint_options, options
from ..command import command, flag_of
from ..console import announce, count_of, note
from ..sharing import process_group
from ..signals import UntilStopped, exit_code
from ..types import CONDITION

# Cells of matrices above which the time is estimated before it is spent.
MANY_CELLS = 1 << 22
# The proportion of unconstrained samples that satisfy a constraint, below which it is reported as unlikely.
UNLIKELY = 0.01
# The default novelty of samples of one network; a test holds that it is the library's.
NOVELTY = 0.8


@command(
    short_help="Sample graphs from a model.",
    groups={
        "Model": "model seed",
        "Graphs": "count nodes conditions largest_component novelty",
        "Constraints": "tree regular degrees connected acyclic dag planar edges max_degree",
        "Output": "output format union force",
    },
)
@options.number(
    "-n", "--count", help="Number of graphs.  [default: 100; one for each of '--latents'; 1 for a model of one network]"
)
@options.all_of(options.output, options.output_format(), options.model)
@options.nodes(help="Nodes per graph, or a range of sizes to draw uniformly.  [default: the sizes of training graphs]")
@click.option(
    *("--given", "conditions"),
    type=CONDITION,
    multiple=True,
    help="Value or range of a condition that the model was trained with, as in class=2 or clustering=0.4:0.5.",
)
@constraint_options.options
@options.flag("--largest-component", help="Keep only the largest component of each graph.")
@click.option(
    "--novelty",
    type=click.FloatRange(0, 1),
    metavar="PROPORTION",
    help="For a model of one network: aim for this proportion of edges that are not copied from it.  [default: 0.8]",
)
@options.file(
    "--latents",
    "encoded",
    help="File of latents to decode in turn, as 'graphite-gen encode' writes it.  [default: latents from the prior]",
)
@options.flag("--with-latents", help="Write the latents as node attributes z0, z1, ….")
@options.file(
    "--features",
    help="File of graphs whose node features the samples are conditioned on, in turn; for models trained with node "
    "features.",
)
@options.all_of(options.simplify, options.union, options.force, options.seed, options.device)
@options.all_of(options.threads, options.workers)
def sample(output: Path, **values: Any) -> None:
    """Sample graphs from a trained model: latents from the prior, edges from the decoder.

    For a fixed seed, graph i is the same however many graphs are sampled.

    Constraints always hold and can be combined. They are enforced by rejection, which is exact, or, where too few
    samples satisfy them, by masking infeasible edges; the graph attribute 'enforced' tells which.

    A model of one network ('graphite-gen train --single') samples graphs with its degrees, of its size or another. The
    graph attribute 'copied_edges' has the proportion of edges that are edges of the network.

    \b
    Example:
        graphite-gen sample -n 100 -o out.graphml
        graphite-gen sample -n 1000 --format g6 -o - | python my_networkx_script.py
        graphite-gen sample --model powerlaw-tree --tree --max-degree 4 -o trees.h5
        graphite-gen sample --model ego --nodes 15 --connected -o 'out/{index:04d}.graphml'
        graphite-gen sample --latents z.h5 -o decoded.graphml
    """
    given, constraints = SimpleNamespace(**values), constraint_options.used(values)
    if given.features is not None and given.nodes is not None:
        raise click.UsageError("'--nodes' and '--features' exclude each other: the file determines the sizes.")
    for name in ("nodes", "features"):
        if given.encoded is not None and getattr(given, name) is not None:
            raise click.UsageError(f"'{flag_of(name)}' and '--latents' exclude each other: the file determines it.")
    names = [name for name, _ in given.conditions]
    if len({*names}) < len(names):
        raise click.UsageError("A condition is given twice: pass one value, or a range such as edges=20:30.")
    if given.encoded is not None and names:
        raise click.UsageError("'--given' and '--latents' exclude each other: the file determines the conditions.")
    if constraints and given.largest_component:
        raise click.UsageError(f"'{flag_of(next(iter(constraints)))}' and '--largest-component' exclude each other.")

    from graphite_gen.io import check_node_attributes, check_output, format_of
    from graphite_gen.training.checkpoint import is_network_model, read_config

    if given.with_latents:
        check_node_attributes(format_of(output, given.format), "latents")

    from graphite_gen.records import Provenance
    from graphite_gen.sampling import Sampler

    from ..model_choice import choose_folder, load_model
    from ..reading import read_for_all, read_latents_for_all
    from ..writing import write

    group = process_group(given.workers)
    if group.is_rank_zero:
        several = (given.count or 0) > 1
        check_output(output, format=given.format, force=given.force, union=given.union, many=several)
    encoded = [] if given.encoded is None else read_latents_for_all(group, given.encoded)
    folder, reason = choose_folder(given.model)
    how: dict[str, Any] = {"nodes": given.nodes, "seed": given.seed, "group": group}
    how |= {"largest": given.largest_component, "latents": given.with_latents}

    def write_samples(graphs: Iterable[Any], model: str, count: int, at_once: int = 1) -> None:
        target = {"format": given.format, "force": given.force, "union": given.union, "group": group}
        target |= {"total": count, "at_once": at_once}
        provenance = Provenance(source="sample", model=model, seed=given.seed)
        kept = UntilStopped(graphs)
        write(kept if group.is_rank_zero else graphs, output, provenance=provenance, **target)
        if kept.error is not None:
            note(f"Interrupted: the output is partial, with {kept.count} of {count_of(count, 'graph')}.")
            click.get_current_context().exit(exit_code(kept.error))

    if is_network_model(read_config(folder)):
        from graphite_gen.network.generation import sample_networks
        from graphite_gen.network.storage import load_network

        on = f"'{folder}', which was trained on one network"
        options.refuse_without_effect((*constraints, "features", "encoded", "conditions"), on)
        network = load_network(folder)
        note(f"Model '{network.name}' of one network in '{folder}': {reason}.")
        count, shares = given.count or 1, []

        def counted() -> Iterator[Any]:
            for graph in sample_networks(network, count, novelty=given.novelty, **how):
                shares.append(graph.attributes.get("copied_edges"))
                yield graph

        write_samples(counted(), network.name, count)
        if group.is_rank_zero and shares:
            note(_copied(shares, given.novelty))
        return
    options.refuse_without_effect(("novelty",), f"'{folder}', which was trained on many graphs")
    trained = load_model(folder, reason, given.device)
    seen = trained.sizes.graphs
    if given.nodes is not None and not min(seen) <= given.nodes[0] <= given.nodes[1] <= max(seen):
        far = f", and {given.nodes[1]} is far from these" if given.nodes[1] > 2 * max(seen) else ""
        note(
            f"'{trained.name}' was trained on graphs of {min(seen)} to {max(seen)} nodes: other sizes may be poor{far}."
        )
    count = given.count or len(encoded) or 100
    reading = {"simplify": given.simplify, "directed": False}
    features = [] if given.features is None else read_for_all(group, given.features, **reading)[0]
    how |= {"constraints": constraint_options.build(constraints), "features": features, "encoded": encoded}
    how |= {"given": dict(given.conditions)}
    sampler = Sampler(trained, count, **how)
    for name in sampler.outside:
        note(f"'{name}' is outside the range of the training graphs of '{trained.name}': samples may be poor.")
    most = given.nodes[1] if given.nodes else max(seen)
    if group.is_rank_zero and count * most**2 >= MANY_CELLS:
        announce(sampler.estimate_seconds(), f"Sampling {count_of(count, 'graph')} of up to {most} nodes")
    write_samples(sampler, trained.name, count, sampler.at_once)
    if constraints and group.is_rank_zero:
        label, rate = sampler.constraint.label, sampler.accepted / sampler.drawn
        masked = f"; {sampler.masked} graphs were sampled by masking" if sampler.masked else ""
        note(f"{sampler.accepted} of {sampler.drawn} unconstrained samples were '{label}' ({rate:.1%}){masked}.")
        if sampler.masked and rate < UNLIKELY:
            note(f"'{label}' is very unlikely under '{trained.name}': the samples may be unlike its other graphs.")


def _copied(shares: list[float | None], novelty: float | None) -> str:
    """How many edges of samples are copied from the network, in one line."""
    known = [share for share in shares if share is not None]
    if not known:
        return "The model was saved by an earlier version, so its edges are sampled independently: train it again."
    mean, most = sum(known) / len(known), max(known)
    text = f"Copied edges: {mean:.1%}" + (f" on average, at most {most:.1%}" if len(known) > 1 else "")
    least = NOVELTY if novelty is None else novelty
    if most > 1 - least + 1e-6:
        return f"{text}; a novelty of {least:g} was not reached."

    return f"{text} (novelty at least {least:g})."
