"""A model and the quality of its samples on one HTML page."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from .. import options
from ..command import command, is_given
from ..console import count_of, note, note_label
from ..types import PATH_OR_NAME

if TYPE_CHECKING:
    from graphite_gen.viz.report import ReportData

NETWORKS = 3
"""The default number of samples of a model of one network."""


@command(
    short_help="Write an HTML report on a model.",
    groups={"Graphs": "reference train samples count node_label", "Output": "output force"},
    needs={"parameters": "family"},
)
@click.argument("model", metavar="MODEL", type=PATH_OR_NAME)
@options.file(
    "--reference", help="Test graphs.  [default: new graphs of the model's family, else its validation graphs]"
)
@options.file("--train", help="Training graphs.  [default: those of the model]")
@options.file("--samples", help="Samples to evaluate.  [default: new samples of the model]")
@options.file("-o", "--output", required=True, help="The page to write, '.html'.")
@options.number(
    "-n", "--count", low=2, default=100, help="Number of new samples; 3 by default for a model of one network."
)
@options.attribute(
    "--node-label", help="Node attribute that colours nodes.  [default: the first by name, else the degree]"
)
@options.number("--nll-graphs", low=0, default=25, help="Number of test graphs whose NLL is estimated; 0 skips it.")
@options.family(help="The family that samples should belong to.  [default: the model's]")
@options.all_of(options.parameters, options.simplify, options.seed, options.threads, options.force)
def report(model: str, output: Path, force: bool, **values: Any) -> None:
    """Sample from MODEL, evaluate the samples and write an HTML report: verdict, NLL, metrics, drawings, distributions,
    training history, provenance, and a table of all samples to search and download.

    For a model of one network, '--reference' is the network that the samples should resemble.

    The page is one file that loads nothing from the network. Figures need matplotlib ('graphite-gen[plot]').

    \b
    Example:
        graphite-gen report barabasi -o report.html
        graphite-gen report mine --reference test.h5 --train train.h5 -o mine.html
    """
    if output.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"'{output}' is not an HTML file: the suffix should be '.html'.")

    from graphite_gen.api import LOCAL
    from graphite_gen.evaluation.attributes import find_labels
    from graphite_gen.families import family as family_of
    from graphite_gen.graph import require_undirected
    from graphite_gen.io import check_target, read_graphs
    from graphite_gen.training.checkpoint import find_checkpoint, is_network_model, read_config
    from graphite_gen.viz.figures import new_figure
    from graphite_gen.viz.report import collect_report

    from ..reading import read_sets, read_split

    given = SimpleNamespace(**values)
    check_target(output, force)
    new_figure(1, 1)  # fails early without matplotlib
    folder = find_checkpoint(model, LOCAL)
    config = read_config(folder)
    if is_network_model(config):
        return _write(_collect_network(folder, given), given.node_label, output, force)
    if given.reference is not None:
        reference, train, _ = read_sets(given.reference, given.train, simplify=given.simplify)
    else:
        reference, train = [], read_split(given.train, "train", given.simplify) if given.train else []
    samples = list(read_graphs(given.samples, simplify=given.simplify)) if given.samples else []
    if not config["model"].get("directed"):
        for index, graph in enumerate(samples):
            require_undirected(graph, f"Sample {index}")
    for graphs, what in ((reference, "reference graphs"), (samples, "samples")):
        find_labels(graphs, "node", given.node_label, what)  # fails early if it is not a label
    data = collect_report(
        folder,
        reference=reference,
        reference_source=f"{count_of(len(reference), 'graph')} of '{given.reference}'",
        train=train,
        samples=samples,
        family=None if given.family is None else family_of(given.family, **dict(given.parameters)),
        count=given.count,
        nll_graphs=given.nll_graphs,
        seed=given.seed,
        command=shlex.join(["graphite-gen", *sys.argv[1:]]),
        progress=lambda step: note(f"{step} …"),
    )

    return _write(data, given.node_label, output, force)


def _collect_network(folder: Path, given: SimpleNamespace) -> ReportData:
    """The data of a report on a model of one network."""
    from graphite_gen.io import read_graphs
    from graphite_gen.network.network import read_network
    from graphite_gen.network.reporting import collect_network_report
    from graphite_gen.network.storage import load_network

    from ..summaries import network_facts, summarise_model

    options.refuse_without_effect(("train", "family", "nll_graphs"), "a model of one network")
    reference = None if given.reference is None else read_network(given.reference, simplify=given.simplify).graph

    return collect_network_report(
        load_network(folder),
        network_facts(summarise_model(folder)),
        reference=reference,
        reference_source="none" if reference is None else f"the network in '{given.reference}'",
        samples=list(read_graphs(given.samples, simplify=given.simplify)) if given.samples else (),
        count=given.count if is_given("count") else NETWORKS,
        seed=given.seed,
        command=shlex.join(["graphite-gen", *sys.argv[1:]]),
    )


def _write(data: ReportData, node_label: str | None, output: Path, force: bool) -> None:
    from graphite_gen.evaluation.attributes import find_labels
    from graphite_gen.io import open_output
    from graphite_gen.viz.report import drawn_graphs, render_page

    note_label(list(find_labels(drawn_graphs(data), "node")), node_label)
    # Names from JSON may contain lone surrogates, which UTF-8 cannot encode.
    page = render_page(data, node_label=node_label).encode(errors="replace")
    with open_output(output, force) as stream:
        stream.write(page)
    note(f"Wrote '{output}', {len(page) / 1e6:.1f} MB. Open it in any browser.")
