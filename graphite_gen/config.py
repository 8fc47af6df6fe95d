"""Frozen settings of models and of training runs, with JSON both ways and the presets.

A config object stops at :func:`graphite_gen.training.model.build_network`: layers get plain numbers.
"""

from __future__ import annotations

import dataclasses
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, TypeVar

from .errors import ConfigError

__all__ = [
    "KINDS",
    "ORDERINGS",
    "PRESETS",
    "Autoencoder",
    "ModelConfig",
    "Settings",
    "TrainConfig",
    "current_names",
    "preset",
    "require",
    "require_count",
    "require_range",
]

KINDS = ("graphite-vae", "graphite-ae", "vgae", "gae")
# In which order nodes arrive in a staged model: what a rule prefers, given what is there; ties are broken evenly.
ORDERINGS = {
    "uniform": "any node",
    "max-degree": "a node of the highest degree first, then any node",
    "frontier": "any neighbour of what is there",
    "bfs": "a neighbour of the node that came first",
    "dfs": "a neighbour of the node that came last",
    "max-cardinality": "a node with the most neighbours among what is there",
    "degeneracy": "the reverse of removing, again and again, a node of the lowest degree left",
    "attachment": "the reverse of removing a node with as many edges as each node would add if all added as many",
}
ENCODER_FEATURES = ("identity", "constant", "degree", "random")

# Settings that some models never read.
_AUTOREGRESSIVE_ONLY = ("ordering", "pair_layers", "row_layers", "coarse")
_REFINEMENT_ONLY = ("refinement", "rounds", "skip", "skip_weight")
_ONE_SHOT_ONLY = ("mlp", "refinement", "skip", "skip_weight", "head", "samples", "samples_from")
_ENCODER_ONLY = ("encoder_features", "random_features", "encoder_layers", "kl_warmup")

# Earlier names of settings and of their values: checkpoints and scripts may still have them.
_EARLIER_NAMES = {"stages": "decoding_steps", "order": "ordering"}
_EARLIER_VALUES = {
    "ordering": {
        "breadth": "bfs",
        "cardinality": "max-cardinality",
        "depth": "dfs",
        "even": "attachment",
        "hub": "max-degree",
        "peel": "degeneracy",
    }
}

C = TypeVar("C", bound="Settings")


def current_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings under their current names."""
    renamed = {_EARLIER_NAMES.get(name, name): value for name, value in settings.items()}

    return {
        name: _EARLIER_VALUES.get(name, {}).get(value, value) if isinstance(value, str) else value
        for name, value in renamed.items()
    }


class Settings:
    """JSON both ways for a frozen dataclass, and changes; unknown names and values of another type are refused."""

    def to_json(self) -> dict[str, Any]:
        """The settings as a JSON object."""
        return {
            field.name: list(value) if isinstance(value := getattr(self, field.name), tuple) else value
            for field in fields(self)  # type: ignore[arg-type]
        }

    @classmethod
    def from_json(cls: type[C], values: Mapping[str, Any]) -> C:
        """The settings of a JSON object.

        Raises:
            ConfigError: A key is unknown, or a value has the wrong type or is out of range.
        """
        if not isinstance(values, Mapping):
            raise ConfigError(f"{cls.__name__} should be a JSON object, not {type(values).__name__}.")

        return cls().changed(**values)

    def changed(self: C, /, **changes: Any) -> C:
        """These settings with some of them changed.

        Raises:
            ConfigError: A name is unknown, or a value has the wrong type or is out of range.
        """
        changes = current_names(changes)
        known = {field.name: field for field in fields(self)}  # type: ignore[arg-type]
        unknown = sorted(set(changes) - set(known))
        if unknown:
            raise ConfigError(f"Unknown setting '{unknown[0][:80]}'. Known: {', '.join(known)}.")
        checked = {name: _checked(name, value, known[name].default) for name, value in changes.items()}

        return replace(self, **checked)  # type: ignore[type-var]


def _checked(name: str, value: Any, default: Any) -> Any:
    """The value if it has the type of the setting's default; a NumPy number counts as the number it is."""
    if default is None:
        # Such a setting is a number, or left to what suits the others.
        return None if value is None else _checked(name, value, 0.0)
    if type(value).__module__ == "numpy":
        value = value.item() if value.ndim == 0 else value.tolist()
    if isinstance(default, tuple) and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(default, float) and type(value) is int and abs(value) < 2**63:
        return float(value)
    if type(value) is not type(default):
        raise ConfigError(f"'{name}' should be {type(default).__name__}, not {reprlib.repr(value)}.")

    return value


def require(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse a value that is none of the choices of a setting.

    Raises:
        ConfigError: It is another.
    """
    if value not in choices:
        raise ConfigError(f"'{name}' is '{str(value)[:80]}'; choose one of {', '.join(choices)}.")


def require_range(name: str, value: float, low: float, high: float) -> None:
    """Refuse a number out of range.

    Raises:
        ConfigError: It is.
    """
    if not low <= value <= high:
        raise ConfigError(f"'{name}' is {value}; it should lie between {low:g} and {high:g}.")


def require_count(name: str, value: Any, low: int = 1) -> None:
    """Refuse what is no whole number, or too small a one.

    Raises:
        ConfigError: It is.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < low:
        raise ConfigError(f"'{name}' is {reprlib.repr(value)}; it should be a whole number, at least {low}.")


class Autoencoder:
    """What the kind of a model says of it, whether of many graphs or of one."""

    kind: str
    rounds: int

    @property
    def is_variational(self) -> bool:
        """Whether the latents have a posterior, rather than a point."""
        return self.kind in ("graphite-vae", "vgae")

    @property
    def refinement_rounds(self) -> int:
        """The rounds that are run: none for VGAE and GAE."""
        return self.rounds if self.kind.startswith("graphite") else 0


@dataclass(frozen=True)
class ModelConfig(Autoencoder, Settings):
    r"""The architecture of one model.

    Attributes:
        kind: ``graphite-vae``, ``graphite-ae``, ``vgae`` or ``gae``.
        observation: ``bernoulli`` for unweighted graphs, ``normal`` for weighted ones (eq. 10).
        max_nodes: The most nodes that ``identity`` features can tell apart.
        node_features: The width :math:`F` of the user's own node features :math:`X`; 0 for none.
        encoder: ``gcn`` (eq. 3) or ``residual`` message passing; ``none`` for a staged model whose latents are noise.
        encoder_features: What the encoder reads besides :math:`X`.
        random_features: How many columns ``random`` adds.
        encoder_layers: The number of hidden message-passing layers of the encoder.
        decoder_features: What the decoder reads besides :math:`Z` and :math:`X`; only ``identity``, for the paper.
        width: Units of every hidden layer.
        latent: The latent dimension :math:`D`.
        mlp: Whether a two-layer network is applied to :math:`Z` before decoding.
        refinement: The GNN of eq. 9: ``gcn`` or ``residual``.
        rounds: How often eqs. 8-9 are iterated (Graphite only); in a staged model, how often messages are passed over
            the graph so far.
        skip: How a round joins its input: ``convex`` or ``incremental``.
        skip_weight: The weight :math:`\lambda` of the skip; 0 is exactly VGAE.
        head: How node states become logits: ``inner`` product or ``signed`` inner product with biases.
        head_rank: The rank of the signed inner product; in a staged model, that of its low-rank graph.
        decoding_steps: In how many steps edges are sampled: 1 is the paper's factorised observation (eq. 10), any other
            number makes a staged model and is its own default, 0 for one pair at a time.
        ordering: The node ordering of an autoregressive model, one of ``ORDERINGS``.
        pair_layers: How often the states of pairs of nodes are updated (staged only).
        row_layers: How often the answers of an arriving node are passed on within its row (staged only).
    """

    kind: str = "graphite-vae"
    observation: str = "bernoulli"
    max_nodes: int = 20
    node_features: int = 0
    encoder: str = "residual"
    encoder_features: tuple[str, ...] = ("degree", "random")
    random_features: int = 8
    encoder_layers: int = 4
    decoder_features: tuple[str, ...] = ()
    width: int = 64
    latent: int = 8
    mlp: bool = True
    refinement: str = "residual"
    rounds: int = 3
    skip: str = "convex"
    skip_weight: float = 1.0
    head: str = "signed"
    head_rank: int = 32
    decoding_steps: int = 1
    ordering: str = "bfs"
    pair_layers: int = 2
    row_layers: int = 2

    def __post_init__(self) -> None:
        require("kind", self.kind, KINDS)
        require("observation", self.observation, ("bernoulli", "normal"))
        require("encoder", self.encoder, ("gcn", "residual", "none") if self.is_autoregressive else ("gcn", "residual"))
        require("refinement", self.refinement, ("gcn", "residual"))
        require("skip", self.skip, ("convex", "incremental"))
        require("head", self.head, ("inner", "signed"))
        for name in self.encoder_features:
            require("encoder_features", name, ENCODER_FEATURES)
        for name in self.decoder_features:
            require("decoder_features", name, ("identity",))
        require("ordering", self.ordering, tuple(ORDERINGS))
        if self.is_autoregressive:
            self._check_autoregressive()
        empty = set() if self.random_features else {"random"}
        if self.encoder != "none" and not set(self.encoder_features) - empty and not self.node_features:
            raise ConfigError(f"The encoder reads nothing: name one of {', '.join(ENCODER_FEATURES)}.")
        for name, high in (("width", 4096), ("latent", 1024), ("head_rank", 1024), ("max_nodes", 10**6)):
            require_range(name, getattr(self, name), 1, high)
        for name, high in (
            ("rounds", 100),
            ("encoder_layers", 100),
            ("random_features", 1024),
            ("node_features", 10**6),
            ("pair_layers", 100),
            ("row_layers", 100),
            ("decoding_steps", 10**12),
        ):
            require_range(name, getattr(self, name), 0, high)
        require_range("skip_weight", self.skip_weight, 0, 10)

    def _check_autoregressive(self) -> None:
        """Staged decoding is for laws over unweighted graphs."""
        if self.kind != "graphite-vae":
            raise ConfigError(
                f"A '{self.kind}' decides all pairs at once. Pass '--stages 1', or '--kind graphite-vae' for more."
            )
        if self.observation != "bernoulli":
            raise ConfigError("Weighted graphs are decided at once. Pass '--stages 1', or '--ignore-weights'.")
        if self.decoder_features:
            raise ConfigError(
                "A staged model knows its nodes by their arrival, so its decoder reads no 'identity' features, as that "
                "of the preset 'paper' does. Pass '--stages 1', or another '--preset'."
            )

    @property
    def is_autoregressive(self) -> bool:
        """Whether pairs are decided stage by stage rather than all at once."""
        return self.decoding_steps != 1

    @property
    def unused(self) -> Mapping[str, str]:
        """The settings of model and training that have no effect on this kind of model, each with the reason."""
        reasons: dict[str, str] = {}
        if self.is_autoregressive:
            reasons |= dict.fromkeys(_ONE_SHOT_ONLY, "a staged model")
            reasons |= dict.fromkeys(_ENCODER_ONLY if self.encoder == "none" else (), "a model without encoder")
        else:
            reasons |= dict.fromkeys(_AUTOREGRESSIVE_ONLY, "a model that decides all pairs at once")
        if not self.is_variational:
            reasons["kl_warmup"] = "an autoencoder"
        if not self.kind.startswith("graphite"):
            reasons |= dict.fromkeys(_REFINEMENT_ONLY, f"a '{self.kind}'")

        return reasons

    @property
    def is_exchangeable(self) -> bool:
        """Whether p(A) is the same for every numbering of the nodes."""
        return "identity" not in self.decoder_features


@dataclass(frozen=True)
class TrainConfig(Settings):
    """One training run.

    Attributes:
        epochs: Rounds of training; see ``epoch_graphs``.
        epoch_graphs: The number of graphs in an epoch, so that epochs mean as much work for 50 training graphs, gone
            through many times, as for 50,000. 0 makes every epoch one pass.
        batch_size: Graphs per step.
        learning_rate: The peak of the schedule.
        warmup_steps: Steps of linear warm-up, before a cosine decay to zero.
        kl_warmup: The part of the run over which the weight of the KL term rises to one.
        clip: The largest norm of a gradient.
        weight_decay: Decoupled weight decay.
        patience: Validations without improvement before stopping; 0 never stops early.
        validate_every: Epochs between validations.
        validation_samples: Importance samples per validation graph.
        samples: Importance samples per training graph in the last part of the run; 1 keeps to the ELBO.
        samples_from: Where that part begins: from there on the tighter multi-sample bound is trained.
        average: The memory of the running mean of the weights that is validated and kept; 0 keeps the weights.
        coarse: The part of the steps of a staged model that train a schedule of fewer stages than the finest.
        convention: What is scored: ``pairs`` of real nodes, or as ``paper`` all cells of the padded matrix, which is no
            law over graphs and stands only beside the paper's table.
        seed: The run's one seed.
    """

    epochs: int = 80
    epoch_graphs: int = 6000
    batch_size: int = 128
    learning_rate: float = 2e-3
    warmup_steps: int = 100
    kl_warmup: float = 0.2
    clip: float = 5.0
    weight_decay: float = 1e-4
    patience: int = 10
    validate_every: int = 4
    validation_samples: int = 16
    samples: int = 4
    samples_from: float = 0.7
    average: float = 0.0
    coarse: float = 0.1
    convention: str = "pairs"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "validate_every", "validation_samples", "samples"):
            require_range(name, getattr(self, name), 1, 10**9)
        for name in ("epoch_graphs", "warmup_steps", "patience", "seed"):
            require_range(name, getattr(self, name), 0, 2**63 - 1)
        require("convention", self.convention, ("pairs", "paper"))
        require_range("learning_rate", self.learning_rate, 1e-9, 10)
        require_range("kl_warmup", self.kl_warmup, 0, 1)
        require_range("samples_from", self.samples_from, 0, 1)
        require_range("average", self.average, 0, 0.9999999)
        require_range("coarse", self.coarse, 0, 1)
        require_range("clip", self.clip, 1e-6, 1e6)
        require_range("weight_decay", self.weight_decay, 0, 1)


# The appendix's architecture: 32-32 encoder on H⁰ = I, a two-layer network on Z, 16-32-16 refinements combined
# convexly over three induced embeddings, [Z|X] with X = I, plain inner product. It leaves λ open: with a
# half Graphite starts so far from VGAE that many epochs pass before it learns; a quarter learns sooner.
_PAPER_MODEL = ModelConfig(
    encoder="gcn",
    encoder_features=("identity",),
    encoder_layers=1,
    decoder_features=("identity",),
    width=32,
    latent=16,
    refinement="gcn",
    rounds=3,
    skip_weight=0.25,
    head="inner",
)
# The paper does not say how it is trained. Without a slow start of the KL term Graphite-VAE was level with VGAE on
# 'geometric' in the two runs that settled this; with it, it was 17 and 3 nats below.
_PAPER_TRAINING = TrainConfig(
    epochs=500,
    epoch_graphs=0,
    learning_rate=0.01,
    warmup_steps=0,
    kl_warmup=0.6,
    weight_decay=0.0,
    patience=0,
    validate_every=10,
    samples=1,
)

# Staged decoding: what 'train' makes unless told otherwise. Latents are noise: what the answers say they need not.
_AUTOREGRESSIVE_MODEL = ModelConfig(
    encoder="none",
    encoder_features=(),
    random_features=0,
    encoder_layers=0,
    latent=4,
    rounds=4,
    head_rank=8,
    decoding_steps=0,
)
_AUTOREGRESSIVE_TRAINING = TrainConfig(
    epochs=30,
    epoch_graphs=24_000,
    batch_size=256,
    learning_rate=3e-3,
    clip=20.0,
    average=0.99,
    coarse=0.05,
    kl_warmup=0.0,
    validation_samples=2,
    samples=1,
)

PRESETS: Mapping[str, tuple[ModelConfig, TrainConfig]] = {
    "default": (_AUTOREGRESSIVE_MODEL, _AUTOREGRESSIVE_TRAINING),
    "one-shot": (ModelConfig(), TrainConfig()),
    "paper": (_PAPER_MODEL, _PAPER_TRAINING),
}


def preset(name: str, **changes: Any) -> tuple[ModelConfig, TrainConfig]:
    """The settings of a preset, with some of them changed.

    ``default`` is staged; what only exists in one stage (``stages=1``, another kind than ``graphite-vae``, convention
    ``paper``) starts from ``one-shot`` instead. Asked for an encoder, it takes that of ``one-shot``.

    Raises:
        ConfigError: The preset or a setting is unknown, or a value does not fit.
    """
    require("preset", name, tuple(PRESETS))
    changes = current_names(changes)
    one_shot = {"decoding_steps": 1, "convention": "paper"}
    if name == "default" and (
        changes.get("kind", "graphite-vae") != "graphite-vae"
        or any(changes.get(key) == value for key, value in one_shot.items())
    ):
        name = "one-shot"
    model, training = PRESETS[name]
    if model.encoder == "none" and changes.get("encoder", "none") != "none":
        model, training = _with_encoder(model, training)
    split: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for key, value in changes.items():
        if key not in _names(model) + _names(training):
            raise ConfigError(f"Unknown setting '{key}'. Known: {', '.join(_names(model) + _names(training))}.")
        part = key in _names(training)
        split[part][key] = _checked(key, value, getattr((model, training)[part], key))

    model, training = replace(model, **split[0]), replace(training, **split[1])
    if model.is_autoregressive and training.convention == "paper":
        raise ConfigError("A staged model has no convention 'paper': it scores pairs. Use stages 1, or 'pairs'.")

    return model, training


def _with_encoder(model: ModelConfig, training: TrainConfig) -> tuple[ModelConfig, TrainConfig]:
    """Settings of a model without encoder with all that an encoder of the preset ``one-shot`` has."""
    source, run = PRESETS["one-shot"]
    names = ("encoder", "encoder_features", "random_features", "encoder_layers")

    return replace(model, **{name: getattr(source, name) for name in names}), replace(training, kl_warmup=run.kl_warmup)


def _names(config: ModelConfig | TrainConfig) -> list[str]:
    return [field.name for field in dataclasses.fields(config)]
