"""Held-out likelihood, with what it should be compared with and how far it can be trusted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .. import options
from ..command import Command
from ..types import PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.distributed import ProcessGroup
    from graphite_gen.families import Family
    from graphite_gen.graph import SimpleGraph
    from graphite_gen.likelihood.bdmc import GraphBDMC
    from graphite_gen.records import Provenance
    from graphite_gen.training.checkpoint import TrainedModel

SPLITS = ("test", "validation", "train", "all")
OF_ANNEALING = {"chains": "--chains", "steps": "--steps"}


@click.command(
    cls=Command,
    short_help="Estimate the NLL of graphs.",
    groups={
        "Model and graphs": "model split family parameters",
        "Estimate": "samples method check seed",
        "Output": "per_graph curve as_json",
    },
)
@click.argument("graphs", type=PATH_OR_DASH)
@options.model
@click.option(
    "-k",
    "--samples",
    type=click.IntRange(1),
    metavar="K",
    help="Proposals per graph.  [default: 1000; 100 of a staged model]",
)
@click.option(
    "--method",
    type=click.Choice(("is", "ais", "auto")),
    default="is",
    show_default=True,
    help="Importance sampling, annealed importance sampling (seconds per graph), or the second where k̂ of the first "
    "is above 0.7.",
)
@click.option(
    "--chains", type=click.IntRange(1), metavar="N", default=64, show_default=True, help="Annealed chains per graph."
)
@click.option(
    "--steps", type=click.IntRange(1), metavar="N", default=60, show_default=True, help="Temperatures of each chain."
)
@click.option("--check", is_flag=True, help="Bound the NLL of graphs the model draws, and say if it can be trusted.")
@click.option(
    "--check-graphs", type=click.IntRange(1), metavar="N", default=20, show_default=True, help="Graphs to check with."
)
@options.decoding_steps
@click.option("--curve", is_flag=True, help="Show the NLL by K = 1, 10, 100, … too.")
@click.option("--unlabelled", is_flag=True, help="Nats per isomorphism class; needs igraph.")
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
@options.ignore_weights
@options.seed
@options.device
@options.threads
@options.workers
@options.as_json
def nll(
    graphs: Path,
    model: str | None,
    samples: int | None,
    method: str,
    chains: int,
    steps: int,
    check: bool,
    check_graphs: int,
    decoding_steps: int | None,
    curve: bool,
    unlabelled: bool,
    convention: str,
    split: str | None,
    family: str | None,
    parameters: tuple[tuple[str, str], ...],
    per_graph: bool,
    format: str | None,
    simplify: bool,
    ignore_weights: bool,
    seed: int,
    device: str,
    threads: int | None,
    workers: int,
    as_json: bool,
) -> None:
    """Estimate the NLL of GRAPHS under a model, in nats per graph.

    Beside it stand the ER baseline, which every useful model beats, and the floor, which none can in expectation.
    The Pareto shape k̂ of the weights tells where importance sampling fails: it is then too high, and '--method auto'
    takes its time to do better. '--check' measures by how much.

    \b
    Example:
        graphite-gen generate --family barabasi --seed 1 -o test.h5
        graphite-gen nll test.h5 --model barabasi --samples 5000
        graphite-gen nll test.h5 --model barabasi --method auto --check
    """
    if parameters and family is None:
        raise click.UsageError("'--param' belongs to '--family'.")
    if not check:
        _check_used(method)
    if convention == "paper" and (method != "is" or check or unlabelled):
        raise click.UsageError("Convention 'paper' is no law over graphs: use '--method is', without '--check'.")

    from graphite_gen.likelihood import iterate_nll, summarise
    from graphite_gen.likelihood.bdmc import join_bdmc
    from graphite_gen.likelihood.estimate import check_model, default_samples

    from ..console import track
    from ..model_choice import choose_model, use_threads
    from ..reading import find_entropy, find_family, read_for_all
    from ..scoring import Score
    from ..sharing import process_group

    group = process_group(workers)
    use_threads(threads, workers)
    found, provenance = read_for_all(group, graphs, format=format, simplify=simplify)
    law = find_family(family, dict(parameters), provenance)
    chosen = _choose_split([graph.unweighted() if ignore_weights else graph for graph in found], split)
    trained = choose_model(model, device, prefer=None if law is None else law.name)
    check_model(trained, convention)
    if trained.config.is_autoregressive:
        options.refuse_without_effect(OF_ANNEALING, "a staged model, whose orders of arrival cannot be annealed")
    samples = samples or default_samples(trained)
    # Orders of arrival cannot be annealed: there 'auto' is 'is'.
    method = "is" if method == "auto" and trained.config.is_autoregressive else method
    _warn(trained, chosen, convention, _family(provenance, law))
    labellings = _labellings(trained, chosen) if unlabelled else None

    scores = iterate_nll(
        trained,
        chosen,
        samples,
        seed,
        convention,
        method=method,
        chains=chains,
        steps=steps,
        curve=curve,
        decoding_steps=decoding_steps,
        group=group,
    )
    rows = list(track(scores, len(chosen), "Scoring"))
    bounds = _check(trained, chosen, check_graphs, seed, samples, chains, steps, decoding_steps, group) if check else []
    if not group.is_rank_zero:
        return
    entropy = find_entropy(law, chosen, [row.nll for row in rows]) if convention == "pairs" else None
    if labellings is not None:
        from graphite_gen.likelihood.automorphisms import entropy_of_classes, nll_of_class

        rows = list(map(nll_of_class, rows, labellings))
        entropy = entropy and entropy_of_classes(entropy, labellings)
    anneals = method != "is"
    estimate = summarise(
        trained.name,
        convention,
        samples,
        rows,
        method=method,
        chains=chains if anneals else None,
        steps=steps if anneals else None,
    )
    bdmc = join_bdmc(trained.name, samples, chains, steps, bounds) if check else None
    score = Score(estimate, entropy, bdmc, unlabelled, anneals=not trained.config.is_autoregressive)
    if as_json:
        score.show_json(per_graph)
    else:
        score.show_table(per_graph)


def _check_used(method: str) -> None:
    """Refuse options that change nothing where nothing is checked."""
    if options.is_given("check_graphs"):
        raise click.UsageError("'--check-graphs' belongs to '--check'.")
    if method == "is":
        options.refuse_without_effect(OF_ANNEALING, "method 'is' without '--check'")
    if method == "ais":
        options.refuse_without_effect({"samples": "--samples"}, "method 'ais' without '--check'")


def _family(provenance: Provenance, law: Family | None) -> str | None:
    """The family written in the file, else the one asked for."""
    return provenance.family if provenance.family is not None or law is None else law.name


def _choose_split(graphs: list[SimpleGraph], split: str | None) -> list[SimpleGraph]:
    from graphite_gen.data.dataset import Dataset
    from graphite_gen.records import Provenance

    from ..console import count_of, note

    if split is None:
        marked = any(graph.attributes.get("split") == "test" for graph in graphs)
        split = "test" if marked else "all"
        why = "the file marks them as 'test'" if marked else "the file marks no graphs as 'test'"
    else:
        why = "as asked"
    chosen = graphs if split == "all" else Dataset(graphs, Provenance()).split(split)
    whole = count_of(len(graphs), "graph")
    count = whole if len(graphs) == 1 else f"all {whole}" if split == "all" else f"{len(chosen)} of {whole}"
    note(f"Scoring {count}: {why}.")

    return chosen


def _warn(model: TrainedModel, graphs: list[SimpleGraph], convention: str, family: str | None) -> None:
    """Say what keeps the figure from being the likelihood of a graph, or a good one."""
    from ..console import note

    if convention == "paper":
        note("Convention 'paper' scores every cell of the padded matrix: it is no law over graphs.")
    if not model.config.is_exchangeable:
        note(f"'{model.name}' tells nodes apart by number: its NLL depends on how the file numbers them.")
    own = model.provenance.family
    if family is not None and own is not None and own != family:
        note(f"'{model.name}' was trained on '{own}', and these are '{family}' graphs. {_instead(family)}")
    unseen = sorted({graph.nodes for graph in graphs} - set(model.sizes.graphs))
    if unseen:
        listed = ", ".join(map(str, unseen[:8])) + (", …" if len(unseen) > 8 else "")
        note(
            f"'{model.name}' never saw graphs with {listed} nodes: expect little of it there, and p(n) is 0. "
            f"Train on such sizes with 'graphite-gen train FILE', or 'train --family NAME --nodes LOW:HIGH'."
        )


def _instead(family: str) -> str:
    """What to run for graphs of a family."""
    from graphite_gen.training.checkpoint import bundled_names

    if family in bundled_names():
        return f"Use '--model {family}', the bundled model of that family."
    return f"Train one of that family with 'graphite-gen train --family {family}'."


def _labellings(model: TrainedModel, graphs: list[SimpleGraph]) -> list[float]:
    """How many nats the labels of each graph are worth."""
    from graphite_gen.errors import DatasetError
    from graphite_gen.likelihood.automorphisms import log_labellings

    if not model.config.is_exchangeable:
        raise DatasetError(
            f"'{model.name}' tells nodes apart by number, so labelled copies of a graph differ in probability. "
            f"Use a model trained with '--preset default', or leave '--unlabelled' out."
        )

    return [log_labellings(graph) for graph in graphs]


def _check(
    model: TrainedModel,
    graphs: list[SimpleGraph],
    count: int,
    seed: int,
    samples: int,
    chains: int,
    steps: int,
    decoding_steps: int | None,
    group: ProcessGroup,
) -> list[GraphBDMC]:
    """Bounds on the NLL of graphs that the model draws."""
    from graphite_gen.likelihood.bdmc import iterate_bdmc

    from ..console import track

    bounds = iterate_bdmc(
        model,
        count,
        seed,
        samples=samples,
        chains=chains,
        steps=steps,
        evidence=graphs,
        decoding_steps=decoding_steps,
        group=group,
    )

    return list(track(bounds, count, "Checking"))
