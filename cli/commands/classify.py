"""Semi-supervised node classification in one large network."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .. import network_options, options
from ..command import command
from ..console import count_of, note, track

if TYPE_CHECKING:
    from graphite_gen.network.network import Network
    from graphite_gen.network.node_classification import ClassificationResult, ClassificationScore

KINDS = ("graphite", "gcn", "graphite-paper")
DEFAULT_KINDS = KINDS[:2]
SETTINGS = (
    ("--latent", click.IntRange(1, 1024), "Latent dimensions per node (not of 'gcn')."),
    ("--width", click.IntRange(1, 4096), "Units of the hidden layer."),
    ("--dropout", click.FloatRange(0, 1, max_open=True), "Dropout rate."),
    ("--weight-decay", click.FloatRange(0, 1), "Weight decay of the first layer."),
    ("--reconstruction", click.FloatRange(0), "Weight of the autoencoder's loss (not of 'gcn')."),
    ("--epochs", click.IntRange(1), "Training epochs, each one step on the whole graph."),
    ("--learning-rate", click.FloatRange(1e-9, 10), "Learning rate of Adam."),
    ("--patience", click.IntRange(0), "Epochs without improvement before early stopping; 0 disables it."),
)


@command(
    short_help="Classify the nodes of a network.",
    groups={
        "Model": "kinds features node_features node_labels label_attribute",
        "Evaluation": "split runs seed",
        "Output": "output force as_json",
    },
)
@network_options.graph
@options.choice(
    *("--kind", "kinds"),
    of=KINDS,
    multiple=True,
    help="A model to train; may be repeated.  [default: graphite, gcn]",
)
@options.choice(
    "--split",
    of=("own", "fresh"),
    default="own",
    help="'own' is the same split in all runs, that of GRAPH if it has one; 'fresh' a new random split in each run.",
)
@options.number("--runs", default=10, help="Number of runs, over which the accuracy is averaged.")
@options.file_or_dash(
    *("-o", "--output"),
    help="Write the class of each node to a '.csv' file ('-' is stdout): its label if it has one, else the prediction "
    "of the first model's best run, with its probability.",
)
@options.settings(SETTINGS, partial(network_options.find_default, "ClassifierSettings"))
@options.all_of(options.force, options.seed, options.threads, options.as_json)
def classify(graph: Path, kinds: tuple[str, ...], output: Path | None, force: bool, as_json: bool, **rest: Any) -> None:
    """Train a node classifier on the labels of GRAPH, and report its accuracy on test nodes.

    'gcn' is a graph convolutional network; 'graphite' also trains an autoencoder with the same hidden layer, which
    differs from the paper. 'graphite-paper' predicts from the parameters of the posterior and the node features, as
    in the paper, with a GCN as encoder and no hidden edges; its loss and regularisation are those of 'graphite'.

    Without a split of its own, GRAPH gets one like Planetoid's: 20 nodes of each class for training, 500 for
    validation, 1000 for test; with up to five labels per class, all are used for training.

    \b
    Example:
        graphite-gen classify cora.h5 --runs 100
        graphite-gen classify friends.graphml --node-labels clubs.csv -o classes.csv
        graphite-gen classify friends.graphml --label-attribute club -o classes.csv
    """
    split, runs, seed = (rest.pop(name) for name in ("split", "runs", "seed"))
    to_stdout = str(output) == "-"
    if to_stdout and as_json:
        raise click.UsageError("'-o -' and '--json' both print to stdout: write the classes to a file.")
    if set(kinds) == {"gcn"}:
        options.refuse_without_effect(("latent", "reconstruction"), "'gcn'")

    from graphite_gen.network.hyperparameters import ClassifierSettings
    from graphite_gen.network.node_classification import run_classification, run_nodes, summarise_classification

    from ..writing import check_scores

    check_scores(output, force, (".csv",))
    found, features, given = network_options.read(graph, rest)
    parts = run_nodes(found, split, seed, 0)
    network_options.note_split("Nodes of each run" if split == "fresh" else "Nodes", parts, "test node")
    results: list[ClassificationResult] = []
    best: ClassificationScore | None = None
    for kind in dict.fromkeys(kinds or DEFAULT_KINDS):
        settings = ClassifierSettings(kind=kind, **given)
        run = partial(run_classification, found, settings, seed=seed, features=features, split=split)
        scores = list(track(map(run, range(runs)), runs, f"Training {kind}"))
        best = best or max(scores, key=lambda score: score.validation or 0.0)
        results.append(summarise_classification(kind, features, scores))
    if output is not None and best is not None:
        _write(found, best, results[0].model, output, force)
    if to_stdout:
        for row in results:
            if row.accuracy is not None:
                accuracy = network_options.percent(row, "accuracy")
                note(f"Accuracy of {row.model}, {count_of(row.runs, 'run')}: {accuracy} %.")
    else:
        network_options.show_scores(results, {"accuracy, %": "accuracy"}, "run", as_json)


def _write(graph: Network, score: ClassificationScore, model: str, output: Path, force: bool) -> None:
    import numpy as np

    from ..writing import as_csv, write_text

    assert graph.labels is not None
    is_known = graph.labels >= 0
    # Known labels take precedence over predictions.
    codes = np.where(is_known, graph.labels, score.predictions).tolist()
    probabilities = np.where(is_known, 1, score.probabilities).tolist()
    rows = [
        (graph.name(node), graph.classes[code], str(known).lower(), f"{p:.6g}")
        for node, (code, known, p) in enumerate(zip(codes, is_known.tolist(), probabilities, strict=True))
    ]
    write_text(as_csv(("node", "label", "known", "probability"), rows), output, force)
    labelled = int(is_known.sum())
    place = "" if str(output) == "-" else f" to '{output}'"
    note(
        f"Wrote the classes of {count_of(graph.nodes, 'node')}{place}: {labelled} labelled, {graph.nodes - labelled} "
        f"predicted by {model}."
    )
