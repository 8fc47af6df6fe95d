"""The command ``nll``: held-out likelihood with diagnostics, beside the entropy and the ER baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .. import options
from ..command import Command
from ..types import PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.distributed import ProcessGroup
    from graphite_gen.graph import SimpleGraph
    from graphite_gen.likelihood import NLLOptions
    from graphite_gen.likelihood.bdmc import GraphBDMC
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
    help="Proposals per graph.  [default: 1000; 100 for an autoregressive model]",
)
@click.option(
    "--method",
    type=click.Choice(("is", "ais", "auto")),
    default="is",
    show_default=True,
    help="Importance sampling, annealed importance sampling (one-shot models only; seconds per graph), or the latter "
    "for graphs with k̂ > 0.7 only; on an autoregressive model 'auto' is 'is'.",
)
@click.option(
    "--chains", type=click.IntRange(1), metavar="N", default=64, show_default=True, help="Annealed chains per graph."
)
@click.option(
    "--steps", type=click.IntRange(1), metavar="N", default=60, show_default=True, help="Temperatures of each chain."
)
@click.option("--check", is_flag=True, help="Check the method by BDMC on graphs sampled from the model.")
@click.option(
    "--check-graphs", type=click.IntRange(1), metavar="N", default=20, show_default=True, help="Graphs of '--check'."
)
@options.decoding_steps
@click.option("--curve", is_flag=True, help="Show the NLL for K = 1, 10, 100, … samples, too.")
@click.option("--unlabelled", is_flag=True, help="Report nats per isomorphism class; needs igraph.")
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
@options.family("Family for the entropy.  [default: the one recorded in the file]")
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

    The table also shows the ER baseline, which a useful model beats, and the entropy of the family, which is a lower
    bound on the expected NLL of any model. The estimate is too high where the Pareto shape k̂ of the importance weights
    is above 0.7; '--method auto' then uses annealed importance sampling, and '--check' measures the error by BDMC.

    \b
    Example:
        graphite-gen generate --family barabasi --seed 1 -o test.h5
        graphite-gen nll test.h5 --model barabasi --samples 5000
        graphite-gen nll test.h5 --model barabasi --method auto --check
    """
    if parameters and family is None:
        raise click.UsageError("'--param' needs '--family'.")
    if not check:
        _check_used(method)
    if convention == "paper" and (method != "is" or check or unlabelled):
        raise click.UsageError("Convention 'paper' is not a distribution over graphs: use '--method is' alone.")

    from graphite_gen.likelihood import NLLOptions, iterate_nll, summarise
    from graphite_gen.likelihood.bdmc import summarise_bdmc

    from ..console import note, track
    from ..model_choice import choose_model, use_threads
    from ..nll_table import NLLTable
    from ..reading import find_entropy, find_family, read_for_all
    from ..sharing import process_group

    group = process_group(workers)
    use_threads(threads, workers)
    found, provenance = read_for_all(group, graphs, format=format, simplify=simplify)
    true = find_family(family, dict(parameters), provenance)
    chosen = _choose_split([graph.unweighted() if ignore_weights else graph for graph in found], split)
    trained = choose_model(model, device, prefer=None if true is None else true.name)
    how = NLLOptions(samples, seed, convention, method, chains, steps, curve, decoding_steps).for_model(trained)
    if trained.config.is_autoregressive:
        options.refuse_without_effect(OF_ANNEALING, "an autoregressive model, whose node orderings cannot be annealed")
    if how.method != method:
        note(f"'{trained.name}' is autoregressive, so '--method {method}' is importance sampling alone ('is').")
    _warn(trained, chosen, convention, provenance.family or (None if true is None else true.name))
    labellings = _labellings(trained, chosen) if unlabelled else None

    rows = list(track(iterate_nll(trained, chosen, how, group=group), len(chosen), "Scoring"))
    bounds = _check(trained, chosen, check_graphs, how, group) if check else []
    if not group.is_rank_zero:
        return
    entropy = find_entropy(true, chosen, [row.nll for row in rows]) if convention == "pairs" else None
    if labellings is not None:
        from graphite_gen.likelihood.automorphisms import entropy_of_classes, nll_of_class

        rows = list(map(nll_of_class, rows, labellings))
        entropy = entropy and entropy_of_classes(entropy, labellings)
    estimate = summarise(trained.name, how, rows)
    bdmc = summarise_bdmc(trained.name, how, bounds) if check else None
    table = NLLTable(estimate, entropy, bdmc, unlabelled, anneals=not trained.config.is_autoregressive)
    if as_json:
        table.show_json(per_graph)
    else:
        table.show_table(per_graph)


def _check_used(method: str) -> None:
    """Refuse options that have no effect without '--check'."""
    if options.is_given("check_graphs"):
        raise click.UsageError("'--check-graphs' needs '--check'.")
    if method == "is":
        options.refuse_without_effect(OF_ANNEALING, "method 'is' without '--check'")
    if method == "ais":
        options.refuse_without_effect({"samples": "--samples"}, "method 'ais' without '--check'")


def _choose_split(graphs: list[SimpleGraph], split: str | None) -> list[SimpleGraph]:
    from graphite_gen.data.dataset import Dataset
    from graphite_gen.records import Provenance

    from ..console import count_of, note

    if split is None:
        marked = any(graph.attributes.get("split") == "test" for graph in graphs)
        split = "test" if marked else "all"
        why = "the file marks them as 'test'" if marked else "the file marks no graphs as 'test'"
    else:
        why = f"'--split {split}'"
    chosen = graphs if split == "all" else Dataset(graphs, Provenance()).split(split)
    whole = count_of(len(graphs), "graph")
    count = whole if len(graphs) == 1 else f"all {whole}" if split == "all" else f"{len(chosen)} of {whole}"
    note(f"Scoring {count}: {why}.")

    return chosen


def _warn(model: TrainedModel, graphs: list[SimpleGraph], convention: str, family: str | None) -> None:
    """Print notes on stderr about models and graphs that do not match."""
    from ..console import note

    if convention == "paper":
        note("Convention 'paper' scores all cells of the padded matrix: it is not a distribution over graphs.")
    if not model.config.is_exchangeable:
        note(f"'{model.name}' has identity features: its NLL depends on the numbering of the nodes.")
    own = model.provenance.family
    if family is not None and own is not None and own != family:
        note(f"'{model.name}' was trained on '{own}' graphs, but these are '{family}' graphs. {_instead(family)}")
    unseen = sorted({graph.nodes for graph in graphs} - set(model.sizes.graphs))
    if unseen:
        listed = ", ".join(map(str, unseen[:8])) + (", …" if len(unseen) > 8 else "")
        note(
            f"'{model.name}' was not trained on graphs with {listed} nodes: its NLL may be poor there, and p(n) is 0. "
            f"Train on such sizes with 'graphite-gen train FILE', or 'train --family NAME --nodes LOW:HIGH'."
        )


def _instead(family: str) -> str:
    """Advice for graphs of a family."""
    from graphite_gen.training.checkpoint import bundled_names

    if family in bundled_names():
        return f"Use '--model {family}', the bundled model of that family."
    return f"Train one of that family with 'graphite-gen train --family {family}'."


def _labellings(model: TrainedModel, graphs: list[SimpleGraph]) -> list[float]:
    """The logarithm of the number of labelled copies of each graph."""
    from graphite_gen.errors import DatasetError
    from graphite_gen.likelihood.automorphisms import log_labellings

    if not model.config.is_exchangeable:
        raise DatasetError(
            f"'{model.name}' has identity features, so labelled copies of a graph differ in probability. Use a model "
            f"trained with '--preset default', or omit '--unlabelled'."
        )

    return [log_labellings(graph) for graph in graphs]


def _check(
    model: TrainedModel,
    graphs: list[SimpleGraph],
    count: int,
    how: NLLOptions,
    group: ProcessGroup,
) -> list[GraphBDMC]:
    """Bounds on the NLL of graphs sampled from the model."""
    from graphite_gen.likelihood.bdmc import iterate_bdmc

    from ..console import track

    return list(track(iterate_bdmc(model, count, how, features=graphs, group=group), count, "Checking"))
