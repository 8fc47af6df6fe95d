"""What the commands about one large graph share: how the graph is read, and the settings of its autoencoder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from . import options
from .types import PATH, PATH_OR_DASH

if TYPE_CHECKING:
    from graphite_gen.network.fitting import TrainedAutoencoder
    from graphite_gen.network.network import Network
    from graphite_gen.network.settings import LinkSettings

__all__ = [
    "KINDS",
    "SettingOption",
    "autoencoder",
    "averaged",
    "doubt_few",
    "graph",
    "link_settings",
    "percent",
    "read",
    "refuse_idle",
    "refuse_settings",
    "setting",
    "train_network",
    "train_on_all",
]

KINDS = ("graphite-vae", "graphite-ae", "vgae", "gae")

FEW = 30
"""Of fewer test edges or nodes than that, one more or less is several percent."""

F = TypeVar("F", bound=Callable[..., Any])


class SettingOption(click.Option):
    """A setting whose default is the library's, shown when someone asks for help."""

    def __init__(self, *args: Any, owner: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.owner = owner

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        # Free of everything heavy, and read only when someone asks for help.
        from graphite_gen.network import settings

        record = super().get_help_record(ctx)
        if record is None:
            return None
        value = getattr(getattr(settings, self.owner)(), str(self.name))
        if isinstance(value, bool):
            shown = (self.opts if value else self.secondary_opts)[0].removeprefix("--")
        else:
            shown = f"{value:g}" if isinstance(value, float) else "auto" if value is None else str(value)
        # What click adds at the end is the range.
        text, _, bounds = record[1].partition("  [")

        return record[0], f"{text}  [default: {shown}{'; ' + bounds if bounds else ']'}"


def setting(owner: str, flag: str, kind: Any, help: str) -> Callable[[F], F]:
    """An option for a setting of a class in the library; None is its default, and the kind of one that is on or off."""
    metavar = None if kind is None or isinstance(kind, click.Choice) else "N"

    return click.option(flag, cls=SettingOption, owner=owner, type=kind, default=None, metavar=metavar, help=help)


_READING = (
    click.argument("graph", type=PATH_OR_DASH),
    click.option(
        "--features/--no-features",
        default=None,
        help="Whether node features are used.  [default: where there are any]",
    ),
    click.option(
        "--node-features",
        type=PATH,
        metavar="FILE",
        help="Features by node id: '.csv' whose first column is the id, or '.npz' of 'features' and 'ids'. A column "
        "that is not zero for more than two thirds of the nodes is standardised; where there is none, rows are scaled "
        "to length one.  "
        "[default: those of GRAPH]",
    ),
    click.option(
        "--node-labels",
        type=PATH,
        metavar="FILE",
        help="Labels by node id: '.csv' whose first column is the id, with 'label' and maybe 'split', or '.npz' of "
        "'labels', 'ids' and maybe 'split'.  "
        "[default: those of GRAPH]",
    ),
    options.input_format(),
    options.simplify,
)

_AUTOENCODER = (
    ("--latent", click.IntRange(1, 1024), "Latent dimensions per node."),
    ("--width", click.IntRange(0, 4096), "Units of the encoder's hidden layer; 0 has none."),
    ("--hops", click.IntRange(0, 100), "How far the encoder listens, in steps over the graph."),
    ("--teleport", click.FloatRange(0, 1), "How soon it stops listening; with one hop, 0 is a GCN."),
    ("--rounds", click.IntRange(0, 100), "Refinements in the decoder (Graphite)."),
    ("--skip", click.Choice(("convex", "incremental")), "How a refinement joins its input."),
    ("--skip-weight", click.FloatRange(0, 10), "Weight λ of a refinement; 0 is VGAE."),
    (
        "--head",
        click.Choice(("inner", "biased", "signed")),
        "Inner product of the paper, with a bias per node, or with signs too.",
    ),
    ("--edge-dropout", click.FloatRange(0, 1, max_open=True), "Part of the edges hidden from the encoder each epoch."),
    ("--targets", click.Choice(("hidden", "all")), "Which edges are learned: the hidden ones, or all."),
    ("--balanced/--unbalanced", None, "Whether edges count as much as all other pairs, or every pair once (ELBO)."),
    ("--kl-weight", click.FloatRange(0), "Weight of the KL term; 1 for the ELBO."),
    ("--subsample", click.FloatRange(0), "Pairs without an edge scored in a step, per edge; 0 scores all."),
    ("--epochs", click.IntRange(1), "Steps of training."),
    ("--learning-rate", click.FloatRange(1e-9, 10), "Step size."),
)

# Settings that not every kind of autoencoder reads, and the kinds that do.
_READERS = {
    ("--rounds", "--skip", "--skip-weight"): {"graphite-vae", "graphite-ae"},
    ("--kl-weight",): {"graphite-vae", "vgae"},
}


def graph(command: F) -> F:
    """The argument GRAPH, and how to read it."""
    for decorate in reversed(_READING):
        command = decorate(command)

    return command


def autoencoder(command: F) -> F:
    """The settings of the autoencoder."""
    for flag, kind, text in reversed(_AUTOENCODER):
        command = setting("LinkSettings", flag, kind, text)(command)

    return command


def refuse_idle(kinds: Iterable[str]) -> None:
    """Refuse settings that were given and that none of the chosen kinds of model reads.

    Raises:
        click.UsageError: One was given.
    """
    chosen = tuple(kinds)
    on = " and ".join(f"'{kind}'" for kind in chosen)
    for flags, readers in _READERS.items():
        if not readers & set(chosen):
            options.refuse_without_effect({_name(flag): flag for flag in flags}, on)


def refuse_settings(on: str) -> None:
    """Refuse settings of the autoencoder, and features, that were given to what has none.

    Raises:
        click.UsageError: One was given.
    """
    flags = [flag for flag, _, _ in _AUTOENCODER] + ["--features/--no-features", "--node-features"]
    options.refuse_without_effect({_name(flag): flag for flag in flags}, on)


def _name(flag: str) -> str:
    return flag.partition("/")[0].removeprefix("--").replace("-", "_")


def read(path: Path, rest: dict[str, Any]) -> tuple[Network, bool]:
    """The graph, and whether its features are used; takes the options of reading out of the rest.

    Raises:
        GraphiteError: It cannot be read.
    """
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
    own = found.features is not None and found.features.shape[1] > 0
    if features and not own:
        raise DatasetError("The graph has no features: pass them with '--node-features', or pass '--no-features'.")
    uses = own if features is None else features
    width = found.features.shape[1] if found.features is not None and uses else 0
    note(
        f"{count_of(found.nodes, 'node')}, {count_of(len(found.edges), 'edge')}, "
        + (f"{count_of(width, 'feature')}." if uses else "no features." if not own else "features left out.")
    )
    if found.graph.is_weighted:
        note("Weights of edges are not used: an edge is there or not.")

    return found, uses


def link_settings(kind: str, rest: Mapping[str, Any]) -> LinkSettings:
    """The settings of a kind of model, with those that were given."""
    from graphite_gen.network.settings import LinkSettings

    return LinkSettings(kind=kind, **{name: value for name, value in rest.items() if value is not None})


def train_on_all(graph: Network, settings: LinkSettings, seed: int, features: bool) -> TrainedAutoencoder:
    """A model of all edges of a graph; its epochs are counted on stderr."""
    from graphite_gen.network import link_prediction

    from .console import counting

    with counting(f"Training {settings.kind}") as count_epochs:
        return link_prediction.train_on_all(graph, settings, seed, features=features, progress=count_epochs)


def train_network(
    source: Path, folder: Path, format: str | None, simplify: bool, given: Mapping[str, Any], seed: int, as_json: bool
) -> None:
    """Learn one graph, keep the model in a folder, and say what to run next."""
    import shlex
    import time
    from dataclasses import replace

    from graphite_gen.network.generation import MOST_NODES, fit_network_model
    from graphite_gen.network.settings import GENERATION
    from graphite_gen.network.storage import save_network_model
    from graphite_gen.records import Provenance

    from .console import count_of, counting, note, show_facts, show_json

    reading = {"features": False, "format": format, "simplify": simplify, "node_features": None, "node_labels": None}
    graph, _ = read(source, reading)
    settings = replace(GENERATION, **given)
    if graph.nodes > MOST_NODES:
        note(f"Of more than {MOST_NODES} nodes the mean degree is kept, and that of each node only as far as learned.")
    started = time.monotonic()
    with counting(f"Training {settings.kind}") as count_epochs:
        model = fit_network_model(
            graph,
            settings,
            name=folder.name,
            seed=seed,
            provenance=Provenance(source=source.name, seed=None),
            progress=count_epochs,
        )
    save_network_model(model, folder)
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    if as_json:
        results = {"nodes": model.nodes, "edges": model.edges, "epochs": settings.epochs}
        return show_json({"name": model.name, "folder": str(folder), "results": results})
    show_facts(
        [
            ("model", str(folder)),
            (
                "graph",
                f"{count_of(model.nodes, 'node')}, {count_of(model.edges, 'edge')}, "
                f"mean degree {model.mean_degree:.3g}",
            ),
            ("trained", f"{count_of(settings.epochs, 'epoch')}, {minutes} min {seconds} s"),
        ]
    )

    return note(f"Next: graphite-gen sample --model {shlex.quote(str(folder))} -o like-it.graphml")


def averaged(runs: int, what: str) -> str:
    """What figures of so many runs are."""
    from .console import count_of

    if runs == 1:
        return f"From one {what}: with '--runs' 2 or more there is a standard error."

    return f"Mean ± standard error of {count_of(runs, what)}."


def doubt_few(number: int, what: str) -> None:
    """Say so where a score of so few test edges or nodes leaves much to chance."""
    from .console import count_of, note

    if number < FEW:
        note(f"A score of {count_of(number, what)} says little: another split may give quite another.")


def percent(value: float, error: float | None) -> str:
    """A share in percent with its standard error, if there is one."""
    return f"{100 * value:.2f}" + ("" if error is None else f" ± {100 * error:.2f}")
