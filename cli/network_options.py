"""Options and helpers of the commands for one large network: 'link', 'classify', 'embed' and 'train --single'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import options
from .command import shown_default
from .console import count_of, note, show_json, show_rows
from .train_options import KINDS as KINDS
from .types import PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.network.network import Network

FEW = 30
"""With fewer test edges or nodes, each is several percent of the score."""


def find_default(owner: str, flag: str) -> str:
    """The default of a field of a settings class, as the help shows it."""
    # Imports nothing heavy.
    from graphite_gen.network import hyperparameters

    return shown_default(flag, getattr(getattr(hyperparameters, owner)(), options.name_of(flag)))


graph = options.all_of(
    click.argument("graph", type=PATH_OR_DASH),
    click.option("--features/--no-features", default=None, help="Use node features.  [default: if there are any]"),
    options.file(
        "--node-features",
        help="Features by node id: '.csv' with ids in the first column, or '.npz' with 'features' and 'ids'. Columns "
        "that are nonzero for more than two thirds of the nodes are standardised; without any, rows are scaled to unit "
        "norm.  [default: those of GRAPH]",
    ),
    options.file(
        "--node-labels",
        help="Labels by node id: '.csv' with ids in the first column, 'label' and optionally 'split', or '.npz' with "
        "'labels', 'ids' and optionally 'split'.  [default: those of GRAPH]",
    ),
    click.option("--label-attribute", metavar="NAME", help="Node attribute with the labels.  [default: label]"),
    options.input_format(),
    options.simplify,
)

_AUTOENCODER = (
    ("--latent", click.IntRange(1, 1024), "Latent dimensions per node."),
    ("--width", click.IntRange(0, 4096), "Units of the encoder's hidden layer; 0 for none."),
    ("--hops", click.IntRange(0, 100), "Propagation steps of the encoder (APPNP)."),
    ("--teleport", click.FloatRange(0, 1), "Teleport probability of the propagation; 0 with one hop is a GCN."),
    ("--rounds", click.IntRange(0, 100), "Refinement rounds of the decoder (Graphite)."),
    ("--skip", click.Choice(("convex", "incremental")), "Skip connection of each refinement round."),
    ("--skip-weight", click.FloatRange(0, 10), "Weight λ of the refinements; with 0 the model is a VGAE."),
    (
        "--head",
        click.Choice(("inner", "biased", "signed")),
        "Logits of pairs: inner products of latents as in the paper, with a bias per node, or also with dimensions of "
        "negative sign.",
    ),
    ("--edge-dropout", click.FloatRange(0, 1, max_open=True), "Fraction of edges hidden from the encoder each epoch."),
    ("--targets", click.Choice(("hidden", "all")), "Edges in the loss: those that '--edge-dropout' hides, or all."),
    ("--balanced/--unbalanced", None, "Give edges and non-edges the same total weight, or every pair weight 1 (ELBO)."),
    ("--kl-weight", click.FloatRange(0), "Weight of the KL term; 1 for the ELBO."),
    ("--subsample", click.FloatRange(0), "Non-edges sampled per edge in each epoch; 0 uses all."),
    ("--epochs", click.IntRange(1), "Training epochs, each one step on the whole graph."),
    ("--learning-rate", click.FloatRange(1e-9, 10), "Learning rate of Adam."),
)

autoencoder = options.settings(_AUTOENCODER, partial(find_default, "LinkSettings"))

# Settings that only some kinds of autoencoder use.
_USED_BY = {
    ("rounds", "skip", "skip_weight"): {"graphite-vae", "graphite-ae"},
    ("kl_weight",): {"graphite-vae", "vgae"},
}


def refuse_idle(kinds: Sequence[str]) -> None:
    """Raise UsageError for given settings that none of the chosen kinds of model uses."""
    on = " and ".join(f"'{kind}'" for kind in kinds)
    for names, users in _USED_BY.items():
        # 'train' has no '--kl-weight'.
        known = [name for name in names if name in click.get_current_context().params]
        if not users & set(kinds):
            options.refuse_without_effect(known, on)


def refuse_settings(on: str) -> None:
    """Raise UsageError for given settings of the autoencoder and options of features."""
    options.refuse_without_effect(
        [*(options.name_of(flag) for flag, *_ in _AUTOENCODER), "features", "node_features"], on
    )


def read(path: Path, rest: dict[str, Any]) -> tuple[Network, bool, dict[str, Any]]:
    """The network, whether to use its features, and the settings given; ``rest`` has the options for them."""
    from graphite_gen.errors import DatasetError
    from graphite_gen.network.network import read_network

    features, format, simplify = (rest.pop(name) for name in ("features", "format", "simplify"))
    files = {"features": rest.pop("node_features"), "labels": rest.pop("node_labels")}
    attribute = rest.pop("label_attribute", None)
    if attribute is not None and files["labels"] is not None:
        raise click.UsageError("Pass '--node-labels' or '--label-attribute', not both.")
    found = read_network(path, format=format, simplify=simplify, **files)
    found = found if attribute is None else found.labelled_by(attribute)
    width = 0 if found.features is None else found.features.shape[1]
    if features and not width:
        raise DatasetError("The graph has no node features.", reason="no-features")
    uses = width > 0 if features is None else features
    used = count_of(width, "feature") if uses else "features not used" if width else "no features"
    note(f"{count_of(found.nodes, 'node')}, {count_of(len(found.edges), 'edge')}, {used}.")
    if found.graph.is_weighted:
        note("Edge weights are ignored.")

    return found, uses, {name: value for name, value in rest.items() if value is not None}


def show_scores(rows: Sequence[Any], figures: Mapping[str, str], what: str, as_json: bool) -> None:
    """Print scores of models in percent, with standard errors over runs.

    ``figures`` are attributes by column, such as ``auc``, or ``hits@20`` for an entry of a table.
    """
    if as_json:
        return show_json([row.to_json() for row in rows])
    cells = [
        (row.model, "yes" if row.features else "no", *(percent(row, name) for name in figures.values())) for row in rows
    ]
    show_rows(("model", "features", *figures), cells, numbers=tuple(figures))
    if rows[0].runs == 1:
        return note(f"From one {what}; '--runs 2' or more gives a standard error.")

    return note(f"Mean ± standard error of {count_of(rows[0].runs, what)}.")


def note_split(what: str, split: Any, item: str) -> None:
    """Print the sizes of a split, and whether a score of its test items is noisy."""
    train, validation, test = (len(part) for part in (split.train, split.validation, split.test))
    note(f"{what}: {train} for training, {validation} for validation, {test} for test.")
    if not test:
        note(f"Without {item}s the accuracy is not known.")
    elif test < FEW:
        note(f"The score is noisy: it comes from {count_of(test, item)}.")


def percent(result: Any, name: str) -> str:
    """A score in percent, with its standard error if any."""
    table, _, key = name.partition("@")
    value, error = getattr(result, table), getattr(result, f"{table}_se")
    if key:
        value, error = value[int(key)], error[int(key)]

    if value is None:
        return "-"

    return f"{100 * value:.2f}" + ("" if error is None else f" ± {100 * error:.2f}")
