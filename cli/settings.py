"""The options of 'train' that change a preset, or the settings of '--single'; their help shows what these say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from .command import Option
from .types import DECODING_STEPS, FEATURES

__all__ = ["SETTINGS", "SINGLE_SETTINGS", "naming_options", "settings"]

KINDS = ("graphite-vae", "graphite-ae", "vgae", "gae")
# Written out, because loading the library would slow every '--help'; a test holds them equal.
ENCODERS = ("residual", "gcn", "none")
ORDERINGS = (
    "uniform",
    "max-degree",
    "frontier",
    "bfs",
    "dfs",
    "max-cardinality",
    "degeneracy",
    "attachment",
)
# Earlier spellings of options, and of values that the library still knows.
EARLIER = {"ordering": ("--order",)}

F = TypeVar("F", bound=Callable[..., Any])


class OrderingType(click.Choice[str]):
    """A node ordering; its earlier names are taken as well."""

    def __init__(self) -> None:
        super().__init__(ORDERINGS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from graphite_gen.config import current_names

        return str(super().convert(current_names({"ordering": value})["ordering"], param, ctx))


class SettingOption(Option):
    """A setting of the model or the run: the preset's unless given."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        record = super().get_help_record(ctx)
        if record is None:
            return None
        values = _defaults(str(self.name))
        default = next(iter(values.values()))
        others = "".join(f"; {source}: {value}" for source, value in values.items() if value != default)

        # What click adds at the end is the range.
        text, _, bounds = record[1].partition("  [")

        return record[0], f"{text}  [default: {default}{others}{'; ' + bounds if bounds else ']'}"


def _defaults(name: str) -> dict[str, str]:
    """What a setting is by each preset that has it, and with '--single' where that takes it."""
    # Free of everything heavy, and read only when someone asks for help.
    from graphite_gen.config import PRESETS
    from graphite_gen.network.hyperparameters import GENERATION

    sources: dict[str, tuple[Any, ...]] = {**PRESETS, "--single": (GENERATION,) if name in SINGLE_SETTINGS else ()}

    return {
        source: _shown(name, getattr(config, name))
        for source, configs in sources.items()
        for config in configs
        if hasattr(config, name)
    }


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return name if value else f"no-{name}"
    if isinstance(value, tuple):
        return ",".join(value) or "none"
    if name == "decoding_steps" and not value:
        return "all"
    if name == "width" and not value:
        return "none"

    return f"{value:g}" if isinstance(value, float) else str(value)


COUNT, WHOLE = click.IntRange(1), click.IntRange(0)

# The name of the setting in the library, its flag, its type, and what it is.
_TABLE: tuple[tuple[str, str, Any, str], ...] = (
    ("kind", "--kind", click.Choice(KINDS), "What to build."),
    ("decoding_steps", "--stages", DECODING_STEPS, "In how many stages pairs are decided; 1 decides all at once."),
    ("ordering", "--ordering", OrderingType(), "The node ordering of an autoregressive decoder."),
    ("encoder", "--encoder", click.Choice(ENCODERS), "What reads a graph; 'none' leaves latents to be noise."),
    ("epochs", "--epochs", COUNT, "Rounds of training."),
    ("epoch_graphs", "--epoch-graphs", WHOLE, "Graphs in an epoch; 0 makes it one pass."),
    ("batch_size", "--batch-size", COUNT, "Graphs per step."),
    ("learning_rate", "--learning-rate", click.FloatRange(1e-9, 10), "Peak of the schedule."),
    ("latent", "--latent", click.IntRange(1, 1024), "Latent dimensions per node."),
    ("width", "--width", click.IntRange(1, 4096), "Units of hidden layers."),
    ("rounds", "--rounds", click.IntRange(0, 100), "Refinements in the decoder."),
    ("pair_layers", "--pair-layers", click.IntRange(0, 100), "Layers over the states of pairs (staged only)."),
    ("row_layers", "--row-layers", click.IntRange(0, 100), "Layers over an arriving node's answers (staged only)."),
    ("skip", "--skip", click.Choice(("convex", "incremental")), "How a refinement joins its input."),
    ("skip_weight", "--skip-weight", click.FloatRange(0, 10), "Weight λ of a refinement; 0 is VGAE."),
    ("mlp", "--mlp/--no-mlp", None, "Whether a network is applied to the latents first."),
    ("encoder_features", "--encoder-features", FEATURES, "What the encoder reads, with commas."),
    ("kl_warmup", "--kl-warmup", click.FloatRange(0, 1), "Part of the run over which the KL term rises."),
    ("clip", "--clip", click.FloatRange(1e-6), "Largest norm of a gradient."),
    ("patience", "--patience", WHOLE, "Validations without progress before stopping; 0 never stops."),
    ("validate_every", "--validate-every", COUNT, "Epochs between validations."),
    (
        "subsample",
        "--subsample",
        click.FloatRange(0),
        "Pairs without an edge scored in a step, per edge; 0 scores all ('--single' only).",
    ),
)

SETTINGS = tuple(name for name, *_ in _TABLE)
"""The settings' names, in the order of the help."""

SINGLE_SETTINGS = ("kind", "epochs", "learning_rate", "latent", "width", "rounds", "skip", "skip_weight", "subsample")
"""Those that a run on one large graph takes."""


@contextmanager
def naming_options() -> Iterator[None]:
    """Turn the refusal of a setting that changes nothing into one of its option."""
    from graphite_gen.errors import UnusedSettingError

    try:
        yield
    except UnusedSettingError as error:
        flag = next(flag for name, flag, *_ in _TABLE if name == error.setting)
        raise click.UsageError(str(UnusedSettingError(flag, error.on))) from error


def settings(command: F) -> F:
    """Add an option for each setting; None is the preset's value."""
    for name, flag, kind, text in reversed(_TABLE):
        metavar = None if kind is None or isinstance(kind, click.Choice) else "LIST" if kind.name == "list" else "N"
        option = click.option(
            flag,
            name,
            cls=SettingOption,
            earlier=EARLIER.get(name, ()),
            type=kind,
            default=None,
            metavar=metavar,
            help=text,
        )
        command = option(command)

    return command
