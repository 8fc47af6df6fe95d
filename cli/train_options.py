"""Options of 'train' for the settings of the model and the run; their help shows the default of each preset."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from graphite_gen.config import ENCODER_FEATURES

from . import options
from .command import flag_of, shown_default
from .options import name_of
from .types import DECODER, DURATION, FEATURES, shown_duration

# Written out because importing the library would slow down every '--help'; a test compares them with the library.
KINDS = ("graphite-vae", "graphite-ae", "vgae", "gae")
ENCODERS = ("residual", "gcn", "none")
ORDERINGS = (
    "uniform",
    "max-degree",
    "frontier",
    "bfs",
    "dfs",
    "max-cardinality",
    "degeneracy",
    "onion",
    "topological",
    "attachment",
)


class OrderingType(click.Choice):  # type: ignore[type-arg]  # not generic in older versions of click
    """A node ordering; earlier names are accepted as well."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from graphite_gen.config import current_names

        return str(super().convert(current_names({"ordering": value})["ordering"], param, ctx))


ORDERING = OrderingType(("auto", *ORDERINGS))
COUNT, WHOLE, LAYERS = click.IntRange(1), click.IntRange(0), click.IntRange(0, 100)

_TABLE: tuple[tuple[str, Any, str], ...] = (
    ("--kind", click.Choice(KINDS), "Kind of model to train."),
    ("--decoder", DECODER, "Decode node by node, or all edges at once."),
    ("--ordering", ORDERING, "Node ordering of an autoregressive decoder; 'auto' compares them."),
    ("--encoder", click.Choice(ENCODERS), "Encoder; with 'none', latents are drawn from the prior."),
    ("--budget", DURATION, "Time to train for, such as 90s, 10m or 2h; or pass '--epochs'."),
    ("--epochs", COUNT, "Training epochs, instead of '--budget'."),
    ("--epoch-graphs", WHOLE, "Graphs per epoch; 0 for one pass over the training graphs."),
    ("--batch-size", COUNT, "Graphs per training step."),
    ("--learning-rate", click.FloatRange(1e-9, 10), "Peak learning rate."),
    ("--latent", click.IntRange(1, 1024), "Latent dimensions per node."),
    ("--width", click.IntRange(1, 4096), "Units per hidden layer."),
    ("--rounds", LAYERS, "Refinement rounds of the decoder."),
    ("--dropout", click.FloatRange(0, 0.9), "Dropout probability (autoregressive decoder)."),
    ("--skip", click.Choice(("convex", "incremental")), "Skip connection of each refinement round."),
    ("--skip-weight", click.FloatRange(0, 10), "Weight λ of the refinements; with 0 it is a VGAE."),
    ("--mlp/--no-mlp", None, "Apply an MLP to the latents before the decoder."),
    ("--encoder-features", FEATURES, f"Encoder inputs, some of {','.join(ENCODER_FEATURES)}."),
    ("--kl-warmup", click.FloatRange(0, 1), "Fraction of the run over which the KL weight rises to 1."),
    ("--free-bits", click.FloatRange(0, 100), "Nats of KL per node that cost nothing (in one-shot models, at first)."),
    (
        "--reconstruction",
        click.FloatRange(0, 100),
        "Weight of reconstructing graphs from posterior means (autoregressive).",
    ),
    ("--clip", click.FloatRange(1e-6), "Maximum gradient norm."),
    ("--patience", WHOLE, "Validations without improvement before early stopping; 0 disables it."),
    ("--validate-every", COUNT, "Epochs between validations."),
    ("--subsample", click.FloatRange(0), "Non-edges sampled per edge with '--single'; 0 uses all."),
)

SETTINGS = tuple(name_of(flag) for flag, *_ in _TABLE)
"""Names of the settings, in the order of the help."""

NETWORK_SETTINGS = ("kind", "epochs", "learning_rate", "latent", "width", "rounds", "skip", "skip_weight", "subsample")
"""Those that a run on one network takes."""


@contextmanager
def naming_options() -> Iterator[None]:
    """Report a setting without effect by its option."""
    from graphite_gen.errors import UnusedSettingError

    try:
        yield
    except UnusedSettingError as error:
        raise click.UsageError(f"'{flag_of(error.setting)}' has no effect on {error.on}. Leave it out.") from error


def _defaults(flag: str) -> str:
    """A setting's default, then the presets, and '--single', that have another."""
    from graphite_gen.config import PRESETS
    from graphite_gen.network.hyperparameters import GENERATION

    name = name_of(flag)
    sources: dict[str, tuple[Any, ...]] = {**PRESETS, "--single": (GENERATION,) if name in NETWORK_SETTINGS else ()}
    values = [
        (source, _shown(flag, getattr(config, name)))
        for source, configs in sources.items()
        for config in configs
        if hasattr(config, name) and name not in getattr(configs[0], "unused", ())
    ]
    default = values[0][1] if values[0][0] == "default" else "not used"

    return "; ".join([default, *(f"{source}: {value}" for source, value in values if value != default)])


def _shown(flag: str, value: Any) -> str:
    if flag in ("--budget", "--width") and not value:
        return "none"
    if flag == "--batch-size" and not value:
        return "64, fewer for graphs of more than 15 nodes"

    return shown_duration(value) if flag == "--budget" else shown_default(flag, value)


settings = options.settings(_TABLE, _defaults)
