"""Options and helpers of the commands for one large network: 'link', 'classify', 'embed' and 'train --single'."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import options
from .types import PATH, PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.network.fitting import TrainedAutoencoder
    from graphite_gen.network.hyperparameters import LinkSettings
    from graphite_gen.network.network import Network

__all__ = [
    "KINDS",
    "SettingOption",
    "autoencoder",
    "graph",
    "link_settings",
    "percent",
    "read",
    "refuse_idle",
    "refuse_settings",
    "runs_caption",
    "settings",
    "train_network",
    "train_on_all",
    "warn_few",
]

KINDS = ("graphite-vae", "graphite-ae", "vgae", "gae")

FEW = 30
"""With fewer test edges or nodes, each is several percent of the score."""

F = TypeVar("F", bound=Callable[..., Any])


class SettingOption(click.Option):
    """An option whose default is that of a settings class of the library, looked up when help is shown."""

    def __init__(self, *args: Any, owner: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owner = owner

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        # Imports nothing heavy.
        from graphite_gen.network import hyperparameters

        record = super().get_help_record(ctx)
        if record is None:
            return None
        value = getattr(getattr(hyperparameters, self.owner)(), str(self.name))
        if isinstance(value, bool):
            shown = (self.opts if value else self.secondary_opts)[0].removeprefix("--")
        else:
            shown = f"{value:g}" if isinstance(value, float) else "auto" if value is None else str(value)
        # Click appends the range.
        text, _, bounds = record[1].partition("  [")

        return record[0], f"{text}  [default: {shown}{'; ' + bounds if bounds else ']'}"


def settings(owner: str, rows: Iterable[tuple[str, Any, str]]) -> Callable[[F], F]:
    """Options for fields of a settings class, by flag, type (None for a switch) and help; None if not given."""

    def decorate(command: F) -> F:
        for flag, kind, text in reversed(tuple(rows)):
            metavar = None if kind is None or isinstance(kind, click.Choice) else "N"
            shown = {"type": kind, "default": None, "metavar": metavar, "help": text}
            command = click.option(flag, cls=SettingOption, owner=owner, **shown)(command)
        return command

    return decorate


_READING = (
    click.argument("graph", type=PATH_OR_DASH),
    click.option("--features/--no-features", default=None, help="Use node features.  [default: if there are any]"),
    click.option(
        "--node-features",
        type=PATH,
        metavar="FILE",
        help="Features by node id: '.csv' with ids in the first column, or '.npz' with 'features' and 'ids'. Columns "
        "that are nonzero for more than two thirds of the nodes are standardised; without any, rows are scaled to unit "
        "norm.  [default: those of GRAPH]",
    ),
    click.option(
        "--node-labels",
        type=PATH,
        metavar="FILE",
        help="Labels by node id: '.csv' with ids in the first column, 'label' and optionally 'split', or '.npz' with "
        "'labels', 'ids' and optionally 'split'.  [default: those of GRAPH]",
    ),
    options.input_format(),
    options.simplify,
)

_AUTOENCODER = (
    ("--latent", click.IntRange(1, 1024), "Latent dimensions per node."),
    ("--width", click.IntRange(0, 4096), "Units of the encoder's hidden layer; 0 for none."),
    ("--hops", click.IntRange(0, 100), "Propagation steps of the encoder (APPNP)."),
    ("--teleport", click.FloatRange(0, 1), "Teleport probability of the propagation; 0 with one hop is a GCN."),
    ("--rounds", click.IntRange(0, 100), "Refinement rounds of the decoder (Graphite)."),
    ("--skip", click.Choice(("convex", "incremental")), "Skip connection of a refinement."),
    ("--skip-weight", click.FloatRange(0, 10), "Weight λ of a refinement; 0 is VGAE."),
    (
        "--head",
        click.Choice(("inner", "biased", "signed")),
        "Logits of pairs: the paper's inner product, with a bias per node, or also with negative dimensions.",
    ),
    ("--edge-dropout", click.FloatRange(0, 1, max_open=True), "Fraction of edges hidden from the encoder each epoch."),
    ("--targets", click.Choice(("hidden", "all")), "Edges in the loss: the hidden ones, or all."),
    ("--balanced/--unbalanced", None, "Give edges and non-edges the same total weight, or every pair weight 1 (ELBO)."),
    ("--kl-weight", click.FloatRange(0), "Weight of the KL term; 1 for the ELBO."),
    ("--subsample", click.FloatRange(0), "Non-edges scored per edge in each step; 0 scores all."),
    ("--epochs", click.IntRange(1), "Training steps."),
    ("--learning-rate", click.FloatRange(1e-9, 10), "Learning rate of Adam."),
)

# Settings that only some kinds of autoencoder use.
_USED_BY = {
    ("--rounds", "--skip", "--skip-weight"): {"graphite-vae", "graphite-ae"},
    ("--kl-weight",): {"graphite-vae", "vgae"},
}


def graph(command: F) -> F:
    """The argument GRAPH and the options for reading it."""
    for decorate in reversed(_READING):
        command = decorate(command)

    return command


autoencoder = settings("LinkSettings", _AUTOENCODER)


def refuse_idle(kinds: Iterable[str]) -> None:
    """Raise UsageError for given settings that none of the chosen kinds of model uses."""
    chosen = tuple(kinds)
    on = " and ".join(f"'{kind}'" for kind in chosen)
    for flags, users in _USED_BY.items():
        if not users & set(chosen):
            options.refuse_without_effect({_name(flag): flag for flag in flags}, on)


def refuse_settings(on: str) -> None:
    """Raise UsageError for given settings of the autoencoder and options of features."""
    flags = [flag for flag, _, _ in _AUTOENCODER] + ["--features/--no-features", "--node-features"]
    options.refuse_without_effect({_name(flag): flag for flag in flags}, on)


def _name(flag: str) -> str:
    return flag.partition("/")[0].removeprefix("--").replace("-", "_")


def read(path: Path, rest: dict[str, Any]) -> tuple[Network, bool]:
    """Read the network and decide whether to use its features; pops the reading options from ``rest``."""
    from graphite_gen.errors import DatasetError
    from graphite_gen.network.network import read_network

    from .console import count_of, note

    features = rest.pop("features")
    found = read_network(
        path,
        format=rest.pop("format"),
        simplify=rest.pop("simplify"),
        features=rest.pop("node_features"),
        labels=rest.pop("node_labels"),
    )
    width = 0 if found.features is None else found.features.shape[1]
    if features and not width:
        raise DatasetError("The graph has no node features.", reason="no-features")
    uses = width > 0 if features is None else features
    used = count_of(width, "feature") if uses else "features not used" if width else "no features"
    note(f"{count_of(found.nodes, 'node')}, {count_of(len(found.edges), 'edge')}, {used}.")
    if found.graph.is_weighted:
        note("Edge weights are ignored.")

    return found, uses


def link_settings(kind: str, rest: Mapping[str, Any]) -> LinkSettings:
    """The settings of a kind of model, with the given options."""
    from graphite_gen.network.hyperparameters import LinkSettings

    return LinkSettings(kind=kind, **{name: value for name, value in rest.items() if value is not None})


def train_on_all(graph: Network, settings: LinkSettings, seed: int, features: bool) -> TrainedAutoencoder:
    """Train a model on all edges, with progress on stderr."""
    from graphite_gen.network import link_prediction

    from .console import counting

    with counting(f"Training {settings.kind}") as count_epochs:
        return link_prediction.train_on_all(graph, settings, seed, features=features, progress=count_epochs)


def train_network(
    source: Path, folder: Path, format: str | None, simplify: bool, given: Mapping[str, Any], seed: int, as_json: bool
) -> None:
    """Train a generative model of one network ('train --single') and save it."""
    import shlex
    import time
    from dataclasses import replace

    from graphite_gen.network.generation import MOST_NODES, fit_network_model
    from graphite_gen.network.hyperparameters import GENERATION
    from graphite_gen.network.storage import save_network
    from graphite_gen.records import Provenance

    from .console import count_of, counting, note, show_facts, show_json

    reading = {"features": False, "format": format, "simplify": simplify, "node_features": None, "node_labels": None}
    graph, _ = read(source, reading)
    settings = replace(GENERATION, **given)
    if graph.nodes > MOST_NODES:
        note(f"With more than {MOST_NODES} nodes only the mean degree is calibrated, not that of each node.")
    started = time.monotonic()
    provenance = Provenance(source=source.name, seed=None)
    with counting(f"Training {settings.kind}") as count_epochs:
        model = fit_network_model(
            graph, settings, name=folder.name, seed=seed, provenance=provenance, progress=count_epochs
        )
    save_network(model, folder)
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    if as_json:
        results = {"nodes": model.nodes, "edges": model.edges, "epochs": settings.epochs}
        return show_json({"name": model.name, "folder": str(folder), "results": results})
    size = f"{count_of(model.nodes, 'node')}, {count_of(model.edges, 'edge')}, mean degree {model.mean_degree:.3g}"
    duration = f"{count_of(settings.epochs, 'epoch')}, {minutes} min {seconds} s"
    show_facts([("model", str(folder)), ("graph", size), ("trained", duration)])

    return note(f"Next: graphite-gen sample --model {shlex.quote(str(folder))} -o like-it.graphml")


def runs_caption(runs: int, what: str) -> str:
    """Caption of a table of scores over runs."""
    from .console import count_of

    if runs == 1:
        return f"From one {what}; '--runs 2' or more gives a standard error."

    return f"Mean ± standard error of {count_of(runs, what)}."


def warn_few(number: int, what: str) -> None:
    """Note that a score of few test edges or nodes is noisy."""
    from .console import count_of, note

    if number < FEW:
        note(f"The score is noisy: it comes from {count_of(number, what)}.")


def percent(value: float, error: float | None) -> str:
    """A fraction in percent, with its standard error if any."""
    return f"{100 * value:.2f}" + ("" if error is None else f" ± {100 * error:.2f}")
