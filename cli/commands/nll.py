"""Held-out likelihood by importance sampling."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import Command

if TYPE_CHECKING:
    from graphite_gen.checkpoint import TrainedModel
    from graphite_gen.families import Family
    from graphite_gen.graph import SimpleGraph
    from graphite_gen.likelihood.floor import Floor
    from graphite_gen.records import NLLEstimate, Provenance

SPLITS = ("test", "validation", "train", "all")
FEW = 10
"""An effective sample size below which an estimate is little more than a bound."""


@click.command(cls=Command, short_help="Estimate the NLL of graphs by importance sampling.")
@click.argument("graphs", type=click.Path(path_type=Path, allow_dash=True))
@options.model
@click.option(
    "-k", "--samples", type=click.IntRange(1), metavar="K", default=1000, show_default=True, help="Proposals per graph."
)
@click.option(
    "--convention",
    type=click.Choice(("pairs", "paper")),
    default="pairs",
    show_default=True,
    help="Score pairs i<j of real nodes, or all cells of the padded matrix as the paper does.",
)
@click.option(
    "--split", type=click.Choice(SPLITS), help="Which graphs of the file.  [default: test if it marks them, else all]"
)
@options.family("The law to measure the floor by.  [default: the one written in the file]")
@options.parameters
@click.option("--per-graph", is_flag=True, help="Show every graph too.")
@options.input_format()
@options.simplify
@options.seed
@options.device
@options.threads
@options.as_json
def nll(
    graphs: Path,
    model: str | None,
    samples: int,
    convention: str,
    split: str | None,
    family: str | None,
    parameters: tuple[tuple[str, str], ...],
    per_graph: bool,
    format: str | None,
    simplify: bool,
    seed: int,
    device: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Estimate the NLL of GRAPHS under a model, in nats per graph.

    Beside it stand the ER baseline, which every useful model beats, and the floor, which none can in expectation.

    \b
    Example:
        graphite-gen generate --family barabasi --seed 1 -o test.h5
        graphite-gen nll test.h5 --model barabasi --samples 5000
    """
    if parameters and family is None:
        raise click.UsageError("'--param' belongs to '--family'.")

    from graphite_gen.formats import read_graphs
    from graphite_gen.likelihood import iterate_nll, summarise

    from ..console import note, track
    from ..models import choose_model, use_threads

    use_threads(threads)
    reader = read_graphs(graphs, format=format, simplify=simplify)
    law = _law(family, dict(parameters), reader.provenance)
    chosen = _choose_split(list(reader), split)
    trained = choose_model(model, device, prefer=None if law is None else law.name)
    _warn(trained, chosen, convention)

    rows = list(track(iterate_nll(trained, chosen, samples, seed, convention), len(chosen), "Scoring"))
    estimate = summarise(trained.name, convention, samples, rows)
    floor = _floor(law, chosen, estimate)
    if estimate.ess < min(FEW, samples):
        note(f"The median ESS is {estimate.ess:.1f}: the NLL is likely an overestimate. Try more '--samples'.")
    if as_json:
        _show_json(estimate, floor, per_graph)
    else:
        _show_table(estimate, floor, per_graph)


def _law(family: str | None, parameters: dict[str, Any], provenance: Provenance) -> Family | None:
    """The family asked for, or the one written in the file."""
    from graphite_gen.errors import FamilyError
    from graphite_gen.families import family as family_of

    from ..console import note

    if family is not None:
        return family_of(family, **parameters)
    if provenance.family is None:
        return None
    try:
        return family_of(provenance.family, **provenance.parameters)
    except FamilyError as error:
        note(f"No floor: the law written in the file is not one we know. {error}")
        return None


def _choose_split(graphs: list[SimpleGraph], split: str | None) -> list[SimpleGraph]:
    from graphite_gen.dataset import Dataset
    from graphite_gen.records import Provenance

    from ..console import note

    if split is None:
        marked = any(graph.attributes.get("split") == "test" for graph in graphs)
        split = "test" if marked else "all"
        why = "the file marks them as 'test'" if marked else "the file marks no graphs as 'test'"
    else:
        why = "as asked"
    chosen = graphs if split == "all" else Dataset(graphs, Provenance()).split(split)
    count = f"all {len(graphs)}" if split == "all" else f"{len(chosen)} of {len(graphs)}"
    note(f"Scoring {count} graphs: {why}.")

    return chosen


def _warn(model: TrainedModel, graphs: list[SimpleGraph], convention: str) -> None:
    """Say what keeps the figure from being the likelihood of a graph."""
    from ..console import note

    if convention == "paper":
        note("Convention 'paper' scores every cell of the padded matrix: it is no law over graphs.")
    if not model.config.is_exchangeable:
        note(f"'{model.name}' tells nodes apart by number: its NLL depends on how the file numbers them.")
    unseen = sorted({graph.nodes for graph in graphs} - set(model.sizes.graphs))
    if unseen:
        listed = ", ".join(map(str, unseen[:8])) + (", …" if len(unseen) > 8 else "")
        note(f"'{model.name}' never saw graphs with {listed} nodes: expect little of it there, and p(n) is 0.")


def _floor(law: Family | None, graphs: list[SimpleGraph], estimate: NLLEstimate) -> Floor | None:
    """The floor of the same graphs, where there is one to compare with."""
    from graphite_gen.errors import DatasetError, FamilyError
    from graphite_gen.likelihood.floor import paired_floor

    from ..console import note

    weighted = any(graph.weights is not None for graph in graphs)
    if law is None or weighted or estimate.convention != "pairs":
        return None
    try:
        return paired_floor(law, graphs, [row.nll for row in estimate.per_graph])
    except (DatasetError, FamilyError) as error:
        note(f"No floor: {error}")
        return None


def _show_json(estimate: NLLEstimate, floor: Floor | None, per_graph: bool) -> None:
    from ..console import show_json

    known = estimate.to_json()
    rows = known.pop("per_graph")
    value = {
        **known,
        "khat": known.get("khat"),
        "floor": floor and floor.nats,
        "excess": floor and floor.excess,
        "excess_standard_error": floor and floor.excess_standard_error,
    }
    if per_graph:
        floors = floor.per_graph if floor else [None] * len(rows)
        value["per_graph"] = [{**row, "floor": own} for row, own in zip(rows, floors, strict=True)]
    show_json(value)


def _show_table(estimate: NLLEstimate, floor: Floor | None, per_graph: bool) -> None:
    from ..console import nats, show_facts, show_rows

    facts = [
        ("model", estimate.model),
        ("graphs", str(estimate.graphs)),
        ("NLL", f"{nats(estimate.nll, estimate.standard_error)} nats per graph"),
        ("-ELBO", nats(-estimate.elbo)),
    ]
    if floor is not None:
        facts += [
            ("floor", f"{nats(floor.nats)} (the true law, same graphs)"),
            ("excess", f"{nats(floor.excess, floor.excess_standard_error)} above the floor"),
        ]
    facts += [
        ("ER baseline", nats(estimate.baseline)),
        ("-log p(n)", nats(estimate.size_nats)),
        ("median ESS", f"{estimate.ess:.1f} of {estimate.samples}"),
    ]
    if estimate.convention == "paper":
        facts.append(("convention", "paper: all cells of the padded matrix, no law over graphs"))
    show_facts(facts)
    if per_graph:
        columns = ("graph", "nodes", "edges", "NLL", "-ELBO", "floor", "ER baseline", "-log p(n)", "ESS")
        floors = floor.per_graph if floor else [None] * estimate.graphs
        rows = [
            (
                *map(str, (index, row.nodes, row.edges)),
                *map(nats, (row.nll, -row.elbo, own, row.baseline, row.size_nats)),
                f"{row.ess:.1f}",
            )
            for index, (row, own) in enumerate(zip(estimate.per_graph, floors, strict=True))
        ]
        click.echo()
        show_rows(columns, rows, numbers=columns)
