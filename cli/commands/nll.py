"""The command ``nll``: held-out likelihood with diagnostics, beside the entropy and the ER baseline."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import command
from ..console import count_of, forecast, note, track
from ..sharing import process_group
from ..signals import UntilStopped, exit_code
from ..types import PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.graph import SimpleGraph
    from graphite_gen.likelihood.bdmc import GraphBDMC
    from graphite_gen.training.checkpoint import TrainedModel


@command(
    short_help="Estimate the NLL of graphs.",
    groups={
        "Model and graphs": "model split family parameters",
        "Estimate": "samples method check seed",
        "Output": "per_graph curve as_json",
    },
    needs={"parameters": "family", "check_graphs": "check"},
)
@click.argument("graphs", type=PATH_OR_DASH)
@options.model
@options.number(
    *("-k", "--samples"),
    metavar="K",
    help="Importance samples per graph.  [default: 1000; 100 for an autoregressive model]",
)
@options.choice(
    "--method",
    of=("is", "ais", "auto"),
    default="is",
    help="'is' is importance sampling, 'ais' annealed importance sampling (one-shot models only, seconds per graph); "
    "'auto' is 'ais' for graphs with k̂ > 0.7 and 'is' for the others.",
)
@options.number("--chains", default=64, help="Annealed chains per graph.")
@options.number("--steps", default=60, help="Temperatures per annealed chain.")
@options.flag("--check", help="Check the method by bidirectional Monte Carlo (BDMC) on graphs sampled from the model.")
@options.number("--check-graphs", default=20, help="Number of graphs that '--check' samples.")
@options.flag("--curve", help="Also show the NLL for K = 1, 10, 100, … samples.")
@options.flag("--unlabelled", help="Report nats per isomorphism class; needs igraph.")
@options.choice(
    "--convention",
    of=("pairs", "paper"),
    default="pairs",
    help="Score pairs i<j of real nodes, or all cells of the padded matrix as the paper does.",
)
@options.choice(
    "--split",
    of=("test", "validation", "train", "all"),
    help="Split of the file to score.  [default: test if the file marks one, else all]",
)
@options.family(help="Family whose entropy to compare with.  [default: the one recorded in the file]")
@options.parameters
@options.flag("--per-graph", help="Also show the estimate for each graph.")
@options.all_of(options.input_format(), options.simplify, options.ignore_weights, options.seed, options.device)
@options.all_of(options.threads, options.workers, options.as_json)
def nll(graphs: Path, **values: Any) -> None:
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
    given = SimpleNamespace(**values)
    if not given.check and given.method != "auto":
        unused = ("chains", "steps") if given.method == "is" else ("samples",)
        options.refuse_without_effect(unused, f"method '{given.method}' without '--check'")
    if given.convention == "paper" and (given.method != "is" or given.check or given.unlabelled):
        raise click.UsageError("Convention 'paper' is not a distribution over graphs: use '--method is' alone.")

    from graphite_gen.likelihood import NLLOptions, iterate_nll, summarise
    from graphite_gen.likelihood.automorphisms import entropy_of_classes, log_labellings, nll_of_class
    from graphite_gen.likelihood.bdmc import iterate_bdmc, summarise_bdmc

    from ..model_choice import choose_model
    from ..nll_table import NLLTable
    from ..reading import find_entropy, find_family, read_for_all

    group = process_group(given.workers)
    found, provenance = read_for_all(group, graphs, format=given.format, simplify=given.simplify)
    family = find_family(given.family, given.parameters, provenance)
    name = None if family is None else family.name
    chosen = _choose_split([graph.unweighted() if given.ignore_weights else graph for graph in found], given.split)
    model = choose_model(given.model, given.device, prefer=name)
    for graph in chosen[:1]:
        # Before any notes: all graphs of a file are usually of one kind.
        model.read(graph)
    how = NLLOptions(**{field.name: values[field.name] for field in fields(NLLOptions)}).for_model(model)
    if model.config.is_autoregressive:
        options.refuse_without_effect(
            ("chains", "steps"), "an autoregressive model, whose node orderings cannot be annealed"
        )
    if how.method != given.method:
        note(f"'{model.name}' is autoregressive, so '--method {given.method}' is importance sampling alone ('is').")
    _warn(model, chosen, given, provenance.family or name)
    labellings = [log_labellings(graph) for graph in chosen] if given.unlabelled else None

    scored = UntilStopped(iterate_nll(model, chosen, how, group=group))
    # The matrices of a graph have a cell for each pair of nodes.
    estimated = forecast(scored, [graph.nodes**2 for graph in chosen], "Scoring")
    rows = list(track(estimated, len(chosen), "Scoring"))
    planned = None
    if scored.error is not None:
        note(f"Interrupted: the result is partial, from the first {len(rows)} of {count_of(len(chosen), 'graph')}.")
        planned, chosen = len(chosen), chosen[: len(rows)]
    bounds: list[GraphBDMC] = []
    if given.check and planned is None:
        found_bounds = iterate_bdmc(model, given.check_graphs, how, features=chosen, group=group)
        bounds = list(track(found_bounds, given.check_graphs, "Checking"))
    if not group.is_rank_zero:
        return
    entropy = None
    if given.convention == "pairs":
        entropy = find_entropy(family, chosen, [row.nll for row in rows], model.schema)
    if labellings is not None:
        labellings = labellings[: len(rows)]
        rows = list(map(nll_of_class, rows, labellings))
        entropy = entropy and entropy_of_classes(entropy, labellings)
    bdmc = summarise_bdmc(model.name, how, bounds) if bounds else None
    anneals = not model.config.is_autoregressive
    table = NLLTable(summarise(model.name, how, rows), entropy, bdmc, given.unlabelled, anneals, planned)
    (table.show_json if given.as_json else table.show_table)(given.per_graph)
    if scored.error is not None:
        click.get_current_context().exit(exit_code(scored.error))


def _choose_split(graphs: list[SimpleGraph], split: str | None) -> list[SimpleGraph]:
    from graphite_gen.data.dataset import Dataset
    from graphite_gen.records import Provenance

    why = f"'--split {split}'"
    if split is None:
        marked = any(graph.attributes.get("split") == "test" for graph in graphs)
        split = "test" if marked else "all"
        why = "the file marks them as 'test'" if marked else "the file marks no graphs as 'test'"
    chosen = graphs if split == "all" else Dataset(graphs, Provenance()).split(split)
    whole = count_of(len(graphs), "graph")
    count = whole if len(graphs) == 1 else f"all {whole}" if split == "all" else f"{len(chosen)} of {whole}"
    note(f"Scoring {count}: {why}.")

    return chosen


def _warn(model: TrainedModel, graphs: list[SimpleGraph], given: SimpleNamespace, family: str | None) -> None:
    """Print notes on stderr about models and graphs that do not match."""
    from graphite_gen.errors import DatasetError
    from graphite_gen.training.checkpoint import bundled_names

    if given.convention == "paper":
        note("Convention 'paper' scores all cells of the padded matrix: it is not a distribution over graphs.")
    if not model.config.is_exchangeable:
        if given.unlabelled:
            raise DatasetError(
                f"'{model.name}' has identity features, so labelled copies of a graph differ in probability. Use a "
                f"model trained with '--preset default', or omit '--unlabelled'."
            )
        note(f"'{model.name}' has identity features: its NLL depends on the numbering of the nodes.")
    own = model.provenance.family
    if family is not None and own is not None and own != family:
        is_bundled = family in bundled_names()
        use = f"Use '--model {family}'" if is_bundled else f"Train one with 'graphite-gen train --family {family}'"
        note(f"'{model.name}' was trained on '{own}' graphs, but these are '{family}' graphs. {use}.")
    unseen = sorted({graph.nodes for graph in graphs} - set(model.sizes.graphs))
    if unseen:
        listed = ", ".join(map(str, unseen[:8])) + (", …" if len(unseen) > 8 else "")
        note(
            f"'{model.name}' was not trained on graphs with {listed} nodes: its NLL may be poor there, and p(n) is 0. "
            f"Train on such sizes with 'graphite-gen train FILE', or 'train --family NAME --nodes LOW:HIGH'."
        )
