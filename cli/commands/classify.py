"""Semi-supervised classification of the nodes of one large graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import options, single
from ..command import Command
from ..types import PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.network.network import Network
    from graphite_gen.network.node_classification import ClassificationResult, ClassificationScore

KINDS = ("graphite", "gcn")
SPLITS = ("own", "fresh")


@click.command(
    cls=Command,
    short_help="Classify the nodes of a network.",
    groups={
        "Model": "kinds features node_features node_labels",
        "Evaluation": "split runs seed",
        "Output": "output force as_json",
    },
)
@single.graph
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(KINDS),
    multiple=True,
    help="A model to train; may be repeated.  [default: both]",
)
@click.option(
    "--split",
    type=click.Choice(SPLITS),
    default=SPLITS[0],
    show_default=True,
    help="Learn from the same nodes in all runs, the graph's own where it has a split, or from fresh ones in each.",
)
@click.option("--runs", type=click.IntRange(1), metavar="N", default=10, show_default=True, help="Starts to average.")
@click.option(
    "-o",
    "--output",
    type=PATH_OR_DASH,
    metavar="FILE",
    help="Write the class of each node as CSV: its label, or what the first model gives where there is none, best run "
    "by validation, and how likely that is; '-' is stdout.",
)
@single.setting("ClassifierSettings", "--latent", click.IntRange(1, 1024), "Latent dimensions of the hybrid.")
@single.setting("ClassifierSettings", "--width", click.IntRange(1, 4096), "Units of the hidden layer.")
@single.setting("ClassifierSettings", "--dropout", click.FloatRange(0, 1, max_open=True), "Part of the units dropped.")
@single.setting(
    "ClassifierSettings", "--weight-decay", click.FloatRange(0, 1), "Penalty on weights of the first layer."
)
@single.setting("ClassifierSettings", "--reconstruction", click.FloatRange(0), "Weight of the autoencoder's objective.")
@single.setting("ClassifierSettings", "--epochs", click.IntRange(1), "Steps of training.")
@single.setting("ClassifierSettings", "--learning-rate", click.FloatRange(1e-9, 10), "Step size.")
@single.setting("ClassifierSettings", "--patience", click.IntRange(0), "Epochs without progress; 0 never stops.")
@options.force
@options.seed
@options.threads
@options.as_json
def classify(
    graph: Path,
    kinds: tuple[str, ...],
    split: str,
    runs: int,
    output: Path | None,
    force: bool,
    seed: int,
    threads: int | None,
    as_json: bool,
    **rest: Any,
) -> None:
    """Learn the classes of GRAPH's nodes from a few labels, and say how often those of test nodes are right.

    'gcn' is a graph convolutional network; 'graphite' also learns to give the graph back, with the same encoder. The
    split is the graph's own, or one like Planetoid's: 20 labels of each class to learn from, 500 nodes to choose the
    epoch by, 1000 to score.

    \b
    Example:
        graphite-gen classify cora.h5 --runs 100
        graphite-gen classify friends.graphml --node-labels clubs.csv -o classes.csv
    """
    if output is not None and str(output) == "-" and as_json:
        raise click.UsageError("'-o -' and '--json' both print to stdout: write the classes to a file.")
    if set(kinds) == {"gcn"}:
        options.refuse_without_effect({"latent": "--latent", "reconstruction": "--reconstruction"}, "'gcn'")

    from graphite_gen.network.node_classification import (
        iterate_classification,
        run_nodes,
        summarise_classification,
    )
    from graphite_gen.network.settings import ClassifierSettings

    from ..console import note, so_many, track
    from ..model_choice import use_threads

    if output is not None:
        _check(output, force)
    use_threads(threads)
    found, features = single.read(graph, rest)
    parts = run_nodes(found, split, seed, 0)
    note(
        f"Learning from {so_many(len(parts.train), 'node')}, choosing the epoch by {len(parts.validation)}, "
        f"scoring {len(parts.test)}{' in each run' * (split == 'fresh')}."
    )
    single.doubt_few(len(parts.test), "test node")
    given = {name: value for name, value in rest.items() if value is not None}
    results: list[ClassificationResult] = []
    best: ClassificationScore | None = None
    for kind in dict.fromkeys(kinds or KINDS):
        settings = ClassifierSettings(kind=kind, **given)
        scores = list(
            track(
                iterate_classification(found, settings, runs, seed, features=features, split=split),
                runs,
                f"Training {kind}",
            )
        )
        best = best or max(scores, key=lambda score: score.validation)
        results.append(summarise_classification(kind, features, scores))
    if output is not None and best is not None:
        _write(found, best, results[0].model, output, force)
    if output is None or str(output) != "-":
        _show(results, as_json)
    else:
        _tell(results)


def _show(rows: list[ClassificationResult], as_json: bool) -> None:
    from ..console import note, show_json, show_rows

    if as_json:
        return show_json([row.to_json() for row in rows])
    cells = [
        (row.model, "yes" if row.features else "no", single.percent(row.accuracy, row.accuracy_se)) for row in rows
    ]
    show_rows(("model", "features", "accuracy, %"), cells, numbers=("accuracy, %",))
    note(single.averaged(rows[0].runs, "run"))

    return None


def _tell(rows: list[ClassificationResult]) -> None:
    """The same beside classes that have taken stdout."""
    from ..console import note, so_many

    for row in rows:
        accuracy = single.percent(row.accuracy, row.accuracy_se)
        note(f"Accuracy of {row.model}, {so_many(row.runs, 'run')}: {accuracy} %.")


def _check(output: Path, force: bool) -> None:
    from graphite_gen.errors import OutputError
    from graphite_gen.io.files import check_target

    if str(output) == "-":
        return
    if output.suffix.lower() != ".csv":
        raise OutputError(f"'{output}' is no file for classes: name it '.csv', or pass '-' for CSV on stdout.")
    check_target(output, force)


def _write(graph: Network, score: ClassificationScore, model: str, output: Path, force: bool) -> None:
    import csv
    import io

    import numpy as np

    from graphite_gen.io.files import open_output

    from ..console import note, so_many

    assert graph.labels is not None
    is_known = graph.labels >= 0
    # A label that was given is no guess, even where the model would guess another.
    codes = np.where(is_known, graph.labels, score.predictions).tolist()
    chances = np.where(is_known, 1, score.probabilities).tolist()
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("node", "label", "known", "probability"))
    for node, (code, known, chance) in enumerate(zip(codes, is_known.tolist(), chances, strict=True)):
        writer.writerow((graph.name(node), graph.classes[code], str(known).lower(), f"{chance:.6g}"))
    with open_output(None if str(output) == "-" else output, force) as stream:
        stream.write(text.getvalue().encode())
    given = int(is_known.sum())
    place = "" if str(output) == "-" else f" to '{output}'"
    note(
        f"Wrote the classes of {so_many(graph.nodes, 'node')}{place}: {given} as labelled, {graph.nodes - given} by "
        f"{model}."
    )
