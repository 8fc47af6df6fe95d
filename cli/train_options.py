"""Options of 'train' for the settings of the model and the run; their help shows the default of each preset."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from .command import shown_default
from .options import F, setting
from .types import DECODER, DURATION, ENCODER_FEATURES, FEATURES, shown_duration

# Written out because importing the library would slow down every '--help'; a test compares them with the library.
KINDS = ("graphite-vae", "graphite-ae", "vgae", "gae")
ENCODERS = ("residual", "gcn", "none")
ORDERINGS = ("uniform", "max-degree", "frontier", "bfs", "dfs", "max-cardinality", "degeneracy", "onion", "attachment")
EARLIER = {"ordering": ("--order",), "decoder": ("--stages",)}


class OrderingType(click.Choice[str]):
    """A node ordering; earlier names are accepted as well."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from graphite_gen.config import current_names

        return str(super().convert(current_names({"ordering": value})["ordering"], param, ctx))


ORDERING = OrderingType(("auto", *ORDERINGS))
COUNT, WHOLE, LAYERS = click.IntRange(1), click.IntRange(0), click.IntRange(0, 100)

# The name of the setting in the library, its flag, its type, and what it is.
_TABLE: tuple[tuple[str, str, Any, str], ...] = (
    ("kind", "--kind", click.Choice(KINDS), "Kind of model to train."),
    ("decoder", "--decoder", DECODER, "Decode node by node, or all edges at once."),
    ("ordering", "--ordering", ORDERING, "Node ordering of an autoregressive decoder; 'auto' compares them."),
    ("encoder", "--encoder", click.Choice(ENCODERS), "Encoder; with 'none', latents are drawn from the prior."),
    ("budget", "--budget", DURATION, "Time to train for, such as 90s, 10m or 2h; or pass '--epochs'."),
    ("epochs", "--epochs", COUNT, "Training epochs, instead of '--budget'."),
    ("epoch_graphs", "--epoch-graphs", WHOLE, "Graphs per epoch; 0 for one pass over the training graphs."),
    ("batch_size", "--batch-size", COUNT, "Graphs per training step."),
    ("learning_rate", "--learning-rate", click.FloatRange(1e-9, 10), "Peak learning rate."),
    ("latent", "--latent", click.IntRange(1, 1024), "Latent dimensions per node."),
    ("width", "--width", click.IntRange(1, 4096), "Units per hidden layer."),
    ("rounds", "--rounds", LAYERS, "Refinement rounds of the decoder."),
    ("dropout", "--dropout", click.FloatRange(0, 0.9), "Dropout probability (autoregressive decoder)."),
    ("skip", "--skip", click.Choice(("convex", "incremental")), "Skip connection of each refinement round."),
    ("skip_weight", "--skip-weight", click.FloatRange(0, 10), "Weight λ of the refinements; with 0 it is a VGAE."),
    ("mlp", "--mlp/--no-mlp", None, "Apply an MLP to the latents before the decoder."),
    ("encoder_features", "--encoder-features", FEATURES, f"Encoder inputs, some of {','.join(ENCODER_FEATURES)}."),
    ("kl_warmup", "--kl-warmup", click.FloatRange(0, 1), "Fraction of the run over which the KL weight rises to 1."),
    ("free_bits", "--free-bits", click.FloatRange(0, 100), "KL divergence in nats per node that costs nothing."),
    ("clip", "--clip", click.FloatRange(1e-6), "Maximum gradient norm."),
    ("patience", "--patience", WHOLE, "Validations without improvement before early stopping; 0 disables it."),
    ("validate_every", "--validate-every", COUNT, "Epochs between validations."),
    ("subsample", "--subsample", click.FloatRange(0), "Non-edges sampled per edge with '--single'; 0 uses all."),
)

SETTINGS = tuple(name for name, *_ in _TABLE)
"""Names of the settings, in the order of the help."""

NETWORK_SETTINGS = ("kind", "epochs", "learning_rate", "latent", "width", "rounds", "skip", "skip_weight", "subsample")
"""Those that a run on one network takes."""


def settings(command: F) -> F:
    """Add an option for each setting; None is the preset's value."""
    metavars = {DECODER: "[autoregressive|one-shot]", DURATION: "DURATION", FEATURES: "LIST"}
    for name, flag, kind, text in reversed(_TABLE):
        metavar, earlier = metavars.get(kind, "N"), EARLIER.get(name, ())
        option = setting(flag, kind, text, partial(_defaults, name), name, metavar=metavar, earlier=earlier)
        command = option(command)

    return command


@contextmanager
def naming_options() -> Iterator[None]:
    """Report a setting without effect by its option."""
    from graphite_gen.errors import UnusedSettingError

    try:
        yield
    except UnusedSettingError as error:
        flag = next(flag for name, flag, *_ in _TABLE if name == error.setting)
        raise click.UsageError(f"'{flag}' has no effect on {error.on}. Leave it out.") from error


def _defaults(name: str) -> str:
    """A setting's default, then the presets, and '--single', that have another."""
    from graphite_gen.config import PRESETS
    from graphite_gen.network.hyperparameters import GENERATION

    sources: dict[str, tuple[Any, ...]] = {**PRESETS, "--single": (GENERATION,) if name in NETWORK_SETTINGS else ()}
    values = [
        (source, _shown(name, getattr(config, name)))
        for source, configs in sources.items()
        for config in configs
        if hasattr(config, name) and name not in getattr(configs[0], "unused", ())
    ]
    default = values[0][1] if values[0][0] == "default" else "not used"

    return "; ".join([default, *(f"{source}: {value}" for source, value in values if value != default)])


def _shown(name: str, value: Any) -> str:
    if name in ("budget", "width") and not value:
        return "none"
    if name == "batch_size" and not value:
        return "64, fewer for graphs of more than 15 nodes"
    if name == "budget":
        return shown_duration(value)

    return shown_default(next(flag for key, flag, *_ in _TABLE if key == name), value)
